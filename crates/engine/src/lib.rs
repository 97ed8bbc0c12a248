//! engine: the operations of an account, and the only crate that combines storage, partitions, queries and scripts.
//!
//! It contains no status code, header or frame: requests and responses are types.
//! The modules are listed in reading order.

mod timer; // suspends a task for a time, on any executor
mod response; // result, request charge and serving partition
mod session; // session tokens
mod computed; // computed properties: compiled for queries and for the index
mod script_runtime; // interpreters for JavaScript, and their failures
mod catalog; // databases, containers, offers: the resource tree
pub mod throughput; // provisioned throughput: valid values, and the partitions it needs
mod jobs; // background work
mod authorize; // what a caller may do, and where: the value that every call needs
mod metadata; // databases, containers, offers, users, scripts
mod fault_injection; // errors and delays that a test orders
mod throttle_log; // recently throttled requests
mod meter; // admission against request units, and charging
mod write_retry; // runs a write on its owning partition, again if the container changes
mod item; // create, read, replace, upsert, delete one item
mod delete_by_partition_key; // deletes all items of a partition key
mod feed; // read feed: items page by page
mod query; // SQL queries
mod patch; // partial update of one item
mod batch; // transactional batch and bulk
mod change_feed; // changed items by LSN, page by page
mod procedure; // stored procedures and triggers, in transactions
mod account_host; // serves the current engine; account snapshots and restores
mod partition_admin; // operator API: partitions, splits, merges, jobs
mod statistics; // logical partitions: how many, the largest, the busiest
pub mod metrics; // throughput and storage figures of the account
mod alerts; // hot partitions and nearly full keys
pub mod check; // consistency check of the whole account
pub mod salvage; // writes out what can be read of a damaged account
#[cfg(test)]
mod testing; // test accounts
#[cfg(test)]
mod simulation; // randomised test of all operations together

pub use account_host::{AccountHost, Restored};
pub use alerts::{Alert, AlertKind};
pub use authorize::{
    Action, ActionSet, ActivityId, Addressed, Admitted, Authority, ContainerName, DatabaseName, Names, Place,
    ServerAuthority, WholeAccount,
};
pub use batch::{BATCH_OPERATIONS_MAX, BatchAction, BatchOperation, BatchOperationResult, OperationOutcome};
pub use catalog::{
    ConditionalRid, Container, Database, DatabaseCopy, EncryptionKey, JobKind, NewContainer, Offer, OfferOwner,
    Permission, PermissionGrant, PutMode, Reason, RepartitionJob, Script, ScriptDefinition, User,
};
pub use change_feed::{
    ChangeCursor, ChangeFeedPage, ChangeFilter, ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, write_changed_item,
};
pub use fault_injection::{FaultAt, FaultKind, Faults, InjectedFault};
pub use feed::{FeedCursor, FeedRange, ItemPage};
pub use item::{ItemRead, Target, WriteOptions};
pub use jobs::{JobOutcome, JobReport, JobStep, JobTask};
pub use metadata::{OfferReport, PartitionKeyReport};
pub use partition_admin::PartitionReport;
pub use procedure::{CursorCodec, Executed, ItemWrite, ScriptContext, Triggered, Triggers};
#[cfg(any(test, feature = "testing"))]
pub use query::exam;
pub use query::{
    Advice, CrossPartition, CursorBinding, CursorPosition, DistinctHash, IndexMetric, ItemQuery, KeyDigest, PageReach,
    PageSize, Parallelism, Parameters, QueryCursor, QueryPage, QueryReport, RangeCursor, ReportOptions, ResumeFilter,
    ResumeKey, RowSet, SortValue, WHOLE_ITEM, write_item,
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
pub use pleiad_partition::version_row::{ItemVersion, VersionKind};
pub use pleiad_partition::{Precondition, Record, Verb, Written, price};
pub use pleiad_script::{Cause as ScriptCause, ScriptError};

pub use pleiad_storage::CheckpointInfo as AccountSnapshot;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use alerts::AlertLog;
use catalog::Catalog;
use jobs::{GlobalIndexer, Purger, VectorIndexer};
use meter::{Admission, Meter};
use parking_lot::Mutex;
use pleiad_model::Result;
use pleiad_model::env::Env;
use pleiad_partition::{Committer, SizeLimits};
use pleiad_storage::AnyStore;
use script_runtime::Interpreters;
use tokio::sync::Semaphore;

/// Limits that decide when and how a container is partitioned and when a query runs in parallel. They are settings, so
/// that tests can scale them down.
#[derive(Clone, Copy, Debug)]
pub struct PartitionLimits {
    /// The most RU/s that a physical partition can provide.
    pub partition_ru_max: u32,
    /// The RU/s per partition from which the partition count of a new container with manual throughput is computed.
    pub partition_ru_initial: u32,
    pub partition_bytes_max: u64,
    pub key_bytes_max: u64,
    /// The fewest partitions that a new container starts with.
    pub ranges_initial: u32,
    pub governance: Governance,
    /// How fast a split or merge may copy.
    pub copy_bytes_per_s: u64,
    pub parallelism: Parallelism,
    pub cross_partition_page: PageReach,
}

impl PartitionLimits {
    pub(crate) fn size_limits(&self) -> SizeLimits {
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
            parallelism: Parallelism::DEFAULT,
            cross_partition_page: PageReach::Partition,
        }
    }
}

/// An open account.
pub struct Engine {
    catalog: Catalog,
    env: Arc<dyn Env>,
    committer: Committer,
    meter: Meter,
    alert_log: AlertLog,
    /// One permit per query that may run: it stands for a thread and the query's memory.
    query_permits: Arc<Semaphore>,
    /// Threads that maintain the account while it is open.
    background_threads: Mutex<Option<(Purger, GlobalIndexer, VectorIndexer)>>,
    scripts: Interpreters,
    durability: SyncPolicy,
    /// Set when this engine accepts no more writes, because another engine is about to serve the account.
    retired: AtomicBool,
    /// Set when a restore has replaced the account's data: responses of this engine no longer count.
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
        catalog::settle_loss(&store, env.as_ref()).await?;
        let committer = Committer::start(store.clone(), durability)?;
        let catalog = Catalog::open(store, committer.clone(), limits, env.clone()).await?;
        let (meter, alert_log) = (Meter::new(env.clone()), AlertLog::default());
        let query_permits = Arc::new(Semaphore::new(query::queries_max()));
        let (scripts, background_threads) = (Interpreters::new(env.clone()), Mutex::new(None));
        let (retired, superseded) = Default::default();
        Ok(Engine {
            catalog,
            env,
            committer,
            meter,
            alert_log,
            query_permits,
            scripts,
            background_threads,
            durability,
            retired,
            superseded,
        })
    }

    /// The requests that were throttled recently, the latest last.
    pub fn throttles(&self, at: &Admitted<WholeAccount>) -> Result<Vec<ThrottleEntry>> {
        at.check(Action::Monitor)?;
        Ok(self.meter.throttles())
    }

    /// Starts the background threads and resumes the jobs that the last run left unfinished. Callers that only read the
    /// account do not call this.
    pub async fn start_background_work(&self) -> Result<()> {
        let purger = Purger::start(self.catalog.current(), self.env.clone());
        let (global_indexer, vector_indexer) =
            (GlobalIndexer::start(self.catalog.downgrade()), VectorIndexer::start(self.catalog.current()));
        *self.background_threads.lock() = Some((purger, global_indexer, vector_indexer));
        self.catalog.resume_dropping_shards().await?;
        self.catalog.resume_reindexing().await?;
        self.catalog.resume_jobs();
        Ok(())
    }

    pub fn now_ms(&self) -> u64 {
        self.env.now_ms()
    }

    /// The time on the clocks of clients.
    pub fn wall_ms(&self) -> u64 {
        self.env.wall_ms()
    }

    /// The time as items store it, in seconds.
    fn now_s(&self) -> u32 {
        u32::try_from(self.env.now_ms() / 1000).unwrap_or(u32::MAX)
    }

    pub fn random_u64(&self) -> u64 {
        self.env.random_u64()
    }

    /// Fails if writes are not accepted; reads may still work then.
    pub fn check_ready(&self) -> Result<()> {
        self.committer.write_error().map_or(Ok(()), Err)
    }

    /// Commits the queued writes and makes them durable. Jobs stop at their next step and resume at the next start.
    pub async fn close(&self) {
        let mut remaining = None;
        let taken = self.background_threads.lock().take();
        if let Some((purger, global_indexer, vector_indexer)) = taken {
            vector_indexer.end().await; // first: the committer must still accept the writes it is about to make
            remaining = Some((purger, global_indexer));
        }
        self.catalog.jobs().close();
        self.committer.stop().await;
        self.catalog.tasks().wait_idle().await;
        if let Some((purger, global_indexer)) = remaining {
            purger.end().await;
            global_indexer.end().await;
        }
    }
}
