//! Background work: durable jobs, and threads that maintain indexes and purge dead items.
//!
//! Invariant: a crash only delays background work. Each task has a row in the catalog, or a scan finds its work again.

use std::sync::Arc;

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::commit::block_on;
use pleiad_partition::{Committer, MaintenanceError, WriteError};
use pleiad_storage::{AnyStore, Batch, Store, keyspace};
use tokio::sync::watch;

use crate::catalog::{Catalog, Container, delete_dropped_shard, load_dropped_shards};

mod copy; // copies a database under another name
mod global_index; // maintains global secondary indexes from their sources' change feeds
mod split_planner; // decides which partitions to split
mod registry; // running jobs: progress, pause, cancel, and steps to hold them at
mod reindex; // runs index transformations
mod repartition; // runs splits and merges
mod vector_index; // maintains ANN indexes asynchronously
mod purge; // removes dead items and old versions

pub(crate) use global_index::GlobalIndexer;
pub(crate) use purge::Purger;
#[cfg(test)]
pub(crate) use purge::{PurgeScans, purge_account};
pub(crate) use registry::JobRegistry;
pub use registry::{JobOutcome, JobReport, JobStep, JobTask};
pub(crate) use split_planner::split_point;
pub(crate) use vector_index::VectorIndexer;
#[cfg(test)]
pub(crate) use vector_index::maintain_ann_indexes;

/// A wait group of running background tasks. Shutdown waits for them: a store that is in use while the process exits
/// aborts the process.
#[derive(Clone, Default)]
pub(crate) struct TaskTracker {
    running: Arc<watch::Sender<usize>>,
}

/// One running task, until it is dropped.
pub(crate) struct TaskGuard(TaskTracker);

impl TaskTracker {
    /// Waits until no task holds the store.
    pub(crate) async fn wait_idle(&self) {
        // An error means that the sender is dropped, so no task can start either.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }

    pub(crate) fn enter(&self) -> TaskGuard {
        self.running.send_modify(|running| *running += 1);
        TaskGuard(self.clone())
    }

    /// Runs the work on a thread of its own: the store blocks while it reclaims space.
    fn run(&self, name: &'static str, work: impl FnOnce() -> Result<()> + Send + 'static) {
        let running = self.enter();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            // Dropped last, after the work has released the store; also if it panics.
            let _running = running;
            if let Err(error) = work() {
                tracing::warn!(%error, chore = name, "a background task stopped; it resumes at the next start");
            }
        });
        if let Err(error) = thread {
            tracing::warn!(%error, chore = name, "a background task could not start; it runs at the next start");
        }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// Drops the shards of deleted containers and former partitions, and so reclaims their space.
pub(crate) struct ShardDropper {
    store: Arc<AnyStore>,
    committer: Committer,
    tasks: TaskTracker,
}

impl Catalog {
    pub(crate) fn shard_dropper(&self) -> ShardDropper {
        let (store, committer) = self.store_and_committer();
        ShardDropper { store, committer, tasks: self.tasks() }
    }

    /// Resumes after a restart. The shards are listed before a request can delete more containers.
    pub(crate) async fn resume_dropping_shards(&self) -> Result<()> {
        let dropper = self.shard_dropper();
        let shards = load_dropped_shards(&dropper.store).await?;
        dropper.start(shards);
        Ok(())
    }
}

impl ShardDropper {
    /// For containers that are no longer in the tree.
    pub(crate) fn drop_containers(self, containers: &[Arc<Container>]) {
        containers.iter().flat_map(|container| &container.partitions).for_each(|partition| partition.close());
        let ranges = containers.iter().flat_map(|container| container.map.ranges());
        self.start(ranges.map(|range| range.shard).collect());
    }

    pub(crate) fn start(self, shards: Vec<u64>) {
        if !shards.is_empty() {
            self.tasks.clone().run("erase", move || block_on(self.drop_shards(&shards)));
        }
    }

    async fn drop_shards(&self, shards: &[u64]) -> Result<()> {
        // Writes that were queued before the partitions closed are committed first; no write follows.
        self.committer.commit(Batch::default()).await?;
        for &shard in shards {
            let (from, to) = keyspace::shard_range(shard);
            self.store.drop_range(&from, &to).await?;
            let mut batch = Batch::default();
            delete_dropped_shard(&mut batch, shard);
            self.committer.commit(batch).await?;
        }
        Ok(())
    }
}

/// The error of background work, unless it only says that the partition or its container is being removed, replaced or
/// closed: the next pass finds the new state.
fn unexpected(error: &MaintenanceError) -> Option<&Error> {
    match error {
        WriteError::Outdated => None,
        WriteError::Failed(error) => {
            Some(error).filter(|error| !matches!(error.kind, Kind::OwnerNotFound | Kind::Unavailable))
        }
    }
}

#[cfg(test)]
mod tests;
