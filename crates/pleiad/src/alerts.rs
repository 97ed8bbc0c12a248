//! Alert delivery: polls the engine for alerts, which the engine also logs, and posts them to a webhook. The same loop
//! starts the periodic scan of the partition keys.
//!
//! Guarantees: no request waits for this work. Alerts that cannot be delivered are logged and dropped.

use std::sync::Arc;
use std::time::Duration;

use pleiad_engine::{AccountHost, Alert};
use pleiad_wire::webhook::Webhook;
use tokio::sync::mpsc;

const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The number of these intervals between two scans of the partition keys.
const KEY_SCAN_TICKS: u64 = 30;
const QUEUE_MAX: usize = 64;

pub fn watch(account_host: Arc<AccountHost>, webhook: Option<Webhook>) {
    let queue = webhook.map(spawn_sender);
    // Existing containers are scanned at the first tick (0); a new account has none, so its first scan comes later.
    let first = u64::from(account_host.engine().metrics().containers.is_empty());
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        for tick in first.. {
            ticks.tick().await;
            let engine = account_host.engine();
            for alert in engine.raise_alerts() {
                enqueue(queue.as_ref(), alert);
            }
            if tick % KEY_SCAN_TICKS == 0
                && let Err(error) = engine.refresh_key_statistics().await
            {
                tracing::warn!(%error, "cannot scan the partition keys");
            }
        }
    });
}

fn enqueue(queue: Option<&mpsc::Sender<Alert>>, alert: Alert) {
    if let Some(queue) = queue
        && queue.try_send(alert).is_err()
    {
        tracing::warn!("the webhook queue is full; an alert is dropped");
    }
}

fn spawn_sender(webhook: Webhook) -> mpsc::Sender<Alert> {
    let (queue, mut alerts) = mpsc::channel::<Alert>(QUEUE_MAX);
    tokio::spawn(async move {
        while let Some(alert) = alerts.recv().await {
            if let Err(error) = webhook.post(&alert).await {
                tracing::warn!(%error, "cannot reach the alert webhook");
            }
        }
    });
    queue
}
