//! engine: what an account can ask for; the only place where the pillars meet.
//!
//! Knows no status code, header or frame: requests arrive as types and leave as types.
//! Read in this order.

mod answer; // what every answer tells besides its result
mod admit; // may it, and where does it live
pub mod catalog; // databases, containers, offers: the resource tree
pub mod check; // is the whole account sound
mod chores; // work that nobody waits for
mod computed; // properties that no item stores
mod fault; // partitions that answer wrongly, on command
mod live; // the account while it is served, and snapshots of it
mod item; // one item
mod home; // where it is written, and written again
mod patch; // one item, changed by its parts
mod batch; // many operations in one request
mod erase; // all items of a key
mod list; // many items, a page at a time
pub mod metrics; // what the account is used for, in figures
mod meter; // may it now, and what did it take
mod script; // where scripts run, and how they fail
mod procedure; // scripts in transactions
mod query; // many items, by what they hold
mod change_feed; // many items, by when they changed
mod repartition; // what may be asked about partitions
mod session; // what a client has already seen
mod statistics; // logical partitions, counted and compared
#[cfg(test)]
mod simulation; // everything at once, by chance
#[cfg(test)]
mod testing; // an account to work on
mod throttle; // who was refused lately, and why
pub mod throughput; // what may be reserved, and how many partitions it takes
mod watch; // what an operator should know

pub use admit::{Admitted, ContainerName};
pub use answer::{Answer, Place};
pub use batch::{BATCH_OPERATIONS_MAX, BatchAction, BatchOperation, Done, OperationAnswer};
pub use catalog::{
    Catalog, Container, Database, DatabaseCopy, EncryptionKey, Grant, Job, JobKind, Meant, Offer, OfferOwner,
    Permission, Put, Reason, Script, ScriptDefinition, User,
};
pub use change_feed::{ChangeFrom, ChangeMode, ChangePage, ChangeRequest, ChangeStretch, Changes};
pub use chores::{JobReport, Outcome as JobOutcome, Step, Task as JobTask};
pub use fault::{Fault, FaultAt, FaultKind, Faults};
pub use item::{Target, WriteOptions};
pub use list::{ItemPage, ListScope, Position};
pub use live::{Live, Restored};
pub use procedure::{Cursors, Executed, ItemWrite, ScriptContext, Triggered, Triggers};
#[cfg(any(test, feature = "testing"))]
pub use query::exam;
pub use query::{
    Across, CursorAt, IndexUse, ItemQuery, KeyDigest, PageSize, Parameters, QueryCursor, QueryPage, Report, ResumeKey,
    RowSet, Sharing, Stretch, Tell, write_item,
};
pub use repartition::PartitionReport;
pub use session::SessionToken;
pub use statistics::{KeyOrder, KeyReport, PartitionStatistics};
pub use throttle::Throttling;
pub use throughput::{Governance, OfferChange, ProvisionedThroughput, ThroughputRequest};
pub use watch::{Alert, AlertKind};

pub use pleiad_partition::commit::Policy as Durability;
pub use pleiad_partition::feed::Quota;
pub use pleiad_partition::governor::{BucketId, Caps, Class, Priority};
pub use pleiad_partition::index::UsableIndex;
pub use pleiad_partition::key::LargeKey;
pub use pleiad_partition::key_statistics::KeyStatistics;
pub use pleiad_partition::usage::KEYS_TOLD;
pub use pleiad_partition::version::{Version, VersionKind};
pub use pleiad_partition::{Condition, Partition, Range, Record, Verb, Written, price};
pub use pleiad_script::{Cause as ScriptCause, ScriptError};

pub use pleiad_storage::CheckpointInfo as AccountSnapshot;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chores::{Keeper, Sketcher, Sweeper};
use meter::Meter;
use parking_lot::Mutex;
use pleiad_model::Result;
use pleiad_model::env::Env;
use pleiad_partition::{Committer, Room};
use pleiad_storage::AnyStore;
use script::Interpreters;
use tokio::sync::Semaphore;
use watch::Watch;

/// Limits that decide when and how a container is partitioned, and a query shared out. Settings, so that tests can scale them down.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
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
    pub sharing: Sharing,
}

impl Limits {
    pub(crate) fn room(&self) -> Room {
        Room { key_bytes_max: self.key_bytes_max, partition_bytes_max: self.partition_bytes_max }
    }
}

impl Default for Limits {
    fn default() -> Self {
        const GB: u64 = 1 << 30;
        Limits {
            partition_ru_max: 10_000,
            partition_ru_initial: 10_000,
            partition_bytes_max: 50 * GB,
            key_bytes_max: 20 * GB,
            ranges_initial: 1,
            governance: Governance::default(),
            copy_bytes_per_s: 256 << 20,
            sharing: Sharing::USUAL,
        }
    }
}

/// One account, open.
pub struct Engine {
    pub catalog: Catalog,
    env: Arc<dyn Env>,
    committer: Committer,
    meter: Meter,
    watch: Watch,
    /// One for each query that may run: a thread, and what it holds in memory.
    query_permits: Arc<Semaphore>,
    /// Threads that look after the account for as long as it is open.
    caretakers: Mutex<Option<(Sweeper, Keeper, Sketcher)>>,
    scripts: Interpreters,
    durability: Durability,
    /// It takes no more writes: another engine is about to answer for the account.
    retired: AtomicBool,
    /// The account has become another; what this engine said of it counts no longer.
    superseded: AtomicBool,
}

impl Engine {
    pub async fn open(store: AnyStore, durability: Durability, limits: Limits, env: Arc<dyn Env>) -> Result<Engine> {
        Engine::open_on(Arc::new(store), durability, limits, env).await
    }

    async fn open_on(
        store: Arc<AnyStore>,
        durability: Durability,
        limits: Limits,
        env: Arc<dyn Env>,
    ) -> Result<Engine> {
        let committer = Committer::start(store.clone(), durability)?;
        let catalog = Catalog::open(store, committer.clone(), limits, env.clone()).await?;
        let (meter, watch) = (Meter::new(env.clone()), Watch::default());
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
    pub fn throttles(&self) -> Vec<Throttling> {
        self.meter.throttles()
    }

    /// Goes on with chores that the last run left. Whoever only looks does not call this.
    pub async fn resume_chores(&self) -> Result<()> {
        let sweeper = Sweeper::start(self.catalog.current(), self.env.clone());
        let (keeper, sketcher) = (Keeper::start(self.catalog.downgrade()), Sketcher::start(self.catalog.current()));
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
