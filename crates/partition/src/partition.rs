//! One physical partition: reads, checks and writes of single items.
//!
//! Promise: writers of one logical partition take turns, each sees what the one before it decided
//! even if that is not durable yet, and a reader sees only what is durable.
//!
//! ```text
//! latch (logical partition) → current version (pending rows, then store) → decide
//!   → sequencer: next LSN, rows, pending rows, enqueue → release → wait for the committer
//! ```

mod growth; // when there is too much in it
mod moving; // while its items go to other shards
mod reindex; // index rows after a change of the policy

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pleiad_model::partition_key::{EffectiveKey, PartitionKey};
use pleiad_model::{Error, Kind, Result, Value, json};
use pleiad_storage::{AnySnapshot, AnyStore, Batch, Snapshot, Store, keyspace};
use tokio::sync::oneshot;

use crate::commit::{Committer, Entry, Publish};
use crate::governor::Governor;
use crate::index::{self, Term};
use crate::key::{ItemKey, KeyStats};
use crate::key_statistics::KnownKeys;
use crate::map::Range;
use crate::price;
use crate::record::{Contents, Fields, Record};
use crate::schema::{Schema, Stored};
use crate::state::{DOCNUM_COUNTER_BITS, ShardState};
use crate::transaction::{Changes, New, Old, Versions, docnum_from_value};
use crate::upgrade;
use crate::view::Unindexed;
use growth::Growth;

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
pub enum Condition {
    #[default]
    None,
    /// It exists.
    IfAny,
    /// It is exactly this version.
    IfMatch(String),
    /// There is none.
    IfAbsent,
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
    pub range: Range,
    pub(crate) store: Arc<AnyStore>,
    committer: Committer,
    latches: Vec<tokio::sync::Mutex<()>>,
    sequencer: Arc<Sequencer>,
    pub(crate) unindexed: Unindexed,
    /// What it may give, and what it gave.
    pub governor: Governor,
    /// Its large logical partitions.
    pub keys: KnownKeys,
    growth: Growth,
}

/// The part that the committer calls back into.
struct Sequencer {
    visible_lsn: AtomicU64,
    state: Mutex<Sequence>,
}

struct Sequence {
    shard: ShardState,
    pending: HashMap<Bytes, Pending>,
    /// Which pending rows each LSN brought, to be dropped when it is durable.
    brought: std::collections::VecDeque<(u64, Vec<Bytes>)>,
    closed: bool,
    /// Its items have gone, or are about to go, to other shards.
    fenced: bool,
    /// Somebody copies it and wants to hear of every change.
    logged_for: Option<u64>,
    /// The newest schema that anybody wrote under, or that was announced.
    schema_version: u64,
}

struct Pending {
    lsn: u64,
    value: Option<Bytes>,
}

impl Partition {
    /// Opens a partition of an existing container, or an empty one of a new container.
    pub async fn open(range: Range, store: Arc<AnyStore>, committer: Committer) -> Result<Self> {
        let row = store.get(&keyspace::state(range.shard)).await?;
        if row.as_deref().is_some_and(ShardState::is_outdated) {
            upgrade::feed_rows(&store, &committer, range.shard).await?;
        }
        let shard = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
        Ok(Partition::at(range, store, committer, shard))
    }

    /// A partition whose state is known, because it is about to be written.
    pub fn at(range: Range, store: Arc<AnyStore>, committer: Committer, shard: ShardState) -> Self {
        let (pending, brought) = Default::default();
        let (closed, fenced, logged_for) = (false, false, None);
        let sequence = Sequence { shard, pending, brought, closed, fenced, logged_for, schema_version: 0 };
        let sequencer = Sequencer { visible_lsn: AtomicU64::new(shard.lsn), state: Mutex::new(sequence) };
        let latches = (0..LATCHES).map(|_| tokio::sync::Mutex::new(())).collect();
        let unindexed = Unindexed::default();
        let (sequencer, growth) = (Arc::new(sequencer), Growth::default());
        let (governor, keys) = Default::default();
        Partition { range, store, committer, latches, sequencer, unindexed, governor, keys, growth }
    }

    /// The LSN up to which everything is durable and can be read.
    pub fn lsn(&self) -> u64 {
        self.sequencer.visible_lsn.load(Ordering::Acquire)
    }

    /// Items and bytes, counting what is about to become durable.
    pub fn usage(&self) -> ShardState {
        self.sequencer.state.lock().shard
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
            Ok(record) => Ok(Some(record)),
            // It may also have got another id.
            Err(_) => self.read_at_one_moment(key).await,
        }
    }

    /// What two look-ups of two moments cannot tell: renamed, or damaged.
    async fn read_at_one_moment(&self, key: &ItemKey) -> Result<Option<Record>> {
        let snapshot = self.store.snapshot().await?;
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = get(&snapshot, row).await? else { return Ok(None) };
        let row = keyspace::doc(self.range.shard, docnum_from_value(&docnum)?);
        let bytes = get(&snapshot, row).await?.ok_or_else(id_without_item)?;
        check_identity(Record::decode(bytes)?, key).map(Some)
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
        condition: &Condition,
        ts_s: u32,
    ) -> Result<Written, Rejected> {
        if !draft.indexed {
            self.unindexed.will_be();
        }
        let prepared = Prepared::new(schema, draft, ts_s);
        let latch = self.latch(&draft.target).await;
        let queued = self.put(schema, verb, &prepared, condition).await;
        drop(latch);
        self.settle(queued).await
    }

    pub async fn delete(
        &self,
        schema: &Schema,
        key: &ItemKey,
        condition: &Condition,
        ts_s: u32,
    ) -> Result<Written, Rejected> {
        let latch = self.latch(key).await;
        let queued = self.remove(schema, key, condition, ts_s).await;
        drop(latch);
        self.settle(queued).await
    }

    /// Waits until the outcome is durable. A refusal waits too, for the writes it rests on: whoever
    /// hears "already exists" can read the item, and never hears it of a write that is lost.
    async fn settle(&self, queued: Result<Queued, Rejected>) -> Result<Written, Rejected> {
        let refusal = match queued {
            Ok(queued) => return queued.wait().await,
            Err(refusal) => refusal,
        };
        // What is missing here, or in the way, may not be so where the items are now.
        self.sequencer.state.lock().check_fence()?;
        if self.usage().lsn > self.lsn() {
            self.committer.commit(Batch::default()).await.map_err(lost)?;
        }
        Err(refusal)
    }

    async fn put(
        &self,
        schema: &Schema,
        verb: Verb,
        new: &Prepared<'_>,
        condition: &Condition,
    ) -> Result<Queued, Rejected> {
        let found = self.current(new.target).await?;
        let is_over = found.as_ref().is_some_and(|record| schema.expiry(new.ts_s).is_over(&record.view()));
        let (old, over) = if is_over { (None, found) } else { (found, None) };
        check_write(verb, old.as_ref(), condition)?;
        match &old {
            None => Ok(self.insert(schema, new, over.as_ref()).await?),
            Some(record) => self.update(schema, new, record).await,
        }
    }

    /// `over` is an item of the same name whose time is over: it goes in the same transaction.
    async fn insert(&self, schema: &Schema, new: &Prepared<'_>, over: Option<&Record>) -> Result<Queued> {
        let mut stats = self.key_stats(&new.key).await?;
        let before = stats.bytes;
        let buried = over.map(|record| Buried::new(schema, new.target, record)).transpose()?;
        buried.iter().for_each(|buried| buried.uncount(&mut stats));
        stats.items += 1;
        stats.bytes += new.body.len() as u64;
        check_key_room(schema, &stats)?;
        self.keys.grows(&new.key, before, &stats, schema.room.key_bytes_max);
        self.sequence(schema, new.ts_s, |shard, changes| {
            let docnum = next_docnum(self.range.prefix, shard)?;
            let record = Record::encode(&new.contents(docnum), shard.lsn, 0)?;
            buried.iter().for_each(|buried| buried.bury(self.range.shard, shard, changes));
            changes.insert(self.range.shard, &New { key: &new.key, record: &record, terms: &new.terms });
            changes.count_key(self.key_row(&new.key), &stats, &new.key);
            shard.items += 1;
            shard.item_bytes += new.body.len() as u64;
            self.check_room(schema, shard)?;
            let charge_ru = price::create(new.body.len(), index::priced(&new.terms));
            Ok(Written { record: Some(record), created: true, lsn: shard.lsn, charge_ru })
        })
    }

    async fn update(&self, schema: &Schema, new: &Prepared<'_>, old: &Record) -> Result<Queued, Rejected> {
        let renamed = new.key.hash != new.target.hash;
        let other = if renamed { self.current(&new.key).await? } else { None };
        let is_over = other.as_ref().is_some_and(|other| schema.expiry(new.ts_s).is_over(&other.view()));
        if other.is_some() && !is_over {
            return Err(rejected(Kind::Conflict, ALREADY_EXISTS, old.body().len()));
        }
        let buried = other.as_ref().map(|other| Buried::new(schema, &new.key, other)).transpose()?;
        let old_terms = schema.stored_terms(old, &json::parse(old.body())?);
        let (old_bytes, new_bytes) = (old.body().len(), new.body.len());
        let mut stats = self.key_stats(&new.key).await?;
        let before = stats.bytes;
        buried.iter().for_each(|buried| buried.uncount(&mut stats));
        stats.bytes = (stats.bytes + new_bytes as u64).saturating_sub(old_bytes as u64);
        if new_bytes > old_bytes {
            check_key_room(schema, &stats)?;
            self.keys.grows(&new.key, before, &stats, schema.room.key_bytes_max);
        }
        Ok(self.sequence(schema, new.ts_s, |shard, changes| {
            let record = Record::encode(&new.contents(old.docnum), shard.lsn, 0)?;
            let was = Old { key: new.target, record: old, terms: &old_terms };
            let now = New { key: &new.key, record: &record, terms: &new.terms };
            buried.iter().for_each(|buried| buried.bury(self.range.shard, shard, changes));
            let count = changes.update(self.range.shard, &was, &now);
            changes.count_key(self.key_row(&new.key), &stats, &new.key);
            shard.item_bytes = (shard.item_bytes + new_bytes as u64).saturating_sub(old_bytes as u64);
            if new_bytes > old_bytes {
                self.check_room(schema, shard)?;
            }
            let charge_ru = price::replace(old_bytes, new_bytes, count.removed, count.added);
            Ok(Written { record: Some(record), created: false, lsn: shard.lsn, charge_ru })
        })?)
    }

    async fn remove(
        &self,
        schema: &Schema,
        key: &ItemKey,
        condition: &Condition,
        ts_s: u32,
    ) -> Result<Queued, Rejected> {
        let old = schema.expiry(ts_s).living(self.current(key).await?);
        let old = check_exists(old.as_ref())?;
        check_version(old, condition)?;
        let terms = schema.stored_terms(old, &json::parse(old.body())?);
        let bytes = old.body().len();
        let mut stats = self.key_stats(key).await?;
        stats.items = stats.items.saturating_sub(1);
        stats.bytes = stats.bytes.saturating_sub(bytes as u64);
        Ok(self.sequence(schema, ts_s, |shard, changes| {
            changes.remove(self.range.shard, &Old { key, record: old, terms: &terms });
            changes.count_key(self.key_row(key), &stats, key);
            shard.items = shard.items.saturating_sub(1);
            shard.item_bytes = shard.item_bytes.saturating_sub(bytes as u64);
            let charge_ru = price::delete(bytes, index::priced(&terms.possible));
            Ok(Written { record: None, created: false, lsn: shard.lsn, charge_ru })
        })?)
    }

    /// Removes an item whose time is over, unless somebody has written it since.
    pub(crate) async fn expire_item(&self, schema: &Schema, found: &Record, now_s: u32) -> Result<Option<Queued>> {
        let key = key_of(schema, found)?;
        let _latch = self.latch(&key).await;
        let current = self.current(&key).await?.filter(|current| current.docnum == found.docnum);
        let Some(current) = current.filter(|current| schema.expiry(now_s).is_over(&current.view())) else {
            return Ok(None);
        };
        let buried = Buried::new(schema, &key, &current)?;
        let mut stats = self.key_stats(&key).await?;
        buried.uncount(&mut stats);
        let queued = self.sequence(schema, now_s, |shard, changes| {
            buried.bury(self.range.shard, shard, changes);
            changes.count_key(self.key_row(&key), &stats, &key);
            Ok(Written { record: None, created: false, lsn: shard.lsn, charge_ru: 0.0 })
        })?;
        Ok(Some(queued))
    }

    /// Gives a transaction its place in the commit history and hands it to the committer.
    fn sequence(
        &self,
        schema: &Schema,
        ts_s: u32,
        change: impl FnOnce(&mut ShardState, &mut Changes) -> Result<Written>,
    ) -> Result<Queued> {
        let mut sequence = self.sequencer.state.lock();
        sequence.admit(schema)?;
        let mut shard = sequence.shard;
        let kept_from = shard.versions_from;
        shard.versions_from = schema.keeps_versions.then(|| kept_from.unwrap_or(shard.lsn));
        shard.lsn += 1;
        // What was kept before is of no use any more, but it is there until somebody removes it.
        shard.versions_from = shard.versions_from.or(kept_from.map(|_| shard.lsn));
        let versions = schema.keeps_versions.then(|| Versions::new(shard.lsn, ts_s));
        let log_lsn = sequence.logged_for.map(|_| shard.lsn);
        let mut changes = Changes { log_lsn, versions, ..Changes::default() };
        let written = change(&mut shard, &mut changes)?;
        let (done, durable) = oneshot::channel();
        let state = Some((keyspace::state(self.range.shard), shard.encode()));
        let owner: Arc<dyn Publish> = self.sequencer.clone();
        let batch = std::mem::take(&mut changes.batch);
        // Nothing is published before we let go of the sequence, and nothing stays behind if this is refused.
        self.committer.enqueue(Entry { batch, state, owner: Some((owner, shard.lsn)), done })?;
        sequence.accept(shard, changes.pending);
        self.growth.note(shard.item_bytes > schema.room.partition_bytes_max);
        Ok(Queued { written, durable })
    }

    /// Rows and a state without a place in the commit history: nobody's version changes.
    pub(crate) async fn commit_state(&self, batch: Batch, change: impl FnOnce(&mut ShardState)) -> Result<()> {
        let durable = self.enqueue_state(batch, change)?;
        durable.await.unwrap_or_else(|_| Err(Error::unavailable("the server is stopping")))
    }

    fn enqueue_state(
        &self,
        batch: Batch,
        change: impl FnOnce(&mut ShardState),
    ) -> Result<oneshot::Receiver<Result<()>>> {
        let mut sequence = self.sequencer.state.lock();
        sequence.check_open()?;
        let mut shard = sequence.shard;
        change(&mut shard);
        let (done, durable) = oneshot::channel();
        let state = Some((keyspace::state(self.range.shard), shard.encode()));
        self.committer.enqueue(Entry { batch, state, owner: None, done })?;
        sequence.shard = shard;
        Ok(durable)
    }

    async fn latch(&self, key: &ItemKey) -> tokio::sync::MutexGuard<'_, ()> {
        let at = key.logical.hash()[0] as usize % LATCHES;
        self.latches[at].lock().await
    }

    /// The version a writer must take into account, durable or not.
    async fn current(&self, key: &ItemKey) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.newest(&row).await? else { return Ok(None) };
        let row = keyspace::doc(self.range.shard, docnum_from_value(&docnum)?);
        let bytes = self.newest(&row).await?.ok_or_else(id_without_item)?;
        check_identity(Record::decode(bytes)?, key).map(Some)
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
        let pending = self.sequencer.state.lock().pending.get(row).map(|pending| pending.value.clone());
        match pending {
            Some(value) => Ok(value),
            None => self.store.get(row).await,
        }
    }
}

impl Sequence {
    fn admit(&mut self, schema: &Schema) -> Result<()> {
        self.check_open()?;
        self.check_schema(schema)?;
        self.schema_version = schema.version;
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.closed {
            return Err(Error::new(Kind::OwnerNotFound, "Owner resource does not exist"));
        }
        self.check_fence()
    }

    fn check_fence(&self) -> Result<()> {
        match self.fenced {
            true => Err(Error::new(Kind::Outdated, "the partition's items have moved; read the container again")),
            false => Ok(()),
        }
    }

    fn check_schema(&self, schema: &Schema) -> Result<()> {
        if schema.version >= self.schema_version {
            return Ok(());
        }
        Err(Error::new(Kind::Outdated, "the container's indexing policy has changed; read the container again"))
    }

    fn accept(&mut self, shard: ShardState, pending: Vec<(Bytes, Option<Bytes>)>) {
        self.shard = shard;
        self.brought.push_back((shard.lsn, pending.iter().map(|(row, _)| row.clone()).collect()));
        for (row, value) in pending {
            self.pending.insert(row, Pending { lsn: shard.lsn, value });
        }
    }
}

impl Publish for Sequencer {
    fn published(&self, lsn: u64) {
        let mut sequence = self.state.lock();
        while sequence.brought.front().is_some_and(|(brought, _)| *brought <= lsn) {
            let Some((brought, rows)) = sequence.brought.pop_front() else { break };
            for row in rows {
                // A later writer may have left a newer value, which is not durable yet.
                if sequence.pending.get(&row).is_some_and(|pending| pending.lsn == brought) {
                    sequence.pending.remove(&row);
                }
            }
        }
        drop(sequence);
        self.visible_lsn.store(lsn, Ordering::Release);
    }
}

/// A transaction that has its place and waits to become durable.
pub(crate) struct Queued {
    written: Written,
    durable: oneshot::Receiver<Result<()>>,
}

impl Queued {
    pub(crate) async fn wait(self) -> Result<Written, Rejected> {
        let durable = self.durable.await.unwrap_or_else(|_| Err(Error::unavailable("the server is stopping")));
        durable.map_err(lost)?;
        Ok(self.written)
    }
}

fn lost(error: Error) -> Rejected {
    Rejected { error, charge_ru: 0.0 }
}

/// An item whose time is over, on its way out.
struct Buried<'a> {
    key: &'a ItemKey,
    record: &'a Record,
    terms: Stored,
}

impl<'a> Buried<'a> {
    fn new(schema: &Schema, key: &'a ItemKey, record: &'a Record) -> Result<Self> {
        let terms = schema.stored_terms(record, &json::parse(record.body())?);
        Ok(Buried { key, record, terms })
    }

    fn uncount(&self, stats: &mut KeyStats) {
        stats.items = stats.items.saturating_sub(1);
        stats.bytes = stats.bytes.saturating_sub(self.record.body().len() as u64);
    }

    fn bury(&self, at: u64, shard: &mut ShardState, changes: &mut Changes) {
        changes.expire(at, &Old { key: self.key, record: self.record, terms: &self.terms });
        shard.items = shard.items.saturating_sub(1);
        shard.item_bytes = shard.item_bytes.saturating_sub(self.record.body().len() as u64);
    }
}

fn key_of(schema: &Schema, record: &Record) -> Result<ItemKey> {
    let body = json::parse(record.body())?;
    let key = schema.key.as_ref().map(|definition| PartitionKey::extract(definition, &body)).unwrap_or_default();
    Ok(ItemKey::new(schema.key.as_ref(), &key, record.id()))
}

/// A draft with everything worked out that needs no lock.
struct Prepared<'a> {
    target: &'a ItemKey,
    key: Cow<'a, ItemKey>,
    ts_s: u32,
    indexed: bool,
    fields: Fields,
    body: &'a [u8],
    terms: Vec<Term>,
}

impl<'a> Prepared<'a> {
    fn new(schema: &Schema, draft: &'a Draft, ts_s: u32) -> Self {
        let (target, indexed, body) = (&draft.target, draft.indexed, draft.text.as_slice());
        let renamed = draft.id != target.id;
        let key = if renamed { Cow::Owned(target.renamed(&draft.id)) } else { Cow::Borrowed(target) };
        let terms = schema.terms(&draft.body, ts_s, indexed);
        Prepared { target, key, ts_s, indexed, fields: Fields::of(body), body, terms }
    }

    fn contents(&self, docnum: u64) -> Contents<'_> {
        let (ts_s, indexed, fields, body) = (self.ts_s, self.indexed, &self.fields, self.body);
        let terms = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        let (epk, id) = (&self.key.logical.epk, self.key.id.as_str());
        Contents { docnum, ts_s, terms, indexed, epk, id, fields, body }
    }
}

fn next_docnum(prefix: u32, shard: &mut ShardState) -> Result<u64> {
    shard.next_item += 1;
    if shard.next_item >> DOCNUM_COUNTER_BITS != 0 {
        return Err(Error::new(Kind::QuotaExceeded, "this partition has used up its item numbers"));
    }
    Ok(u64::from(prefix) << DOCNUM_COUNTER_BITS | shard.next_item)
}

pub const ALREADY_EXISTS: &str = "Resource with specified id or name already exists.";
pub const NOT_THERE: &str = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found";

fn check_write(verb: Verb, old: Option<&Record>, condition: &Condition) -> Result<(), Rejected> {
    match (verb, old) {
        (Verb::Create | Verb::Upsert, None) => Ok(()),
        (Verb::Create, Some(record)) => Err(rejected(Kind::Conflict, ALREADY_EXISTS, record.body().len())),
        (Verb::Upsert, Some(record)) => check_version(record, condition),
        (Verb::Replace, old) => check_version(check_exists(old)?, condition),
    }
}

fn check_exists(old: Option<&Record>) -> Result<&Record, Rejected> {
    old.ok_or_else(|| Error::not_found(NOT_THERE).into())
}

fn check_version(record: &Record, condition: &Condition) -> Result<(), Rejected> {
    let holds = match condition {
        Condition::None | Condition::IfAny => true,
        Condition::IfMatch(etag) => record.etag().to_string() == *etag,
        Condition::IfAbsent => false,
    };
    if holds {
        return Ok(());
    }
    Err(rejected(Kind::PreconditionFailed, "One of the specified pre-condition is not met.", record.body().len()))
}

/// Only what grows is refused: a full key can still be read, trimmed and emptied.
fn check_key_room(schema: &Schema, stats: &KeyStats) -> Result<()> {
    if stats.bytes <= schema.room.key_bytes_max {
        return Ok(());
    }
    let limit = schema.room.key_bytes_max;
    let message = format!(
        "Partition key reached maximum size of {limit} bytes. Delete items of this key, or choose a key with more values."
    );
    Err(Error::new(Kind::KeyFull, message))
}

fn rejected(kind: Kind, message: &str, bytes: usize) -> Rejected {
    Rejected { error: Error::new(kind, message), charge_ru: price::refused_write(bytes) }
}

async fn get(snapshot: &AnySnapshot, row: Bytes) -> Result<Option<Bytes>> {
    Ok(snapshot.get_many(&[row]).await?.pop().flatten())
}

fn id_without_item() -> Error {
    Error::corrupt("an id without its item")
}

fn check_identity(record: Record, key: &ItemKey) -> Result<Record> {
    if record.id() == key.id {
        return Ok(record);
    }
    Err(Error::corrupt(format_args!("item {} where {} should be", record.id(), key.id)))
}

#[cfg(test)]
mod tests;
