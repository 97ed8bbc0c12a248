//! Sketches of vectors, kept up behind the writers.
//!
//! Promise: a thread of its own looks at every partition with such an index once a second, or goes on at once where there is more to do.
//! Nothing depends on when it comes by: searches look at what it has not got to. It holds one partition at a time, and lets go
//! of one that is going away.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pleiad_model::Kind;
use pleiad_model::policy::VectorIndexType;
use pleiad_partition::commit::block_on;
use pleiad_partition::{Partition, Schema};

use super::TaskTracker;
use crate::catalog::CatalogTree;

const EVERY: Duration = Duration::from_secs(1);
/// What all sketches of an account may take together. Where there is no room, every vector is looked at.
const SKETCHES_BYTES_MAX: usize = 4 << 30;

/// Dropped, it ends soon. It is not one of the account's chores: those end by themselves.
pub(crate) struct VectorIndexer {
    goes_on: Sender<()>,
    thread: TaskTracker,
}

impl VectorIndexer {
    pub(crate) fn start(tree: Weak<ArcSwap<CatalogTree>>) -> VectorIndexer {
        let (goes_on, ended) = channel();
        let ended = Mutex::new(ended);
        let thread = TaskTracker::default();
        thread.run("sketch", move || {
            while waits(&ended, EVERY) {
                let Some(partitions) = tree.upgrade().map(|tree| sketched(&tree.load())) else { break };
                while tend(&partitions, &mut || waits(&ended, Duration::ZERO)) {}
            }
            Ok(())
        });
        VectorIndexer { goes_on, thread }
    }

    /// Returns when it holds the store no more.
    pub(crate) async fn end(self) {
        drop(self.goes_on);
        self.thread.ended().await;
    }
}

/// Whether to go on afterwards.
fn waits(ended: &Mutex<Receiver<()>>, time: Duration) -> bool {
    ended.lock().recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

type IndexedVectors = (Arc<Schema>, Weak<Partition>);

/// Partitions whose vectors are sketched, or were.
fn sketched(tree: &CatalogTree) -> Vec<IndexedVectors> {
    let containers = tree.databases.values().flat_map(|database| database.containers.values());
    let mut found = Vec::new();
    for container in containers {
        let is_sketched = container.definition.indexing.vector.iter().any(|index| index.kind != VectorIndexType::Flat);
        for partition in &container.partitions {
            if is_sketched || partition.sketch_bytes() > 0 {
                found.push((container.schema.clone(), Arc::downgrade(partition)));
            }
        }
    }
    found
}

/// Once through all of them; says whether there is more to do at once.
fn tend(partitions: &[IndexedVectors], goes_on: &mut (dyn FnMut() -> bool + Send)) -> bool {
    let held: usize = partitions.iter().filter_map(|(_, partition)| Some(partition.upgrade()?.sketch_bytes())).sum();
    let mut more = false;
    for (schema, partition) in partitions {
        let Some(partition) = partition.upgrade() else { continue };
        if !goes_on() {
            return false;
        }
        let room_bytes = SKETCHES_BYTES_MAX.saturating_sub(held);
        match block_on(partition.tend_sketches(schema, room_bytes, goes_on)) {
            Ok(again) => more |= again,
            Err(error) => tell(&error),
        }
    }
    more
}

/// A partition that goes away in the middle of it is nothing to tell of.
fn tell(error: &pleiad_model::Error) {
    if !matches!(error.kind, Kind::OwnerNotFound | Kind::Unavailable | Kind::Outdated) {
        tracing::warn!(%error, "a sketch of vectors is behind; it is gone on with in a moment");
    }
}

/// All sketches of an account, brought up to now.
#[cfg(test)]
pub(crate) fn tend_all(tree: &CatalogTree) {
    let partitions = sketched(tree);
    while tend(&partitions, &mut || true) {}
}
