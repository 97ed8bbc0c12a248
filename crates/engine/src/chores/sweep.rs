//! What time undoes, swept up: versions that were kept for long enough.
//!
//! Promise: a thread of its own looks every second and works in small steps, one at a time, so that whoever works with a
//! container waits for one step at most. It remembers nothing: what it does not get to is there the next time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use pleiad_model::env::Env;
use pleiad_model::{Kind, Result};
use pleiad_partition::Partition;
use pleiad_partition::commit::block_on;

use super::Chores;
use crate::catalog::{Container, Tree};

const EVERY: Duration = Duration::from_secs(1);
/// Between two steps of work, for whoever waits.
const PAUSE: Duration = Duration::from_millis(2);

/// Dropped, it ends after the step at hand.
pub(crate) struct Sweeper {
    _running: Sender<()>,
}

impl Sweeper {
    /// Holds the tree no longer than a sweep takes.
    pub(crate) fn start(chores: &Chores, tree: Weak<ArcSwap<Tree>>, env: Arc<dyn Env>) -> Sweeper {
        let (running, ended) = channel();
        chores.run("sweep", move || {
            while waits(&ended, EVERY) {
                let Some(tree) = tree.upgrade() else { break };
                let tree = tree.load_full();
                block_on(sweep(&tree, now_s(env.as_ref()), || waits(&ended, PAUSE)));
            }
            Ok(())
        });
        Sweeper { _running: running }
    }
}

/// Whether to go on afterwards.
fn waits(ended: &Receiver<()>, time: Duration) -> bool {
    ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

pub(crate) fn now_s(env: &dyn Env) -> u32 {
    u32::try_from(env.now_ms() / 1000).unwrap_or(u32::MAX)
}

/// Once through the whole account, for as long as `goes_on` says so between two steps.
pub(crate) async fn sweep(tree: &Tree, now_s: u32, mut goes_on: impl FnMut() -> bool) {
    for container in tree.databases.values().flat_map(|database| database.containers.values()) {
        for partition in &container.partitions {
            while goes_on() {
                match step(container, partition, now_s).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tell(&error);
                        break;
                    }
                }
            }
        }
    }
}

/// One step of the work in one partition; says whether there is more.
async fn step(container: &Container, partition: &Partition, now_s: u32) -> Result<bool> {
    trim(container, partition, now_s).await
}

async fn trim(container: &Container, partition: &Partition, now_s: u32) -> Result<bool> {
    if partition.usage().versions_from.is_none() {
        return Ok(false);
    }
    if container.definition.keeps_versions() {
        let minutes = container.definition.change_feed.map_or(0, |feed| feed.retention_minutes);
        return partition.trim_versions(now_s.saturating_sub(minutes.saturating_mul(60))).await;
    }
    let more = partition.trim_versions(u32::MAX).await?;
    if !more {
        partition.forget_versions().await?;
    }
    Ok(more)
}

/// A partition that goes away in the middle of it is nothing to tell of.
fn tell(error: &pleiad_model::Error) {
    if !matches!(error.kind, Kind::OwnerNotFound | Kind::Unavailable | Kind::Outdated) {
        tracing::warn!(%error, "a sweep stopped; it begins again in a moment");
    }
}
