//! The catalog: metadata of an account, its databases, containers, offers, encryption keys, users and permissions.
//!
//! Invariant: readers load one complete, immutable tree and take no lock. Changes are serialised by a lock and durable
//! before the tree shows them. A `_rid` is never assigned twice.
//!
//! ```text
//! account ─┬─ database ─┬─ container ─┬─ partition map ── partitions
//!          │            │             └─ stored procedure, trigger, user-defined function
//!          │            ├─ client encryption key
//!          │            └─ user ── permission
//!          └─ offer ─▷ database or container
//! ```

mod change; // create, replace, delete
mod copy; // copies a database under another name
mod encryption_keys; // client encryption keys
mod global_index; // global secondary indexes and their sources
mod job; // row of a running split or merge
mod job_error; // why a job did not finish
mod precondition; // If-Match on resources; create, upsert or replace
mod progress; // positions of a global secondary index in its source's change feed
mod publish; // commits a change, then makes it visible
mod repartition; // begins, hands over and ends splits and merges
mod rows; // the tree as rows of the store
mod restore; // restore of an account snapshot: collects high-water marks
mod script; // stored procedures, triggers, user-defined functions
mod index_transformation; // index rebuild after a policy change
mod tree; // the resources in memory
mod users; // users and permissions

pub use change::NewContainer;
pub(crate) use copy::CopyPlan;
pub use copy::DatabaseCopy;
pub use index_transformation::IndexTransformation;
pub use job::{JobKind, Reason, RepartitionJob};
pub(crate) use job_error::{JobError, JobOutdated};
pub use precondition::{ConditionalRid, PutMode};
pub(crate) use progress::SourceCursor;
pub(crate) use repartition::{HandoverStage, RepartitionRequest};
pub(crate) use restore::{raise_high_water_marks, settle_loss};
pub(crate) use rows::{delete_dropped_shard, load_dropped_shards, put_progress};
pub use script::{Script, ScriptDefinition, Scripts, TriggerDefinition, TriggerType};
pub use tree::{CatalogTree, Container, Database, EncryptionKey, Offer, OfferOwner};
pub use users::{Permission, PermissionGrant, User};

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use pleiad_model::Result;
use pleiad_model::env::Env;
use pleiad_partition::Committer;
use pleiad_partition::commit::WeakCommitter;
use pleiad_storage::AnyStore;
use rows::{Counters, Loader};

use crate::jobs::{JobRegistry, TaskTracker};
use crate::{PartitionLimits, throughput};

/// How many changes of its container one request waits for before it fails.
pub(crate) const CONTAINER_CHANGES_MAX: usize = 8;

#[derive(Clone)]
pub struct Catalog {
    current: Arc<ArcSwap<CatalogTree>>,
    /// The catalog lock, held by a change from its check to its publication.
    change: Arc<tokio::sync::Mutex<Counters>>,
    store: Arc<AnyStore>,
    committer: Committer,
    tasks: TaskTracker,
    jobs: JobRegistry,
    limits: PartitionLimits,
    env: Arc<dyn Env>,
}

impl Catalog {
    pub async fn open(
        store: Arc<AnyStore>,
        committer: Committer,
        limits: PartitionLimits,
        env: Arc<dyn Env>,
    ) -> Result<Self> {
        let (tree, counters) =
            rows::load(&Loader { store: &store, committer: &committer, limits: &limits }, env.as_ref()).await?;
        throughput::divide(&tree, &limits);
        let current = Arc::new(ArcSwap::from_pointee(tree));
        let change = Arc::new(tokio::sync::Mutex::new(counters));
        let (tasks, jobs) = Default::default();
        Ok(Catalog { current, change, store, committer, tasks, jobs, limits, env })
    }

    /// The current tree, an immutable snapshot.
    pub fn tree(&self) -> Arc<CatalogTree> {
        self.current.load_full()
    }

    /// The current tree and its successors, for background threads that must not keep the account open.
    pub(crate) fn current(&self) -> Weak<ArcSwap<CatalogTree>> {
        Arc::downgrade(&self.current)
    }

    /// For the hot path: touches no reference count.
    pub fn with_tree<T>(&self, read: impl FnOnce(&CatalogTree) -> T) -> T {
        read(&self.current.load())
    }

    pub fn limits(&self) -> &PartitionLimits {
        &self.limits
    }

    /// For background threads that must not keep the account open while they wait.
    pub(crate) fn downgrade(&self) -> WeakCatalog {
        WeakCatalog {
            current: Arc::downgrade(&self.current),
            change: Arc::downgrade(&self.change),
            store: Arc::downgrade(&self.store),
            committer: self.committer.downgrade(),
            tasks: self.tasks.clone(),
            jobs: self.jobs.clone(),
            limits: self.limits,
            env: self.env.clone(),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.env.now_ms()
    }

    pub(crate) fn store_and_committer(&self) -> (Arc<AnyStore>, Committer) {
        (self.store.clone(), self.committer.clone())
    }

    pub(crate) fn jobs(&self) -> &JobRegistry {
        &self.jobs
    }

    pub(crate) fn tasks(&self) -> TaskTracker {
        self.tasks.clone()
    }

    /// Waits until the changes that are in progress now are published.
    pub(crate) async fn wait_for_changes(&self) {
        drop(self.change.lock().await);
    }

    /// The account's secret, which signs continuations and tokens that clients hold.
    pub async fn secret(&self) -> [u8; 32] {
        self.change.lock().await.secret
    }
}

/// A weak handle: upgrading fails once the catalog is closed.
pub(crate) struct WeakCatalog {
    current: Weak<ArcSwap<CatalogTree>>,
    change: Weak<tokio::sync::Mutex<Counters>>,
    store: Weak<AnyStore>,
    committer: WeakCommitter,
    tasks: TaskTracker,
    jobs: JobRegistry,
    limits: PartitionLimits,
    env: Arc<dyn Env>,
}

impl WeakCatalog {
    pub(crate) fn upgrade(&self) -> Option<Catalog> {
        Some(Catalog {
            current: self.current.upgrade()?,
            change: self.change.upgrade()?,
            store: self.store.upgrade()?,
            committer: self.committer.upgrade()?,
            tasks: self.tasks.clone(),
            jobs: self.jobs.clone(),
            limits: self.limits,
            env: self.env.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
