//! Partition snapshot: a consistent, read-only view of one partition.
//!
//! Guarantees: everything that is read through one snapshot is as of its LSN, however long the reading takes, and no
//! result holds more than its limit and one item. Callers decide what to read and whether it matches: a snapshot
//! returns rows by docnum, key and index value.
//!
//! ```text
//! docs           docnum ──▶ item                    all items, in insertion order
//! members        effective key ──▶ docnum           one logical partition
//! members_in     effective keys ──▶ docnum          an EPK range
//! index_entries  path, encoded value ──▶ docnum     an index range
//! visit_vectors  path ──▶ docnum, vector            the input of a vector search
//! feed_rows      LSN ──▶ docnum, effective key      changes in LSN order
//! get, load, visit_many  docnum ──▶ item            the items that the others found
//! ```

pub(crate) mod visibility; // which stored items are dead

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Error, Result};
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, AnyStore, Blocking, Chunk, Direction, Limit, Snapshot, Store, keyspace};

use crate::change_feed::ChangeRow;
use crate::feed::KeyScope;
use crate::index::UNINDEXED;
use crate::key::ItemKey;
use crate::key_tombstones::KeyTombstones;
use crate::partition::Partition;
use crate::partition::checks::{check_identity, id_without_item};
use crate::record::{Record, RecordView};
use crate::row_changes::docnum_from_value;
use crate::shard_state::ShardState;
use crate::ttl::Expiry;
use crate::unique::Claim;
use pleiad_model::partition_map::PartitionKeyRange;

/// Rows that point at items are small: a chunk is a few hundred KB.
const POINTER_CHUNK: Limit = Limit { rows: 8_192, bytes: 1 << 20 };
/// The estimated size of an index row on disk is clamped to these bounds.
const INDEX_ROW_BYTES_MIN: f64 = 2.0;
const INDEX_ROW_BYTES_MAX: f64 = 100.0;
/// Items per fetch while their average size is unknown, and at most.
const LOAD_ROWS_FIRST: usize = 16;
const LOAD_ROWS_MAX: usize = 256;

pub struct PartitionSnapshot {
    range: PartitionKeyRange,
    state: ShardState,
    snapshot: AnySnapshot,
    store: Arc<AnyStore>,
    blocking: Blocking,
    key_tombstones: Arc<KeyTombstones>,
    /// The estimated size of an index row on disk, computed on first use.
    index_row_bytes: OnceLock<f64>,
}

/// Whether a partition may hold items that are excluded from its index. Writers set the flag before they write, so that
/// no reader that sees such an item reads "no".
#[derive(Debug, Default)]
pub(crate) struct UnindexedFlag(AtomicU8);

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

impl UnindexedFlag {
    pub fn set(&self) {
        self.0.store(YES, Ordering::SeqCst);
    }

    fn get(&self) -> Option<bool> {
        match self.0.load(Ordering::SeqCst) {
            UNKNOWN => None,
            known => Some(known == YES),
        }
    }

    /// A value that a writer set in the meantime wins.
    fn set_if_unknown(&self, any: bool) {
        let _ = self.0.compare_exchange(UNKNOWN, if any { YES } else { NO }, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// A row of the index: the encoded value, and the docnum of its item.
pub type IndexEntry = (Bytes, u64);

impl Partition {
    /// The current state of the partition. It contains every acknowledged write. All reads of the snapshot, and taking
    /// it, follow the blocking mode.
    pub async fn snapshot(&self, blocking: Blocking) -> Result<PartitionSnapshot> {
        // Read before the store's snapshot: items of a key that is purged in between are not in that snapshot.
        let key_tombstones = self.key_tombstones.get();
        let snapshot = self.store.snapshot(blocking).await?;
        let row = snapshot.get_many(&[keyspace::state(self.range.shard)]).await?.pop().flatten();
        let state = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
        let (range, store) = (self.range.clone(), self.store.clone());
        let index_row_bytes = OnceLock::new();
        Ok(PartitionSnapshot { range, state, snapshot, store, blocking, key_tombstones, index_row_bytes })
    }
}

impl PartitionSnapshot {
    pub(crate) fn blocking(&self) -> Blocking {
        self.blocking
    }

    pub fn lsn(&self) -> u64 {
        self.state.lsn
    }

    /// Whether some items are excluded from the index, under `index::UNINDEXED`. Scanned once, then cached in the
    /// partition.
    pub async fn has_unindexed(&self, partition: &Partition) -> Result<bool> {
        if let Some(known) = partition.unindexed.get() {
            return Ok(known);
        }
        let (from, to) = keyspace::index_range(self.range.shard, UNINDEXED, &[]);
        let found = self.snapshot.scan(&from, &to, Direction::Forward, Limit::rows(1)).await?;
        partition.unindexed.set_if_unknown(!found.pairs.is_empty());
        Ok(!found.pairs.is_empty())
    }

    /// Whether an item is dead: expired or deleted by key, its rows not yet purged.
    pub fn is_dead(&self, expiry: Expiry, record: &RecordView<'_>) -> bool {
        visibility::is_dead(record, expiry, &*self.key_tombstones, self.state.lsn)
    }

    /// Whether there can be dead items, so that each record must be checked.
    pub fn may_have_dead(&self, expiry: Expiry) -> bool {
        expiry.is_enabled() || !self.key_tombstones.is_empty()
    }

    /// The number of items.
    pub fn items(&self) -> u64 {
        self.state.items
    }

    /// Whether this range contains the effective key of every item.
    pub fn is_within(&self, keys: &EpkRange) -> bool {
        keys.min <= self.range.keys.min && self.range.keys.max <= keys.max
    }

    /// The item with this identity.
    pub async fn find(&self, key: &ItemKey) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.get_row(row).await? else { return Ok(None) };
        let row = keyspace::doc(self.range.shard, docnum_from_value(&docnum)?);
        let bytes = self.get_row(row).await?.ok_or_else(id_without_item)?;
        check_identity(Record::decode(bytes)?, key).map(Some)
    }

    /// The docnum of the item that holds a unique value in this logical partition.
    pub(crate) async fn holder(&self, claim: &Claim, epk: &[u8]) -> Result<Option<u64>> {
        let row = self.get_row(claim.row(self.range.shard, epk)).await?;
        row.map(|docnum| docnum_from_value(&docnum)).transpose()
    }

    async fn get_row(&self, row: Bytes) -> Result<Option<Bytes>> {
        Ok(self.snapshot.get_many(&[row]).await?.pop().flatten())
    }

    /// Items after docnum `after`, in docnum order, and whether there are more.
    pub async fn docs(&self, after: u64, limit: Limit) -> Result<(Vec<Record>, bool)> {
        let from = keyspace::doc(self.range.shard, after.saturating_add(1));
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Doc);
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, limit).await?;
        let records = pairs.into_iter().map(|(_, bytes)| Record::decode(bytes)).collect::<Result<_>>()?;
        Ok((records, more))
    }

    /// The largest docnum of an item below `before`.
    pub async fn newest_before(&self, before: u64) -> Result<Option<u64>> {
        let (from, _) = keyspace::range(self.range.shard, keyspace::Tag::Doc);
        let to = keyspace::doc(self.range.shard, before);
        let newest = self.snapshot.scan(&from, &to, Direction::Backward, Limit::rows(1)).await?;
        newest.pairs.first().map(|(_, bytes)| Ok(RecordView::read(bytes)?.docnum)).transpose()
    }

    /// Passes every item after docnum `after` up to docnum `upto` to `visit`, in docnum order, until it returns false.
    /// Returns true if it did. For `Blocking::Thread` and `Inline`.
    pub async fn visit(
        &self,
        after: u64,
        upto: u64,
        visit: &mut (dyn FnMut(Result<RecordView<'_>>) -> bool + Send),
    ) -> Result<bool> {
        let from = keyspace::doc(self.range.shard, after.saturating_add(1));
        let to = keyspace::after(&keyspace::doc(self.range.shard, upto));
        self.snapshot.visit(&from, &to, &mut |_, bytes| visit(RecordView::read(bytes))).await
    }

    /// The docnums after `after` of the items at one effective key, in order, and whether there are more.
    pub async fn members(&self, key: &EffectiveKey, after: u64, limit: Limit) -> Result<(Vec<u64>, bool)> {
        let from = keyspace::member(self.range.shard, key.as_bytes(), after.saturating_add(1));
        let (_, to) = keyspace::epk_exact(self.range.shard, keyspace::Tag::Member, key.as_bytes());
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, limit).await?;
        Ok((pairs.iter().map(|(row, _)| docnum_of_member(row)).collect::<Result<_>>()?, more))
    }

    /// The docnums of all items whose effective key is in the range, in order; `None` if there are more than `max`.
    pub async fn members_in(&self, keys: &EpkRange, max: usize) -> Result<Option<Vec<u64>>> {
        let (min, end) = (keys.min.as_bytes(), keys.max.as_bytes());
        let (mut from, to) = keyspace::epk_range(self.range.shard, keyspace::Tag::Member, min, Some(end));
        let mut docnums = Vec::new();
        loop {
            let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, POINTER_CHUNK).await?;
            for (row, _) in &pairs {
                docnums.push(docnum_of_member(row)?);
            }
            match pairs.last() {
                _ if docnums.len() > max => return Ok(None),
                Some((last, _)) if more => from = keyspace::after(last),
                _ => break,
            }
        }
        docnums.sort_unstable();
        Ok(Some(docnums))
    }

    /// Rows of the feed from this LSN, seq and docnum on, in order, and whether there are more.
    pub(crate) async fn feed_rows(&self, from: (u64, u32, u64), limit: Limit) -> Result<(Vec<ChangeRow>, bool)> {
        let from = keyspace::feed(self.range.shard, from.0, from.1, from.2);
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Feed);
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, limit).await?;
        Ok((pairs.iter().map(|(row, epk)| decode_change_row(row, epk)).collect::<Result<_>>()?, more))
    }

    /// The docnums of the existing items that changed after an LSN; `None` if there are more than `max`.
    pub(crate) async fn changed_after(&self, lsn: u64, max: usize) -> Result<Option<Vec<u64>>> {
        let (mut docnums, mut from) = (Vec::new(), (lsn.saturating_add(1), 0, 0));
        loop {
            let (rows, more) = self.feed_rows(from, POINTER_CHUNK).await?;
            docnums.extend(rows.iter().map(|row| row.docnum));
            match rows.last() {
                _ if docnums.len() > max => return Ok(None),
                Some(last) if more => from = (last.lsn, last.seq, last.docnum.saturating_add(1)),
                _ => return Ok(Some(docnums)),
            }
        }
    }

    /// Up to this LSN, changes come from several merged partitions, and their times are not in LSN order.
    pub(crate) fn merged_lsn(&self) -> u64 {
        self.state.merged_lsn
    }

    /// The LSN after which all versions of these keys are retained. Before the first write under a policy that retains
    /// versions this is the current LSN.
    pub(crate) fn versions_from(&self, scope: &KeyScope) -> u64 {
        self.state.versions_from.as_ref().map_or(self.lsn(), |watermark| watermark.lsn_of(scope))
    }

    /// Version rows from this key on, in order, and whether there are more.
    pub(crate) async fn version_rows(&self, from: &[u8], limit: Limit) -> Result<(Vec<Pair>, bool)> {
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Version);
        let Chunk { pairs, more } = self.snapshot.scan(from, &to, Direction::Forward, limit).await?;
        Ok((pairs, more))
    }

    /// The items with these docnums, in the order given.
    pub async fn get(&self, docnums: &[u64]) -> Result<Vec<Option<Record>>> {
        let rows = keyspace::docs(self.range.shard, docnums);
        let found = self.snapshot.get_many(&rows).await?;
        found.into_iter().map(|bytes| bytes.map(Record::decode).transpose()).collect()
    }

    /// Passes the items with these docnums to `visit`, in the order given and without copying them, until it returns
    /// false. Returns true if it did. For `Blocking::Thread` and `Inline`.
    pub async fn visit_many(
        &self,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Result<Option<RecordView<'_>>>) -> bool + Send),
    ) -> Result<bool> {
        let rows = keyspace::docs(self.range.shard, docnums);
        self.snapshot.visit_many(&rows, &mut |bytes| visit(bytes.map(RecordView::read).transpose())).await
    }

    /// The first of these items, as many as it takes to reach `bytes`, at least one. All of them must exist.
    pub async fn load(&self, docnums: &[u64], bytes: usize) -> Result<Vec<Record>> {
        let (mut records, mut loaded): (Vec<Record>, usize) = (Vec::new(), 0);
        while let Some(rest @ [_, ..]) = docnums.get(records.len()..) {
            let average = loaded.checked_div(records.len());
            let rows = average.map_or(LOAD_ROWS_FIRST, |average| (bytes - loaded) / average.max(1) + 1);
            for record in self.get(&rest[..rows.min(LOAD_ROWS_MAX).min(rest.len())]).await? {
                let record = record.ok_or_else(|| Error::corrupt("a row of an item that is not there"))?;
                loaded += record.bytes().len();
                records.push(record);
                if loaded >= bytes {
                    return Ok(records);
                }
            }
        }
        Ok(records)
    }

    /// The index rows of one path with encoded values in `[from, to)`, and whether there are more. To resume after an
    /// entry: forward, `from` is its value and its docnum plus one; backward, `to` is its value and its docnum.
    pub async fn index_entries(
        &self,
        path: u64,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: Limit,
    ) -> Result<(Vec<IndexEntry>, bool)> {
        let (from, to) = self.index_rows(path, from, to);
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, direction, limit).await?;
        Ok((pairs.into_iter().map(|(row, _)| decode_index_entry(row)).collect::<Result<_>>()?, more))
    }

    /// Passes the vectors of a path to `visit`, in docnum order, until it returns false. Returns true if it did. For
    /// blocking threads.
    pub async fn visit_vectors(&self, path: u64, visit: &mut (dyn FnMut(u64, &[u8]) -> bool + Send)) -> Result<bool> {
        let (from, to) = keyspace::vector_range(self.range.shard, path);
        let mut damaged = None;
        let stopped = self
            .snapshot
            .visit(&from, &to, &mut |row, vector| match keyspace::decode_vector(row) {
                Ok((_, docnum)) => visit(docnum, vector),
                Err(error) => {
                    damaged = Some(error);
                    false
                }
            })
            .await?;
        damaged.map_or(Ok(stopped), Err)
    }

    /// Passes the vectors of these items to `visit`, in the order given.
    pub async fn visit_vectors_of(
        &self,
        path: u64,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Option<&[u8]>) -> bool + Send),
    ) -> Result<bool> {
        let rows: Vec<Bytes> = docnums.iter().map(|&docnum| keyspace::vector(self.range.shard, path, docnum)).collect();
        self.snapshot.visit_many(&rows, visit).await
    }

    /// An estimate of the number of rows that `index_entries` would return. Recent writes may not be counted.
    pub async fn estimate(&self, path: u64, from: &[u8], to: &[u8]) -> Result<u64> {
        let (from, to) = self.index_rows(path, from, to);
        let bytes = self.store.size_bytes(&from, &to, self.blocking).await? as f64;
        Ok((bytes / self.index_row_bytes().await?) as u64)
    }

    /// The average size of an index row on disk: the size of the whole index, divided by the number of rows it has if
    /// all items have as many terms as the first.
    async fn index_row_bytes(&self) -> Result<f64> {
        if let Some(known) = self.index_row_bytes.get() {
            return Ok(*known);
        }
        let (from, to) = keyspace::range(self.range.shard, keyspace::Tag::Index);
        let bytes = self.store.size_bytes(&from, &to, self.blocking).await? as f64;
        let (first, _) = self.docs(0, Limit::rows(1)).await?;
        let rows = first.first().map_or(1.0, |record| f64::from(record.terms)) * self.items() as f64;
        let guess = (bytes / rows.max(1.0)).clamp(INDEX_ROW_BYTES_MIN, INDEX_ROW_BYTES_MAX);
        Ok(*self.index_row_bytes.get_or_init(|| guess))
    }

    fn index_rows(&self, path: u64, from: &[u8], to: &[u8]) -> (Bytes, Bytes) {
        let row = |value| keyspace::index_range(self.range.shard, path, value).0;
        (row(from), row(to))
    }
}

/// Where `index_entries` resumes after an entry: the next `from` (forward) or `to` (backward).
pub fn resume_after((value, docnum): &IndexEntry, direction: Direction) -> Vec<u8> {
    let docnum = match direction {
        Direction::Forward => docnum.saturating_add(1),
        Direction::Backward => *docnum,
    };
    [value, &docnum.to_be_bytes()[..]].concat()
}

fn docnum_of_member(row: &[u8]) -> Result<u64> {
    keyspace::decode_member(row).map(|(_, docnum)| docnum)
}

fn decode_change_row(row: &[u8], epk: &[u8]) -> Result<ChangeRow> {
    let (lsn, seq, docnum) = keyspace::decode_feed(row)?;
    Ok(ChangeRow { lsn, seq, docnum, epk: EffectiveKey::from_bytes(epk) })
}

fn decode_index_entry(row: Bytes) -> Result<IndexEntry> {
    let (_, value, docnum) = keyspace::decode_index(&row)?;
    Ok((row.slice_ref(value), docnum))
}

#[cfg(test)]
mod tests;
