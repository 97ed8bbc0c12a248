//! The slices of a page, on all cores.
//!
//! Promise: what comes out is what one thread would have made of the slices, one after the other. A long slice is cut in pieces where
//! its items say and never where threads happen to be, so that sums of fractions are the same on every machine.
//!
//! ```text
//! slices    0                1      2
//! pieces    0  1  2  3  4    0      0  1  2      taken and merged in this order
//! ```
//!
//! Who is free takes what is next; who is far ahead waits, so that few passes are held at once.

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

/// When a page is worked out on all cores, and in what pieces.
#[derive(Clone, Copy, Debug)]
pub struct Parallelism {
    /// Less than this is done by one.
    pub alone_us_max: f64,
    /// Item numbers in a piece of a scan.
    pub docnums: u64,
    /// Items in a piece of what an index found.
    pub found: usize,
}

impl Parallelism {
    pub const USUAL: Parallelism = Parallelism { alone_us_max: 1_000.0, docnums: 1 << 16, found: 4 << 10 };
}

/// A part of what a way leads to.
#[derive(Clone, Debug)]
pub enum Morsel {
    /// Of a scan: items behind a number, up to another.
    Docnums { after: u64, upto: u64 },
    /// Of a list, by place.
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

/// A slice that is taken piece by piece.
struct MorselSource {
    slice: usize,
    way: Arc<PlannedSlice>,
    /// Pieces that were taken, and up to which number, or place.
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

    /// Numbers have gaps, and some of them are wide: a piece begins with an item that is there.
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

/// What is to be done, and what came of it.
struct WorkQueue<'t, 'p> {
    slices: &'t [PartitionSlice],
    sharing: Parallelism,
    state: Mutex<QueueState<'p>>,
    progress: Condvar,
}

#[derive(Default)]
struct QueueState<'p> {
    /// The first slice that nobody has taken.
    next: usize,
    /// Slices of which somebody finds out whether they are long.
    in_question: usize,
    cuts: VecDeque<MorselSource>,
    sum: Option<RowPipeline<'p>>,
    /// The slice and the piece that are merged next.
    due: (usize, usize),
    /// How many pieces a slice has, once that is known.
    pieces: BTreeMap<usize, usize>,
    waiting: BTreeMap<(usize, usize), RowPipeline<'p>>,
    works: BTreeMap<usize, ScanStats>,
    /// There will be no sum.
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
    /// What is next in order; waits while somebody may be about to cut a slice. `None` when nothing is left.
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

    /// The slice is long: whoever is free takes a piece of it.
    fn cut(&self, slice: usize, way: PlannedSlice) {
        let mut state = self.state.lock();
        let at = state.cuts.partition_point(|cut| cut.slice < slice);
        state.cuts.insert(at, MorselSource { slice, way: Arc::new(way), taken: 0, upto: 0 });
        self.answered(&mut state);
    }

    /// The slice is done by who asked.
    fn keep_whole(&self, slice: usize) {
        let mut state = self.state.lock();
        state.pieces.insert(slice, 1);
        self.answered(&mut state);
    }

    fn answered(&self, state: &mut QueueState<'p>) {
        state.in_question -= 1;
        self.progress.notify_all();
    }

    /// Work that came to nothing was done all the same.
    fn add(&self, slice: usize, number: usize, pass: Result<RowPipeline<'p>>, work: ScanStats) -> Result<()> {
        let mut state = self.state.lock();
        state.note(slice, work);
        let pass = pass?;
        // Who has what is due never waits, and takes next what is due then.
        while state.due != (slice, number) && state.waiting.len() > cores() && !state.failed {
            self.progress.wait(&mut state);
        }
        state.waiting.insert((slice, number), pass);
        state.merge_due()?;
        self.progress.notify_all();
        Ok(())
    }

    /// If the work fails, or panics, nobody waits for its part.
    fn during(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let unfinished = FailOnDrop(self);
        work()?;
        std::mem::forget(unfinished);
        Ok(())
    }
}

/// Work that ends without its part of the sum.
struct FailOnDrop<'u, 't, 'p>(&'u WorkQueue<'t, 'p>);

impl Drop for FailOnDrop<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.state.lock().failed = true;
        self.0.progress.notify_all();
    }
}

impl<'p> PageExecutor<'p> {
    /// Whether others could help on this way. What has a score is found in a way of its own.
    pub(super) fn is_long(&self, way: &PlannedSlice) -> bool {
        self.relevant.is_none() && way.is_long(&self.job.sharing)
    }

    /// Adds slices to what there is; the way through the first is known, and what it took to know it. What was done in each
    /// comes with the sum.
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

    /// A slice whose way is known: cut, or done here.
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
