//! Page executor: runs the slices of a page in sequence, or merges them.
//!
//! Unordered rows come from one slice after the other. Every other query needs all slices: short work runs on the
//! calling thread, the rest on all cores (`parallel`), and the results are merged in the order of the slices.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::Instant;

use pleiad_model::{Error, Kind, Result};
use pleiad_sql::block::{Block, Output};
use pleiad_sql::document::SlotValue;
use pleiad_sql::index_predicate::{IndexPredicate, OrderPath, TextAggregate, TextScoreOrder, VectorOrder};
use pleiad_sql::run::{self, Finished, PageSize, PageStart, RowPipeline};
use pleiad_storage::not_at_hand;

use super::cursor::{CursorPosition, RangeCursor, WHOLE_ITEM, in_progress};
use super::document::StoredItem;
use super::index_lookup::{Finder, PostingList};
use super::page::PageTask;
use super::page_cost::PageCost;
use super::planner::{AccessPath, OrderStrategy, PlanRequest, choose};
use super::reader::PartitionReader;
use super::report::ScanStats;
use super::route::{PartitionSlice, next_slice};
use super::scan::{KeyPath, ScanEnd, SliceScan};
use crate::Container;
use crate::response::{PartitionLsn, place};

/// The plan and the context that all slices of a page share.
pub struct PageExecutor<'p> {
    pub job: &'p PageTask,
    pub container: &'p Container,
    pub block: &'p Block,
    pub condition: Option<IndexPredicate<'p>>,
    pub order: Vec<OrderPath>,
    pub keys: Vec<KeyPath>,
    pub ordering: OrderStrategy,
    pub nearest: Option<VectorOrder<'p>>,
    pub relevant: Option<TextScoreOrder<'p>>,
    pub tallies: Option<Vec<TextAggregate<'p>>>,
    pub start: PageStart,
    pub size: PageSize,
}

pub fn is_stream(block: &Block) -> bool {
    matches!(block.output, Output::Rows(_)) && !block.distinct && block.order.is_empty()
}

impl<'p> PageExecutor<'p> {
    pub(super) fn pass(&self) -> RowPipeline<'p> {
        RowPipeline::new(self.block, self.job.context(), self.start.clone(), self.size)
    }

    /// A page that resumes after a truncated key resumes after the whole key, if the item with that key is unchanged.
    pub fn complete(&mut self) -> Result<()> {
        let run::ResumePoint::Key(mark) = &self.start.at else { return Ok(()) };
        if mark.key().is_some() {
            return Ok(());
        }
        let mut pass = self.pass();
        let Some(docnum) = pass.begun_by(mark) else { return Ok(()) };
        let mut whole = None;
        for partition in &self.container.partitions {
            if whole.is_some() {
                break;
            }
            let slice =
                PartitionSlice { partition: partition.clone(), keys: partition.range.keys.clone(), point: None };
            self.open(&slice)?.show(docnum, &mut |record| {
                let item =
                    StoredItem { container: self.container.rid, record, computed: &self.container.computed.queried };
                whole = pass.completed(docnum, SlotValue::Item(&item), mark)?;
                Ok(())
            })?;
        }
        if let Some(whole) = whole {
            self.start.at = run::ResumePoint::Key(whole);
        }
        Ok(())
    }

    /// The rows are materialised: another query reads all of them.
    fn is_held(&self) -> bool {
        self.size.rows == usize::MAX
    }

    /// About how many rows a slice must return.
    fn wanted(&self) -> usize {
        let page = self.size.rows.saturating_add(1);
        let take = self.start.take.map_or(usize::MAX, |take| usize::try_from(take).unwrap_or(usize::MAX));
        page.min(take).saturating_add(usize::try_from(self.start.skip).unwrap_or(usize::MAX))
    }

    /// A query that reads no items runs from the beginning for every page: its rows come from its own text.
    pub fn nothing(&self) -> Result<(Finished, Option<CursorPosition>)> {
        let mut pass = self.pass();
        pass.nothing()?;
        let Finished { rows, next } = pass.finish(None)?;
        let given = rows.len() as u64;
        let next = next.map(|_| PageStart {
            skip: self.start.skip + given,
            take: self.start.take.map(|take| take.saturating_sub(given)),
            at: run::ResumePoint::Beginning,
        });
        let at = next.as_ref().map(|_| CursorPosition::Row(0));
        Ok((Finished { rows, next }, at))
    }

    pub fn stream(
        &self,
        stretches: Vec<RangeCursor>,
        places: &mut Vec<PartitionLsn>,
        tab: &mut PageCost,
        work: &mut ScanStats,
    ) -> Result<(Finished, Option<CursorPosition>)> {
        let mut left = VecDeque::from(stretches);
        let mut pass = self.pass();
        while let Some((slice, stretch)) = next_slice(self.container, &mut left) {
            let is_first = tab.is_empty();
            let ended = match self.enter(&slice, tab) {
                Ok(place) => {
                    places.push(place);
                    self.read(&slice, &stretch, &mut pass, tab, work)?
                }
                // The page returns the rows so far; the next page tries this partition again.
                Err(Error { kind: Kind::Throttled { .. }, .. }) if !is_first && !self.is_held() => ScanEnd::Throttled,
                Err(error) => return Err(error),
            };
            let (stretch, interrupted) = match ended {
                ScanEnd::Throttled => {
                    let at = run::ResumePoint::Item { docnum: stretch.docnum, rows: stretch.rows };
                    (stretch, Some(at))
                }
                ScanEnd::Exhausted if !self.job.budget.is_over()? => continue,
                // The next page begins with the next slice: it makes progress, however little time it has.
                ScanEnd::Exhausted => match left.pop_front() {
                    Some(RangeCursor { keys, docnum, rows }) => {
                        (RangeCursor { keys, docnum, rows }, Some(run::ResumePoint::Item { docnum, rows }))
                    }
                    None => continue,
                },
                ScanEnd::Interrupted(docnum) => (stretch, Some(run::ResumePoint::Item { docnum, rows: WHOLE_ITEM })),
                ScanEnd::Enough | ScanEnd::Unordered => (stretch, None),
            };
            let finished = pass.finish(interrupted)?;
            let next = finished.next.as_ref().map(|start| stopped(start, stretch, left));
            return Ok((finished, next));
        }
        Ok((pass.finish(None)?, None))
    }

    fn read(
        &self,
        slice: &PartitionSlice,
        stretch: &RangeCursor,
        pass: &mut RowPipeline<'_>,
        tab: &mut PageCost,
        work: &mut ScanStats,
    ) -> Result<ScanEnd> {
        let mut here = ScanStats::default();
        let way = self.open(slice).and_then(|reader| self.choose(reader, slice, stretch.after(), false, &mut here));
        let ended = way.and_then(|way| {
            check_short(way.us)?;
            pass.resume(stretch.docnum, stretch.rows);
            self.feed(&way, slice, stretch.after(), &[], pass, &mut here)
        });
        tab.read(tab.last(), &here);
        work.add(here);
        ended
    }

    /// Merges all slices into one page. Short work runs here; the rest on as many threads as there are cores.
    /// All slices or none: a page without the rows of one partition cannot be merged.
    pub fn merged(
        &self,
        slices: Vec<PartitionSlice>,
        places: &mut Vec<PartitionLsn>,
        tab: &mut PageCost,
        work: &mut ScanStats,
    ) -> Result<Finished> {
        for slice in &slices {
            match self.enter(slice, tab) {
                Ok(place) => places.push(place),
                Err(error) => {
                    std::mem::take(tab).leave(&self.job.meter);
                    return Err(error);
                }
            }
        }
        let (mut sum, mut spent_us) = (None, 0.0);
        for (at, slice) in slices.iter().enumerate() {
            let mut here = ScanStats::default();
            let rest = self.way(slice, &mut here).and_then(|way| {
                // The slices after it are likely to take as long.
                let us = spent_us + way.us * (slices.len() - at) as f64;
                check_short(us)?;
                if us > self.job.sharing.alone_us_max && (at + 1 < slices.len() || self.is_long(&way)) {
                    return Ok(Some(way));
                }
                spent_us += way.us;
                self.add(&mut sum, slice, way, &mut here).map(|()| None)
            });
            if let Ok(Some(way)) = rest {
                let (sum, works) = self.on_threads(sum, &slices[at..], way, here);
                for (behind, here) in works {
                    tab.read(at + behind, &here);
                    work.add(here);
                }
                return sum?.finish(None);
            }
            tab.read(at, &here);
            work.add(here);
            rest?;
        }
        sum.unwrap_or_else(|| self.pass()).finish(None)
    }

    fn add(
        &self,
        sum: &mut Option<RowPipeline<'p>>,
        slice: &PartitionSlice,
        way: PlannedSlice,
        work: &mut ScanStats,
    ) -> Result<()> {
        match sum {
            Some(pass) if pass.takes_more() => self.fill(pass, slice, way, work),
            _ => merge(sum, self.slice(slice, way, work)?),
        }
    }

    /// Plans a slice that is merged with others.
    pub(super) fn way(&self, slice: &PartitionSlice, work: &mut ScanStats) -> Result<PlannedSlice> {
        self.job.budget.check()?;
        let reader = self.open(slice)?;
        if self.block.only_counts()
            && let Some(items) = reader.count(slice)?
        {
            let choice = AccessPath::ItemCount(items);
            self.chose(slice, &choice, work);
            return Ok(PlannedSlice { choice, us: 0.0, reader });
        }
        if self.tallies.is_some()
            && let Some(figures) = self.tallied(slice, &reader, work)?
        {
            let choice = AccessPath::TextCounts(figures);
            self.chose(slice, &choice, work);
            if self.job.query.tell.indexes {
                work.used(slice.partition.range.id, self.tallied_parts());
            }
            return Ok(PlannedSlice { choice, us: 0.0, reader });
        }
        // DISTINCT reads all items anyway, in order or not.
        self.choose(reader, slice, 0, !self.block.distinct, work)
    }

    pub(super) fn slice(
        &self,
        slice: &PartitionSlice,
        way: PlannedSlice,
        work: &mut ScanStats,
    ) -> Result<RowPipeline<'p>> {
        let mut pass = self.pass();
        self.fill(&mut pass, slice, way, work)?;
        Ok(pass)
    }

    fn fill(
        &self,
        pass: &mut RowPipeline<'p>,
        slice: &PartitionSlice,
        way: PlannedSlice,
        work: &mut ScanStats,
    ) -> Result<()> {
        if let Some(hits) = self.hits(slice, &way)? {
            return self.by_score(pass, slice, way, hits, work);
        }
        pass.expect_order(matches!(way.choice, AccessPath::OrderedScan(_) | AccessPath::VectorScan(_)));
        if self.feed(&way, slice, 0, &[], pass, work)? == ScanEnd::Unordered {
            // Items that were already read give the same rows again: the reader keeps its snapshot.
            pass.expect_order(false);
            let way = self.choose(way.reader, slice, 0, false, work)?;
            self.feed(&way, slice, 0, &[], pass, work)?;
        }
        Ok(())
    }

    /// The LSN is taken before the partition is read, so that the session token never claims more than was read.
    fn enter(&self, slice: &PartitionSlice, tab: &mut PageCost) -> Result<PartitionLsn> {
        let place = place(&slice.partition);
        if self.job.moment.is_some() {
            tab.within();
            return Ok(place);
        }
        self.job.session.as_ref().map_or(Ok(()), |session| session.check(&slice.partition))?;
        tab.enter(&self.job.meter, &self.job.at, &slice.partition)?;
        Ok(place)
    }

    fn open(&self, slice: &PartitionSlice) -> Result<PartitionReader> {
        PartitionReader::open(
            slice,
            &self.container.schema,
            self.job.at.expiry(),
            &self.job.handle,
            self.job.moment.as_ref(),
        )
    }

    fn choose(
        &self,
        reader: PartitionReader,
        slice: &PartitionSlice,
        after: u64,
        may_walk: bool,
        work: &mut ScanStats,
    ) -> Result<PlannedSlice> {
        let began = Instant::now();
        let may_walk = may_walk && !reader.has_own();
        let context = self.job.context();
        let (choice, us) = {
            let index = self.container.schema.usable_index();
            let finder = Finder::new(&reader, index, &context, &self.job.budget);
            let (condition, size) = (self.condition.as_ref(), self.size);
            let (ordering, start) = (&self.ordering, &self.start);
            let nearest = self.nearest.as_ref();
            let question = PlanRequest { slice, condition, ordering, nearest, start, size, may_walk, after };
            choose(&finder, &question)?
        };
        let choice = match choice {
            choice if !reader.has_own() => choice,
            AccessPath::IndexLookup(found) => {
                let docnums = reader.with_own(slice, Some(found.docnums), after)?;
                AccessPath::IndexLookup(PostingList { docnums, ..found })
            }
            AccessPath::KeyRange(docnums) => AccessPath::KeyRange(reader.with_own(slice, Some(docnums), after)?),
            _ => AccessPath::KeyRange(reader.with_own(slice, None, after)?),
        };
        work.looking_up += began.elapsed();
        self.chose(slice, &choice, work);
        Ok(PlannedSlice { choice, us, reader })
    }

    /// Names of indexes are recorded on request only: they take a little time, which short queries do not have.
    fn chose(&self, slice: &PartitionSlice, choice: &AccessPath, work: &mut ScanStats) {
        work.chose(choice);
        if self.job.query.tell.indexes {
            work.went(slice.partition.range.id, choice);
        }
    }

    pub(super) fn feed(
        &self,
        way: &PlannedSlice,
        slice: &PartitionSlice,
        after: u64,
        seen: &[u64],
        pass: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd> {
        self.feeder(way, slice, seen).run(&way.choice, after, pass, work)
    }

    pub(super) fn feeder<'f>(
        &'f self,
        way: &'f PlannedSlice,
        slice: &'f PartitionSlice,
        seen: &'f [u64],
    ) -> SliceScan<'f> {
        SliceScan {
            reader: &way.reader,
            slice,
            container: self.container.rid,
            computed: &self.container.computed.queried,
            schema: &self.container.schema,
            budget: &self.job.budget,
            order: &self.keys,
            nearest: self.nearest.as_ref(),
            start: &self.start,
            wanted: self.wanted(),
            seen,
            may_end_early: is_stream(self.block),
            times: self.job.query.tell.times,
        }
    }
}

/// The access path of a slice, its estimated cost in microseconds, and the reader that it uses.
pub(super) struct PlannedSlice {
    pub choice: AccessPath,
    pub us: f64,
    pub reader: PartitionReader,
}

/// Shorter work is not worth a change of threads.
const AT_HAND_US_MAX: f64 = 500.0;

fn check_short(us: f64) -> Result<()> {
    if us > AT_HAND_US_MAX { not_at_hand() } else { Ok(()) }
}

/// Determined once: the operating system reads it from files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// Pipelines are merged in the order of their slices, whichever is ready first: lists and sums of fractions depend on
/// it.
pub(super) fn merge<'p>(sum: &mut Option<RowPipeline<'p>>, pass: RowPipeline<'p>) -> Result<()> {
    match sum {
        Some(sum) => sum.merge(pass),
        none => {
            *none = Some(pass);
            Ok(())
        }
    }
}

fn stopped(start: &PageStart, stretch: RangeCursor, left: VecDeque<RangeCursor>) -> CursorPosition {
    let (docnum, rows) = match start.at {
        run::ResumePoint::Item { docnum, rows } => (docnum, rows),
        _ => (stretch.docnum, stretch.rows),
    };
    CursorPosition::Stretches(in_progress(RangeCursor { docnum, rows, ..stretch }, left))
}
