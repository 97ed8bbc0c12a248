//! Stopping without dropping anyone.
//!
//! Promise: after `begin`, nothing new is accepted and every connection ends with the request it is in; `wait` returns
//! when the last one has ended. Everyone who must end holds a `Draining`, and waiting is waiting for those to go.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The handle of whoever stops the server. Clones are the same drain.
#[derive(Clone, Debug)]
pub struct Drain {
    begun: Arc<watch::Sender<bool>>,
}

/// Held by everything that has to end.
#[derive(Clone, Debug)]
pub(super) struct Draining {
    begun: watch::Receiver<bool>,
}

impl Drain {
    pub fn new() -> Self {
        Drain { begun: Arc::new(watch::Sender::new(false)) }
    }

    /// Stops accepting and asks connections to finish. Asking twice is asking once.
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// Whether everything ended within the time. Listeners that are still accepting count as not ended.
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
    /// Returns once the drain has begun; also when nobody is left who could begin it, as nobody could end us then.
    pub(super) async fn begun(&mut self) {
        let _ = self.begun.wait_for(|begun| *begun).await;
    }
}
