//! Page executor: runs the slices of a page in sequence, or merges them.
//!
//! Unordered rows come from one slice after the other. Every other query needs all slices: short work runs on the
//! calling thread, the rest on all cores (`parallel`), and the results are merged in the order of the slices.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Partition;
use pleiad_sql::block::{Block, Output};
use pleiad_sql::document::SlotValue;
use pleiad_sql::index_predicate::{IndexPredicate, OrderPath, TextAggregate, TextScoreOrder, VectorOrder};
use pleiad_sql::run::{self, Finished, PageSize, PageStart, RowPipeline};

use super::cursor::{CursorPosition, RangeCursor, WHOLE_ITEM, unfinished};
use super::document::StoredItem;
use super::index_lookup::{IndexSearcher, PostingList};
use super::page::{PageReach, PageTask};
use super::page_cost::PageCost;
use super::page_thread::PageThread;
use super::planner::{AccessPath, OrderStrategy, PlanRequest, plan_slice};
use super::reader::PartitionReader;
use super::report::ScanStats;
use super::route::{PartitionSlice, next_slice};
use super::scan::{KeyPath, ScanEnd, SliceScan};
use super::stop::Stop;
use crate::Container;
use crate::response::{PartitionLsn, partition_lsn};

/// The plan and the context that all slices of a page share.
pub struct PageExecutor<'p> {
    pub task: &'p PageTask,
    pub thread: &'p PageThread,
    pub container: &'p Container,
    pub block: &'p Block,
    pub predicate: Option<IndexPredicate<'p>>,
    pub order: Vec<OrderPath>,
    pub keys: Vec<KeyPath>,
    pub ordering: OrderStrategy,
    pub vector_order: Option<VectorOrder<'p>>,
    pub text_score: Option<TextScoreOrder<'p>>,
    pub text_aggregates: Option<Vec<TextAggregate<'p>>>,
    pub start: PageStart,
    pub size: PageSize,
    /// How much of a sequence of slices the page reads.
    pub reach: PageReach,
    /// The requested ranges that are one logical partition each, by their key, in order.
    pub points: &'p [EffectiveKey],
}

pub fn is_stream(block: &Block) -> bool {
    matches!(block.output, Output::Rows(_)) && !block.distinct && block.order.is_empty()
}

impl<'p> PageExecutor<'p> {
    pub(super) fn pipeline(&self) -> RowPipeline<'p> {
        RowPipeline::new(self.block, self.task.context(), self.start.clone(), self.size)
    }

    /// Restores a truncated resume key from the item that it names, if that item still exists and has the key. The
    /// session does not matter: the item is not returned, and may be at a partition outside of the query's scope.
    pub fn expand_resume_key(&mut self, cost: &mut PageCost<'_>) -> Result<(), Stop> {
        let run::ResumePoint::Key(resume_key) = &self.start.at else { return Ok(()) };
        if resume_key.key().is_some() {
            return Ok(());
        }
        let mut pipeline = self.pipeline();
        let Some(docnum) = pipeline.resume_docnum(resume_key) else { return Ok(()) };
        let mut whole = None;
        // All readers of a transaction see its one snapshot.
        let partitions_max = if self.task.transaction.is_some() { 1 } else { usize::MAX };
        for partition in self.container.partitions.iter().take(partitions_max) {
            if whole.is_some() {
                break;
            }
            let position = self.admit(partition, cost)?;
            cost.add_lookup(position);
            let slice =
                PartitionSlice { partition: partition.clone(), keys: partition.range.keys.clone(), point: None };
            self.open(&slice)?.visit_one(docnum, &mut |record| {
                let item =
                    StoredItem { container: self.container.rid, record, computed: &self.container.computed.queried };
                whole = pipeline.expand_key(docnum, SlotValue::Item(&item), resume_key)?;
                Ok(())
            })?;
        }
        if let Some(whole) = whole {
            self.start.at = run::ResumePoint::Key(whole);
        }
        Ok(())
    }

    /// The rows are materialised: another query reads all of them.
    fn is_materialized(&self) -> bool {
        self.size.rows == usize::MAX
    }

    /// About how many rows a slice must return.
    fn rows_needed(&self) -> usize {
        let page = self.size.rows.saturating_add(1);
        let take = self.start.take.map_or(usize::MAX, |take| usize::try_from(take).unwrap_or(usize::MAX));
        page.min(take).saturating_add(usize::try_from(self.start.skip).unwrap_or(usize::MAX))
    }

    /// A query that reads no items runs from the beginning for every page: its rows come from its own text.
    pub fn run_constant(&self) -> Result<(Finished, Option<CursorPosition>)> {
        let mut pipeline = self.pipeline();
        pipeline.add_constant_row()?;
        let Finished { rows, next } = pipeline.finish(None)?;
        let returned = rows.len() as u64;
        let next = next.map(|_| PageStart {
            skip: self.start.skip + returned,
            take: self.start.take.map(|take| take.saturating_sub(returned)),
            at: run::ResumePoint::Beginning,
        });
        let at = next.as_ref().map(|_| CursorPosition::Row(0));
        Ok((Finished { rows, next }, at))
    }

    pub fn run_sequential(
        &self,
        cursors: Vec<RangeCursor>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
        work: &mut ScanStats,
    ) -> Result<(Finished, Option<CursorPosition>), Stop> {
        let mut remaining = VecDeque::from(cursors);
        let mut pipeline = self.pipeline();
        while let Some((slice, cursor)) = next_slice(self.container, self.points, &mut remaining) {
            let is_first = cost.is_empty();
            // Before the read: the session token must not cover more than was read.
            let lsn = partition_lsn(&slice.partition);
            let ended = match self.admit(&slice.partition, cost) {
                Ok(position) => {
                    cost.check_session(position, self.task.session.as_ref())?;
                    lsns.push(lsn);
                    let mut slice_work = ScanStats::default();
                    let ended = self.run_slice(&slice, &cursor, &mut pipeline, &mut slice_work);
                    cost.add_work(position, &slice_work);
                    work.add(slice_work);
                    ended?
                }
                // The page returns the rows so far; the next page tries this partition again.
                Err(Stop::Failed(Error { kind: Kind::Throttled { .. }, .. }))
                    if !is_first && !self.is_materialized() =>
                {
                    ScanEnd::Throttled
                }
                Err(stop) => return Err(stop),
            };
            let (cursor, interrupted) = match ended {
                ScanEnd::Throttled => {
                    let at = run::ResumePoint::Item { docnum: cursor.docnum, rows: cursor.rows };
                    (cursor, Some(at))
                }
                ScanEnd::Exhausted if !self.ends_after(&slice.partition, remaining.front())? => continue,
                // The next page begins with the next slice: it makes progress, however little time it has.
                ScanEnd::Exhausted => match remaining.pop_front() {
                    Some(RangeCursor { keys, docnum, rows }) => {
                        (RangeCursor { keys, docnum, rows }, Some(run::ResumePoint::Item { docnum, rows }))
                    }
                    None => continue,
                },
                ScanEnd::Interrupted(docnum) => (cursor, Some(run::ResumePoint::Item { docnum, rows: WHOLE_ITEM })),
                ScanEnd::Enough | ScanEnd::Unordered => (cursor, None),
            };
            let finished = pipeline.finish(interrupted)?;
            let next = finished.next.as_ref().map(|start| position_after(start, cursor, remaining));
            return Ok((finished, next));
        }
        Ok((pipeline.finish(None)?, None))
    }

    /// Whether the page ends with a finished slice of this partition, although another range follows.
    fn ends_after(&self, partition: &Partition, next: Option<&RangeCursor>) -> Result<bool> {
        let is_elsewhere = |next: &RangeCursor| !partition.range.keys.contains(&next.keys.min);
        let is_complete = self.reach == PageReach::Partition && next.is_some_and(is_elsewhere);
        Ok(is_complete || self.task.deadline.is_elapsed()?)
    }

    fn run_slice(
        &self,
        slice: &PartitionSlice,
        cursor: &RangeCursor,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let planned = self.plan_access(self.open(slice)?, slice, cursor.after(), false, work)?;
        self.check_inline(planned.cost_us)?;
        pipeline.resume(cursor.docnum, cursor.rows);
        self.scan(&planned, slice, cursor.after(), &[], pipeline, work)
    }

    /// Merges all slices into one page. Short work runs here; the rest on as many threads as there are cores.
    /// The request is admitted at all partitions or at none: a page without the rows of one partition would be wrong.
    pub fn run_merged(
        &self,
        slices: Vec<PartitionSlice>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
        work: &mut ScanStats,
    ) -> Result<Finished, Stop> {
        let first = cost.len();
        for slice in &slices {
            // Before the read: the session token must not cover more than was read.
            let lsn = partition_lsn(&slice.partition);
            self.admit(&slice.partition, cost).inspect_err(|_| cost.cancel_from(first))?;
            lsns.push(lsn);
        }
        (first..cost.len()).try_for_each(|position| cost.check_session(position, self.task.session.as_ref()))?;
        let (mut sum, mut spent_us) = (None, 0.0);
        for (at, slice) in slices.iter().enumerate() {
            let mut slice_work = ScanStats::default();
            let rest = self.plan_slice(slice, &mut slice_work).and_then(|planned| {
                // The slices after it are likely to take as long.
                let us = spent_us + planned.cost_us * (slices.len() - at) as f64;
                self.check_inline(us)?;
                if us > self.task.parallelism.serial_us_max && (at + 1 < slices.len() || self.is_long(&planned)) {
                    self.thread.check_may_block()?;
                    return Ok(Some(planned));
                }
                spent_us += planned.cost_us;
                self.add_slice(&mut sum, slice, planned, &mut slice_work).map(|()| None)
            });
            if let Ok(Some(planned)) = rest {
                let (sum, stats) = self.run_parallel(sum, &slices[at..], planned, slice_work);
                for (offset, slice_work) in stats {
                    cost.add_work(first + at + offset, &slice_work);
                    work.add(slice_work);
                }
                return Ok(sum?.finish(None)?);
            }
            cost.add_work(first + at, &slice_work);
            work.add(slice_work);
            rest?;
        }
        Ok(sum.unwrap_or_else(|| self.pipeline()).finish(None)?)
    }

    fn add_slice(
        &self,
        sum: &mut Option<RowPipeline<'p>>,
        slice: &PartitionSlice,
        planned: PlannedSlice,
        work: &mut ScanStats,
    ) -> Result<(), Stop> {
        match sum {
            Some(pipeline) if pipeline.accepts_any_order() => self.scan_into(pipeline, slice, planned, work),
            _ => merge(sum, self.scan_slice(slice, planned, work)?),
        }
    }

    /// Plans a slice that is merged with others.
    pub(super) fn plan_slice(&self, slice: &PartitionSlice, work: &mut ScanStats) -> Result<PlannedSlice, Stop> {
        self.task.deadline.check()?;
        let reader = self.open(slice)?;
        if self.block.only_counts()
            && let Some(items) = reader.count(slice)?
        {
            let access_path = AccessPath::ItemCount(items);
            self.record_plan(slice, &access_path, work);
            return Ok(PlannedSlice { access_path, cost_us: 0.0, reader });
        }
        if self.text_aggregates.is_some()
            && let Some(figures) = self.text_counts(slice, &reader, work)?
        {
            let access_path = AccessPath::TextCounts(figures);
            self.record_plan(slice, &access_path, work);
            if self.task.query.report.indexes {
                work.add_indexes(slice.partition.range.id, self.text_count_indexes());
            }
            return Ok(PlannedSlice { access_path, cost_us: 0.0, reader });
        }
        // DISTINCT reads all items anyway, in order or not.
        self.plan_access(reader, slice, 0, !self.block.distinct, work)
    }

    pub(super) fn scan_slice(
        &self,
        slice: &PartitionSlice,
        planned: PlannedSlice,
        work: &mut ScanStats,
    ) -> Result<RowPipeline<'p>, Stop> {
        let mut pipeline = self.pipeline();
        self.scan_into(&mut pipeline, slice, planned, work)?;
        Ok(pipeline)
    }

    fn scan_into(
        &self,
        pipeline: &mut RowPipeline<'p>,
        slice: &PartitionSlice,
        planned: PlannedSlice,
        work: &mut ScanStats,
    ) -> Result<(), Stop> {
        if let Some(hits) = self.hits(slice, &planned)? {
            return self.scan_by_score(pipeline, slice, planned, hits, work);
        }
        pipeline.expect_order(matches!(planned.access_path, AccessPath::OrderedScan(_) | AccessPath::VectorScan(_)));
        if self.scan(&planned, slice, 0, &[], pipeline, work)? == ScanEnd::Unordered {
            // Items that were already read give the same rows again: the reader keeps its snapshot.
            pipeline.expect_order(false);
            let planned = self.plan_access(planned.reader, slice, 0, false, work)?;
            self.scan(&planned, slice, 0, &[], pipeline, work)?;
        }
        Ok(())
    }

    /// Admits the request at the partition, unless it is part of a transaction. Returns the position in the page cost.
    fn admit(&self, partition: &Arc<Partition>, cost: &mut PageCost<'_>) -> Result<usize, Stop> {
        match self.task.transaction {
            Some(_) => Ok(cost.add_unmetered()),
            None => self.thread.wait_for(cost.admit(partition)),
        }
    }

    /// Refuses inline work that is estimated to take longer than a change of threads is worth.
    fn check_inline(&self, us: f64) -> Result<(), Stop> {
        if us > INLINE_US_MAX {
            self.thread.check_may_block()?;
        }
        Ok(())
    }

    fn open(&self, slice: &PartitionSlice) -> Result<PartitionReader, Stop> {
        PartitionReader::open(
            slice,
            &self.container.schema,
            self.task.at.expiry(),
            self.thread,
            self.task.transaction.as_ref(),
        )
    }

    fn plan_access(
        &self,
        reader: PartitionReader,
        slice: &PartitionSlice,
        after: u64,
        may_scan_in_order: bool,
        work: &mut ScanStats,
    ) -> Result<PlannedSlice, Stop> {
        let began = Instant::now();
        let may_scan_in_order = may_scan_in_order && !reader.has_overlay();
        let context = self.task.context();
        let (access_path, cost_us) = {
            let index = self.container.schema.usable_index();
            let searcher = IndexSearcher::new(&reader, index, &context, &self.task.deadline);
            let (predicate, size) = (self.predicate.as_ref(), self.size);
            let (ordering, start) = (&self.ordering, &self.start);
            let vector_order = self.vector_order.as_ref();
            let request =
                PlanRequest { slice, predicate, ordering, vector_order, start, size, may_scan_in_order, after };
            plan_slice(&searcher, &request)?
        };
        let access_path = match access_path {
            choice if !reader.has_overlay() => choice,
            AccessPath::IndexLookup(found) => {
                let docnums = reader.with_overlay(slice, Some(found.docnums), after)?;
                AccessPath::IndexLookup(PostingList { docnums, ..found })
            }
            AccessPath::KeyRange(docnums) => AccessPath::KeyRange(reader.with_overlay(slice, Some(docnums), after)?),
            _ => AccessPath::KeyRange(reader.with_overlay(slice, None, after)?),
        };
        work.looking_up += began.elapsed();
        self.record_plan(slice, &access_path, work);
        Ok(PlannedSlice { access_path, cost_us, reader })
    }

    /// Names of indexes are recorded on request only: formatting them would slow down short queries.
    fn record_plan(&self, slice: &PartitionSlice, choice: &AccessPath, work: &mut ScanStats) {
        work.record_plan(choice);
        if self.task.query.report.indexes {
            work.record_path(slice.partition.range.id, choice);
        }
    }

    pub(super) fn scan(
        &self,
        planned: &PlannedSlice,
        slice: &PartitionSlice,
        after: u64,
        seen: &[u64],
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        self.slice_scan(planned, slice, seen).run(&planned.access_path, after, pipeline, work)
    }

    pub(super) fn slice_scan<'f>(
        &'f self,
        planned: &'f PlannedSlice,
        slice: &'f PartitionSlice,
        seen: &'f [u64],
    ) -> SliceScan<'f> {
        SliceScan {
            reader: &planned.reader,
            slice,
            container: self.container.rid,
            computed: &self.container.computed.queried,
            schema: &self.container.schema,
            deadline: &self.task.deadline,
            order: &self.keys,
            vector_order: self.vector_order.as_ref(),
            start: &self.start,
            rows_needed: self.rows_needed(),
            seen,
            may_end_early: is_stream(self.block),
            times: self.task.query.report.times,
        }
    }
}

/// The access path of a slice, its estimated cost in microseconds, and the reader that it uses.
pub(super) struct PlannedSlice {
    pub access_path: AccessPath,
    pub cost_us: f64,
    pub reader: PartitionReader,
}

/// Shorter work is not worth a change of threads.
const INLINE_US_MAX: f64 = 500.0;

/// Determined once: the standard library may read files for it.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// Pipelines are merged in the order of their slices, whichever is ready first: lists and sums of fractions depend on
/// it.
pub(super) fn merge<'p>(sum: &mut Option<RowPipeline<'p>>, pipeline: RowPipeline<'p>) -> Result<(), Stop> {
    match sum {
        Some(sum) => Ok(sum.merge(pipeline)?),
        none => {
            *none = Some(pipeline);
            Ok(())
        }
    }
}

fn position_after(start: &PageStart, cursor: RangeCursor, remaining: VecDeque<RangeCursor>) -> CursorPosition {
    let (docnum, rows) = match start.at {
        run::ResumePoint::Item { docnum, rows } => (docnum, rows),
        _ => (cursor.docnum, cursor.rows),
    };
    CursorPosition::Ranges(unfinished(RangeCursor { docnum, rows, ..cursor }, remaining))
}
