//! Publication of catalog changes: first durable, then visible.
//!
//! Invariant: the tree shows every change that the store has, even if the client disconnects in between. The catalog
//! lock and the new tree travel with the batch, and the committer's thread publishes them as soon as the batch is
//! durable; so no later change can start from a tree that is older than the store.

use std::sync::Arc;

use parking_lot::Mutex;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Fact, Result};
use pleiad_partition::commit::{CommitEntry, Publish};
use pleiad_storage::Batch;
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Catalog;
use super::copy::DatabaseCopy;
use super::job::RepartitionJob;
use super::rows::Counters;
use super::tree::{CatalogTree, CatalogVersion, Container};
use crate::throughput;

/// One change in preparation, and the background work that it starts.
pub(super) struct CatalogChange {
    lock: OwnedMutexGuard<Counters>,
    pub tree: CatalogTree,
    pub counters: Counters,
    pub batch: Batch,
    pub version: CatalogVersion,
    /// Deleted containers, whose shards are to be dropped.
    pub dropped: Vec<Arc<Container>>,
    /// A container whose index transformation begins.
    pub reindex: Option<Arc<Container>>,
    /// A split or merge that begins.
    pub job: Option<Arc<RepartitionJob>>,
    /// A database copy that begins.
    pub copy: Option<Arc<DatabaseCopy>>,
    /// Containers that may need more partitions.
    pub split_candidates: Vec<ContainerRid>,
}

impl Catalog {
    /// Takes the catalog lock and starts from the newest tree.
    pub(super) async fn begin(&self) -> CatalogChange {
        let lock = self.change.clone().lock_owned().await;
        let mut counters = lock.clone();
        counters.version += 1;
        let ts_s = u32::try_from(self.env.now_ms() / 1000).unwrap_or(u32::MAX);
        let version = CatalogVersion { number: counters.version, ts_s };
        let tree = CatalogTree::clone(&self.current.load());
        let (batch, dropped, split_candidates) = Default::default();
        CatalogChange {
            lock,
            tree,
            counters,
            batch,
            version,
            dropped,
            reindex: None,
            job: None,
            copy: None,
            split_candidates,
        }
    }

    pub(super) async fn publish(&self, mut change: CatalogChange) -> Result<()> {
        change.counters.put(&mut change.batch);
        let (done, durable) = oneshot::channel();
        let batch = std::mem::take(&mut change.batch);
        let version = change.version.number;
        let pending = PendingPublish { catalog: self.clone(), change: Mutex::new(Some(change)) };
        self.committer.enqueue(CommitEntry { batch, state: None, owner: Some((Arc::new(pending), version)), done })?;
        durable.await.unwrap_or_else(|_| Err(Fact::Unacknowledged.into()))
    }
}

/// A change whose batch is not durable yet.
struct PendingPublish {
    catalog: Catalog,
    change: Mutex<Option<CatalogChange>>,
}

impl Publish for PendingPublish {
    fn published(&self, _: u64) {
        let Some(mut change) = self.change.lock().take() else { return };
        *change.lock = change.counters;
        throughput::divide(&change.tree, &self.catalog.limits);
        self.catalog.current.store(Arc::new(change.tree));
        self.catalog.shard_dropper().drop_containers(&change.dropped);
        if let Some(container) = change.reindex {
            self.catalog.start_reindexing(vec![container]);
        }
        if let Some(job) = change.job {
            self.catalog.start_job(job);
        }
        if let Some(copy) = change.copy {
            self.catalog.start_copy(copy);
        }
        change.split_candidates.into_iter().for_each(|container| self.catalog.split_if_needed(container));
    }
}
