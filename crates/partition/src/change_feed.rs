//! Change feed, latest versions: the newest version of every changed item, in LSN order.
//!
//! Guarantees: a page is read from one snapshot. It has every item whose newest change is after the requested LSN,
//! once, in LSN order, and the LSN up to which the reader has seen everything. A page never divides a transaction, so
//! that a position is just an LSN. Deleted items are not in the feed; an item that changes again moves to its new LSN.
//!
//! ```text
//! LSN    1   2   3   4   5   6          page after 1 of two items: a at 3, d at 4; complete up to 4
//! feed           a   d       c
//!        └ 1 and 2 were changes of a and c, which have moved to 3 and 6. 5 was a delete.
//! ```

mod versions; // all versions, not only the latest

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Fact, Result};
use pleiad_storage::{Blocking, Limit};

use crate::feed::{KeyScope, PageLimit};
use crate::partition::Partition;
use crate::record::Record;
use crate::snapshot::PartitionSnapshot;
use crate::ttl::Expiry;

pub use versions::VersionPage;

/// Where a reader starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    Beginning,
    Now,
    /// At the changes of this second, in seconds since 1970.
    Time(u32),
}

/// Which changes to return.
#[derive(Clone, Debug)]
pub struct ChangeQuery {
    pub scope: KeyScope,
    /// Changes after this LSN.
    pub after: u64,
    /// No change before this time, in seconds since 1970. A merge joins histories whose times do not increase with
    /// their LSNs, so a reader that started at a time passes it for every page.
    pub since_s: u32,
    /// Decides which items are expired.
    pub expiry: Expiry,
}

#[derive(Debug)]
pub struct LatestPage {
    pub records: Vec<Record>,
    /// The page is complete up to this LSN: the next one starts after it.
    pub lsn: u64,
}

/// A row of the feed: the item that changed at this LSN, and its effective key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRow {
    pub lsn: u64,
    pub seq: u32,
    pub docnum: u64,
    pub epk: EffectiveKey,
}

/// Feed rows per read; they are small.
const ROWS_MAX: usize = 4_096;
/// By how much the time of a change may exceed that of a change with a larger LSN: writers read the clock before they
/// get their LSN, and a clock may be set back a little.
const CLOCK_SLACK_S: u32 = 60;

impl Partition {
    /// The LSN after which a reader with this start begins.
    pub async fn lsn_at(&self, start: FeedStart) -> Result<u64> {
        match start {
            FeedStart::Beginning => Ok(0),
            FeedStart::Now => Ok(self.lsn()),
            FeedStart::Time(ts_s) => {
                self.snapshot(Blocking::Suspend).await?.lsn_before(ts_s.saturating_sub(CLOCK_SLACK_S)).await
            }
        }
    }

    /// The changes after an LSN: at least one transaction, if there is one.
    pub async fn changes(&self, query: &ChangeQuery, limit: PageLimit) -> Result<LatestPage> {
        let view = self.snapshot(Blocking::Suspend).await?;
        check_reached(&view, query)?;
        let mut builder =
            ChangePageBuilder { records: Vec::new(), bytes: 0, limit, since_s: query.since_s, expiry: query.expiry };
        let mut from = (query.after.saturating_add(1), 0, 0);
        for round in 0.. {
            let (rows, more) = view.feed_rows(from, chunk_limit(round, limit)).await?;
            let wanted: Vec<&ChangeRow> = rows.iter().filter(|row| query.scope.contains(&row.epk)).collect();
            if let Some(lsn) = builder.load(&view, &wanted).await? {
                return Ok(LatestPage { records: builder.records, lsn });
            }
            match rows.last() {
                Some(last) if more => from = (last.lsn, last.seq, last.docnum.saturating_add(1)),
                _ => break,
            }
        }
        Ok(LatestPage { records: builder.records, lsn: view.lsn() })
    }
}

/// A position ahead of the partition would return nothing until the partition reaches it, and then skip changes. Restores
/// of account snapshots, splits and merges never lower an LSN, so it means that the data is older than the position.
fn check_reached(view: &PartitionSnapshot, query: &ChangeQuery) -> Result<()> {
    match query.after <= view.lsn() {
        true => Ok(()),
        false => Err(Fact::ChangesAhead { after_lsn: query.after, reached_lsn: view.lsn() }.into()),
    }
}

impl PartitionSnapshot {
    /// Binary search for the largest LSN up to which all changes are known to have been written before this time.
    async fn lsn_before(&self, ts_s: u32) -> Result<u64> {
        let merged = self.merged_lsn();
        let (mut below, mut end) = (merged, self.lsn());
        while below < end {
            let middle = below + (end - below) / 2;
            match self.first_change(middle).await? {
                Some(record) if record.ts_s < ts_s => below = record.lsn.max(middle + 1),
                _ => end = middle,
            }
        }
        // Changes of merged partitions are not ordered by time, so they cannot be searched: all of them are read.
        Ok(if below == merged { 0 } else { below })
    }

    /// The first changed item after an LSN.
    async fn first_change(&self, after: u64) -> Result<Option<Record>> {
        let (rows, _) = self.feed_rows((after.saturating_add(1), 0, 0), Limit::rows(1)).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(self.get(&[row.docnum]).await?.pop().flatten())
    }
}

struct ChangePageBuilder {
    records: Vec<Record>,
    bytes: usize,
    limit: PageLimit,
    since_s: u32,
    expiry: Expiry,
}

impl ChangePageBuilder {
    /// Fetches the items of these rows until the page is full; then returns the LSN up to which it is complete.
    async fn load(&mut self, view: &PartitionSnapshot, rows: &[&ChangeRow]) -> Result<Option<u64>> {
        let mut rows = rows;
        while let Some(next) = rows.first() {
            if self.is_full() && !self.continues(next.lsn) {
                return Ok(Some(next.lsn - 1));
            }
            let docnums: Vec<u64> = rows.iter().map(|row| row.docnum).collect();
            let records = view.load(&docnums, self.limit.bytes.saturating_sub(self.bytes)).await?;
            for (record, row) in records.into_iter().zip(rows) {
                if (record.lsn, u32::from(record.seq)) != (row.lsn, row.seq) {
                    return Err(Error::corrupt("a feed row of a version that is not there"));
                }
                if self.is_full() && !self.continues(row.lsn) {
                    return Ok(Some(row.lsn - 1));
                }
                if !view.is_dead(self.expiry, &record.view()) {
                    self.push(record);
                }
                rows = &rows[1..];
            }
        }
        Ok(None)
    }

    fn push(&mut self, record: Record) {
        if record.ts_s >= self.since_s {
            self.bytes += record.body().len();
            self.records.push(record);
        }
    }

    fn is_full(&self) -> bool {
        self.records.len() >= self.limit.items || self.bytes >= self.limit.bytes
    }

    /// Whether a change belongs to the last transaction of the page.
    fn continues(&self, lsn: u64) -> bool {
        self.records.last().is_some_and(|last| last.lsn == lsn)
    }
}

/// First as many rows as fill the page if all of them match, and one more to see its end; then more, since few match.
fn chunk_limit(round: usize, limit: PageLimit) -> Limit {
    match round {
        0 => Limit::rows(limit.items.saturating_add(1).min(ROWS_MAX)),
        _ => Limit::rows(ROWS_MAX),
    }
}

#[cfg(test)]
mod tests;
