//! Looking after the account while it is served: alerts to the log and to a URL, and a look at its keys now and then.
//!
//! Promise: nothing here is on a request's way. What cannot be delivered is logged and dropped.

use std::sync::Arc;
use std::time::Duration;

use pleiad_engine::{AccountHost, Alert};
use pleiad_wire::webhook::Webhook;
use tokio::sync::mpsc;

const EVERY: Duration = Duration::from_secs(10);
/// How many of those pass between two looks at the keys.
const LOOKS: u64 = 30;
const WAITING_MAX: usize = 64;

pub fn watch(live: Arc<AccountHost>, webhook: Option<Webhook>) {
    let told = webhook.map(teller);
    // What is there from the start is looked at first; an account that is new has nothing yet.
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
                tracing::warn!(%error, "cannot look at the partition keys");
            }
        }
    });
}

fn pass_on(told: Option<&mpsc::Sender<Alert>>, alert: Alert) {
    if let Some(told) = told
        && told.try_send(alert).is_err()
    {
        tracing::warn!("too many alerts wait for the webhook; one is dropped");
    }
}

fn teller(webhook: Webhook) -> mpsc::Sender<Alert> {
    let (told, mut waiting) = mpsc::channel::<Alert>(WAITING_MAX);
    tokio::spawn(async move {
        while let Some(alert) = waiting.recv().await {
            if let Err(error) = webhook.tell(&alert).await {
                tracing::warn!(%error, "the alert webhook was not reached");
            }
        }
    });
    told
}
