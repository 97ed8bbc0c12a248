//! Partition reader: synchronous reads of one partition at one snapshot.
//!
//! It runs on a blocking thread, or in work that is retried on a blocking thread if it would block.
//!
//! Invariant: all reads through one reader see the same snapshot. Reads are in chunks, so that store calls are few and
//! memory stays bounded.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::policy::PathStep;
use pleiad_model::{Error, Kind, Result};
use pleiad_partition::exact_knn::VectorQuery;
use pleiad_partition::index::TermRange;
use pleiad_partition::missing_values::{Candidates, IsMissing};
use pleiad_partition::snapshot::{IndexEntry, PartitionSnapshot};
use pleiad_partition::ttl::Expiry;
use pleiad_partition::{Record, RecordView, Schema};
use pleiad_storage::{Direction, Limit, not_at_hand};
use pleiad_vector::Neighbor;
use tokio::runtime::Handle;

use super::route::PartitionSlice;

pub struct PartitionReader {
    snapshot: Arc<PartitionSnapshot>,
    /// The transaction's own writes since the snapshot, by docnum; `None` is a deleted item.
    overlay: Arc<BTreeMap<u64, Option<Record>>>,
    /// The snapshot is a transaction's: a newer one cannot replace it.
    is_fixed: bool,
    expiry: Expiry,
    handle: Handle,
}

/// The snapshot of a transaction, and the transaction's own writes since then.
pub(crate) struct TransactionSnapshot {
    pub snapshot: Arc<PartitionSnapshot>,
    pub overlay: Arc<BTreeMap<u64, Option<Record>>>,
}

/// The limit of one read of index rows.
const ENTRIES_LIMIT: Limit = Limit { rows: 8192, bytes: 1 << 20 };
/// A longer list of docnums is not held in memory: a full scan needs none.
const DOCNUMS_MAX: usize = 1 << 20;
/// How many rows a probe reads. Ranges with fewer rows are counted exactly.
const PROBE_ROWS: usize = 256;

/// The result of probing a range of an index.
pub enum Probe {
    Rows(Vec<IndexEntry>),
    Estimate(u64),
}

impl PartitionReader {
    /// `Kind::Outdated` if the partition has a newer schema: its index rows may not match `schema`.
    pub fn open(
        slice: &PartitionSlice,
        schema: &Schema,
        expiry: Expiry,
        handle: &Handle,
        transaction: Option<&TransactionSnapshot>,
    ) -> Result<PartitionReader> {
        let (snapshot, overlay) = match transaction {
            Some(transaction) => (transaction.snapshot.clone(), transaction.overlay.clone()),
            None => (Arc::new(block_on_store(handle, slice.partition.snapshot())?), Arc::default()),
        };
        slice.partition.check_schema(schema)?;
        Ok(PartitionReader { snapshot, overlay, is_fixed: transaction.is_some(), expiry, handle: handle.clone() })
    }

    /// Whether the transaction has own writes, which are in no index.
    pub fn has_overlay(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// The docnums after `after` that may match: those that an index found, or all of the slice, with the transaction's
    /// own writes and without the items that it deleted.
    pub fn with_overlay(&self, slice: &PartitionSlice, found: Option<Vec<u64>>, after: u64) -> Result<Vec<u64>> {
        let mut docnums = match found {
            Some(found) => found,
            None => self.block_on_store(self.snapshot.members_in(&slice.keys, usize::MAX))?.unwrap_or_default(),
        };
        docnums.retain(|docnum| !self.overlay.contains_key(docnum));
        docnums.extend(self.overlay.iter().filter(|(_, record)| record.is_some()).map(|(docnum, _)| *docnum));
        docnums.retain(|docnum| *docnum > after);
        docnums.sort_unstable();
        Ok(docnums)
    }

    fn block_on_store<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        block_on_store(&self.handle, work)
    }

    /// How many items the partition has.
    pub fn items(&self) -> u64 {
        self.snapshot.items()
    }

    /// Whether the item is dead: expired or deleted by key. Queries skip dead items.
    pub fn is_dead(&self, record: &RecordView<'_>) -> bool {
        self.snapshot.is_dead(self.expiry, record)
    }

    /// Visits the items after one docnum, up to another, in docnum order, until `visit` returns false; returns true if
    /// it did.
    pub fn visit(
        &self,
        after: u64,
        upto: u64,
        visit: &mut (dyn FnMut(Result<RecordView<'_>>) -> bool + Send),
    ) -> Result<bool> {
        self.block_on_store(self.snapshot.visit(after, upto, visit))
    }

    /// The docnum of the first item after `after`.
    pub fn first_after(&self, after: u64) -> Result<Option<u64>> {
        let (first, _) = self.block_on_store(self.snapshot.docs(after, Limit::rows(1)))?;
        Ok(first.first().map(|record| record.docnum))
    }

    /// Whether the keys include the whole partition.
    pub fn is_within(&self, keys: &EpkRange) -> bool {
        self.snapshot.is_within(keys)
    }

    /// How many items a slice has, without reading them; `None` if dead items or own writes make the row count inexact.
    pub fn count(&self, slice: &PartitionSlice) -> Result<Option<u64>> {
        if self.snapshot.may_have_dead(self.expiry) || !self.overlay.is_empty() {
            return Ok(None);
        }
        if self.is_within(&slice.keys) {
            return Ok(Some(self.items()));
        }
        let Some(key) = &slice.point else { return Ok(self.docnums_in(&slice.keys)?.map(|items| items.len() as u64)) };
        let (mut after, mut count) = (0, 0);
        loop {
            let (members, more) = self.members(key, after, ENTRIES_LIMIT)?;
            count += members.len() as u64;
            match members.last() {
                Some(last) if more => after = *last,
                _ => return Ok(Some(count)),
            }
        }
    }

    /// Visits the item with this docnum, if it exists.
    pub fn visit_one(&self, docnum: u64, visit: &mut (dyn FnMut(RecordView<'_>) -> Result<()> + Send)) -> Result<()> {
        if let Some(written) = self.overlay.get(&docnum) {
            return written.as_ref().map_or(Ok(()), |record| visit(record.view()));
        }
        let mut outcome = Ok(());
        self.block_on_store(self.snapshot.visit_many(&[docnum], &mut |record| {
            outcome = record.and_then(|record| record.map_or(Ok(()), &mut *visit));
            outcome.is_ok()
        }))?;
        outcome
    }

    /// Visits the items with these docnums until `visit` returns false; returns true if it did. The items must exist.
    pub fn visit_many(
        &self,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Result<RecordView<'_>>) -> bool + Send),
    ) -> Result<bool> {
        if self.overlay.is_empty() {
            return self.visit_stored(docnums, visit);
        }
        let mut rest = docnums;
        while let Some((first, others)) = rest.split_first() {
            if let Some(Some(record)) = self.overlay.get(first) {
                if !visit(Ok(record.view())) {
                    return Ok(true);
                }
                rest = others;
                continue;
            }
            let stored = rest.iter().position(|docnum| self.overlay.contains_key(docnum)).unwrap_or(rest.len());
            let (stored, later) = rest.split_at(stored.max(1));
            if self.visit_stored(stored, visit)? {
                return Ok(true);
            }
            rest = later;
        }
        Ok(false)
    }

    fn visit_stored(
        &self,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Result<RecordView<'_>>) -> bool + Send),
    ) -> Result<bool> {
        self.block_on_store(self.snapshot.visit_many(docnums, &mut |record| match record {
            Ok(Some(record)) => visit(Ok(record)),
            Ok(None) => visit(Err(Error::corrupt("a row of an item that is not there"))),
            Err(error) => visit(Err(error)),
        }))
    }

    /// The same for docnums of items that may have been deleted.
    pub fn visit_existing(
        &self,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Result<RecordView<'_>>) -> bool + Send),
    ) -> Result<bool> {
        self.block_on_store(self.snapshot.visit_many(docnums, &mut |record| record.transpose().is_none_or(&mut *visit)))
    }

    /// Candidates for items without a value at a path. If they are unknown for this snapshot: `Kind::Outdated`, so that
    /// the page runs again at a newer one; or `None` for a transaction's snapshot.
    pub fn missing_values(
        &self,
        slice: &PartitionSlice,
        schema: &Schema,
        path: &[PathStep],
        is_missing: IsMissing<'_>,
    ) -> Result<Option<Candidates>> {
        let candidates =
            self.block_on_store(slice.partition.missing_candidates(&self.snapshot, schema, path, is_missing))?;
        if candidates.is_none() && !self.is_fixed {
            return Err(Error::new(Kind::Outdated, "a moment from before items were looked at"));
        }
        Ok(candidates)
    }

    /// The docnums of one logical partition after `after`.
    pub fn members(&self, key: &EffectiveKey, after: u64, limit: Limit) -> Result<(Vec<u64>, bool)> {
        self.block_on_store(self.snapshot.members(key, after, limit))
    }

    /// The docnums of a key range; `None` if it is the whole partition, or if they are too many.
    pub fn docnums_in(&self, keys: &EpkRange) -> Result<Option<Vec<u64>>> {
        if self.snapshot.is_within(keys) {
            return Ok(None);
        }
        self.block_on_store(self.snapshot.members_in(keys, DOCNUMS_MAX))
    }

    /// Index rows of a path, from one end of the range.
    pub fn index_entries(
        &self,
        path: u64,
        range: &TermRange,
        direction: Direction,
        rows: usize,
    ) -> Result<(Vec<IndexEntry>, bool)> {
        let limit = Limit { rows: rows.min(ENTRIES_LIMIT.rows), ..ENTRIES_LIMIT };
        self.block_on_store(self.snapshot.index_entries(path, &range.from, &range.to, direction, limit))
    }

    /// Exact k-NN: the distances of all vectors at a path; `None` if they are too many to hold in memory.
    pub fn exact_knn(&self, query: VectorQuery<'_>) -> Result<Option<Vec<Neighbor>>> {
        self.block_on_store(self.snapshot.distances_of_all(query))
    }

    /// ANN search: approximately the nearest `list` vectors; `None` if only exact k-NN is possible.
    pub fn ann_search(
        &self,
        slice: &PartitionSlice,
        query: VectorQuery<'_>,
        list: usize,
    ) -> Result<Option<Vec<Neighbor>>> {
        self.block_on_store(slice.partition.ann_search(&self.snapshot, query, list))
    }

    pub fn has_unindexed(&self, slice: &PartitionSlice) -> Result<bool> {
        self.block_on_store(self.snapshot.has_unindexed(&slice.partition))
    }

    /// An estimate of the number of rows in the range; the rows themselves if they are few.
    pub fn probe(&self, path: u64, range: &TermRange) -> Result<Probe> {
        let few = Limit::rows(PROBE_ROWS);
        let (rows, more) =
            self.block_on_store(self.snapshot.index_entries(path, &range.from, &range.to, Direction::Forward, few))?;
        if !more {
            return Ok(Probe::Rows(rows));
        }
        let estimate = self.block_on_store(self.snapshot.estimate(path, &range.from, &range.to))?;
        Ok(Probe::Estimate(estimate.max(PROBE_ROWS as u64 + 1)))
    }
}

/// The future of a local store is ready at the first poll; the thread blocks only for other stores.
fn block_on_store<T>(handle: &Handle, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => not_at_hand().and_then(|()| handle.block_on(work)),
    }
}
