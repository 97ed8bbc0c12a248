//! Graceful shutdown.
//!
//! Guarantees: after `begin`, nothing new is accepted and every connection ends after its current request; `wait`
//! returns when the last connection has ended. Every task that has to end holds a `Draining`; `wait` waits until all of
//! them are dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The handle for stopping the server. Clones refer to the same drain.
#[derive(Clone, Debug)]
pub struct Drain {
    begun: Arc<watch::Sender<bool>>,
}

/// Held by every task that has to end.
#[derive(Clone, Debug)]
pub struct Draining {
    begun: watch::Receiver<bool>,
}

impl Drain {
    pub fn new() -> Self {
        Drain { begun: Arc::new(watch::Sender::new(false)) }
    }

    /// Stops accepting and asks connections to finish. Idempotent.
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// Returns true if everything ended within the time. A transport that is still accepting counts as not ended.
    pub async fn wait(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.begun.closed()).await.is_ok()
    }

    pub(super) fn watch(&self) -> Draining {
        Draining { begun: self.begun.subscribe() }
    }
}

impl Default for Drain {
    fn default() -> Self {
        Drain::new()
    }
}

impl Draining {
    /// Returns once the drain has begun, and also if all `Drain` handles were dropped: nothing could end this task
    /// then. Cancel safe.
    pub async fn begun(&mut self) {
        let _ = self.begun.wait_for(|begun| *begun).await;
    }
}
