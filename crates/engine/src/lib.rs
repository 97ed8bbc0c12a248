//! engine: what an account can ask for; the only place where the pillars meet.
//!
//! Knows no status code, header or frame: requests arrive as types and leave as types.
//! Read in this order.

mod response; // what every answer tells besides its result
mod admit; // may it, and where does it live
pub mod catalog; // databases, containers, offers: the resource tree
pub mod check; // is the whole account sound
mod jobs; // work that nobody waits for
mod computed; // properties that no item stores
mod fault_injection; // partitions that answer wrongly, on command
mod account_host; // the account while it is served, and snapshots of it
mod item; // one item
mod write_retry; // where it is written, and written again
mod patch; // one item, changed by its parts
mod batch; // many operations in one request
mod delete_by_partition_key; // all items of a key
mod feed; // many items, a page at a time
pub mod metrics; // what the account is used for, in figures
mod meter; // may it now, and what did it take
mod script_runtime; // where scripts run, and how they fail
mod procedure; // scripts in transactions
mod query; // many items, by what they hold
mod change_feed; // many items, by when they changed
mod partition_admin; // what may be asked about partitions
mod session; // what a client has already seen
mod statistics; // logical partitions, counted and compared
#[cfg(test)]
mod simulation; // everything at once, by chance
#[cfg(test)]
mod testing; // an account to work on
mod throttle_log; // who was refused lately, and why
pub mod throughput; // what may be reserved, and how many partitions it takes
mod alerts; // what an operator should know

pub use account_host::{AccountHost, Restored};
pub use admit::{Admitted, ContainerName};
pub use alerts::{Alert, AlertKind};
pub use batch::{BATCH_OPERATIONS_MAX, BatchAction, BatchOperation, BatchOperationResult, OperationOutcome};
pub use catalog::{
    Catalog, ConditionalRid, Container, Database, DatabaseCopy, EncryptionKey, JobKind, Offer, OfferOwner, Permission,
    PermissionGrant, PutMode, Reason, RepartitionJob, Script, ScriptDefinition, User,
};
pub use change_feed::{ChangeCursor, ChangeFeedPage, ChangeFrom, ChangeMode, ChangeRequest, ChangedItems};
pub use fault_injection::{FaultAt, FaultKind, Faults, InjectedFault};
pub use feed::{FeedCursor, FeedRange, ItemPage};
pub use item::{Target, WriteOptions};
pub use jobs::{JobOutcome, JobReport, JobStep, JobTask};
pub use partition_admin::PartitionReport;
pub use procedure::{CursorCodec, Executed, ItemWrite, ScriptContext, Triggered, Triggers};
#[cfg(any(test, feature = "testing"))]
pub use query::exam;
pub use query::{
    CrossPartition, CursorAt, IndexMetric, ItemQuery, KeyDigest, PageSize, Parallelism, Parameters, QueryCursor,
    QueryPage, QueryReport, RangeCursor, ReportOptions, ResumeKey, RowSet, write_item,
};
pub use response::{EngineResponse, PartitionLsn};
pub use session::SessionToken;
pub use statistics::{KeyOrder, KeyReport, PartitionStatistics};
pub use throttle_log::ThrottleEntry;
pub use throughput::{Governance, OfferChange, ProvisionedThroughput, ThroughputRequest};

pub use pleiad_model::partition_map::PartitionKeyRange;
pub use pleiad_partition::commit::SyncPolicy;
pub use pleiad_partition::feed::PageLimit;
pub use pleiad_partition::governor::{BucketId, Caps, Priority, RequestClass};
pub use pleiad_partition::index::UsableIndex;
pub use pleiad_partition::key::LargeKey;
pub use pleiad_partition::key_statistics::KeyStatistics;
pub use pleiad_partition::usage::KEYS_TOLD;
pub use pleiad_partition::version_row::{ItemVersion, VersionKind};
pub use pleiad_partition::{Partition, Precondition, Record, Verb, Written, price};
pub use pleiad_script::{Cause as ScriptCause, ScriptError};

pub use pleiad_storage::CheckpointInfo as AccountSnapshot;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use alerts::AlertLog;
use jobs::{GlobalIndexer, Purger, VectorIndexer};
use meter::Meter;
use parking_lot::Mutex;
use pleiad_model::Result;
use pleiad_model::env::Env;
use pleiad_partition::{Committer, SizeLimits};
use pleiad_storage::AnyStore;
use script_runtime::Interpreters;
use tokio::sync::Semaphore;

/// Limits that decide when and how a container is partitioned, and a query shared out. Settings, so that tests can scale them down.
#[derive(Clone, Copy, Debug)]
pub struct PartitionLimits {
    /// The most a physical partition can give.
    pub partition_ru_max: u32,
    /// What a new container with manual throughput counts on per partition.
    pub partition_ru_initial: u32,
    pub partition_bytes_max: u64,
    pub key_bytes_max: u64,
    /// The least a new container starts with.
    pub ranges_initial: u32,
    pub governance: Governance,
    /// What a split or merge may copy in a second.
    pub copy_bytes_per_s: u64,
    pub sharing: Parallelism,
}

impl PartitionLimits {
    pub(crate) fn room(&self) -> SizeLimits {
        SizeLimits { key_bytes_max: self.key_bytes_max, partition_bytes_max: self.partition_bytes_max }
    }
}

impl Default for PartitionLimits {
    fn default() -> Self {
        const GB: u64 = 1 << 30;
        PartitionLimits {
            partition_ru_max: 10_000,
            partition_ru_initial: 10_000,
            partition_bytes_max: 50 * GB,
            key_bytes_max: 20 * GB,
            ranges_initial: 1,
            governance: Governance::default(),
            copy_bytes_per_s: 256 << 20,
            sharing: Parallelism::USUAL,
        }
    }
}

/// One account, open.
pub struct Engine {
    pub catalog: Catalog,
    env: Arc<dyn Env>,
    committer: Committer,
    meter: Meter,
    watch: AlertLog,
    /// One for each query that may run: a thread, and what it holds in memory.
    query_permits: Arc<Semaphore>,
    /// Threads that look after the account for as long as it is open.
    caretakers: Mutex<Option<(Purger, GlobalIndexer, VectorIndexer)>>,
    scripts: Interpreters,
    durability: SyncPolicy,
    /// It takes no more writes: another engine is about to answer for the account.
    retired: AtomicBool,
    /// The account has become another; what this engine said of it counts no longer.
    superseded: AtomicBool,
}

impl Engine {
    pub async fn open(
        store: AnyStore,
        durability: SyncPolicy,
        limits: PartitionLimits,
        env: Arc<dyn Env>,
    ) -> Result<Engine> {
        Engine::open_on(Arc::new(store), durability, limits, env).await
    }

    async fn open_on(
        store: Arc<AnyStore>,
        durability: SyncPolicy,
        limits: PartitionLimits,
        env: Arc<dyn Env>,
    ) -> Result<Engine> {
        let committer = Committer::start(store.clone(), durability)?;
        let catalog = Catalog::open(store, committer.clone(), limits, env.clone()).await?;
        let (meter, watch) = (Meter::new(env.clone()), AlertLog::default());
        let query_permits = Arc::new(Semaphore::new(query::at_once()));
        let (scripts, caretakers) = (Interpreters::new(env.clone()), Mutex::new(None));
        let (retired, superseded) = Default::default();
        Ok(Engine {
            catalog,
            env,
            committer,
            meter,
            watch,
            query_permits,
            scripts,
            caretakers,
            durability,
            retired,
            superseded,
        })
    }

    /// Who was refused for want of request units, the latest last.
    pub fn throttles(&self) -> Vec<ThrottleEntry> {
        self.meter.throttles()
    }

    /// Goes on with chores that the last run left. Whoever only looks does not call this.
    pub async fn resume_chores(&self) -> Result<()> {
        let sweeper = Purger::start(self.catalog.current(), self.env.clone());
        let (keeper, sketcher) =
            (GlobalIndexer::start(self.catalog.downgrade()), VectorIndexer::start(self.catalog.current()));
        *self.caretakers.lock() = Some((sweeper, keeper, sketcher));
        self.catalog.resume_erasing().await?;
        self.catalog.resume_reindexing().await?;
        self.catalog.resume_jobs();
        Ok(())
    }

    pub fn now_ms(&self) -> u64 {
        self.env.now_ms()
    }

    /// What the clocks of clients show.
    pub fn wall_ms(&self) -> u64 {
        self.env.wall_ms()
    }

    /// As items carry it.
    fn now_s(&self) -> u32 {
        u32::try_from(self.env.now_ms() / 1000).unwrap_or(u32::MAX)
    }

    pub fn random_u64(&self) -> u64 {
        self.env.random_u64()
    }

    /// Whether writes are accepted; reads may go on when they are not.
    pub fn check_ready(&self) -> Result<()> {
        self.committer.refusal().map_or(Ok(()), Err)
    }

    /// Finishes what is queued and makes it durable. Chores end at their next step and go on at the next start.
    pub async fn close(&self) {
        let mut caretakers = None;
        let taken = self.caretakers.lock().take();
        if let Some((sweeper, keeper, sketcher)) = taken {
            sketcher.end().await; // while it can still write what it is about to
            caretakers = Some((sweeper, keeper));
        }
        self.catalog.jobs().close();
        self.committer.stop().await;
        self.catalog.chores().ended().await;
        if let Some((sweeper, keeper)) = caretakers {
            sweeper.end().await;
            keeper.end().await;
        }
    }
}
