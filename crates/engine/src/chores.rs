//! Work that nobody waits for. Each chore is remembered in the catalog, or is found again by looking, so that a crash
//! only postpones it.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_partition::Committer;
use pleiad_partition::commit::block_on;
use pleiad_storage::{AnyStore, Batch, Store, keyspace};
use tokio::sync::watch;

use crate::catalog::{Catalog, Container, erased, to_erase};

mod copy; // a database under another name
mod global_index; // indexes that follow their source
mod grow; // more partitions where there are too few
mod jobs; // splits and merges under way, and where to hold them
mod reindex; // the index after a change of the policy
mod repartition; // a split or merge, from its first byte to its last
mod sketch; // pictures of vectors, behind the writers
mod sweep; // what time undoes

pub(crate) use global_index::Keeper;
pub(crate) use grow::split_point;
pub(crate) use jobs::Jobs;
pub use jobs::{JobReport, Outcome, Step, Task};
pub(crate) use sketch::Sketcher;
#[cfg(test)]
pub(crate) use sketch::tend_all;
pub(crate) use sweep::Sweeper;
#[cfg(test)]
pub(crate) use sweep::{Looks, sweep};

/// The chores under way. Nobody waits for one but the end of the program: a store that is in use while the process
/// ends aborts it.
#[derive(Clone, Default)]
pub(crate) struct Chores {
    running: Arc<watch::Sender<usize>>,
}

/// One chore, until it is dropped.
pub(crate) struct Running(Chores);

impl Chores {
    /// Returns when no chore holds the store any more.
    pub(crate) async fn ended(&self) {
        // An error means that nobody can start one either.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }

    pub(crate) fn enter(&self) -> Running {
        self.running.send_modify(|running| *running += 1);
        Running(self.clone())
    }

    /// On a thread of its own: the store blocks while it gives space back.
    fn run(&self, name: &'static str, work: impl FnOnce() -> Result<()> + Send + 'static) {
        let running = self.enter();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            // Dropped last, when the work has let go of the store; also if it panics.
            let _running = running;
            if let Err(error) = work() {
                tracing::warn!(%error, chore = name, "a chore stopped; it goes on at the next start");
            }
        });
        if let Err(error) = thread {
            tracing::warn!(%error, chore = name, "a chore could not start; it goes on at the next start");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// Gives back the space of dropped containers and former partitions.
pub(crate) struct Eraser {
    store: Arc<AnyStore>,
    committer: Committer,
    chores: Chores,
}

impl Catalog {
    pub(crate) fn eraser(&self) -> Eraser {
        let (store, committer) = self.hands();
        Eraser { store, committer, chores: self.chores() }
    }

    /// Goes on where the last run of the program stopped. Which shards those are is settled before
    /// anyone can drop more.
    pub(crate) async fn resume_erasing(&self) -> Result<()> {
        let eraser = self.eraser();
        let shards = to_erase(&eraser.store).await?;
        eraser.start(shards);
        Ok(())
    }
}

impl Eraser {
    /// For containers that the tree no longer shows.
    pub(crate) fn erase(self, containers: &[Arc<Container>]) {
        containers.iter().flat_map(|container| &container.partitions).for_each(|partition| partition.close());
        let ranges = containers.iter().flat_map(|container| container.map.ranges());
        self.start(ranges.map(|range| range.shard).collect());
    }

    pub(crate) fn start(self, shards: Vec<u64>) {
        if !shards.is_empty() {
            self.chores.clone().run("erase", move || self.erase_all(&shards));
        }
    }

    fn erase_all(&self, shards: &[u64]) -> Result<()> {
        // Whatever was queued before the partitions closed is written first; nothing comes after.
        block_on(self.committer.commit(Batch::default()))?;
        for &shard in shards {
            let (from, to) = keyspace::shard_range(shard);
            block_on(self.store.drop_range(&from, &to))?;
            let mut batch = Batch::default();
            erased(&mut batch, shard);
            block_on(self.committer.commit(batch))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
