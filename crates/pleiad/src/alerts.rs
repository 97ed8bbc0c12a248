//! Alert delivery: polls the engine for alerts, which the engine also logs, and posts them to a webhook. The same loop
//! starts the periodic scan of the partition keys.
//!
//! Guarantees: no request waits for this work. Alerts that cannot be delivered are logged and dropped.

use std::sync::Arc;
use std::time::Duration;

use pleiad_engine::{AccountHost, Action, Alert, Engine, ServerAuthority};
use pleiad_model::Result;
use pleiad_wire::webhook::Webhook;
use tokio::sync::mpsc;

const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The number of these intervals between two scans of the partition keys.
const KEY_SCAN_TICKS: u64 = 30;
const QUEUE_MAX: usize = 64;

pub fn watch(account_host: Arc<AccountHost>, webhook: Option<Webhook>) {
    let queue = webhook.map(spawn_sender);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        for tick in 0u64.. {
            ticks.tick().await;
            if let Err(error) = watch_once(&account_host.engine(), tick, queue.as_ref()).await {
                tracing::warn!(%error, "cannot watch the partitions");
            }
        }
    });
}

async fn watch_once(engine: &Engine, tick: u64, queue: Option<&mpsc::Sender<Alert>>) -> Result<()> {
    let at = engine.authorize(&ServerAuthority, Action::Monitor)?;
    engine.raise_alerts(&at)?.into_iter().for_each(|alert| enqueue(queue, alert));
    // A new account has nothing to scan at the first tick.
    if tick.is_multiple_of(KEY_SCAN_TICKS) {
        engine.refresh_key_statistics(&at).await?;
    }
    Ok(())
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
