//! Morsel-driven parallelism: the slices of a page, on all cores.
//!
//! Invariant: the result is what one thread would compute from the slices, one after the other. The items of a long
//! slice determine its morsels, never the number or the speed of threads, so that sums of fractions are the same on
//! every machine.
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
use pleiad_storage::waiting_here;

use super::merge::{PageExecutor, PlannedSlice, cores, merge};
use super::planner::AccessPath;
use super::report::ScanStats;
use super::route::PartitionSlice;

/// When a page runs on all cores, and how large its morsels are.
#[derive(Clone, Copy, Debug)]
pub struct Parallelism {
    /// Cheaper work runs on one thread; estimated microseconds.
    pub alone_us_max: f64,
    /// Docnums in a morsel of a full scan.
    pub docnums: u64,
    /// Items in a morsel of a posting list.
    pub found: usize,
}

impl Parallelism {
    pub const USUAL: Parallelism = Parallelism { alone_us_max: 1_000.0, docnums: 1 << 16, found: 4 << 10 };
}

/// The part of an access path that one worker scans.
#[derive(Clone, Debug)]
pub enum Morsel {
    /// Of a full scan: the items after one docnum, up to another.
    Docnums { after: u64, upto: u64 },
    /// Of a posting list, by position.
    Found(Range<usize>),
}

impl PlannedSlice {
    fn is_long(&self, sharing: &Parallelism) -> bool {
        match &self.choice {
            AccessPath::FullScan => self.reader.items() > sharing.docnums,
            choice => choice.docnums().is_some_and(|docnums| docnums.len() > sharing.found),
        }
    }
}

/// A slice that workers take morsel by morsel.
struct MorselSource {
    slice: usize,
    way: Arc<PlannedSlice>,
    /// Number of morsels taken, and the docnum or position up to which they reach.
    taken: usize,
    upto: u64,
}

impl MorselSource {
    fn next(&mut self, sharing: &Parallelism) -> Result<Option<Morsel>> {
        let piece = match &self.way.choice {
            AccessPath::FullScan => self.next_docnums(sharing.docnums)?,
            choice => {
                let found = choice.docnums().map_or(0, <[u64]>::len);
                self.next_found(sharing.found, found)
            }
        };
        self.taken += usize::from(piece.is_some());
        Ok(piece)
    }

    /// Docnums have gaps, and some gaps are wide: every morsel has at least one item.
    fn next_docnums(&mut self, width: u64) -> Result<Option<Morsel>> {
        let Some(first) = self.way.reader.first_behind(self.upto)? else { return Ok(None) };
        let upto = (first / width + 1).saturating_mul(width) - 1;
        let after = std::mem::replace(&mut self.upto, upto);
        Ok(Some(Morsel::Docnums { after, upto }))
    }

    fn next_found(&mut self, width: usize, all: usize) -> Option<Morsel> {
        let from = usize::try_from(self.upto).ok().filter(|from| *from < all)?;
        let upto = from.saturating_add(width).min(all);
        self.upto = upto as u64;
        Some(Morsel::Found(from..upto))
    }
}

enum ScanTask {
    Slice(usize),
    Piece { slice: usize, number: usize, way: Arc<PlannedSlice>, piece: Morsel },
}

/// The slices and morsels to scan, and the results.
struct WorkQueue<'t, 'p> {
    slices: &'t [PartitionSlice],
    sharing: Parallelism,
    state: Mutex<QueueState<'p>>,
    progress: Condvar,
}

#[derive(Default)]
struct QueueState<'p> {
    /// The first slice that no worker has taken.
    next: usize,
    /// Slices that a worker is planning: they may turn out to be long.
    in_question: usize,
    cuts: VecDeque<MorselSource>,
    sum: Option<RowPipeline<'p>>,
    /// The slice and the morsel to merge next.
    due: (usize, usize),
    /// How many morsels a slice has, once that is known.
    pieces: BTreeMap<usize, usize>,
    waiting: BTreeMap<(usize, usize), RowPipeline<'p>>,
    works: BTreeMap<usize, ScanStats>,
    /// A worker failed: there will be no result.
    failed: bool,
}

impl<'p> QueueState<'p> {
    fn merge_due(&mut self) -> Result<()> {
        loop {
            let (slice, piece) = self.due;
            if let Some(pass) = self.waiting.remove(&self.due) {
                merge(&mut self.sum, pass)?;
                self.due = (slice, piece + 1);
            } else if self.pieces.get(&slice) == Some(&piece) {
                self.due = (slice + 1, 0);
            } else {
                return Ok(());
            }
        }
    }

    fn note(&mut self, slice: usize, work: ScanStats) {
        self.works.entry(slice).or_default().add(work);
    }
}

impl<'p> WorkQueue<'_, 'p> {
    /// The next task in order; waits while a worker may be about to cut a slice into morsels. `None` if nothing is
    /// left.
    fn take(&self) -> Result<Option<ScanTask>> {
        let mut state = self.state.lock();
        loop {
            if state.failed {
                return Ok(None);
            }
            while let Some(cut) = state.cuts.front_mut() {
                if let Some(piece) = cut.next(&self.sharing)? {
                    let (slice, number, way) = (cut.slice, cut.taken - 1, cut.way.clone());
                    return Ok(Some(ScanTask::Piece { slice, number, way, piece }));
                }
                let (slice, pieces) = (cut.slice, cut.taken);
                state.cuts.pop_front();
                state.pieces.insert(slice, pieces);
                state.merge_due()?;
                self.progress.notify_all();
            }
            if state.next < self.slices.len() {
                state.next += 1;
                state.in_question += 1;
                return Ok(Some(ScanTask::Slice(state.next - 1)));
            }
            if state.in_question == 0 {
                return Ok(None);
            }
            self.progress.wait(&mut state);
        }
    }

    /// The slice is long: idle workers take morsels of it.
    fn cut(&self, slice: usize, way: PlannedSlice) {
        let mut state = self.state.lock();
        let at = state.cuts.partition_point(|cut| cut.slice < slice);
        state.cuts.insert(at, MorselSource { slice, way: Arc::new(way), taken: 0, upto: 0 });
        self.answered(&mut state);
    }

    /// The worker that planned the slice scans it as one morsel.
    fn keep_whole(&self, slice: usize) {
        let mut state = self.state.lock();
        state.pieces.insert(slice, 1);
        self.answered(&mut state);
    }

    fn answered(&self, state: &mut QueueState<'p>) {
        state.in_question -= 1;
        self.progress.notify_all();
    }

    /// The statistics of failed work count, too.
    fn add(&self, slice: usize, number: usize, pass: Result<RowPipeline<'p>>, work: ScanStats) -> Result<()> {
        let mut state = self.state.lock();
        state.note(slice, work);
        let pass = pass?;
        // The worker with the next morsel to merge never waits; then it takes the next task in order.
        while state.due != (slice, number) && state.waiting.len() > cores() && !state.failed {
            self.progress.wait(&mut state);
        }
        state.waiting.insert((slice, number), pass);
        state.merge_due()?;
        self.progress.notify_all();
        Ok(())
    }

    /// If the work fails or panics, no other worker waits for its result.
    fn during(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let unfinished = FailOnDrop(self);
        work()?;
        std::mem::forget(unfinished);
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
    pub(super) fn is_long(&self, way: &PlannedSlice) -> bool {
        self.relevant.is_none() && way.is_long(&self.job.sharing)
    }

    /// Merges slices into the result so far, on several threads. The first slice is planned, and `work` is what that
    /// took. Returns the result and the statistics of each slice.
    pub(super) fn on_threads(
        &self,
        sum: Option<RowPipeline<'p>>,
        slices: &[PartitionSlice],
        first: PlannedSlice,
        work: ScanStats,
    ) -> (Result<RowPipeline<'p>>, BTreeMap<usize, ScanStats>) {
        let threads = if self.is_long(&first) { cores() } else { cores().min(slices.len()) };
        let state = QueueState { next: 1, in_question: 1, sum, ..QueueState::default() };
        let (state, progress) = (Mutex::new(state), Condvar::new());
        let table = WorkQueue { slices, sharing: self.job.sharing, state, progress };
        let first = Mutex::new(Some((first, work)));
        let run = || {
            let taken = first.lock().take();
            if let (Some((way, work)), Some(slice)) = (taken, slices.first()) {
                self.along(&table, 0, slice, way, work)?;
            }
            while let Some(task) = table.take()? {
                self.task(&table, task)?;
            }
            Ok(())
        };
        let done = on_threads(threads, || table.during(run));
        let QueueState { sum, works, .. } = table.state.into_inner();
        (done.map(|()| sum.unwrap_or_else(|| self.pass())), works)
    }

    fn task(&self, table: &WorkQueue<'_, 'p>, task: ScanTask) -> Result<()> {
        let mut work = ScanStats::default();
        match task {
            ScanTask::Slice(at) => {
                let Some(slice) = table.slices.get(at) else { return Ok(()) };
                match self.way(slice, &mut work) {
                    Ok(way) => self.along(table, at, slice, way, work),
                    Err(error) => table.add(at, 0, Err(error), work),
                }
            }
            ScanTask::Piece { slice: at, number, way, piece } => {
                let Some(slice) = table.slices.get(at) else { return Ok(()) };
                let pass = self.piece(slice, &way, &piece, &mut work);
                table.add(at, number, pass, work)
            }
        }
    }

    /// Cuts a planned slice into morsels, or scans it here.
    fn along(
        &self,
        table: &WorkQueue<'_, 'p>,
        at: usize,
        slice: &PartitionSlice,
        way: PlannedSlice,
        mut work: ScanStats,
    ) -> Result<()> {
        if self.is_long(&way) {
            table.cut(at, way);
            table.state.lock().note(at, work);
            return Ok(());
        }
        table.keep_whole(at);
        let pass = self.slice(slice, way, &mut work);
        table.add(at, 0, pass, work)
    }

    fn piece(
        &self,
        slice: &PartitionSlice,
        way: &PlannedSlice,
        piece: &Morsel,
        work: &mut ScanStats,
    ) -> Result<RowPipeline<'p>> {
        self.job.budget.check()?;
        let mut pass = self.pass();
        self.feeder(way, slice, &[]).run_piece(&way.choice, piece, &mut pass, work)?;
        Ok(pass)
    }
}

fn on_threads(threads: usize, run: impl Fn() -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| waiting_here(&run))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            worker.join().unwrap_or_else(|_| Err(Error::internal("a query stopped unexpectedly")))
        };
        workers.into_iter().map(join).collect::<Result<Vec<()>>>().map(|_| ())
    })
}
