//! Vector index maintenance: a thread adds new vectors to the ANN indexes of all partitions.
//!
//! It polls every partition with a vector index once a second, and continues immediately where there is more to do.
//! Correctness does not depend on when it runs: a search also reads the vectors that are not in the ANN index yet. It
//! holds one partition at a time, and releases one that is being removed.

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
/// The memory limit for all ANN indexes of an account. Searches beyond it read every vector.
const SKETCHES_BYTES_MAX: usize = 4 << 30;

/// The maintenance thread. When dropped, it ends soon. The catalog's task tracker does not count it: tracked tasks
/// end by themselves.
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

    /// Stops the thread and waits until it has released the store.
    pub(crate) async fn end(self) {
        drop(self.goes_on);
        self.thread.ended().await;
    }
}

/// Waits; returns true unless the thread is to stop.
fn waits(ended: &Mutex<Receiver<()>>, time: Duration) -> bool {
    ended.lock().recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

type IndexedVectors = (Arc<Schema>, Weak<Partition>);

/// Partitions whose policy has an ANN index, or that still hold one.
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

/// One pass over all of them. Returns true if there is more to do immediately.
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

/// A partition that is removed in the middle of a pass is not worth a log line.
fn tell(error: &pleiad_model::Error) {
    if !matches!(error.kind, Kind::OwnerNotFound | Kind::Unavailable | Kind::Outdated) {
        tracing::warn!(%error, "a vector index lags behind; maintenance is retried with the next poll");
    }
}

/// Brings all ANN indexes of an account up to date.
#[cfg(test)]
pub(crate) fn tend_all(tree: &CatalogTree) {
    let partitions = sketched(tree);
    while tend(&partitions, &mut || true) {}
}
