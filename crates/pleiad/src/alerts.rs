//! Alert delivery: polls the engine for alerts, which it also logs, and posts them to a webhook; starts the periodic
//! scan of the partition keys.
//!
//! Guarantees: no request waits for this work. Alerts that cannot be delivered are logged and dropped.

use std::sync::Arc;
use std::time::Duration;

use pleiad_engine::{AccountHost, Alert};
use pleiad_wire::webhook::Webhook;
use tokio::sync::mpsc;

const EVERY: Duration = Duration::from_secs(10);
/// The number of these intervals between two scans of the partition keys.
const LOOKS: u64 = 30;
const WAITING_MAX: usize = 64;

pub fn watch(live: Arc<AccountHost>, webhook: Option<Webhook>) {
    let told = webhook.map(teller);
    // Existing containers are scanned at the first tick (0); a new account has none, so its first scan comes later.
    let first = u64::from(live.engine().metrics().containers.is_empty());
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(EVERY);
        for tick in first.. {
            ticks.tick().await;
            let engine = live.engine();
            for alert in engine.alerts() {
                pass_on(told.as_ref(), alert);
            }
            if tick % LOOKS == 0
                && let Err(error) = engine.look_at_keys().await
            {
                tracing::warn!(%error, "cannot scan the partition keys");
            }
        }
    });
}

fn pass_on(told: Option<&mpsc::Sender<Alert>>, alert: Alert) {
    if let Some(told) = told
        && told.try_send(alert).is_err()
    {
        tracing::warn!("the webhook queue is full; an alert is dropped");
    }
}

fn teller(webhook: Webhook) -> mpsc::Sender<Alert> {
    let (told, mut waiting) = mpsc::channel::<Alert>(WAITING_MAX);
    tokio::spawn(async move {
        while let Some(alert) = waiting.recv().await {
            if let Err(error) = webhook.tell(&alert).await {
                tracing::warn!(%error, "cannot reach the alert webhook");
            }
        }
    });
    told
}
