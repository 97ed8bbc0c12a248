//! One physical partition: reads, checks and writes of single items.
//!
//! Promise: writers of one logical partition take turns, each sees what the one before it decided
//! even if that is not durable yet, and a reader sees only what is durable.
//!
//! ```text
//! latch (logical partition) → current version (pending rows, then store) → decide
//!   → sequencer: next LSN, rows, pending rows, enqueue → release → wait for the committer
//! ```

mod write; // one item's change, under its latch
pub(crate) mod checks; // what speaks against it
pub mod transaction; // many items' changes as one
mod delete_by_key; // all items of a key
mod sequencer; // its place in the commit history
mod split_trigger; // when there is too much in it
mod handover; // while its items go to other shards
mod reindex; // index rows after a change of the policy

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Result, Value};
use pleiad_storage::{AnyStore, Batch, Store, keyspace};

use crate::commit::Committer;
use crate::governor::Governor;
use crate::key::{ItemKey, KeyStats};
use crate::key_statistics::KnownKeys;
use crate::key_tombstones::{KeyTombstones, TombstoneCell};
use crate::missing_values::MissingValues;
use crate::price;
use crate::record::Record;
use crate::row_changes::docnum_from_value;
use crate::schema::Schema;
use crate::shard_state::ShardState;
use crate::snapshot::Unindexed;
use crate::unique::Claim;
use crate::upgrade;
use crate::vector_index::VectorIndexes;
use checks::{check_identity, id_without_item};
use pleiad_model::partition_map::PartitionKeyRange;
use sequencer::{Queued, Sequencer, lost};
use split_trigger::SplitTrigger;
use write::PreparedWrite;

pub use checks::{ALREADY_EXISTS, CONDITION_FAILS, NOT_THERE, UNIQUE_TAKEN};

/// Writers of different logical partitions seldom share one of these.
const LATCHES: usize = 64;

/// An item as a client wants it to be, checked by the engine.
pub struct Draft {
    /// Which item is meant; its id differs from the body's when an item is renamed.
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

/// What the caller believes about the version that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    #[default]
    None,
    /// It exists.
    IfAny,
    /// It is exactly this version.
    IfMatch(String),
    /// There is none.
    IfAbsent,
}

impl Precondition {
    pub fn holds(&self, record: &Record) -> bool {
        self.holds_for(|| record.etag().to_string())
    }

    /// Of a version that has this etag.
    pub fn holds_for(&self, etag: impl FnOnce() -> String) -> bool {
        match self {
            Precondition::None | Precondition::IfAny => true,
            Precondition::IfMatch(meant) => etag() == *meant,
            Precondition::IfAbsent => false,
        }
    }
}

/// The outcome of a write.
#[derive(Debug)]
pub struct Written {
    /// The new version; a delete leaves none.
    pub record: Option<Record>,
    pub created: bool,
    pub lsn: u64,
    pub charge_ru: f64,
}

/// A write that was refused, and what looking cost.
#[derive(Debug)]
pub struct Rejected {
    pub error: Error,
    pub charge_ru: f64,
}

impl From<Error> for Rejected {
    fn from(error: Error) -> Self {
        Rejected { error, charge_ru: price::MISS_RU }
    }
}

pub struct Partition {
    pub range: PartitionKeyRange,
    pub(crate) store: Arc<AnyStore>,
    committer: Committer,
    latches: Vec<tokio::sync::Mutex<()>>,
    sequencer: Arc<Sequencer>,
    pub(crate) unindexed: Unindexed,
    /// What it may give, and what it gave.
    pub governor: Governor,
    /// Its large logical partitions.
    pub keys: KnownKeys,
    growth: SplitTrigger,
    /// Its keys whose items were all deleted.
    pub(crate) marks: TombstoneCell,
    /// How many transactions have begun.
    transactions: AtomicU64,
    pub(crate) sketches: VectorIndexes,
    pub(crate) lacking: MissingValues,
}

impl Partition {
    /// Opens a partition of an existing container, or an empty one of a new container.
    pub async fn open(range: PartitionKeyRange, store: Arc<AnyStore>, committer: Committer) -> Result<Self> {
        let row = store.get(&keyspace::state(range.shard)).await?;
        if row.as_deref().is_some_and(ShardState::is_outdated) {
            upgrade::feed_rows(&store, &committer, range.shard).await?;
        }
        let shard = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
        let erased = KeyTombstones::load(&store, range.shard).await?;
        Ok(Partition { marks: TombstoneCell::new(erased), ..Partition::at(range, store, committer, shard) })
    }

    /// It has the items of these, and what is erased there.
    pub fn inherit<'a>(&self, parents: impl Iterator<Item = &'a Partition>) {
        parents.for_each(|parent| self.marks.add_all(&parent.marks.get(), &self.range.keys));
    }

    /// A partition whose state is known, because it is about to be written.
    pub fn at(range: PartitionKeyRange, store: Arc<AnyStore>, committer: Committer, shard: ShardState) -> Self {
        let latches = (0..LATCHES).map(|_| tokio::sync::Mutex::new(())).collect();
        let unindexed = Unindexed::default();
        let (sequencer, growth) = (Arc::new(Sequencer::new(shard)), SplitTrigger::default());
        let (governor, keys) = Default::default();
        let (transactions, marks) = (AtomicU64::new(0), TombstoneCell::default());
        Partition {
            range,
            store,
            committer,
            latches,
            sequencer,
            unindexed,
            governor,
            keys,
            growth,
            marks,
            transactions,
            sketches: VectorIndexes::default(),
            lacking: MissingValues::default(),
        }
    }

    /// The LSN up to which everything is durable and can be read.
    pub fn lsn(&self) -> u64 {
        self.sequencer.visible_lsn()
    }

    /// Items and bytes, counting what is about to become durable.
    pub fn usage(&self) -> ShardState {
        self.sequencer.state.lock().shard.clone()
    }

    /// Whether its container, or its items, are going away.
    pub(crate) fn is_ending(&self) -> bool {
        let sequence = self.sequencer.state.lock();
        sequence.closed || sequence.fenced
    }

    /// Accepts no more writes: the container is going away.
    pub fn close(&self) {
        self.sequencer.state.lock().closed = true;
    }

    /// From now on no write is accepted under an older schema, and what is counted stays as it is until the new
    /// one is known.
    pub fn expect_schema(&self, version: u64) {
        let mut sequence = self.sequencer.state.lock();
        sequence.schema_version = sequence.schema_version.max(version);
    }

    /// Whether nobody has written under a newer schema yet. Asked after a snapshot was taken, it tells that the
    /// snapshot's rows are as this schema promises them.
    pub fn check_schema(&self, schema: &Schema) -> Result<()> {
        self.sequencer.state.lock().check_schema(schema)
    }

    pub async fn read(&self, key: &ItemKey) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.store.get(&row).await? else { return Ok(None) };
        self.read_numbered(key, docnum_from_value(&docnum)?).await
    }

    async fn read_numbered(&self, key: &ItemKey, docnum: u64) -> Result<Option<Record>> {
        // The item may go between the two look-ups; then it is not there.
        let Some(bytes) = self.store.get(&keyspace::doc(self.range.shard, docnum)).await? else { return Ok(None) };
        match check_identity(Record::decode(bytes)?, key) {
            Ok(record) => Ok(Some(record).filter(|record| !self.marks.cover(&record.view(), self.lsn()))),
            // It may also have got another id.
            Err(_) => self.read_at_one_moment(key).await,
        }
    }

    /// What two look-ups of two moments cannot tell: renamed, or damaged.
    async fn read_at_one_moment(&self, key: &ItemKey) -> Result<Option<Record>> {
        let view = self.view().await?;
        Ok(view.find(key).await?.filter(|record| !self.marks.cover(&record.view(), view.lsn())))
    }

    /// The id of the item with that number, if it is one of this key's.
    pub async fn id_of(&self, docnum: u64, epk: &EffectiveKey) -> Result<Option<String>> {
        let Some(bytes) = self.store.get(&keyspace::doc(self.range.shard, docnum)).await? else { return Ok(None) };
        let record = Record::decode(bytes)?;
        Ok((record.epk == *epk).then(|| record.id().to_owned()))
    }

    /// Creates, replaces or upserts an item.
    pub async fn write(
        &self,
        schema: &Schema,
        verb: Verb,
        draft: &Draft,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Written, Rejected> {
        if !draft.indexed {
            self.unindexed.will_be();
        }
        let prepared = PreparedWrite::new(schema, draft, ts_s);
        let latch = self.latch(&draft.target).await;
        let queued = self.put(schema, verb, &prepared, condition).await;
        drop(latch);
        self.settle(queued).await
    }

    pub async fn delete(
        &self,
        schema: &Schema,
        key: &ItemKey,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Written, Rejected> {
        let latch = self.latch(key).await;
        let queued = self.remove(schema, key, condition, ts_s).await;
        drop(latch);
        self.settle(queued).await
    }

    /// Whether a writer finds an item gone, although its rows are there.
    fn is_gone(&self, schema: &Schema, ts_s: u32, record: &Record) -> bool {
        schema.expiry(ts_s).is_over(&record.view()) || self.marks.cover(&record.view(), u64::MAX)
    }

    /// Waits until the outcome is durable. A refusal waits too, for the writes it rests on: whoever
    /// hears "already exists" can read the item, and never hears it of a write that is lost.
    async fn settle(&self, queued: Result<Queued, Rejected>) -> Result<Written, Rejected> {
        let refusal = match queued {
            Ok(queued) => return queued.wait().await,
            Err(refusal) => refusal,
        };
        self.stand_by().await?;
        Err(refusal)
    }

    /// Waits until everything is durable that a writer can have seen by now.
    async fn stand_by(&self) -> Result<(), Rejected> {
        // What is missing here, or in the way, may not be so where the items are now.
        self.sequencer.state.lock().check_fence()?;
        if self.usage().lsn > self.lsn() {
            self.committer.commit(Batch::default()).await.map_err(lost)?;
        }
        Ok(())
    }

    async fn latch(&self, key: &ItemKey) -> tokio::sync::MutexGuard<'_, ()> {
        let at = key.logical.hash()[0] as usize % LATCHES;
        self.latches[at].lock().await
    }

    /// The version a writer must take into account, durable or not.
    async fn current(&self, key: &ItemKey) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.newest(&row).await? else { return Ok(None) };
        check_identity(self.numbered(docnum_from_value(&docnum)?).await?, key).map(Some)
    }

    /// The item that a row points at, durable or not.
    async fn numbered(&self, docnum: u64) -> Result<Record> {
        let bytes = self.newest(&keyspace::doc(self.range.shard, docnum)).await?.ok_or_else(id_without_item)?;
        Record::decode(bytes)
    }

    /// Who holds a unique value, durable or not.
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

    /// Pending rows go only after the store has them, so looking there first misses nothing.
    async fn newest(&self, row: &Bytes) -> Result<Option<Bytes>> {
        match self.sequencer.pending(row) {
            Some(value) => Ok(value),
            None => self.store.get(row).await,
        }
    }
}

#[cfg(test)]
mod tests;
