//! Work that nobody waits for. Each chore is remembered in the catalog, so that a crash only
//! postpones it.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_partition::Committer;
use pleiad_partition::commit::block_on;
use pleiad_storage::{AnyStore, Batch, Store, keyspace};

use crate::catalog::{Catalog, Container, erased, to_erase};

/// Gives back the space of dropped containers.
pub(crate) struct Eraser {
    store: Arc<AnyStore>,
    committer: Committer,
}

impl Catalog {
    pub(crate) fn eraser(&self) -> Eraser {
        let (store, committer) = self.hands();
        Eraser { store, committer }
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

    fn start(self, shards: Vec<u64>) {
        if !shards.is_empty() {
            run("erase", move || self.erase_all(shards));
        }
    }

    fn erase_all(&self, shards: Vec<u64>) -> Result<()> {
        // Whatever was queued before the partitions closed is written first; nothing comes after.
        block_on(self.committer.commit(Batch::default()))?;
        for shard in shards {
            let (from, to) = keyspace::shard_range(shard);
            block_on(self.store.drop_range(&from, &to))?;
            let mut batch = Batch::default();
            erased(&mut batch, shard);
            block_on(self.committer.commit(batch))?;
        }
        Ok(())
    }
}

/// On a thread of its own: the store blocks while it gives space back.
fn run(name: &'static str, work: impl FnOnce() -> Result<()> + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
        if let Err(error) = work() {
            tracing::warn!(%error, chore = name, "a chore stopped; it goes on at the next start");
        }
    });
    if let Err(error) = thread {
        tracing::warn!(%error, chore = name, "a chore could not start; it goes on at the next start");
    }
}

#[cfg(test)]
mod tests;
