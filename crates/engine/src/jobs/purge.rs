//! What is over, swept up: items whose time to live is over, items of keys that were erased, and versions that were kept
//! for long enough.
//!
//! Promise: a thread of its own looks every second and works in small steps, one at a time, so that whoever works with a
//! container waits for one step at most. Nothing depends on when it comes by: what is over is not there for anybody, and
//! what it does not get to is found the next time.
//!
//! To find what is over it looks at all items of a partition, a million in about a second. So it looks again only when
//! something has been written since or the first of those it saw is due, and rests nine times as long as it looked.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use pleiad_model::env::Env;
use pleiad_model::{Kind, Result};
use pleiad_partition::Partition;
use pleiad_partition::commit::block_on;
use pleiad_partition::ttl::Purge;

use super::TaskTracker;
use crate::catalog::{CatalogTree, Container};

const EVERY: Duration = Duration::from_secs(1);
/// Between two steps of work, for whoever waits.
const PAUSE: Duration = Duration::from_millis(2);

/// Dropped, it ends after the step at hand. It is not one of the account's chores: those end by themselves.
pub(crate) struct Purger {
    goes_on: Sender<()>,
    thread: TaskTracker,
}

impl Purger {
    /// Holds the tree no longer than a sweep takes.
    pub(crate) fn start(trees: Weak<ArcSwap<CatalogTree>>, env: Arc<dyn Env>) -> Purger {
        let (goes_on, ended) = channel();
        let thread = TaskTracker::default();
        thread.run("sweep", move || {
            let mut looks = PurgeScans::default();
            while waits(&ended, EVERY) {
                let Some(trees) = trees.upgrade() else { break };
                block_on(sweep(&trees, &mut looks, env.as_ref(), || waits(&ended, PAUSE)));
            }
            Ok(())
        });
        Purger { goes_on, thread }
    }

    /// Returns when it holds the store no more.
    pub(crate) async fn end(self) {
        drop(self.goes_on);
        self.thread.ended().await;
    }
}

/// Whether to go on afterwards.
fn waits(ended: &Receiver<()>, time: Duration) -> bool {
    ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

/// What is known of each shard from looking at its items.
#[derive(Default)]
pub(crate) struct PurgeScans(HashMap<u64, PurgeScan>);

#[derive(Default)]
struct PurgeScan {
    purge: Purge,
    began_ms: u64,
    /// Of the partition, when it began.
    lsn: u64,
    default_ttl: Option<i32>,
    ended_ms: Option<u64>,
}

/// How many times as long as a look took is rested.
const REST: u64 = 9;

impl PurgeScan {
    /// Whether there may be something to find now.
    fn is_due(&self, container: &Container, partition: &Partition, now_ms: u64) -> bool {
        let Some(ended_ms) = self.ended_ms else { return true };
        if self.default_ttl != container.definition.default_ttl {
            return true;
        }
        let rested = now_ms.saturating_sub(ended_ms) >= REST * ended_ms.saturating_sub(self.began_ms);
        let due = self.purge.due_s.is_some_and(|last_s| now_ms / 1000 > last_s);
        rested && (due || self.lsn != partition.lsn())
    }

    fn begin(container: &Container, partition: &Partition, now_ms: u64) -> PurgeScan {
        let (lsn, default_ttl) = (partition.lsn(), container.definition.default_ttl);
        PurgeScan { began_ms: now_ms, lsn, default_ttl, ..PurgeScan::default() }
    }
}

/// Once through the whole account, for as long as `goes_on` says so between two steps.
pub(crate) async fn sweep(
    trees: &ArcSwap<CatalogTree>,
    looks: &mut PurgeScans,
    env: &dyn Env,
    mut goes_on: impl FnMut() -> bool,
) {
    let tree = trees.load_full();
    for container in tree.databases.values().flat_map(|database| database.containers.values()) {
        for partition in &container.partitions {
            let mut more = true;
            while more && goes_on() {
                more = match step(trees, container, partition, looks, env.now_ms()).await {
                    Ok(more) => more,
                    Err(error) => {
                        tell(&error);
                        false
                    }
                };
            }
        }
    }
}

/// One step of the work in one partition; says whether there is more.
async fn step(
    trees: &ArcSwap<CatalogTree>,
    container: &Arc<Container>,
    partition: &Partition,
    looks: &mut PurgeScans,
    now_ms: u64,
) -> Result<bool> {
    let now_s = u32::try_from(now_ms / 1000).unwrap_or(u32::MAX);
    let purges = purge(container, partition, looks, now_ms, now_s).await?;
    let erases = partition.sweep_erased(&container.schema, now_s).await?;
    Ok(trim(trees, container, partition, now_s).await? || purges || erases)
}

async fn purge(
    container: &Container,
    partition: &Partition,
    looks: &mut PurgeScans,
    now_ms: u64,
    now_s: u32,
) -> Result<bool> {
    let shard = partition.range.shard;
    if container.definition.default_ttl.is_none() {
        looks.0.remove(&shard);
        return Ok(false);
    }
    let look = looks.0.entry(shard).or_insert_with(|| PurgeScan::begin(container, partition, now_ms));
    if look.ended_ms.is_some() {
        if !look.is_due(container, partition, now_ms) {
            return Ok(false);
        }
        *look = PurgeScan::begin(container, partition, now_ms);
    }
    let more = partition.purge(&container.schema, now_s, &mut look.purge).await?;
    if !more {
        // What it removed itself is no reason to look again.
        look.lsn += look.purge.gone;
        look.ended_ms = Some(now_ms);
    }
    Ok(more)
}

/// Nothing that a reader may still want: an index that the container gets meanwhile wants what comes after it.
async fn trim(
    trees: &ArcSwap<CatalogTree>,
    container: &Arc<Container>,
    partition: &Partition,
    now_s: u32,
) -> Result<bool> {
    if partition.usage().versions_from.is_none() {
        return Ok(false);
    }
    let up_to = seen_by_indexes(&trees.load(), container, partition).min(partition.lsn());
    // What was just worked out holds only if the container had no other index then.
    if !trees.load().container_by_rid(container.rid).is_some_and(|newest| Arc::ptr_eq(newest, container)) {
        return Ok(false);
    }
    let kept_for_s = container.definition.change_feed.map_or(0, |feed| feed.retention_minutes.saturating_mul(60));
    let before_s = match container.definition.keeps_versions() {
        true => now_s.saturating_sub(kept_for_s),
        false => u32::MAX,
    };
    let more = partition.trim_versions(before_s, up_to).await?;
    if !more && !container.definition.records_versions() {
        partition.forget_versions().await?;
    }
    Ok(more)
}

/// Up to which LSN no index needs the versions of a partition.
fn seen_by_indexes(tree: &CatalogTree, container: &Container, partition: &Partition) -> u64 {
    let indexes = container.definition.indexed_by.iter().filter_map(|index| tree.container_by_rid(index.rid));
    let seen = indexes.map(|index| index.progress.needs_none_up_to(&partition.range.keys));
    seen.min().unwrap_or(u64::MAX)
}

/// A partition that goes away in the middle of it is nothing to tell of.
fn tell(error: &pleiad_model::Error) {
    if !matches!(error.kind, Kind::OwnerNotFound | Kind::Unavailable | Kind::Outdated) {
        tracing::warn!(%error, "a sweep stopped; it begins again in a moment");
    }
}

#[cfg(test)]
mod tests;
