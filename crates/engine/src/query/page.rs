//! One page.
//!
//! Rows in order of arrival come from one slice after the other. Everything else needs to see all slices: they
//! are read at the same time, one thread each as far as there are cores, and merged.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Atomic};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pleiad_model::env::Env;
use pleiad_model::partition_key::KeyRange;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Kind, Result};
use pleiad_query::access::{self, Condition, OrderPath};
use pleiad_query::block::{Block, Output};
use pleiad_query::compile::{Bind, compile};
use pleiad_query::expr::{Context, Room};
use pleiad_query::language::ast::Select;
use pleiad_query::language::print::print;
use pleiad_query::run::{self, Feeding, Finished, PageSize, Pass, RowSet, Start};
use pleiad_query::{Parameters, check};
use pleiad_storage::waiting_here;
use tokio::runtime::Handle;

use super::choose::{Choice, Ordering, Question, choose, ordering};
use super::cursor::{At, QueryCursor, Stretch, WHOLE_ITEM};
use super::feed::{Ended, Feed, KeyPath};
use super::find::Finder;
use super::reach::{self, Slice, next_slice, slices};
use super::reader::Reader;
use super::report::{Report, Work};
use super::tab::Tab;
use crate::answer::{Answer, Place, place};
use crate::item::SCHEMA_CHANGES_MAX;
use crate::list::ListScope;
use crate::meter::Meter;
use crate::session::SessionToken;
use crate::{Admitted, Container, ContainerName, Engine};

/// A query as a client sends it.
pub struct ItemQuery {
    pub text: String,
    pub parameters: Parameters,
    pub scope: ListScope,
    pub across: Across,
    pub size: PageSize,
    pub from: Option<QueryCursor>,
    /// Which indexes were used, and which would have helped, is asked for.
    pub explain: bool,
    /// `ORDER BY` without an index may sort.
    pub enable_scan: bool,
}

/// What to do when no key is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    Forbidden,
    /// The client merges what needs merging.
    ByClient,
    /// We do.
    ByServer,
}

#[derive(Debug)]
pub struct QueryPage {
    pub rows: RowSet,
    pub next: Option<QueryCursor>,
    pub report: Report,
}

/// What a page may take before it ends short.
const PAGE_MS: u64 = 5_000;
/// What may be built for one row.
const ROW_BYTES_MAX: usize = 64 << 20;

/// How many queries run at the same time; others wait their turn. More than there are cores, because some wait for
/// the disk.
pub(crate) fn at_once() -> usize {
    cores().saturating_mul(8).max(16)
}

/// Whether a page may go on.
pub struct Budget {
    env: Arc<dyn Env>,
    deadline_ms: u64,
    abandoned: Arc<AtomicBool>,
}

impl Budget {
    /// Time is up: a page can end here.
    pub fn is_over(&self) -> Result<bool> {
        self.check()?;
        Ok(self.env.now_ms() >= self.deadline_ms)
    }

    /// Nobody waits any more.
    pub fn check(&self) -> Result<()> {
        match self.abandoned.load(Atomic::Relaxed) {
            true => Err(Error::unavailable("the client went away")),
            false => Ok(()),
        }
    }
}

/// Says so when the request is dropped before it is answered.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Atomic::Relaxed);
    }
}

impl Engine {
    /// A page that was planned just before the indexing policy was replaced is planned again.
    pub async fn query_items(
        &self,
        at: &Admitted,
        query: ItemQuery,
        session: Option<&SessionToken>,
    ) -> Answer<QueryPage> {
        let query = Arc::new(query);
        let mut at = at.clone();
        for _ in 0..SCHEMA_CHANGES_MAX {
            let answer = self.query_under(&at, &query, session).await;
            if !matches!(&answer.result, Err(Error { kind: Kind::Moved { .. }, .. })) {
                return answer;
            }
            self.catalog.settled().await;
            match self.admit(ContainerName::Rid(at.container.rid), None) {
                Ok(newer) if newer.container.schema.version != at.container.schema.version => {
                    at = newer.in_class(at.class);
                }
                _ => return answer,
            }
        }
        Answer::refused(Error::new(Kind::RetryWith, "The indexing policy is changing all the time. Try again."))
    }

    async fn query_under(
        &self,
        at: &Admitted,
        query: &Arc<ItemQuery>,
        session: Option<&SessionToken>,
    ) -> Answer<QueryPage> {
        // It goes with the work, which a client that leaves does not end at once. Closed by nobody.
        let permit = self.query_permits.clone().acquire_owned().await;
        let abandoned = Arc::new(AtomicBool::new(false));
        let waiting = Waiting(abandoned.clone());
        let budget = Budget { env: self.env.clone(), deadline_ms: self.now_ms() + PAGE_MS, abandoned };
        let job = Job {
            at: at.clone(),
            meter: self.meter.clone(),
            query: query.clone(),
            session: session.cloned(),
            budget,
            started_ms: self.now_ms(),
            handle: Handle::current(),
        };
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            waiting_here(|| job.run())
        });
        let done = done.await;
        drop(waiting);
        done.unwrap_or_else(|_| Answer::refused(Error::internal("a query stopped unexpectedly")))
    }
}

/// One page's work, on a thread that may wait.
struct Job {
    at: Admitted,
    meter: Meter,
    query: Arc<ItemQuery>,
    session: Option<SessionToken>,
    budget: Budget,
    started_ms: u64,
    handle: Handle,
}

/// What every slice of a page is read with.
struct Shared<'p> {
    job: &'p Job,
    container: &'p Container,
    block: &'p Block,
    condition: Option<Condition<'p>>,
    order: Vec<OrderPath>,
    keys: Vec<KeyPath>,
    ordering: Ordering,
    start: Start,
}

impl Job {
    fn run(self) -> Answer<QueryPage> {
        let mut places = Vec::new();
        let mut tab = Tab::default();
        let answer = match self.page(&mut places, &mut tab) {
            Ok(page) => {
                let charge_ru = tab.pay(&self.meter, page.rows.bytes());
                Answer::priced(Ok(page), charge_ru)
            }
            Err(error) => Answer::refused(error),
        };
        match places.last() {
            Some(place) => answer.at(*place),
            None => answer,
        }
    }

    fn page(&self, places: &mut Vec<Place>, tab: &mut Tab) -> Result<QueryPage> {
        let mut work = Work::default();
        let container = &*self.at.container;
        let bind = Bind {
            parameters: &self.query.parameters,
            geospatial: container.definition.geospatial,
            started_ms: Some(self.started_ms),
        };
        let select = check::read(&self.query.text)?;
        check::check_parameters(&select, bind.parameters, &self.query.text)?;
        let block = compile(&select, &self.query.text, bind)?;
        let fingerprint = self.fingerprint(&select);
        let plan = reach::plan(&self.at, &self.query.scope, &select, bind, self.query.across)?;
        let cursor = match &self.query.from {
            Some(cursor) if cursor.query != fingerprint => return Err(other_query()),
            Some(cursor) => cursor.clone(),
            None => QueryCursor {
                query: fingerprint,
                skip: block.offset,
                take: block.take,
                passed: 0,
                at: At::Stretches(plan.stretches.iter().cloned().map(Stretch::whole).collect()),
            },
        };
        let order = access::order_paths(&block);
        let usable = container.schema.usable_index();
        let ordering = ordering(&block, order.as_deref(), usable, self.query.enable_scan)?;
        let shared = Shared {
            job: self,
            container,
            block: &block,
            condition: access::condition(&block),
            keys: KeyPath::of(order.as_deref().unwrap_or_default()),
            order: order.unwrap_or_default(),
            ordering,
            start: cursor.start(),
        };
        let stretches = match &cursor.at {
            At::Stretches(stretches) if self.query.from.is_some() => left(&plan.stretches, stretches)?,
            _ => plan.stretches.iter().cloned().map(Stretch::whole).collect(),
        };
        let (finished, next) = if !block.reads_items {
            shared.nothing()?
        } else if is_stream(&block) {
            shared.stream(stretches, places, tab, &mut work)?
        } else {
            let finished = shared.merged(slices(container, stretches), places, tab, &mut work)?;
            let next = finished.next.as_ref().map(next_at);
            (finished, next)
        };
        let next = next.zip(finished.next).map(|(at, start)| QueryCursor {
            query: fingerprint,
            skip: start.skip,
            take: start.take,
            passed: cursor.passed + cursor.skip.saturating_sub(start.skip) + finished.rows.len() as u64,
            at,
        });
        let report = Report::new(&work, &finished.rows);
        if !self.query.explain {
            return Ok(QueryPage { rows: finished.rows, next, report });
        }
        let condition = shared.condition.as_ref();
        let report = report.with_indexes(condition, &shared.order, &shared.ordering, usable);
        let report = match &container.schema.key {
            Some(key) if plan.is_one_key => report.with_keys(key.paths.iter().map(|path| path.as_str())),
            _ => report,
        };
        Ok(QueryPage { rows: finished.rows, next, report })
    }

    /// Tells queries apart; a cursor of one is of no use to another.
    fn fingerprint(&self, select: &Select) -> u64 {
        let mut hasher = Fingerprint(FNV_BASIS);
        match select.order_by {
            // A client that resumes a sorted query narrows its filter. The cursor is a key: it means the same.
            Some(_) => print(&Select { filter: None, ..select.clone() }).hash(&mut hasher),
            None => self.query.text.hash(&mut hasher),
        }
        self.query.parameters.hash(&mut hasher);
        self.at.container.rid.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// FNV-1a. Not the standard library's, which may change with the compiler: a token outlives the program that issued it.
struct Fingerprint(u64);

const FNV_BASIS: u64 = 0xCBF2_9CE4_8422_2325;

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn other_query() -> Error {
    Error::invalid("The continuation token belongs to another query: start again without it.")
}

/// What is left to read: the stretches in progress, then whatever the query may read behind them. A cursor from
/// elsewhere must lie within that.
fn left(allowed: &[KeyRange], progress: &[Stretch]) -> Result<Vec<Stretch>> {
    let Some(last) = progress.last() else { return Ok(Vec::new()) };
    let inside =
        |stretch: &Stretch| allowed.iter().any(|range| range.min <= stretch.keys.min && stretch.keys.max <= range.max);
    if !progress.iter().all(inside) {
        return Err(other_query());
    }
    let behind = allowed.iter().filter(|range| range.max > last.keys.max).map(|range| {
        let min = range.min.clone().max(last.keys.max.clone());
        Stretch::whole(KeyRange { min, max: range.max.clone() })
    });
    Ok(progress.iter().cloned().chain(behind).collect())
}

fn is_stream(block: &Block) -> bool {
    matches!(block.output, Output::Rows(_)) && !block.distinct && block.order.is_empty()
}

fn next_at(start: &Start) -> At {
    match &start.at {
        run::At::Key(key) => At::Key(key.clone()),
        run::At::Row(rows) => At::Row(*rows),
        // A page that passed over rows and gave none, from the beginning.
        run::At::Beginning | run::At::Item { .. } => At::Row(0),
    }
}

impl<'p> Shared<'p> {
    fn context(&self) -> Context<'p> {
        Context {
            env: self.job.budget.env.as_ref(),
            started_ms: self.job.started_ms,
            geospatial: self.geospatial(),
            user_functions: None,
            room: Room::new(ROW_BYTES_MAX),
        }
    }

    fn geospatial(&self) -> Geospatial {
        self.container.definition.geospatial
    }

    fn pass(&self) -> Pass<'p> {
        let keep_undefined = match &self.ordering {
            Ordering::Path { keep_undefined, .. } => *keep_undefined,
            _ => false,
        };
        let feeding = Feeding { keep_undefined };
        Pass::new(self.block, self.context(), self.start.clone(), self.job.query.size, feeding)
    }

    /// About how many rows a slice has to give.
    fn wanted(&self) -> usize {
        let page = self.job.query.size.rows.saturating_add(1);
        let take = self.start.take.map_or(usize::MAX, |take| usize::try_from(take).unwrap_or(usize::MAX));
        page.min(take).saturating_add(usize::try_from(self.start.skip).unwrap_or(usize::MAX))
    }

    /// A query that reads no items is run from the beginning for every page: its rows come from its own text.
    fn nothing(&self) -> Result<(Finished, Option<At>)> {
        let mut pass = self.pass();
        pass.nothing()?;
        let Finished { rows, next } = pass.finish(None)?;
        let given = rows.len() as u64;
        let next = next.map(|_| Start {
            skip: self.start.skip + given,
            take: self.start.take.map(|take| take.saturating_sub(given)),
            at: run::At::Beginning,
        });
        let at = next.as_ref().map(|_| At::Row(0));
        Ok((Finished { rows, next }, at))
    }

    fn stream(
        &self,
        stretches: Vec<Stretch>,
        places: &mut Vec<Place>,
        tab: &mut Tab,
        work: &mut Work,
    ) -> Result<(Finished, Option<At>)> {
        let mut left = VecDeque::from(stretches);
        let mut pass = self.pass();
        while let Some((slice, stretch)) = next_slice(self.container, &mut left) {
            let is_first = tab.is_empty();
            let ended = match self.enter(&slice, tab) {
                Ok(place) => {
                    places.push(place);
                    self.read(&slice, &stretch, &mut pass, tab, work)?
                }
                // What is there is given; the next page asks this partition again.
                Err(Error { kind: Kind::Throttled { .. }, .. }) if !is_first => Ended::Throttled,
                Err(error) => return Err(error),
            };
            let (stretch, interrupted) = match ended {
                Ended::Throttled => {
                    let at = run::At::Item { docnum: stretch.docnum, rows: stretch.rows };
                    (stretch, Some(at))
                }
                Ended::Exhausted if !self.job.budget.is_over()? => continue,
                // The next page begins with the next slice: however little time it has, it gets somewhere.
                Ended::Exhausted => match left.pop_front() {
                    Some(Stretch { keys, docnum, rows }) => {
                        (Stretch { keys, docnum, rows }, Some(run::At::Item { docnum, rows }))
                    }
                    None => continue,
                },
                Ended::Interrupted(docnum) => (stretch, Some(run::At::Item { docnum, rows: WHOLE_ITEM })),
                Ended::Enough | Ended::Unordered => (stretch, None),
            };
            let finished = pass.finish(interrupted)?;
            let next = finished.next.as_ref().map(|start| stopped(start, stretch, left));
            return Ok((finished, next));
        }
        Ok((pass.finish(None)?, None))
    }

    fn read(
        &self,
        slice: &Slice,
        stretch: &Stretch,
        pass: &mut Pass<'_>,
        tab: &mut Tab,
        work: &mut Work,
    ) -> Result<Ended> {
        let mut here = Work::default();
        let way = self.choose(slice, stretch.after(), false, &mut here)?;
        pass.resume(stretch.docnum, stretch.rows);
        let ended = self.feed(&way, slice, stretch.after(), pass, &mut here)?;
        tab.read(tab.last(), &here);
        work.add(here);
        Ok(ended)
    }

    /// All slices into one page. What is soon done is done here; the rest on as many threads as there are cores.
    /// All of them or none: a page that lacks one partition's rows cannot be merged.
    fn merged(&self, slices: Vec<Slice>, places: &mut Vec<Place>, tab: &mut Tab, work: &mut Work) -> Result<Finished> {
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
            let mut here = Work::default();
            let way = self.way(slice, &mut here)?;
            spent_us += way.us;
            if spent_us > ALONE_US_MAX && at + 1 < slices.len() {
                return self.on_threads(sum, &slices, at, tab, work)?.finish(None);
            }
            self.add(&mut sum, slice, way, &mut here)?;
            tab.read(at, &here);
            work.add(here);
        }
        sum.unwrap_or_else(|| self.pass()).finish(None)
    }

    fn add(&self, sum: &mut Option<Pass<'p>>, slice: &Slice, way: Way, work: &mut Work) -> Result<()> {
        match sum {
            Some(pass) if pass.takes_more() => self.fill(pass, slice, way, work),
            _ => merge(sum, self.slice(slice, way, work)?),
        }
    }

    fn on_threads(
        &self,
        sum: Option<Pass<'p>>,
        slices: &[Slice],
        from: usize,
        tab: &mut Tab,
        work: &mut Work,
    ) -> Result<Pass<'p>> {
        let slices = slices.get(from..).unwrap_or_default();
        let next = AtomicUsize::new(0);
        let sum = Mutex::new(Sum { pass: sum, ..Sum::default() });
        on_threads(cores().min(slices.len()), || {
            loop {
                let at = next.fetch_add(1, Atomic::Relaxed);
                let Some(slice) = slices.get(at) else { return Ok(()) };
                let mut work = Work::default();
                let way = self.way(slice, &mut work)?;
                let pass = self.slice(slice, way, &mut work)?;
                sum.lock().add(at, pass, work)?;
            }
        })?;
        let sum = sum.into_inner();
        for (at, here) in sum.works {
            tab.read(from + at, &here);
            work.add(here);
        }
        Ok(sum.pass.unwrap_or_else(|| self.pass()))
    }

    /// How the items of a slice that is merged with others are come by.
    fn way(&self, slice: &Slice, work: &mut Work) -> Result<Way> {
        if self.block.only_counts() {
            let reader = self.open(slice)?;
            if let Some(items) = reader.count(slice)? {
                let choice = Choice::Count(items);
                work.chose(slice.partition.range.id, &choice);
                return Ok(Way { choice, us: 0.0, reader });
            }
        }
        // Each row once, in order, means to look at all of them anyway.
        self.choose(slice, 0, !self.block.distinct, work)
    }

    fn slice(&self, slice: &Slice, way: Way, work: &mut Work) -> Result<Pass<'p>> {
        let mut pass = self.pass();
        self.fill(&mut pass, slice, way, work)?;
        Ok(pass)
    }

    fn fill(&self, pass: &mut Pass<'p>, slice: &Slice, way: Way, work: &mut Work) -> Result<()> {
        pass.expect_order(matches!(way.choice, Choice::Walk(_)));
        if self.feed(&way, slice, 0, pass, work)? == Ended::Unordered {
            // What was met already is met again, and is the same row.
            pass.expect_order(false);
            let way = self.choose(slice, 0, false, work)?;
            self.feed(&way, slice, 0, pass, work)?;
        }
        Ok(())
    }

    /// Taken before the partition is read, so that the token never promises more than was seen.
    fn enter(&self, slice: &Slice, tab: &mut Tab) -> Result<Place> {
        let place = place(&slice.partition);
        self.job.session.as_ref().map_or(Ok(()), |session| session.check(&slice.partition))?;
        tab.enter(&self.job.meter, &self.job.at, &slice.partition)?;
        Ok(place)
    }

    fn open(&self, slice: &Slice) -> Result<Reader> {
        Reader::open(slice, &self.container.schema, &self.job.handle)
    }

    fn choose(&self, slice: &Slice, after: u64, may_walk: bool, work: &mut Work) -> Result<Way> {
        let reader = self.open(slice)?;
        let context = self.context();
        let (choice, us) = {
            let index = self.container.schema.usable_index();
            let finder = Finder::new(&reader, index, &context, &self.job.budget);
            let (condition, size) = (self.condition.as_ref(), self.job.query.size);
            let (ordering, start) = (&self.ordering, &self.start);
            let question = Question { slice, condition, ordering, start, size, may_walk, after };
            choose(&finder, &question)?
        };
        work.chose(slice.partition.range.id, &choice);
        Ok(Way { choice, us, reader })
    }

    fn feed(&self, way: &Way, slice: &Slice, after: u64, pass: &mut Pass<'_>, work: &mut Work) -> Result<Ended> {
        let feed = Feed {
            reader: &way.reader,
            slice,
            container: self.container.rid,
            budget: &self.job.budget,
            order: &self.keys,
            wanted: self.wanted(),
            may_end_early: is_stream(self.block),
        };
        feed.run(&way.choice, after, pass, work)
    }
}

/// A way to the items of a slice, and about how long it is.
struct Way {
    choice: Choice,
    us: f64,
    reader: Reader,
}

/// More than this is worth another thread.
const ALONE_US_MAX: f64 = 2_000.0;

/// Asked once: the answer is in files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// What the slices gave so far. They are merged in their own order, whichever is ready first: lists and sums of
/// fractions depend on it.
#[derive(Default)]
struct Sum<'p> {
    pass: Option<Pass<'p>>,
    works: Vec<(usize, Work)>,
    merged: usize,
    waiting: BTreeMap<usize, Pass<'p>>,
}

impl<'p> Sum<'p> {
    fn add(&mut self, at: usize, pass: Pass<'p>, work: Work) -> Result<()> {
        self.works.push((at, work));
        self.waiting.insert(at, pass);
        while let Some(pass) = self.waiting.remove(&self.merged) {
            self.merged += 1;
            merge(&mut self.pass, pass)?;
        }
        Ok(())
    }
}

fn merge<'p>(sum: &mut Option<Pass<'p>>, pass: Pass<'p>) -> Result<()> {
    match sum {
        Some(sum) => sum.merge(pass),
        none => {
            *none = Some(pass);
            Ok(())
        }
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

/// What is in progress after a page: the rest of this slice, and stretches that were begun before it was split off.
fn stopped(start: &Start, stretch: Stretch, left: VecDeque<Stretch>) -> At {
    let (docnum, rows) = match start.at {
        run::At::Item { docnum, rows } => (docnum, rows),
        _ => (stretch.docnum, stretch.rows),
    };
    let begun = left.into_iter().take_while(|stretch| stretch.docnum > 0);
    At::Stretches(std::iter::once(Stretch { docnum, rows, ..stretch }).chain(begun).collect())
}
