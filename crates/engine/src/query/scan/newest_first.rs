//! Items that no index of scores finds: texts without the terms, and items without a text or a vector.
//!
//! All of them sort after the items that the index found, those with equal scores by descending docnum. So they are
//! read from the newest on, and only as many as can still change the page.

use pleiad_model::partition_key::EffectiveKey;
use pleiad_sql::run::RowPipeline;
use pleiad_storage::Limit;

use super::{CHUNK_ROWS_MAX, FETCHED_FIRST, FETCHED_MAX, ScanEnd, SliceScan};
use crate::query::index_lookup::PostingList;
use crate::query::planner::AccessPath;
use crate::query::report::ScanStats;
use crate::query::stop::Stop;

impl SliceScan<'_> {
    /// Scans the items of an access path from the newest on, until no older one without a score can change the page.
    pub fn run_newest_first(
        &self,
        access_path: &AccessPath,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        self.timed(work, |work| self.scan_newest_first(access_path, pipeline, work))
    }

    pub(super) fn scan_newest_first(
        &self,
        access_path: &AccessPath,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        // Within a window, and with scores between them, the items are not in order.
        pipeline.expect_order(false);
        match access_path {
            AccessPath::FullScan => self.scan_windows(pipeline, work),
            AccessPath::LogicalPartition(key) => self.fetch_newest_first(&self.all_members(key)?, pipeline, work),
            AccessPath::KeyRange(docnums) | AccessPath::IndexLookup(PostingList { docnums, .. }) => {
                self.fetch_newest_first(docnums, pipeline, work)
            }
            other => self.run_path(other, 0, pipeline, work),
        }
    }

    fn scan_windows(&self, pipeline: &mut RowPipeline<'_>, work: &mut ScanStats) -> Result<ScanEnd, Stop> {
        let (mut before, mut width) = (u64::MAX, self.first_rows());
        while let Some(newest) = self.reader.newest_before(before)? {
            if !pipeline.admits_unscored(newest) {
                return Ok(ScanEnd::Enough);
            }
            let after = newest.saturating_sub(width as u64);
            match self.scan(after, newest, pipeline, work)? {
                ScanEnd::Exhausted => self.deadline.check()?,
                ended => return Ok(ended),
            }
            before = after.saturating_add(1);
            width = width.saturating_mul(4).min(CHUNK_ROWS_MAX);
        }
        Ok(ScanEnd::Exhausted)
    }

    fn fetch_newest_first(
        &self,
        docnums: &[u64],
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        for batch in docnums.rchunks(self.rows_needed.clamp(FETCHED_FIRST, FETCHED_MAX)) {
            if batch.last().is_some_and(|newest| !pipeline.admits_unscored(*newest)) {
                return Ok(ScanEnd::Enough);
            }
            match self.fetch(batch, pipeline, work)? {
                ScanEnd::Exhausted => self.deadline.check()?,
                ended => return Ok(ended),
            }
        }
        Ok(ScanEnd::Exhausted)
    }

    /// The docnums of a logical partition, in order.
    fn all_members(&self, key: &EffectiveKey) -> Result<Vec<u64>, Stop> {
        let mut all = Vec::new();
        loop {
            let after = all.last().copied().unwrap_or(0);
            let (docnums, more) = self.reader.members(key, after, Limit::rows(CHUNK_ROWS_MAX))?;
            let is_last = docnums.is_empty() || !more;
            all.extend(docnums);
            if is_last {
                return Ok(all);
            }
        }
    }
}
