//! Morsel-driven parallelism: the slices of a page, on all cores.
//!
//! Invariant: the result is what one thread would compute from the same morsels, one after the other. The items of a
//! long slice determine its morsels, never the number or the speed of threads, so that sums of fractions are the same
//! on every machine.
//!
//! ```text
//! slices    0                1      2
//! morsels   0  1  2  3  4    0      0  1  2      taken and merged in this order
//! ```
//!
//! Idle workers take the next morsel; a worker that is far ahead waits, so that few pipelines are in memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use pleiad_model::{Error, Result};
use pleiad_sql::run::RowPipeline;

use super::merge::{PageExecutor, PlannedSlice, cores, merge};
use super::planner::AccessPath;
use super::report::ScanStats;
use super::route::PartitionSlice;
use super::stop::Stop;

/// When a page runs on all cores, and how large its morsels are.
#[derive(Clone, Copy, Debug)]
pub struct Parallelism {
    /// Cheaper work runs on one thread; estimated microseconds.
    pub serial_us_max: f64,
    /// Docnums in a morsel of a full scan.
    pub docnums_per_morsel: u64,
    /// Items in a morsel of a posting list.
    pub postings_per_morsel: usize,
}

impl Parallelism {
    pub const DEFAULT: Parallelism =
        Parallelism { serial_us_max: 1_000.0, docnums_per_morsel: 1 << 16, postings_per_morsel: 4 << 10 };
}

/// The part of an access path that one worker scans.
#[derive(Clone, Debug)]
pub enum Morsel {
    /// Of a full scan: the items after one docnum, up to another.
    Docnums { after: u64, upto: u64 },
    /// Of a posting list, by position.
    Postings(Range<usize>),
}

impl PlannedSlice {
    fn is_long(&self, parallelism: &Parallelism) -> bool {
        match &self.access_path {
            AccessPath::FullScan => self.reader.items() > parallelism.docnums_per_morsel,
            choice => choice.docnums().is_some_and(|docnums| docnums.len() > parallelism.postings_per_morsel),
        }
    }
}

/// A slice that workers take morsel by morsel.
struct MorselSource {
    slice: usize,
    planned: Arc<PlannedSlice>,
    /// Number of morsels taken, and the docnum or position up to which they reach.
    taken: usize,
    upto: u64,
}

impl MorselSource {
    fn next(&mut self, parallelism: &Parallelism) -> Result<Option<Morsel>, Stop> {
        let morsel = match &self.planned.access_path {
            AccessPath::FullScan => self.next_docnums(parallelism.docnums_per_morsel)?,
            choice => {
                let found = choice.docnums().map_or(0, <[u64]>::len);
                self.next_postings(parallelism.postings_per_morsel, found)
            }
        };
        self.taken += usize::from(morsel.is_some());
        Ok(morsel)
    }

    /// Docnums have gaps, and some gaps are wide: every morsel has at least one item.
    fn next_docnums(&mut self, width: u64) -> Result<Option<Morsel>, Stop> {
        let Some(first) = self.planned.reader.first_after(self.upto)? else { return Ok(None) };
        let upto = (first / width + 1).saturating_mul(width) - 1;
        let after = std::mem::replace(&mut self.upto, upto);
        Ok(Some(Morsel::Docnums { after, upto }))
    }

    fn next_postings(&mut self, width: usize, all: usize) -> Option<Morsel> {
        let from = usize::try_from(self.upto).ok().filter(|from| *from < all)?;
        let upto = from.saturating_add(width).min(all);
        self.upto = upto as u64;
        Some(Morsel::Postings(from..upto))
    }
}

enum ScanTask {
    Slice(usize),
    Morsel { slice: usize, number: usize, planned: Arc<PlannedSlice>, morsel: Morsel },
}

/// The slices and morsels to scan, and the results.
struct WorkQueue<'t, 'p> {
    slices: &'t [PartitionSlice],
    parallelism: Parallelism,
    state: Mutex<QueueState<'p>>,
    progress: Condvar,
}

#[derive(Default)]
struct QueueState<'p> {
    /// The first slice that no worker has taken.
    next: usize,
    /// Slices that a worker is planning: they may turn out to be long.
    unplanned: usize,
    sources: VecDeque<MorselSource>,
    sum: Option<RowPipeline<'p>>,
    /// The slice and the morsel to merge next.
    next_merge: (usize, usize),
    /// How many morsels a slice has, once that is known.
    morsel_counts: BTreeMap<usize, usize>,
    pending: BTreeMap<(usize, usize), RowPipeline<'p>>,
    stats: BTreeMap<usize, ScanStats>,
    /// A worker failed: there will be no result.
    failed: bool,
}

impl<'p> QueueState<'p> {
    fn merge_ready(&mut self) -> Result<(), Stop> {
        loop {
            let (slice, morsel) = self.next_merge;
            if let Some(pipeline) = self.pending.remove(&self.next_merge) {
                merge(&mut self.sum, pipeline)?;
                self.next_merge = (slice, morsel + 1);
            } else if self.morsel_counts.get(&slice) == Some(&morsel) {
                self.next_merge = (slice + 1, 0);
            } else {
                return Ok(());
            }
        }
    }

    fn note(&mut self, slice: usize, work: ScanStats) {
        self.stats.entry(slice).or_default().add(work);
    }
}

impl<'p> WorkQueue<'_, 'p> {
    /// The next task in order; waits while a worker may be about to cut a slice into morsels. `None` if nothing is
    /// left.
    fn take(&self) -> Result<Option<ScanTask>, Stop> {
        let mut state = self.state.lock();
        loop {
            if state.failed {
                return Ok(None);
            }
            while let Some(source) = state.sources.front_mut() {
                if let Some(morsel) = source.next(&self.parallelism)? {
                    let (slice, number, planned) = (source.slice, source.taken - 1, source.planned.clone());
                    return Ok(Some(ScanTask::Morsel { slice, number, planned, morsel }));
                }
                let (slice, morsels) = (source.slice, source.taken);
                state.sources.pop_front();
                state.morsel_counts.insert(slice, morsels);
                state.merge_ready()?;
                self.progress.notify_all();
            }
            if state.next < self.slices.len() {
                state.next += 1;
                state.unplanned += 1;
                return Ok(Some(ScanTask::Slice(state.next - 1)));
            }
            if state.unplanned == 0 {
                return Ok(None);
            }
            self.progress.wait(&mut state);
        }
    }

    /// The slice is long: idle workers take morsels of it.
    fn add_source(&self, slice: usize, planned: PlannedSlice) {
        let mut state = self.state.lock();
        let at = state.sources.partition_point(|source| source.slice < slice);
        state.sources.insert(at, MorselSource { slice, planned: Arc::new(planned), taken: 0, upto: 0 });
        self.slice_planned(&mut state);
    }

    /// The worker that planned the slice scans it as one morsel.
    fn mark_single_morsel(&self, slice: usize) {
        let mut state = self.state.lock();
        state.morsel_counts.insert(slice, 1);
        self.slice_planned(&mut state);
    }

    fn slice_planned(&self, state: &mut QueueState<'p>) {
        state.unplanned -= 1;
        self.progress.notify_all();
    }

    /// The statistics of failed work count, too.
    fn add(
        &self,
        slice: usize,
        number: usize,
        pipeline: Result<RowPipeline<'p>, Stop>,
        work: ScanStats,
    ) -> Result<(), Stop> {
        let mut state = self.state.lock();
        state.note(slice, work);
        let pipeline = pipeline?;
        // The worker with the next morsel to merge never waits; then it takes the next task in order.
        while state.next_merge != (slice, number) && state.pending.len() > cores() && !state.failed {
            self.progress.wait(&mut state);
        }
        state.pending.insert((slice, number), pipeline);
        state.merge_ready()?;
        self.progress.notify_all();
        Ok(())
    }

    /// If the work fails or panics, no other worker waits for its result.
    fn guarded(&self, work: impl FnOnce() -> Result<(), Stop>) -> Result<(), Stop> {
        let guard = FailOnDrop(self);
        work()?;
        std::mem::forget(guard);
        Ok(())
    }
}

/// Marks the queue as failed, for work that ends without its result.
struct FailOnDrop<'u, 't, 'p>(&'u WorkQueue<'t, 'p>);

impl Drop for FailOnDrop<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.state.lock().failed = true;
        self.0.progress.notify_all();
    }
}

impl<'p> PageExecutor<'p> {
    /// Whether other workers could help with this slice. A full-text score has an access path of its own.
    pub(super) fn is_long(&self, planned: &PlannedSlice) -> bool {
        self.text_score.is_none() && planned.is_long(&self.task.parallelism)
    }

    /// Merges slices into the result so far, on several threads. The first slice is planned, and `work` is what that
    /// took. Returns the result and the statistics of each slice.
    pub(super) fn run_parallel(
        &self,
        sum: Option<RowPipeline<'p>>,
        slices: &[PartitionSlice],
        first: PlannedSlice,
        work: ScanStats,
    ) -> (Result<RowPipeline<'p>, Stop>, BTreeMap<usize, ScanStats>) {
        let threads = if self.is_long(&first) { cores() } else { cores().min(slices.len()) };
        let state = QueueState { next: 1, unplanned: 1, sum, ..QueueState::default() };
        let (state, progress) = (Mutex::new(state), Condvar::new());
        let queue = WorkQueue { slices, parallelism: self.task.parallelism, state, progress };
        let first = Mutex::new(Some((first, work)));
        let run = || {
            let taken = first.lock().take();
            if let (Some((planned, work)), Some(slice)) = (taken, slices.first()) {
                self.run_planned(&queue, 0, slice, planned, work)?;
            }
            while let Some(task) = queue.take()? {
                self.run_task(&queue, task)?;
            }
            Ok(())
        };
        let done = on_threads(threads, || queue.guarded(run));
        let QueueState { sum, stats, .. } = queue.state.into_inner();
        (done.map(|()| sum.unwrap_or_else(|| self.pipeline())), stats)
    }

    fn run_task(&self, queue: &WorkQueue<'_, 'p>, task: ScanTask) -> Result<(), Stop> {
        let mut work = ScanStats::default();
        match task {
            ScanTask::Slice(at) => {
                let Some(slice) = queue.slices.get(at) else { return Ok(()) };
                match self.plan_slice(slice, &mut work) {
                    Ok(planned) => self.run_planned(queue, at, slice, planned, work),
                    Err(error) => queue.add(at, 0, Err(error), work),
                }
            }
            ScanTask::Morsel { slice: at, number, planned, morsel } => {
                let Some(slice) = queue.slices.get(at) else { return Ok(()) };
                let pipeline = self.scan_morsel(slice, &planned, &morsel, &mut work);
                queue.add(at, number, pipeline, work)
            }
        }
    }

    /// Cuts a planned slice into morsels, or scans it here.
    fn run_planned(
        &self,
        queue: &WorkQueue<'_, 'p>,
        at: usize,
        slice: &PartitionSlice,
        planned: PlannedSlice,
        mut work: ScanStats,
    ) -> Result<(), Stop> {
        if self.is_long(&planned) {
            queue.add_source(at, planned);
            queue.state.lock().note(at, work);
            return Ok(());
        }
        queue.mark_single_morsel(at);
        let pipeline = self.scan_slice(slice, planned, &mut work);
        queue.add(at, 0, pipeline, work)
    }

    fn scan_morsel(
        &self,
        slice: &PartitionSlice,
        planned: &PlannedSlice,
        morsel: &Morsel,
        work: &mut ScanStats,
    ) -> Result<RowPipeline<'p>, Stop> {
        self.task.deadline.check()?;
        let mut pipeline = self.pipeline();
        self.slice_scan(planned, slice, &[]).run_morsel(&planned.access_path, morsel, &mut pipeline, work)?;
        Ok(pipeline)
    }
}

fn on_threads(threads: usize, run: impl Fn() -> Result<(), Stop> + Sync) -> Result<(), Stop> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(&run)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<(), Stop>>| {
            worker.join().unwrap_or_else(|_| Err(Error::internal("a query stopped unexpectedly").into()))
        };
        workers.into_iter().map(join).collect::<Result<Vec<()>, Stop>>().map(|_| ())
    })
}
