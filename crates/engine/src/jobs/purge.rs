//! Purge: removes expired items, items deleted by partition key, and versions past their retention.
//!
//! A thread polls every second and works in small steps, one at a time, so that a writer waits for one step at most.
//! Correctness does not depend on when it runs: reads skip dead items, and the next pass finds what this one has left.
//!
//! To find expired items it scans all items of a partition, a million in about a second. So it scans a partition
//! again only after a write or when the earliest expiry it saw is due, and not before nine times the duration of the
//! last scan has passed. A changed default TTL starts a scan at once.
//!
//! While the clock is not trusted (`clock_watch`), nothing is purged.

mod clock_watch; // distrusts a clock that has jumped

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use pleiad_model::Result;
use pleiad_model::env::Env;
use pleiad_partition::commit::block_on;
use pleiad_partition::ttl::Purge;
use pleiad_partition::{MaintenanceError, Partition};

use super::{TaskTracker, unexpected};
use crate::catalog::{CatalogTree, Container};
use crate::timer::sleep;
use clock_watch::ClockWatch;

const INTERVAL: Duration = Duration::from_secs(1);
/// Between two steps, so that waiting writers proceed.
const PAUSE: Duration = Duration::from_millis(2);

/// The purge thread. When dropped, it ends after the current step. The catalog's task tracker does not count it:
/// tracked tasks end by themselves.
pub(crate) struct Purger {
    stop_on_drop: Sender<()>,
    thread: TaskTracker,
}

impl Purger {
    /// The thread holds the tree only during a pass.
    pub(crate) fn start(trees: Weak<ArcSwap<CatalogTree>>, env: Arc<dyn Env>) -> Purger {
        let (stop_on_drop, stopped) = channel();
        let thread = TaskTracker::default();
        thread.run("sweep", move || {
            let (mut scans, mut watch, began) = (PurgeScans::default(), None, Instant::now());
            let steady_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            while wait_unless_stopped(&stopped, INTERVAL) {
                let Some(trees) = trees.upgrade() else { break };
                let watch = watch.get_or_insert_with(|| block_on(first_watch(&trees, env.as_ref(), steady_ms())));
                let pause_unless_stopped = async || {
                    sleep(PAUSE).await;
                    // The machine's own clock: a test may set the account's clock forward.
                    watch.observe(env.wall_ms(), steady_ms()) && wait_unless_stopped(&stopped, Duration::ZERO)
                };
                block_on(purge_account(&trees, &mut scans, env.as_ref(), pause_unless_stopped));
            }
            Ok(())
        });
        Purger { stop_on_drop, thread }
    }

    /// Stops the thread and waits until it has released the store.
    pub(crate) async fn end(self) {
        drop(self.stop_on_drop);
        self.thread.wait_idle().await;
    }
}

/// Compares the clock with the newest item among those that can expire.
async fn first_watch(trees: &ArcSwap<CatalogTree>, env: &dyn Env, steady_ms: u64) -> ClockWatch {
    let tree = trees.load_full();
    let containers = tree.databases.values().flat_map(|database| database.containers.values());
    let mut newest_s = None;
    for container in containers.filter(|container| container.definition.default_ttl.is_some()) {
        for partition in &container.partitions {
            // What cannot be read here is reported by the purge itself.
            newest_s = newest_s.max(partition.newest_ts_s().await.unwrap_or_default());
        }
    }
    let mut clock = ClockWatch::default();
    clock.compare_with_newest(newest_s, env.now_ms() / 1000, steady_ms);
    clock
}

/// Waits; returns true unless the thread is to stop.
fn wait_unless_stopped(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

/// The last scan of each shard.
#[derive(Default)]
pub(crate) struct PurgeScans(HashMap<u64, PurgeScan>);

#[derive(Default)]
struct PurgeScan {
    purge: Purge,
    began_ms: u64,
    /// The partition's LSN when the scan began.
    lsn: u64,
    default_ttl: Option<i32>,
    ended_ms: Option<u64>,
}

/// A partition is not scanned again before this many times the duration of its last scan has passed.
const REST_FACTOR: u64 = 9;

impl PurgeScan {
    /// Whether another scan may find expired items now.
    fn is_due(&self, container: &Container, partition: &Partition, now_ms: u64) -> bool {
        let Some(ended_ms) = self.ended_ms else { return true };
        if self.default_ttl != container.definition.default_ttl {
            return true;
        }
        let rested = now_ms.saturating_sub(ended_ms) >= REST_FACTOR * ended_ms.saturating_sub(self.began_ms);
        let due = self.purge.due_s.is_some_and(|last_s| now_ms / 1000 > last_s);
        rested && (due || self.lsn != partition.lsn())
    }

    fn begin(container: &Container, partition: &Partition, now_ms: u64) -> PurgeScan {
        let (lsn, default_ttl) = (partition.lsn(), container.definition.default_ttl);
        PurgeScan { began_ms: now_ms, lsn, default_ttl, ..PurgeScan::default() }
    }
}

/// One pass over the whole account, while `should_continue` returns true between two steps.
pub(crate) async fn purge_account(
    trees: &ArcSwap<CatalogTree>,
    scans: &mut PurgeScans,
    env: &dyn Env,
    mut should_continue: impl AsyncFnMut() -> bool,
) {
    let tree = trees.load_full();
    for container in tree.databases.values().flat_map(|database| database.containers.values()) {
        for partition in &container.partitions {
            let mut more = true;
            while more && should_continue().await {
                more = match step(trees, container, partition, scans, env.now_ms()).await {
                    Ok(more) => more,
                    Err(error) => {
                        log_error(&error);
                        false
                    }
                };
            }
        }
    }
}

/// One step in one partition. Returns true if there is more to do.
async fn step(
    trees: &ArcSwap<CatalogTree>,
    container: &Arc<Container>,
    partition: &Partition,
    scans: &mut PurgeScans,
    now_ms: u64,
) -> Result<bool, MaintenanceError> {
    let now_s = u32::try_from(now_ms / 1000).unwrap_or(u32::MAX);
    let more_expired = purge_expired(container, partition, scans, now_ms, now_s).await?;
    let more_deleted = partition.purge_deleted_keys(&container.schema, now_s).await?;
    Ok(trim_versions(trees, container, partition, now_s).await? || more_expired || more_deleted)
}

async fn purge_expired(
    container: &Container,
    partition: &Partition,
    scans: &mut PurgeScans,
    now_ms: u64,
    now_s: u32,
) -> Result<bool, MaintenanceError> {
    let shard = partition.range.shard;
    if container.definition.default_ttl.is_none() {
        scans.0.remove(&shard);
        return Ok(false);
    }
    let scan = scans.0.entry(shard).or_insert_with(|| PurgeScan::begin(container, partition, now_ms));
    if scan.ended_ms.is_some() {
        if !scan.is_due(container, partition, now_ms) {
            return Ok(false);
        }
        *scan = PurgeScan::begin(container, partition, now_ms);
    }
    let more = partition.purge(&container.schema, now_s, &mut scan.purge).await?;
    if !more {
        // The purge's own deletes are no reason to scan again.
        scan.lsn += scan.purge.removed;
        scan.ended_ms = Some(now_ms);
    }
    Ok(more)
}

/// Removes old versions that no reader needs. An index that is added meanwhile needs only versions from then on.
async fn trim_versions(
    trees: &ArcSwap<CatalogTree>,
    container: &Arc<Container>,
    partition: &Partition,
    now_s: u32,
) -> Result<bool, MaintenanceError> {
    if partition.shard_state().versions_from.is_none() {
        return Ok(false);
    }
    let up_to = trim_limit_of_indexes(&trees.load(), container, partition).min(partition.lsn());
    // The limit is valid only if the container, and so its set of indexes, has not changed.
    if !trees.load().container_by_rid(container.rid).is_some_and(|newest| Arc::ptr_eq(newest, container)) {
        return Ok(false);
    }
    let retention_s = container.definition.change_feed.map_or(0, |feed| feed.retention_minutes.saturating_mul(60));
    let before_s = match container.definition.has_all_versions_feed() {
        true => now_s.saturating_sub(retention_s),
        false => u32::MAX,
    };
    let more = partition.trim_versions(before_s, up_to).await?;
    if !more && !container.definition.records_versions() {
        partition.clear_retention_watermark().await?;
    }
    Ok(more)
}

/// The LSN up to which no index needs the versions of a partition.
fn trim_limit_of_indexes(tree: &CatalogTree, container: &Container, partition: &Partition) -> u64 {
    let indexes = container.definition.indexed_by.iter().filter_map(|index| tree.container_by_rid(index.rid));
    let limits = indexes.map(|index| index.progress.trim_limit(&partition.range.keys));
    limits.min().unwrap_or(u64::MAX)
}

/// A partition that is removed in the middle of a step is not worth a log line.
fn log_error(error: &MaintenanceError) {
    if let Some(error) = unexpected(error) {
        tracing::warn!(%error, "a purge pass stopped; it starts again with the next poll");
    }
}

#[cfg(test)]
mod tests;
