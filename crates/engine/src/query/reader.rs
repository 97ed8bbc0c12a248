//! Partition reader: synchronous reads of one partition at one snapshot.
//!
//! It runs on a blocking thread, or inline; an inline read that would block stops the page, which is run again.
//!
//! Invariant: all reads through one reader see the same snapshot. Reads are in chunks, so that store calls are few and
//! memory stays bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::policy::PathStep;
use pleiad_model::{Error, Result};
use pleiad_partition::exact_knn::VectorQuery;
use pleiad_partition::index::TermRange;
use pleiad_partition::missing_values::{Candidates, IsMissing};
use pleiad_partition::snapshot::{IndexEntry, PartitionSnapshot};
use pleiad_partition::ttl::Expiry;
use pleiad_partition::{Record, RecordView, Schema};
use pleiad_storage::{Direction, Limit};
use pleiad_vector::Neighbor;

use super::page_thread::PageThread;
use super::route::PartitionSlice;
use super::stop::Stop;

pub struct PartitionReader {
    snapshot: Arc<PartitionSnapshot>,
    /// The transaction's own writes since the snapshot, by docnum; `None` is a deleted item.
    overlay: Arc<BTreeMap<u64, Option<Record>>>,
    /// The snapshot is a transaction's: a newer one cannot replace it.
    is_fixed: bool,
    expiry: Expiry,
    thread: PageThread,
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
    /// `PageRetry::Outdated` if the partition has a newer schema: its index rows may not match `schema`.
    pub fn open(
        slice: &PartitionSlice,
        schema: &Schema,
        expiry: Expiry,
        thread: &PageThread,
        transaction: Option<&TransactionSnapshot>,
    ) -> Result<PartitionReader, Stop> {
        let (snapshot, overlay) = match transaction {
            Some(transaction) => (transaction.snapshot.clone(), transaction.overlay.clone()),
            None => {
                let snapshot = thread.wait_for(slice.partition.snapshot(thread.blocking))?;
                (Arc::new(snapshot), Arc::default())
            }
        };
        if slice.partition.check_schema(schema).is_err() {
            return Err(Stop::OUTDATED);
        }
        Ok(PartitionReader { snapshot, overlay, is_fixed: transaction.is_some(), expiry, thread: thread.clone() })
    }

    /// Whether the transaction has own writes, which are in no index.
    pub fn has_overlay(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// The docnums after `after` that may match: those that an index found, or all of the slice, with the transaction's
    /// own writes and without the items that it deleted.
    pub fn with_overlay(&self, slice: &PartitionSlice, found: Option<Vec<u64>>, after: u64) -> Result<Vec<u64>, Stop> {
        let mut docnums = match found {
            Some(found) => found,
            None => self.thread.wait_for(self.snapshot.members_in(&slice.keys, usize::MAX))?.unwrap_or_default(),
        };
        docnums.retain(|docnum| !self.overlay.contains_key(docnum));
        docnums.extend(self.overlay.iter().filter(|(_, record)| record.is_some()).map(|(docnum, _)| *docnum));
        docnums.retain(|docnum| *docnum > after);
        docnums.sort_unstable();
        Ok(docnums)
    }

    /// The thread that the page runs on.
    pub fn thread(&self) -> &PageThread {
        &self.thread
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
    ) -> Result<bool, Stop> {
        self.thread.wait_for(self.snapshot.visit(after, upto, visit))
    }

    /// The docnum of the first item after `after`.
    pub fn first_after(&self, after: u64) -> Result<Option<u64>, Stop> {
        let (first, _) = self.thread.wait_for(self.snapshot.docs(after, Limit::rows(1)))?;
        Ok(first.first().map(|record| record.docnum))
    }

    /// The docnum of the newest item before `before`.
    pub fn newest_before(&self, before: u64) -> Result<Option<u64>, Stop> {
        self.thread.wait_for(self.snapshot.newest_before(before))
    }

    /// Whether the keys include the whole partition.
    pub fn is_within(&self, keys: &EpkRange) -> bool {
        self.snapshot.is_within(keys)
    }

    /// How many items a slice has, without reading them; `None` if dead items or own writes make the row count inexact.
    pub fn count(&self, slice: &PartitionSlice) -> Result<Option<u64>, Stop> {
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
    pub fn visit_one(
        &self,
        docnum: u64,
        visit: &mut (dyn FnMut(RecordView<'_>) -> Result<()> + Send),
    ) -> Result<(), Stop> {
        if let Some(written) = self.overlay.get(&docnum) {
            return Ok(written.as_ref().map_or(Ok(()), |record| visit(record.view()))?);
        }
        let mut outcome = Ok(());
        self.thread.wait_for(self.snapshot.visit_many(&[docnum], &mut |record| {
            outcome = record.and_then(|record| record.map_or(Ok(()), &mut *visit));
            outcome.is_ok()
        }))?;
        Ok(outcome?)
    }

    /// Visits the items with these docnums until `visit` returns false; returns true if it did. The items must exist.
    pub fn visit_many(
        &self,
        docnums: &[u64],
        visit: &mut (dyn FnMut(Result<RecordView<'_>>) -> bool + Send),
    ) -> Result<bool, Stop> {
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
    ) -> Result<bool, Stop> {
        self.thread.wait_for(self.snapshot.visit_many(docnums, &mut |record| match record {
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
    ) -> Result<bool, Stop> {
        self.thread
            .wait_for(self.snapshot.visit_many(docnums, &mut |record| record.transpose().is_none_or(&mut *visit)))
    }

    /// Candidates for items without a value at a path. If they are unknown for this snapshot:
    /// `PageRetry::Outdated`, so that the page runs again at a newer one; or `None` for a transaction's snapshot.
    pub fn missing_values(
        &self,
        slice: &PartitionSlice,
        schema: &Schema,
        path: &[PathStep],
        is_missing: IsMissing<'_>,
    ) -> Result<Option<Candidates>, Stop> {
        let candidates =
            self.thread.wait_for(slice.partition.missing_candidates(&self.snapshot, schema, path, is_missing))?;
        if candidates.is_none() && !self.is_fixed {
            return Err(Stop::OUTDATED);
        }
        Ok(candidates)
    }

    /// The docnums of one logical partition after `after`.
    pub fn members(&self, key: &EffectiveKey, after: u64, limit: Limit) -> Result<(Vec<u64>, bool), Stop> {
        self.thread.wait_for(self.snapshot.members(key, after, limit))
    }

    /// The docnums of a key range; `None` if it is the whole partition, or if they are too many.
    pub fn docnums_in(&self, keys: &EpkRange) -> Result<Option<Vec<u64>>, Stop> {
        if self.snapshot.is_within(keys) {
            return Ok(None);
        }
        self.thread.wait_for(self.snapshot.members_in(keys, DOCNUMS_MAX))
    }

    /// Index rows of a path, from one end of the range.
    pub fn index_entries(
        &self,
        path: u64,
        range: &TermRange,
        direction: Direction,
        rows: usize,
    ) -> Result<(Vec<IndexEntry>, bool), Stop> {
        let limit = Limit { rows: rows.min(ENTRIES_LIMIT.rows), ..ENTRIES_LIMIT };
        self.thread.wait_for(self.snapshot.index_entries(path, &range.from, &range.to, direction, limit))
    }

    /// Exact k-NN: the distances of all vectors at a path; `None` if they are too many to hold in memory.
    pub fn exact_knn(&self, query: VectorQuery<'_>) -> Result<Option<Vec<Neighbor>>, Stop> {
        self.thread.wait_for(self.snapshot.distances_of_all(query))
    }

    /// ANN search: approximately the nearest `list` vectors; `None` if only exact k-NN is possible.
    pub fn ann_search(
        &self,
        slice: &PartitionSlice,
        query: VectorQuery<'_>,
        list: usize,
    ) -> Result<Option<Vec<Neighbor>>, Stop> {
        self.thread.wait_for(slice.partition.ann_search(&self.snapshot, query, list))
    }

    pub fn has_unindexed(&self, slice: &PartitionSlice) -> Result<bool, Stop> {
        self.thread.wait_for(self.snapshot.has_unindexed(&slice.partition))
    }

    /// An estimate of the number of rows in the range; the rows themselves if they are few.
    pub fn probe(&self, path: u64, range: &TermRange) -> Result<Probe, Stop> {
        let few = Limit::rows(PROBE_ROWS);
        let (rows, more) =
            self.thread.wait_for(self.snapshot.index_entries(path, &range.from, &range.to, Direction::Forward, few))?;
        if !more {
            return Ok(Probe::Rows(rows));
        }
        let estimate = self.thread.wait_for(self.snapshot.estimate(path, &range.from, &range.to))?;
        Ok(Probe::Estimate(estimate.max(PROBE_ROWS as u64 + 1)))
    }
}
