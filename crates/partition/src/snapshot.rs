//! One partition at one moment, for whoever reads many items.
//!
//! Promise: everything that is read through one view is of the moment at which it was opened, however long the reading
//! takes, and no answer holds more than its limit and one item. What to read and whether it matches is for others to
//! say: a view knows numbers, keys and index rows.
//!
//! ```text
//! docs       docnum ──▶ item                        all items, in insertion order
//! members    effective key ──▶ docnum               one logical partition's
//! members_in effective keys ──▶ docnum              a stretch of the hash space
//! postings   path, encoded value ──▶ docnum         what the index says
//! visit_vectors  path ──▶ docnum, vector             what is near is found among
//! feed_rows  LSN ──▶ docnum, effective key           what changed when
//! get, load, visit_many  docnum ──▶ item            those that were found
//! ```

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Error, Result};
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, AnyStore, Chunk, Direction, Limit, Snapshot, Store, keyspace};

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

/// Rows that point at items are small: a few hundred KB.
const MEMBERS: Limit = Limit { rows: 8_192, bytes: 1 << 20 };
/// A guess of what index rows take on the disk is not believed beyond these.
const INDEX_ROW_BYTES_MIN: f64 = 2.0;
const INDEX_ROW_BYTES_MAX: f64 = 100.0;
/// Items fetched at once while nothing is known of their sizes, and at most.
const LOAD_ROWS_FIRST: usize = 16;
const LOAD_ROWS_MAX: usize = 256;

pub struct PartitionSnapshot {
    range: PartitionKeyRange,
    state: ShardState,
    snapshot: AnySnapshot,
    store: Arc<AnyStore>,
    erased: Arc<KeyTombstones>,
    /// What an index row takes on the disk, once somebody asked.
    index_row_bytes: OnceLock<f64>,
}

/// Whether a partition may hold items that are out of its index. Writers say so before they write, so that nobody who
/// sees such an item reads "no".
#[derive(Debug, Default)]
pub(crate) struct Unindexed(AtomicU8);

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

impl Unindexed {
    pub fn will_be(&self) {
        self.0.store(YES, Ordering::SeqCst);
    }

    fn known(&self) -> Option<bool> {
        match self.0.load(Ordering::SeqCst) {
            UNKNOWN => None,
            known => Some(known == YES),
        }
    }

    /// A writer who came in between is right.
    fn found(&self, any: bool) {
        let _ = self.0.compare_exchange(UNKNOWN, if any { YES } else { NO }, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// What an index row says: the encoded value, and whose it is.
pub type IndexEntry = (Bytes, u64);

impl Partition {
    /// The partition as it is now. What a writer has been told is in it.
    pub async fn view(&self) -> Result<PartitionSnapshot> {
        // Before the snapshot: a key that is swept up in between is not there in it.
        let erased = self.marks.get();
        let snapshot = self.store.snapshot().await?;
        let row = snapshot.get_many(&[keyspace::state(self.range.shard)]).await?.pop().flatten();
        let state = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
        let (range, store) = (self.range.clone(), self.store.clone());
        Ok(PartitionSnapshot { range, state, snapshot, store, erased, index_row_bytes: OnceLock::new() })
    }
}

impl PartitionSnapshot {
    pub fn lsn(&self) -> u64 {
        self.state.lsn
    }

    /// Whether some items are out of the index, under `index::UNINDEXED`. Found out once, then known.
    pub async fn has_unindexed(&self, of: &Partition) -> Result<bool> {
        if let Some(known) = of.unindexed.known() {
            return Ok(known);
        }
        let (from, to) = keyspace::index_range(self.range.shard, UNINDEXED, &[]);
        let found = self.snapshot.scan(&from, &to, Direction::Forward, Limit::rows(1)).await?;
        of.unindexed.found(!found.pairs.is_empty());
        Ok(!found.pairs.is_empty())
    }

    /// Whether an item is gone, although its rows are there.
    pub fn is_gone(&self, expiry: Expiry, record: &RecordView<'_>) -> bool {
        expiry.is_over(record) || self.erased.covers(record, self.state.lsn)
    }

    /// Whether rows do not tell who is gone.
    pub fn has_gone(&self, expiry: Expiry) -> bool {
        expiry.is_on() || !self.erased.is_empty()
    }

    /// How many items there are.
    pub fn items(&self) -> u64 {
        self.state.items
    }

    /// Whether every item's effective key is in here.
    pub fn is_within(&self, keys: &EpkRange) -> bool {
        keys.min <= self.range.keys.min && self.range.keys.max <= keys.max
    }

    /// The item with that identity.
    pub async fn find(&self, key: &ItemKey) -> Result<Option<Record>> {
        let row = keyspace::id(self.range.shard, key.logical.epk.as_bytes(), &key.hash);
        let Some(docnum) = self.get_row(row).await? else { return Ok(None) };
        let row = keyspace::doc(self.range.shard, docnum_from_value(&docnum)?);
        let bytes = self.get_row(row).await?.ok_or_else(id_without_item)?;
        check_identity(Record::decode(bytes)?, key).map(Some)
    }

    /// Who holds a unique value of that logical partition.
    pub(crate) async fn holder(&self, claim: &Claim, epk: &[u8]) -> Result<Option<u64>> {
        let row = self.get_row(claim.row(self.range.shard, epk)).await?;
        row.map(|docnum| docnum_from_value(&docnum)).transpose()
    }

    async fn get_row(&self, row: Bytes) -> Result<Option<Bytes>> {
        Ok(self.snapshot.get_many(&[row]).await?.pop().flatten())
    }

    /// Items after number `after`, in the order of their numbers, and whether there are more.
    pub async fn docs(&self, after: u64, limit: Limit) -> Result<(Vec<Record>, bool)> {
        let from = keyspace::doc(self.range.shard, after.saturating_add(1));
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Doc);
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, limit).await?;
        let records = pairs.into_iter().map(|(_, bytes)| Record::decode(bytes)).collect::<Result<_>>()?;
        Ok((records, more))
    }

    /// Shows every item after number `after`, up to number `upto`, in the order of their numbers, until `visit` says stop; tells
    /// whether it did. For threads that may wait.
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

    /// Numbers of the items at one effective key, after number `after`, in order, and whether there are more.
    pub async fn members(&self, key: &EffectiveKey, after: u64, limit: Limit) -> Result<(Vec<u64>, bool)> {
        let from = keyspace::member(self.range.shard, key.as_bytes(), after.saturating_add(1));
        let (_, to) = keyspace::epk_exact(self.range.shard, keyspace::Tag::Member, key.as_bytes());
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, limit).await?;
        Ok((pairs.iter().map(|(row, _)| docnum_of_member(row)).collect::<Result<_>>()?, more))
    }

    /// Numbers of all items whose effective key is in the range, in order; `None` if they are more than `max`.
    pub async fn members_in(&self, keys: &EpkRange, max: usize) -> Result<Option<Vec<u64>>> {
        let (min, end) = (keys.min.as_bytes(), keys.max.as_bytes());
        let (mut from, to) = keyspace::epk_range(self.range.shard, keyspace::Tag::Member, min, Some(end));
        let mut docnums = Vec::new();
        loop {
            let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, MEMBERS).await?;
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

    /// Rows of the feed from this LSN, seq and number on, in order, and whether there are more.
    pub(crate) async fn feed_rows(&self, from: (u64, u32, u64), limit: Limit) -> Result<(Vec<ChangeRow>, bool)> {
        let from = keyspace::feed(self.range.shard, from.0, from.1, from.2);
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Feed);
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, Direction::Forward, limit).await?;
        Ok((pairs.iter().map(|(row, epk)| feed_row(row, epk)).collect::<Result<_>>()?, more))
    }

    /// Numbers of the items that changed behind an LSN and are still there; `None` if they are more than `max`.
    pub(crate) async fn changed_behind(&self, lsn: u64, max: usize) -> Result<Option<Vec<u64>>> {
        let (mut docnums, mut from) = (Vec::new(), (lsn.saturating_add(1), 0, 0));
        loop {
            let (rows, more) = self.feed_rows(from, MEMBERS).await?;
            docnums.extend(rows.iter().map(|row| row.docnum));
            match rows.last() {
                _ if docnums.len() > max => return Ok(None),
                Some(last) if more => from = (last.lsn, last.seq, last.docnum.saturating_add(1)),
                _ => return Ok(Some(docnums)),
            }
        }
    }

    /// Up to here changes are of several partitions, and their times in no order.
    pub(crate) fn merged_lsn(&self) -> u64 {
        self.state.merged_lsn
    }

    /// From which LSN on all versions of some keys are kept. Before the first write under a policy that keeps versions, they are
    /// complete from now on.
    pub(crate) fn versions_from(&self, scope: &KeyScope) -> u64 {
        self.state.versions_from.as_ref().map_or(self.lsn(), |kept| kept.lsn_of(scope))
    }

    /// Rows of versions from this one on, in order, and whether there are more.
    pub(crate) async fn version_rows(&self, from: &[u8], limit: Limit) -> Result<(Vec<Pair>, bool)> {
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Version);
        let Chunk { pairs, more } = self.snapshot.scan(from, &to, Direction::Forward, limit).await?;
        Ok((pairs, more))
    }

    /// The items with these numbers, in the order of the numbers given.
    pub async fn get(&self, docnums: &[u64]) -> Result<Vec<Option<Record>>> {
        let rows = keyspace::docs(self.range.shard, docnums);
        let found = self.snapshot.get_many(&rows).await?;
        found.into_iter().map(|bytes| bytes.map(Record::decode).transpose()).collect()
    }

    /// Shows the items with these numbers, in the order of the numbers given, where they lie, until `visit` says stop;
    /// tells whether it did. For threads that may wait.
    pub async fn visit_many(
        &self,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Result<Option<RecordView<'_>>>) -> bool + Send),
    ) -> Result<bool> {
        let rows = keyspace::docs(self.range.shard, docnums);
        self.snapshot.visit_many(&rows, &mut |bytes| visit(bytes.map(RecordView::read).transpose())).await
    }

    /// The first of these items, as many as it takes to reach `bytes`: one at least. They are known to be there.
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

    /// Rows of one path of the index, of encoded values in `[from, to)`, and whether there are more. To go on after
    /// one: forward, `from` is its value and its number plus one; backward, `to` is its value and its number.
    pub async fn postings(
        &self,
        path: u64,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: Limit,
    ) -> Result<(Vec<IndexEntry>, bool)> {
        let (from, to) = self.index_rows(path, from, to);
        let Chunk { pairs, more } = self.snapshot.scan(&from, &to, direction, limit).await?;
        Ok((pairs.into_iter().map(|(row, _)| posting(row)).collect::<Result<_>>()?, more))
    }

    /// Shows the vectors of a path, in the order of their items' numbers, until `visit` says stop; tells whether it did. For
    /// threads that may wait.
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

    /// Shows the vectors of these items, in the order of the numbers given.
    pub async fn visit_vectors_of(
        &self,
        path: u64,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Option<&[u8]>) -> bool + Send),
    ) -> Result<bool> {
        let rows: Vec<Bytes> = docnums.iter().map(|&docnum| keyspace::vector(self.range.shard, path, docnum)).collect();
        self.snapshot.visit_many(&rows, visit).await
    }

    /// Roughly how many rows `postings` would find. Rows written lately may not be counted.
    pub async fn estimate(&self, path: u64, from: &[u8], to: &[u8]) -> Result<u64> {
        let (from, to) = self.index_rows(path, from, to);
        let bytes = self.store.size_bytes(&from, &to).await? as f64;
        Ok((bytes / self.index_row_bytes().await?) as u64)
    }

    /// What an index row takes on the disk: the index as a whole, divided by the rows it must have if all items are
    /// like the first.
    async fn index_row_bytes(&self) -> Result<f64> {
        if let Some(known) = self.index_row_bytes.get() {
            return Ok(*known);
        }
        let (from, to) = keyspace::range(self.range.shard, keyspace::Tag::Index);
        let bytes = self.store.size_bytes(&from, &to).await? as f64;
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

/// Where `postings` goes on behind a row.
pub fn behind((value, docnum): &IndexEntry, direction: Direction) -> Vec<u8> {
    let docnum = match direction {
        Direction::Forward => docnum.saturating_add(1),
        Direction::Backward => *docnum,
    };
    [value, &docnum.to_be_bytes()[..]].concat()
}

fn docnum_of_member(row: &[u8]) -> Result<u64> {
    keyspace::decode_member(row).map(|(_, docnum)| docnum)
}

fn feed_row(row: &[u8], epk: &[u8]) -> Result<ChangeRow> {
    let (lsn, seq, docnum) = keyspace::decode_feed(row)?;
    Ok(ChangeRow { lsn, seq, docnum, epk: EffectiveKey::from_bytes(epk) })
}

fn posting(row: Bytes) -> Result<IndexEntry> {
    let (_, value, docnum) = keyspace::decode_index(&row)?;
    Ok((row.slice_ref(value), docnum))
}

#[cfg(test)]
mod tests;
