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
mod split_planner; // more partitions where there are too few
mod registry; // splits and merges under way, and where to hold them
mod reindex; // the index after a change of the policy
mod repartition; // a split or merge, from its first byte to its last
mod vector_index; // pictures of vectors, behind the writers
mod purge; // what time undoes

pub(crate) use global_index::GlobalIndexer;
pub(crate) use purge::Purger;
#[cfg(test)]
pub(crate) use purge::{PurgeScans, sweep};
pub(crate) use registry::JobRegistry;
pub use registry::{JobOutcome, JobReport, JobStep, JobTask};
pub(crate) use split_planner::split_point;
pub(crate) use vector_index::VectorIndexer;
#[cfg(test)]
pub(crate) use vector_index::tend_all;

/// The chores under way. Nobody waits for one but the end of the program: a store that is in use while the process
/// ends aborts it.
#[derive(Clone, Default)]
pub(crate) struct TaskTracker {
    running: Arc<watch::Sender<usize>>,
}

/// One chore, until it is dropped.
pub(crate) struct TaskGuard(TaskTracker);

impl TaskTracker {
    /// Returns when no chore holds the store any more.
    pub(crate) async fn ended(&self) {
        // An error means that nobody can start one either.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }

    pub(crate) fn enter(&self) -> TaskGuard {
        self.running.send_modify(|running| *running += 1);
        TaskGuard(self.clone())
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

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// Gives back the space of dropped containers and former partitions.
pub(crate) struct ShardDropper {
    store: Arc<AnyStore>,
    committer: Committer,
    chores: TaskTracker,
}

impl Catalog {
    pub(crate) fn eraser(&self) -> ShardDropper {
        let (store, committer) = self.hands();
        ShardDropper { store, committer, chores: self.chores() }
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

impl ShardDropper {
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
