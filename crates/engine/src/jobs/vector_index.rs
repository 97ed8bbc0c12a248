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
use pleiad_model::policy::VectorIndexType;
use pleiad_partition::commit::block_on;
use pleiad_partition::{MaintenanceError, Partition, Schema};

use super::{TaskTracker, unexpected};
use crate::catalog::CatalogTree;

const INTERVAL: Duration = Duration::from_secs(1);
/// The memory limit for all ANN indexes of an account. Searches beyond it read every vector.
const ANN_INDEX_BYTES_MAX: usize = 4 << 30;

/// The maintenance thread. When dropped, it ends soon. The catalog's task tracker does not count it: tracked tasks
/// end by themselves.
pub(crate) struct VectorIndexer {
    stop_on_drop: Sender<()>,
    thread: TaskTracker,
}

impl VectorIndexer {
    pub(crate) fn start(tree: Weak<ArcSwap<CatalogTree>>) -> VectorIndexer {
        let (stop_on_drop, stopped) = channel();
        let stopped = Mutex::new(stopped);
        let thread = TaskTracker::default();
        thread.run("sketch", move || {
            while wait_unless_stopped(&stopped, INTERVAL) {
                let Some(partitions) = tree.upgrade().map(|tree| partitions_with_ann_index(&tree.load())) else {
                    break;
                };
                while maintain(&partitions, &mut || wait_unless_stopped(&stopped, Duration::ZERO)) {}
            }
            Ok(())
        });
        VectorIndexer { stop_on_drop, thread }
    }

    /// Stops the thread and waits until it has released the store.
    pub(crate) async fn end(self) {
        drop(self.stop_on_drop);
        self.thread.wait_idle().await;
    }
}

/// Waits; returns true unless the thread is to stop.
fn wait_unless_stopped(stopped: &Mutex<Receiver<()>>, time: Duration) -> bool {
    stopped.lock().recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

type AnnPartition = (Arc<Schema>, Weak<Partition>);

/// Partitions whose policy has an ANN index, or that still hold one.
fn partitions_with_ann_index(tree: &CatalogTree) -> Vec<AnnPartition> {
    let containers = tree.databases.values().flat_map(|database| database.containers.values());
    let mut found = Vec::new();
    for container in containers {
        let has_ann_index =
            container.definition.indexing.vector.iter().any(|index| index.kind != VectorIndexType::Flat);
        for partition in &container.partitions {
            if has_ann_index || partition.ann_index_bytes() > 0 {
                found.push((container.schema.clone(), Arc::downgrade(partition)));
            }
        }
    }
    found
}

/// One pass over all of them. Returns true if there is more to do immediately.
fn maintain(partitions: &[AnnPartition], should_continue: &mut (dyn FnMut() -> bool + Send)) -> bool {
    let used_bytes: usize =
        partitions.iter().filter_map(|(_, partition)| Some(partition.upgrade()?.ann_index_bytes())).sum();
    let mut more = false;
    for (schema, partition) in partitions {
        let Some(partition) = partition.upgrade() else { continue };
        if !should_continue() {
            return false;
        }
        let free_bytes = ANN_INDEX_BYTES_MAX.saturating_sub(used_bytes);
        match block_on(partition.maintain_vector_indexes(schema, free_bytes, should_continue)) {
            Ok(more_here) => more |= more_here,
            Err(error) => log_error(&error),
        }
    }
    more
}

/// A partition that is removed in the middle of a pass is not worth a log line.
fn log_error(error: &MaintenanceError) {
    if let Some(error) = unexpected(error) {
        tracing::warn!(%error, "a vector index lags behind; maintenance is retried with the next poll");
    }
}

/// Brings all ANN indexes of an account up to date.
#[cfg(test)]
pub(crate) fn maintain_ann_indexes(tree: &CatalogTree) {
    let partitions = partitions_with_ann_index(tree);
    while maintain(&partitions, &mut || true) {}
}
