//! Work that nobody waits for. Each chore is remembered in the catalog, so that a crash only
//! postpones it.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_partition::Committer;
use pleiad_partition::commit::block_on;
use pleiad_storage::{AnyStore, Batch, Store, keyspace};

use crate::catalog::{Catalog, Container, erased, to_erase};

impl Catalog {
    /// Gives back the space of a container that the tree no longer shows.
    pub(crate) fn erase(&self, container: &Container) {
        container.partitions.iter().for_each(|partition| partition.close());
        let shards = container.map.ranges().iter().map(|range| range.shard).collect();
        self.start_erasing(shards);
    }

    /// Goes on where the last run of the program stopped.
    pub(crate) fn resume_erasing(&self) {
        let (store, committer) = self.hands();
        run("erase", move || {
            let shards = block_on(to_erase(&store))?;
            erase_all(&store, &committer, shards)
        });
    }

    fn start_erasing(&self, shards: Vec<u64>) {
        let (store, committer) = self.hands();
        run("erase", move || erase_all(&store, &committer, shards));
    }
}

fn erase_all(store: &Arc<AnyStore>, committer: &Committer, shards: Vec<u64>) -> Result<()> {
    // Whatever was queued before the partitions closed is written first; nothing comes after.
    block_on(committer.commit(Batch::default()))?;
    for shard in shards {
        let (from, to) = keyspace::shard_range(shard);
        block_on(store.drop_range(&from, &to))?;
        let mut batch = Batch::default();
        erased(&mut batch, shard);
        block_on(committer.commit(batch))?;
    }
    Ok(())
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
