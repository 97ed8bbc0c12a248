//! One physical partition: reads, checks and writes of single items.
//!
//! Invariant: a latch serialises the writers of one logical partition. Each writer sees the decisions of the one before
//! it, even those that are not durable yet; a reader sees only durable writes.
//!
//! ```text
//! latch (logical partition) → current version (pending rows, then store) → decide
//!   → sequencer: next LSN, rows, pending rows, enqueue → release → wait for the committer
//! ```

mod outcome; // how a write ends that was not made
mod write; // one item's change, under its latch
pub(crate) mod checks; // reasons to reject a write
pub mod transaction; // atomic changes to several items
mod delete_by_key; // delete all items of a partition key
mod sequencer; // assigns LSNs, holds queued writes
mod split_trigger; // signals that the partition exceeds its size
mod handover; // change log and write fence during a copy
mod reindex; // rebuilds index rows after a policy change

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Result, Value};
use pleiad_storage::{AnyStore, Batch, Blocking, Store, keyspace};

use crate::commit::Committer;
use crate::governor::Governor;
use crate::key::{ItemKey, KeyStats};
use crate::key_statistics::LargeKeyCache;
use crate::key_tombstones::{KeyTombstones, TombstoneCell};
use crate::missing_values::MissingValues;
use crate::record::Record;
use crate::row_changes::docnum_from_value;
use crate::schema::Schema;
use crate::shard_state::ShardState;
use crate::snapshot::UnindexedFlag;
use crate::snapshot::visibility::{self, WRITER_LSN};
use crate::ttl::Expiry;
use crate::unique::Claim;
use crate::upgrade;
use crate::vector_index::VectorIndexes;
use checks::{check_identity, id_without_item};
use pleiad_model::partition_map::PartitionKeyRange;
use sequencer::{Sequencer, not_durable};
use split_trigger::SplitTrigger;
use write::PreparedWrite;

pub use outcome::{MaintenanceError, Outdated, Rejected, WriteError};
pub use sequencer::Queued;

/// Enough that writers of different logical partitions seldom share a latch.
const LATCHES: usize = 64;

/// The new contents of an item as requested by a client and validated by the engine.
#[derive(Clone)]
pub struct Draft {
    /// The item to write; its id differs from the body's when the write renames the item.
    pub target: ItemKey,
    pub id: String,
    /// Without system properties.
    pub body: Value,
    /// The body as it will be stored.
    pub text: Vec<u8>,
    pub indexed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Replace,
    Upsert,
}

/// If-Match or If-None-Match: a condition on the current version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    #[default]
    None,
    /// The item exists.
    IfAny,
    /// The item has exactly this etag.
    IfMatch(String),
    /// The item does not exist.
    IfAbsent,
}

impl Precondition {
    pub fn holds(&self, record: &Record) -> bool {
        self.holds_for(|| record.etag().to_string())
    }

    /// The same for a version with this etag.
    pub fn holds_for(&self, etag: impl FnOnce() -> String) -> bool {
        match self {
            Precondition::None | Precondition::IfAny => true,
            Precondition::IfMatch(expected) => etag() == *expected,
            Precondition::IfAbsent => false,
        }
    }
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The new version; `None` after a delete.
    pub record: Option<Record>,
    pub created: bool,
    pub lsn: u64,
    pub charge_ru: f64,
}

pub struct Partition {
    pub range: PartitionKeyRange,
    pub(crate) store: Arc<AnyStore>,
    committer: Committer,
    latches: Vec<tokio::sync::Mutex<()>>,
    sequencer: Arc<Sequencer>,
    pub(crate) unindexed: UnindexedFlag,
    /// Its request-unit budget and use.
    pub governor: Governor,
    /// Its large logical partitions.
    pub large_keys: LargeKeyCache,
    split_trigger: SplitTrigger,
    /// Keys whose items were deleted by partition key.
    pub(crate) key_tombstones: TombstoneCell,
    /// Number of transactions begun so far.
    transactions: AtomicU64,
    pub(crate) vector_indexes: VectorIndexes,
    pub(crate) missing_values: MissingValues,
}

impl Partition {
    /// Opens a partition of an existing container, or an empty one of a new container.
    pub async fn open(range: PartitionKeyRange, store: Arc<AnyStore>, committer: Committer) -> Result<Self> {
        let row = store.get(&keyspace::state(range.shard)).await?;
        if row.as_deref().is_some_and(ShardState::is_outdated) {
            upgrade::feed_rows(&store, &committer, range.shard).await?;
        }
        let shard = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
        let tombstones = KeyTombstones::load(&store, range.shard).await?;
        Ok(Partition {
            key_tombstones: TombstoneCell::new(tombstones),
            ..Partition::with_state(range, store, committer, shard)
        })
    }

    /// Takes over the key tombstones of its parents, within its own range.
    pub fn inherit_tombstones<'a>(&self, parents: impl Iterator<Item = &'a Partition>) {
        parents.for_each(|parent| self.key_tombstones.add_all(&parent.key_tombstones.get(), &self.range.keys));
    }

    /// A partition with a given state, which the caller is about to write.
    pub fn with_state(range: PartitionKeyRange, store: Arc<AnyStore>, committer: Committer, shard: ShardState) -> Self {
        let latches = (0..LATCHES).map(|_| tokio::sync::Mutex::new(())).collect();
        let unindexed = UnindexedFlag::default();
        let (sequencer, split_trigger) = (Arc::new(Sequencer::new(shard)), SplitTrigger::default());
        let (governor, large_keys) = Default::default();
        let (transactions, key_tombstones) = (AtomicU64::new(0), TombstoneCell::default());
        Partition {
            range,
            store,
            committer,
            latches,
            sequencer,
            unindexed,
            governor,
            large_keys,
            split_trigger,
            key_tombstones,
            transactions,
            vector_indexes: VectorIndexes::default(),
            missing_values: MissingValues::default(),
        }
    }

    /// The LSN up to which all writes are durable and readable.
    pub fn lsn(&self) -> u64 {
        self.sequencer.visible_lsn()
    }

    /// Counters and LSN including queued writes that are not durable yet.
    pub fn shard_state(&self) -> ShardState {
        self.sequencer.state.lock().shard.clone()
    }

    /// Whether it is closed (container deleted) or fenced (items move to other shards).
    pub(crate) fn rejects_writes(&self) -> bool {
        let sequence = self.sequencer.state.lock();
        sequence.closed || sequence.fenced
    }

    /// Accepts no more writes: the container is being deleted.
    pub fn close(&self) {
        self.sequencer.state.lock().closed = true;
    }

    /// Rejects writes under an older schema from now on. So the number of items stays as it is until writers know the
    /// new schema.
    pub fn require_schema(&self, version: u64) {
        let mut sequence = self.sequencer.state.lock();
        sequence.schema_version = sequence.schema_version.max(version);
    }

    /// Fails if a write under a newer schema has been accepted or announced. If it succeeds after a snapshot was taken,
    /// the snapshot's rows agree with this schema.
    pub fn check_schema(&self, schema: &Schema) -> Result<(), Outdated> {
        self.sequencer.state.lock().check_schema(schema)
    }

    /// The item, unless it is dead at the time of this expiry.
    pub async fn read(&self, key: &ItemKey, expiry: Expiry) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.store.get(&row).await? else { return Ok(None) };
        self.read_docnum(key, docnum_from_value(&docnum)?, expiry).await
    }

    async fn read_docnum(&self, key: &ItemKey, docnum: u64, expiry: Expiry) -> Result<Option<Record>> {
        // The item may be deleted between the two lookups; then it does not exist.
        let Some(bytes) = self.store.get(&keyspace::doc(self.range.shard, docnum)).await? else { return Ok(None) };
        match check_identity(Record::decode(bytes)?, key) {
            Ok(record) => Ok(Some(record).filter(|record| !self.is_dead_at(self.lsn(), expiry, record))),
            // It may also have been renamed in between.
            Err(_) => self.read_in_snapshot(key, expiry).await,
        }
    }

    /// Two separate lookups cannot distinguish a renamed item from a corrupt one; a snapshot can.
    async fn read_in_snapshot(&self, key: &ItemKey, expiry: Expiry) -> Result<Option<Record>> {
        let view = self.snapshot(Blocking::Suspend).await?;
        Ok(view.find(key).await?.filter(|record| !view.is_dead(expiry, &record.view())))
    }

    /// The id of the item with that docnum, if the item has this effective key.
    pub async fn id_of(&self, docnum: u64, epk: &EffectiveKey) -> Result<Option<String>> {
        let Some(bytes) = self.store.get(&keyspace::doc(self.range.shard, docnum)).await? else { return Ok(None) };
        let record = Record::decode(bytes)?;
        Ok((record.epk == *epk).then(|| record.id().to_owned()))
    }

    /// Creates, replaces or upserts an item, and waits until that is durable.
    pub async fn write(
        &self,
        schema: &Schema,
        verb: Verb,
        draft: &Draft,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Written, WriteError> {
        self.await_outcome(self.enqueue_write(schema, verb, draft, condition, ts_s).await).await
    }

    /// Decides a write: when this returns `Queued`, the committer has it and completes it, whether or not the caller
    /// waits. [`Partition::await_outcome`] waits for what was decided.
    ///
    /// Cancel safety: dropped before it returns, nothing is written.
    pub async fn enqueue_write(
        &self,
        schema: &Schema,
        verb: Verb,
        draft: &Draft,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Queued, WriteError> {
        if !draft.indexed {
            self.unindexed.set();
        }
        let prepared = PreparedWrite::new(schema, draft, ts_s);
        let _latch = self.latch(&draft.target).await;
        self.put(schema, verb, &prepared, condition).await
    }

    pub async fn delete(
        &self,
        schema: &Schema,
        key: &ItemKey,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Written, WriteError> {
        self.await_outcome(self.enqueue_delete(schema, key, condition, ts_s).await).await
    }

    /// Decides a delete, as `enqueue_write` decides a write.
    pub async fn enqueue_delete(
        &self,
        schema: &Schema,
        key: &ItemKey,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Queued, WriteError> {
        let _latch = self.latch(key).await;
        self.remove(schema, key, condition, ts_s).await
    }

    /// Whether an item is dead for a writer: expired or deleted by key, its rows not purged yet.
    fn is_dead(&self, schema: &Schema, ts_s: u32, record: &Record) -> bool {
        self.is_dead_at(WRITER_LSN, schema.expiry(ts_s), record)
    }

    fn is_dead_at(&self, seen_lsn: u64, expiry: Expiry, record: &Record) -> bool {
        visibility::is_dead(&record.view(), expiry, &self.key_tombstones, seen_lsn)
    }

    /// Waits until the outcome is durable. A rejection also waits, for the queued writes that caused it: a client that
    /// gets "already exists" can read the item, and never gets it because of a write that is lost.
    pub async fn await_outcome<T>(&self, decided: Result<Queued<T>, WriteError>) -> Result<T, WriteError> {
        let failure = match decided {
            Ok(queued) => return Ok(queued.wait().await?),
            Err(failure) => failure,
        };
        self.wait_for_queued().await?;
        Err(failure)
    }

    /// Waits until all writes are durable that a writer can have seen by now.
    async fn wait_for_queued(&self) -> Result<(), WriteError> {
        // After a handover the outcome may be different on the partition that owns the items now.
        self.sequencer.state.lock().check_fence()?;
        if self.shard_state().lsn > self.lsn() {
            self.committer.commit(Batch::default()).await.map_err(not_durable)?;
        }
        Ok(())
    }

    async fn latch(&self, key: &ItemKey) -> tokio::sync::MutexGuard<'_, ()> {
        let at = key.logical.hash()[0] as usize % LATCHES;
        self.latches[at].lock().await
    }

    /// The version that a writer must take into account, durable or queued.
    async fn current(&self, key: &ItemKey) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.newest(&row).await? else { return Ok(None) };
        check_identity(self.current_by_docnum(docnum_from_value(&docnum)?).await?, key).map(Some)
    }

    /// The item that an id or unique row points at, durable or queued.
    async fn current_by_docnum(&self, docnum: u64) -> Result<Record> {
        let bytes = self.newest(&keyspace::doc(self.range.shard, docnum)).await?.ok_or_else(id_without_item)?;
        Record::decode(bytes)
    }

    /// The docnum of the item that holds a unique value, durable or queued.
    async fn holder(&self, claim: &Claim, key: &ItemKey) -> Result<Option<u64>> {
        let row = self.newest(&claim.row(self.range.shard, key.logical.epk.as_bytes())).await?;
        row.map(|docnum| docnum_from_value(&docnum)).transpose()
    }

    async fn key_stats(&self, key: &ItemKey) -> Result<KeyStats> {
        let row = self.newest(&self.key_row(key)).await?;
        Ok(row.as_deref().map(KeyStats::decode).transpose()?.unwrap_or_default())
    }

    fn key_row(&self, key: &ItemKey) -> Bytes {
        keyspace::key_stats(self.range.shard, key.logical.epk.as_bytes(), &key.logical.hash())
    }

    /// Pending rows are dropped only after the store has them, so reading them first misses nothing.
    async fn newest(&self, row: &Bytes) -> Result<Option<Bytes>> {
        match self.sequencer.pending(row) {
            Some(value) => Ok(value),
            None => self.store.get(row).await,
        }
    }
}

#[cfg(test)]
mod tests;
