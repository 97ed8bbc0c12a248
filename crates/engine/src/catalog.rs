//! The catalog: an account's databases, containers, offers, encryption keys, users and permissions.
//!
//! Promise: readers see one whole tree at a time and never wait; changes take turns, and are
//! durable before the tree shows them. `_rid`s are never given twice.
//!
//! ```text
//! account ─┬─ database ─┬─ container ─┬─ partition map ── partitions
//!          │            │             └─ stored procedure, trigger, user-defined function
//!          │            ├─ client encryption key
//!          │            └─ user ── permission
//!          └─ offer ─▷ database or container
//! ```

mod change; // create, replace, delete
mod copy; // a database once more, under another name
mod encryption_keys; // what clients encrypt with
mod global_index; // an index and its source
mod job; // a split or merge under way
mod precondition; // which resource, and which version of it
mod progress; // how far an index has come with its source
mod publish; // a change becomes durable, then visible
mod repartition; // a job begins, hands over, ends
mod rows; // the tree as rows of the store
mod restore; // the account goes back, and clients do not notice by what they hold
mod script; // what clients have stored to be run
mod index_transformation; // a container whose index is being changed
mod tree; // the resources themselves
mod users; // who may what

pub use change::NewContainer;
pub(crate) use copy::CopyPlan;
pub use copy::DatabaseCopy;
pub use index_transformation::IndexTransformation;
pub use job::{JobKind, Reason, RepartitionJob};
pub use precondition::{ConditionalRid, PutMode};
pub use progress::IndexProgress;
pub(crate) use progress::SourceCursor;
pub(crate) use repartition::{HandingOver, RepartitionRequest};
pub(crate) use restore::carry_over;
pub(crate) use rows::{erased, put_progress, to_erase};
pub use script::{Script, ScriptDefinition, Scripts, TriggerDefinition, TriggerOperation, TriggerType};
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

#[derive(Clone)]
pub struct Catalog {
    current: Arc<ArcSwap<CatalogTree>>,
    /// Held over a change from its check to its publication.
    change: Arc<tokio::sync::Mutex<Counters>>,
    store: Arc<AnyStore>,
    committer: Committer,
    chores: TaskTracker,
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
        let (chores, jobs) = Default::default();
        Ok(Catalog { current, change, store, committer, chores, jobs, limits, env })
    }

    /// The tree as it is now; it does not change under the reader.
    pub fn tree(&self) -> Arc<CatalogTree> {
        self.current.load_full()
    }

    /// The trees to come, for whoever must not keep the account open.
    pub(crate) fn current(&self) -> Weak<ArcSwap<CatalogTree>> {
        Arc::downgrade(&self.current)
    }

    /// For the hot path: no reference count is touched.
    pub fn with_tree<T>(&self, read: impl FnOnce(&CatalogTree) -> T) -> T {
        read(&self.current.load())
    }

    /// Whether partitions are still being split for an offer.
    pub fn is_scaling(&self, offer: &Offer) -> bool {
        self.with_tree(|tree| tree.is_scaling(offer, &self.limits))
    }

    pub fn limits(&self) -> &PartitionLimits {
        &self.limits
    }

    /// For whoever must not keep the account open while it waits.
    pub(crate) fn downgrade(&self) -> WeakCatalog {
        WeakCatalog {
            current: Arc::downgrade(&self.current),
            change: Arc::downgrade(&self.change),
            store: Arc::downgrade(&self.store),
            committer: self.committer.downgrade(),
            chores: self.chores.clone(),
            jobs: self.jobs.clone(),
            limits: self.limits,
            env: self.env.clone(),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.env.now_ms()
    }

    pub(crate) fn hands(&self) -> (Arc<AnyStore>, Committer) {
        (self.store.clone(), self.committer.clone())
    }

    pub(crate) fn jobs(&self) -> &JobRegistry {
        &self.jobs
    }

    pub(crate) fn chores(&self) -> TaskTracker {
        self.chores.clone()
    }

    /// Waits until changes that were under way are shown.
    pub(crate) async fn settled(&self) {
        drop(self.change.lock().await);
    }

    /// A secret of this account's, for signing what clients carry for us.
    pub async fn secret(&self) -> [u8; 32] {
        self.change.lock().await.secret
    }
}

/// A catalog that may be gone.
pub(crate) struct WeakCatalog {
    current: Weak<ArcSwap<CatalogTree>>,
    change: Weak<tokio::sync::Mutex<Counters>>,
    store: Weak<AnyStore>,
    committer: WeakCommitter,
    chores: TaskTracker,
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
            chores: self.chores.clone(),
            jobs: self.jobs.clone(),
            limits: self.limits,
            env: self.env.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
