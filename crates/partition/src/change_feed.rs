//! What happened since: the newest version of every item that changed, in the order of the changes.
//!
//! Promise: a page is of one moment. It shows every item whose newest change lies behind the asked LSN, once, in the
//! order of LSNs, and says up to which LSN nothing is left to see. A transaction is never cut, so that a position is an
//! LSN and no more. Items that were deleted are gone from it; one that changes again moves to its new place.
//!
//! ```text
//! LSN    1   2   3   4   5   6          page after 1 of two items: a at 3, d at 4; seen up to 4
//! feed           a   d       c
//!        └ a and c were there once: each has moved on. 5 was a delete.
//! ```

mod versions; // all of them, not the newest only

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Result};
use pleiad_storage::Limit;

use crate::feed::{KeyScope, PageLimit};
use crate::partition::Partition;
use crate::record::Record;
use crate::snapshot::PartitionSnapshot;
use crate::ttl::Expiry;

pub use versions::VersionPage;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    Beginning,
    Now,
    /// With the changes of this second.
    Time(u32),
}

/// Which changes are asked for.
#[derive(Clone, Debug)]
pub struct ChangeQuery {
    pub scope: KeyScope,
    /// Behind this LSN.
    pub after: u64,
    /// None that is older, in seconds since 1970. A merge brings together histories whose times do not grow with their
    /// LSNs, so that a reader who began at a time says so on every page.
    pub since_s: u32,
    /// Which items are over.
    pub expiry: Expiry,
}

#[derive(Debug)]
pub struct LatestPage {
    pub records: Vec<Record>,
    /// Nothing up to here is left to see.
    pub lsn: u64,
}

/// A row of the feed: which item changed where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRow {
    pub lsn: u64,
    pub seq: u32,
    pub docnum: u64,
    pub epk: EffectiveKey,
}

/// Rows of the feed are small.
const ROWS_MAX: usize = 4_096;
/// Writers take the time before they take their place, and a clock may be set back a little: how much later an earlier
/// change may claim to be.
const CLOCK_SLACK_S: u32 = 60;

impl Partition {
    /// The LSN behind which a reader finds what it asked for.
    pub async fn lsn_at(&self, start: FeedStart) -> Result<u64> {
        match start {
            FeedStart::Beginning => Ok(0),
            FeedStart::Now => Ok(self.lsn()),
            FeedStart::Time(ts_s) => self.view().await?.lsn_before(ts_s.saturating_sub(CLOCK_SLACK_S)).await,
        }
    }

    /// The changes behind an LSN: one transaction at least, if there is one.
    pub async fn changes(&self, asked: &ChangeQuery, quota: PageLimit) -> Result<LatestPage> {
        let view = self.view().await?;
        let mut filling =
            ChangePageBuilder { records: Vec::new(), bytes: 0, quota, since_s: asked.since_s, expiry: asked.expiry };
        let mut from = (asked.after.saturating_add(1), 0, 0);
        for round in 0.. {
            let (rows, more) = view.feed_rows(from, limit(round, quota)).await?;
            let wanted: Vec<&ChangeRow> = rows.iter().filter(|row| asked.scope.holds(&row.epk)).collect();
            if let Some(lsn) = filling.load(&view, &wanted).await? {
                return Ok(LatestPage { records: filling.records, lsn });
            }
            match rows.last() {
                Some(last) if more => from = (last.lsn, last.seq, last.docnum.saturating_add(1)),
                _ => break,
            }
        }
        // A position from before the store was set back stays where it is: it has seen what it has seen.
        Ok(LatestPage { records: filling.records, lsn: view.lsn().max(asked.after) })
    }
}

impl PartitionSnapshot {
    /// The largest LSN known to have nothing at or below it that was written at this time or later.
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
        // Among changes of merged partitions there is nothing to search by: they are all looked at.
        Ok(if below == merged { 0 } else { below })
    }

    /// The first item behind an LSN.
    async fn first_change(&self, after: u64) -> Result<Option<Record>> {
        let (rows, _) = self.feed_rows((after.saturating_add(1), 0, 0), Limit::rows(1)).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(self.get(&[row.docnum]).await?.pop().flatten())
    }
}

struct ChangePageBuilder {
    records: Vec<Record>,
    bytes: usize,
    quota: PageLimit,
    since_s: u32,
    expiry: Expiry,
}

impl ChangePageBuilder {
    /// Fetches the items of these rows until the page is full; says then how far it has come.
    async fn load(&mut self, view: &PartitionSnapshot, rows: &[&ChangeRow]) -> Result<Option<u64>> {
        let mut rows = rows;
        while let Some(next) = rows.first() {
            if self.is_full() && !self.continues(next.lsn) {
                return Ok(Some(next.lsn - 1));
            }
            let docnums: Vec<u64> = rows.iter().map(|row| row.docnum).collect();
            let records = view.load(&docnums, self.quota.bytes.saturating_sub(self.bytes)).await?;
            for (record, row) in records.into_iter().zip(rows) {
                if (record.lsn, u32::from(record.seq)) != (row.lsn, row.seq) {
                    return Err(Error::corrupt("a feed row of a version that is not there"));
                }
                if self.is_full() && !self.continues(row.lsn) {
                    return Ok(Some(row.lsn - 1));
                }
                if !view.is_gone(self.expiry, &record.view()) {
                    self.take(record);
                }
                rows = &rows[1..];
            }
        }
        Ok(None)
    }

    fn take(&mut self, record: Record) {
        if record.ts_s >= self.since_s {
            self.bytes += record.body().len();
            self.records.push(record);
        }
    }

    fn is_full(&self) -> bool {
        self.records.len() >= self.quota.items || self.bytes >= self.quota.bytes
    }

    /// Whether a change belongs to the transaction that the page ends with.
    fn continues(&self, lsn: u64) -> bool {
        self.records.last().is_some_and(|last| last.lsn == lsn)
    }
}

/// At first what fills the page if every row is wanted and one more, so that its end is seen; then more, since few are wanted.
fn limit(round: usize, quota: PageLimit) -> Limit {
    match round {
        0 => Limit::rows(quota.items.saturating_add(1).min(ROWS_MAX)),
        _ => Limit::rows(ROWS_MAX),
    }
}

#[cfg(test)]
mod tests;
