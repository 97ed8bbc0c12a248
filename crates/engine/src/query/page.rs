//! One result page: compiles a query to a block, runs the block, and turns the position where the rows end into a
//! cursor.
//!
//! A page runs on a blocking thread, unless it is short and all of its data is in memory. `merge` produces the rows.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pleiad_model::env::Env;
use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::{Error, Fact, Kind, Result};
use pleiad_partition::price;
use pleiad_sql::advice::{Advice, advice};
use pleiad_sql::block::Block;
use pleiad_sql::compile::BindContext;
use pleiad_sql::derived_table::split_derived_table;
use pleiad_sql::expr::{Context, Interrupt, MemoryBudget, UserFunctions};
use pleiad_sql::index_predicate;
use pleiad_sql::parse::ast::Select;
use pleiad_sql::parse::print::print;
use pleiad_sql::query_plan::{ComponentFormat, Hybrid};
use pleiad_sql::rank::is_component_query;
use pleiad_sql::run::{self, PageSize, PageStart, ResumeFilter, RowSet};
use pleiad_sql::{Parameters, check};
use pleiad_storage::Blocking;
use tokio::runtime::Handle;

use super::cursor::{CursorBinding, CursorPosition, QueryCursor, RangeCursor, is_within, overlaps, remaining, stretch};
use super::functions::UserDefinedFunctions;
use super::merge::{PageExecutor, cores, is_stream};
use super::page_cost::PageCost;
use super::page_thread::PageThread;
use super::parallel::Parallelism;
use super::planner::order_strategy;
use super::reader::TransactionSnapshot;
use super::report::{IndexNeeds, QueryReport, ScanStats};
use super::route::{self, slices};
use super::scan::KeyPath;
use super::statement_cache::{self, Statement};
use super::stop::{PageRetry, Stop};
use crate::catalog::CONTAINER_CHANGES_MAX;
use crate::feed::FeedRange;
use crate::meter::Meter;
use crate::response::{EngineResponse, PartitionLsn};
use crate::script_runtime::Interpreters;
use crate::session::SessionToken;
use crate::{Action, Admitted, Engine};

/// A query as a client sends it.
pub struct ItemQuery {
    pub text: String,
    pub parameters: Parameters,
    pub scope: FeedRange,
    pub cross_partition: CrossPartition,
    pub size: PageSize,
    pub from: Option<QueryCursor>,
    /// For a query with `ORDER BY`: the rows begin at this position, or at the cursor if that is later.
    pub resume: Option<ResumeFilter>,
    pub report: ReportOptions,
    /// `ORDER BY` without an index may sort.
    pub enable_scan: bool,
}

/// What to report beside the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// Which indexes were used, and which would have helped.
    pub indexes: bool,
    /// Timings. Measuring them takes a little longer.
    pub times: bool,
    /// Advice on how to write the query better.
    pub advice: bool,
}

/// What to do if the query is not restricted to one partition key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossPartition {
    Forbidden,
    /// The client merges the results of the partitions.
    ByClient(PageReach),
    /// The server merges them.
    ByServer,
}

/// How much a page reads of a cross-partition query that needs no merging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageReach {
    /// One partition: the page may be short or empty, although others follow.
    Partition,
    /// As many partitions as it takes to fill the page.
    Container,
}

#[derive(Debug)]
pub struct QueryPage {
    pub rows: RowSet,
    pub next: Option<QueryCursor>,
    pub report: QueryReport,
}

/// The time after which a page ends early.
const EARLY_END_MS: u64 = 5_000;
/// A longer query takes a while to parse: it runs on a blocking thread.
const SHORT_TEXT_BYTES: usize = 4 << 10;
/// The memory limit for building one row.
const ROW_BYTES_MAX: usize = 64 << 20;

/// All rows, for another query that reads them, as long as they fit into this much memory.
pub(super) const MATERIALIZED: PageSize = PageSize { rows: usize::MAX, bytes: 64 << 20 };

/// How many queries run at the same time; others wait for a permit. More than there are cores, because some wait for
/// the disk.
pub(crate) fn queries_max() -> usize {
    cores().saturating_mul(8).max(16)
}

/// Whether a page may continue: its time limits, and cancellation by the client.
#[derive(Clone)]
pub struct PageDeadline {
    env: Arc<dyn Env>,
    started_ms: u64,
    /// The request's deadline, for a page that must read all items before it has a row.
    deadline_ms: u64,
    flags: Arc<CancelFlags>,
}

/// Flags that all threads of a page see.
#[derive(Default)]
struct CancelFlags {
    /// The client no longer waits.
    abandoned: AtomicBool,
    /// The page's time had elapsed at the last check.
    late: AtomicBool,
}

impl PageDeadline {
    /// Starts the clock. Only a `CancelOnDrop` can cancel the page.
    pub fn begin(env: Arc<dyn Env>, at: &Admitted) -> PageDeadline {
        let (started_ms, deadline_ms) = (env.now_ms(), at.deadline_ms());
        PageDeadline { env, started_ms, deadline_ms, flags: Arc::default() }
    }

    /// Whether the time had elapsed at the last check, which may have been inside an item that takes long to evaluate.
    pub fn is_late(&self) -> bool {
        self.flags.late.load(Atomic::Relaxed)
    }

    /// Whether the time has elapsed: a page can end here.
    pub fn is_elapsed(&self) -> Result<bool> {
        self.check()?;
        Ok(self.spent_ms() >= EARLY_END_MS)
    }

    /// Fails if the client no longer waits, or has waited too long.
    pub fn check(&self) -> Result<()> {
        if self.flags.abandoned.load(Atomic::Relaxed) {
            return Err(Error::unavailable("the client went away"));
        }
        let now_ms = self.env.now_ms();
        if now_ms >= self.deadline_ms {
            return Err(Error::new(Kind::TimedOut, TOO_LONG));
        }
        if now_ms.saturating_sub(self.started_ms) >= EARLY_END_MS {
            self.flags.late.store(true, Atomic::Relaxed);
        }
        Ok(())
    }

    fn spent_ms(&self) -> u64 {
        self.env.now_ms().saturating_sub(self.started_ms)
    }
}

impl Interrupt for PageDeadline {
    fn check(&self) -> Result<()> {
        PageDeadline::check(self)
    }
}

const TOO_LONG: &str = "The query ran for a minute without an end: it has to see all of its items before it has a row. Narrow its filter, \
    index what it filters and sorts by, or ask for one partition key.";

/// Sets `abandoned` when it is dropped: when the page is finished or, before that, when the client disconnects.
struct CancelOnDrop(Arc<CancelFlags>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Atomic::Relaxed);
    }
}

impl Engine {
    /// Executes one page. A page that is outdated, because the indexing policy was replaced after it was planned or
    /// because its snapshot is too old, is planned again with the current catalog.
    pub async fn query_items(
        &self,
        at: &Admitted,
        query: ItemQuery,
        session: Option<&SessionToken>,
    ) -> EngineResponse<QueryPage> {
        if let Err(error) = at.check(Action::ExecuteQuery) {
            return EngineResponse::failed(error);
        }
        let query = Arc::new(query);
        let mut at = at.clone();
        for _ in 0..CONTAINER_CHANGES_MAX {
            if let Ok(answer) = self.run_page(&at, &query, session).await {
                return answer;
            }
            self.catalog.wait_for_changes().await;
            at = match self.current_container(&at) {
                Ok(newer) => at.at(newer),
                Err(error) => return EngineResponse::failed(error),
            };
        }
        EngineResponse::failed(Fact::ContainerChanging.into())
    }

    /// Inline if the page is short and all of its data is in memory, otherwise on a blocking thread.
    async fn run_page(
        &self,
        at: &Admitted,
        query: &Arc<ItemQuery>,
        session: Option<&SessionToken>,
    ) -> Result<EngineResponse<QueryPage>, PageRetry> {
        let task = self.page_task(at, query, session);
        let cancel_on_drop = CancelOnDrop(task.deadline.flags.clone());
        if query.text.len() <= SHORT_TEXT_BYTES {
            match task.run(Blocking::Inline) {
                Err(PageRetry::WouldBlock) => {}
                done => return done,
            }
        }
        // The permit moves with the work, which may outlive the request of a client that disconnects. The semaphore is
        // never closed.
        let permit = self.query_permits.clone().acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            task.run(Blocking::Thread)
        });
        let done = done.await;
        drop(cancel_on_drop);
        done.unwrap_or_else(|_| Ok(EngineResponse::failed(Error::internal("a query stopped unexpectedly"))))
    }

    pub(super) fn page_task(&self, at: &Admitted, query: &Arc<ItemQuery>, session: Option<&SessionToken>) -> PageTask {
        PageTask {
            at: at.clone(),
            meter: self.meter.clone(),
            query: query.clone(),
            session: session.cloned(),
            deadline: PageDeadline::begin(self.env.clone(), at),
            scripts: self.scripts.clone(),
            functions: OnceLock::new(),
            started_ms: self.now_ms(),
            handle: Handle::current(),
            parallelism: self.catalog.limits().parallelism,
            transaction: None,
        }
    }
}

/// The work of one page.
pub(super) struct PageTask {
    pub at: Admitted,
    pub meter: Meter,
    pub query: Arc<ItemQuery>,
    pub session: Option<SessionToken>,
    pub deadline: PageDeadline,
    pub scripts: Interpreters,
    /// The user-defined functions that the text calls, looked up before the first row.
    pub functions: OnceLock<UserDefinedFunctions>,
    pub started_ms: u64,
    pub handle: Handle,
    pub parallelism: Parallelism,
    /// Set inside a transaction.
    pub transaction: Option<TransactionSnapshot>,
}

/// Which rows of a query to return.
#[derive(Clone, Copy)]
pub(super) struct PageRequest<'p> {
    pub thread: &'p PageThread,
    pub bind: BindContext<'p>,
    pub scope: &'p FeedRange,
    pub cross_partition: CrossPartition,
    pub from: Option<&'p QueryCursor>,
    pub resume: Option<&'p ResumeFilter>,
    pub size: PageSize,
    /// When parsing of the text began.
    pub began: Instant,
}

impl PageRequest<'_> {
    /// Rows that another query reads come from all partitions.
    fn reach(&self) -> PageReach {
        match self.cross_partition {
            _ if self.size.rows == MATERIALIZED.rows => PageReach::Container,
            CrossPartition::ByClient(reach) if *self.scope == FeedRange::Container => reach,
            _ => PageReach::Container,
        }
    }
}

impl PageTask {
    /// Runs the page on this thread, which `blocking` describes: `Thread` or `Inline`.
    pub(super) fn run(&self, blocking: Blocking) -> Result<EngineResponse<QueryPage>, PageRetry> {
        let thread = PageThread { runtime: self.handle.clone(), blocking };
        let mut lsns = Vec::new();
        let mut cost = PageCost::new(&self.meter, &self.at);
        let page = self.page(&thread, &mut lsns, &mut cost);
        let answer = match page.and_then(|page| self.admit_at_least_once(&thread, &mut cost).map(|()| page)) {
            Ok(mut page) => {
                page.report.advice = self.advice();
                let charge_ru = cost.settle(price::rows(page.rows.bytes()) + self.functions_ru());
                EngineResponse::priced(Ok(page), charge_ru)
            }
            Err(Stop::Retry(retry)) => {
                cost.cancel_from(0);
                return Err(retry);
            }
            Err(Stop::Failed(error)) => self.failed(error, cost),
        };
        Ok(match lsns.last() {
            Some(lsn) => answer.served_by(*lsn),
            None => answer,
        })
    }

    /// A page that reads no partition is charged at the container's first.
    fn admit_at_least_once(&self, thread: &PageThread, cost: &mut PageCost<'_>) -> Result<(), Stop> {
        if !cost.is_empty() || self.transaction.is_some() {
            return Ok(());
        }
        let position = thread.wait_for(cost.admit(self.at.container().partition(0)?))?;
        cost.add_work(position, &ScanStats::default());
        Ok(())
    }

    /// What was read before the failure is charged.
    fn failed(&self, error: Error, cost: PageCost<'_>) -> EngineResponse<QueryPage> {
        if cost.is_empty() {
            return EngineResponse::failed(error);
        }
        EngineResponse::priced(Err(error), cost.settle(self.functions_ru()))
    }

    fn page(
        &self,
        thread: &PageThread,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
    ) -> Result<QueryPage, Stop> {
        let bind = BindContext {
            parameters: &self.query.parameters,
            geospatial: self.at.container().definition.geospatial,
            embeddings: &self.at.container().definition.vector_embeddings,
            full_text: self.at.container().definition.full_text.as_ref(),
            started_ms: Some(self.started_ms),
        };
        let began = Instant::now();
        let statement = statement_cache::get_or_parse(&self.query.text)?;
        statement.log_unbound(bind.parameters, &self.at.container().definition.id);
        let select = &statement.select;
        let counts = check::check_parameters(select, bind.parameters, &self.query.text)?;
        self.find_functions(select, thread)?;
        // A client that fuses component queries reads no further than the first page of each.
        let size = if is_component_query(select) { MATERIALIZED } else { self.query.size };
        let (scope, cross_partition) = (&self.query.scope, self.query.cross_partition);
        let (from, resume) = (self.query.from.as_ref(), self.query.resume.as_ref());
        let page = PageRequest { thread, bind, scope, cross_partition, from, resume, size, began };
        if let Some(hybrid) = Hybrid::of(select, &self.query.text, bind, counts, ComponentFormat::Sorted)? {
            check_no_resume_filter(page)?;
            thread.check_may_block()?;
            return self.run_hybrid_search(&hybrid, select, page, lsns, cost);
        }
        match split_derived_table(select) {
            Some(stages) => {
                check_no_resume_filter(page)?;
                thread.check_may_block()?;
                self.run_derived_table(&stages, page, lsns, cost)
            }
            None => self.read(select, &*statement.block(&self.query.text, bind)?, page, lsns, cost),
        }
    }

    /// Advice comes with the first page only.
    fn advice(&self) -> Vec<Advice> {
        if !self.query.report.advice || self.query.from.is_some() || self.query.resume.is_some() {
            return Vec::new();
        }
        let of = |statement: Arc<Statement>| advice(&statement.select, &statement.unbound(&self.query.parameters));
        statement_cache::get_or_parse(&self.query.text).map_or(Vec::new(), of)
    }

    fn find_functions(&self, select: &Select, thread: &PageThread) -> Result<(), Stop> {
        let named = check::user_functions(select);
        if !named.is_empty() {
            thread.check_may_block()?; // scripts run on blocking threads only
            let found = UserDefinedFunctions::find(&named, self)?;
            self.functions.get_or_init(|| found);
        }
        Ok(())
    }

    /// The charge for the page's calls of user-defined functions so far.
    fn functions_ru(&self) -> f64 {
        self.functions.get().map_or(0.0, |functions| price::function_calls(functions.calls()))
    }

    /// A page of rows from the container's items.
    pub(super) fn read(
        &self,
        select: &Select,
        block: &Block,
        page: PageRequest<'_>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
    ) -> Result<QueryPage, Stop> {
        let mut work = ScanStats::default();
        let container = self.at.container();
        work.compiling = page.began.elapsed();
        if !block.is_simple() {
            page.thread.check_may_block()?;
        }
        let routed = route::routed_ranges(&self.at, page.scope, select, page.bind, page.cross_partition)?;
        let whole = || CursorPosition::Ranges(routed.ranges.iter().cloned().map(RangeCursor::whole).collect());
        let cursor = self.cursor(select, block, page.from, &routed.ranges, whole)?;
        let order = index_predicate::order_paths(block);
        let usable = container.schema.usable_index();
        let ordering = order_strategy(block, order.as_deref(), usable, self.query.enable_scan)?;
        let mut executor = PageExecutor {
            task: self,
            thread: page.thread,
            container,
            block,
            predicate: index_predicate::index_predicate(block),
            keys: KeyPath::of(order.as_deref().unwrap_or_default()),
            order: order.unwrap_or_default(),
            ordering,
            vector_order: index_predicate::vector_order(block),
            text_score: index_predicate::text_score_order(block),
            text_aggregates: index_predicate::text_aggregates(block),
            start: cursor.start(),
            size: page.size,
            reach: page.reach(),
            points: &routed.points,
        };
        executor.expand_resume_key(cost)?;
        if let Some(filter) = page.resume {
            executor.start.at = executor.start.at.max(filter.resume_key(block)?)?;
        }
        let cursors = match &cursor.at {
            CursorPosition::Ranges(cursors) if page.from.is_some() => {
                let of_key = routed.is_one_key || matches!(page.scope, FeedRange::PartitionKey(_));
                if of_key && !cursors.is_empty() && !overlaps(&routed.ranges, cursors) {
                    return Err(wrong_query_error().into());
                }
                remaining(&routed.ranges, cursors)
            }
            _ => routed.ranges.iter().cloned().map(RangeCursor::whole).collect(),
        };
        let (finished, next) = if !block.reads_items {
            executor.run_constant()?
        } else if is_stream(block) {
            executor.run_sequential(cursors, lsns, cost, &mut work)?
        } else {
            let finished = executor.run_merged(slices(container, &routed.points, cursors), lsns, cost, &mut work)?;
            let next = finished.next.as_ref().map(next_position);
            (finished, next)
        };
        let next = next.zip(finished.next).map(|(at, start)| QueryCursor {
            bound_to: self.binding(select, &routed.ranges),
            skip: start.skip,
            take: start.take,
            passed: cursor.passed + cursor.skip.saturating_sub(start.skip) + finished.rows.len() as u64,
            at,
        });
        let calling = self.functions.get().map_or(Duration::ZERO, UserDefinedFunctions::elapsed);
        let report = QueryReport { calling, ..QueryReport::new(&work, &finished.rows) };
        if !self.query.report.indexes {
            return Ok(QueryPage { rows: finished.rows, next, report });
        }
        let needs = IndexNeeds {
            predicate: executor.predicate.as_ref(),
            order: &executor.order,
            ordering: &executor.ordering,
            vector_order: executor.vector_order.as_ref(),
            text_score: executor.text_score.as_ref(),
            projected: &index_predicate::projected_predicates(block),
            groups: &index_predicate::group_paths(block),
        };
        let report = report.with_indexes(&work, &needs, usable);
        let report = match &container.schema.key {
            Some(key) if routed.is_one_key => report.with_keys(key.paths.iter().map(|path| path.as_str())),
            _ => report,
        };
        Ok(QueryPage { rows: finished.rows, next, report })
    }

    /// Where the page begins.
    pub(super) fn cursor(
        &self,
        select: &Select,
        block: &Block,
        from: Option<&QueryCursor>,
        requested: &[EpkRange],
        beginning: impl FnOnce() -> CursorPosition,
    ) -> Result<QueryCursor> {
        let Some(cursor) = from else {
            // The cursor is bound to the query when there is another page.
            let (bound_to, skip, take) = (CursorBinding::Item, block.offset, block.take);
            return Ok(QueryCursor { bound_to, skip, take, passed: 0, at: beginning() });
        };
        if cursor.bound_to == CursorBinding::Item {
            return after_item(block, cursor);
        }
        self.check_binding(cursor, select, requested)?;
        // Older sort keys hold arrays and objects in full, in another order than their hashes.
        if let (CursorBinding::QueryAndKey(_), CursorPosition::Key(key)) = (&cursor.bound_to, &cursor.at)
            && !key.is_scalar(block.order.iter().map(|by| by.descending))
        {
            return Err(Error::invalid(
                "Invalid Continuation Token: an earlier version of the server issued it, and it is a position among arrays or objects. Start again without it.",
            ));
        }
        Ok(cursor.clone())
    }

    /// A cursor is valid for its query over its stretch of the hash space, however a request names that, and over parts
    /// of it, such as the children of a split. A position that counts rows is not: a part has other rows.
    pub(super) fn check_binding(&self, cursor: &QueryCursor, select: &Select, requested: &[EpkRange]) -> Result<()> {
        let is_valid = match &cursor.bound_to {
            CursorBinding::QueryAndKey(fingerprint) => *fingerprint == self.fingerprint(select, self.query.scope.key()),
            CursorBinding::Query { fingerprint, stretch: of } => {
                *fingerprint == self.fingerprint(select, None)
                    && requested.iter().all(|range| is_within(range, of))
                    && (!matches!(cursor.at, CursorPosition::Row(_)) || is_within(of, &stretch(requested)))
            }
            CursorBinding::Item => false,
        };
        if is_valid { Ok(()) } else { Err(wrong_query_error()) }
    }

    /// Binds a cursor to this query over the requested ranges.
    pub(super) fn binding(&self, select: &Select, requested: &[EpkRange]) -> CursorBinding {
        CursorBinding::Query { fingerprint: self.fingerprint(select, None), stretch: stretch(requested) }
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            env: self.deadline.env.as_ref(),
            started_ms: self.started_ms,
            geospatial: self.at.container().definition.geospatial,
            user_functions: self.functions.get().map(|functions| functions as &dyn UserFunctions),
            memory: MemoryBudget::new(ROW_BYTES_MAX),
            interrupt: Some(&self.deadline),
        }
    }

    /// Identifies the query: a cursor of one query is invalid for another. Older cursors cover the partition key, too.
    fn fingerprint(&self, select: &Select, key: Option<&PartitionKey>) -> u64 {
        let mut hasher = Fingerprint(FNV_BASIS);
        match select.order_by {
            // A client that resumes a sorted query may narrow its filter. The cursor is a sort key and stays valid.
            Some(_) if select.group_by.is_empty() => {
                print(&Select { filter: None, ..select.clone() }).hash(&mut hasher)
            }
            _ => self.query.text.hash(&mut hasher),
        }
        self.query.parameters.hash(&mut hasher);
        if let Some(key) = key {
            key.to_json().hash(&mut hasher);
        }
        self.at.container().rid.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// FNV-1a. Not the standard library's hash, which may change with the compiler: a token outlives the program that
/// issued it.
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

/// Where a page begins after an item that a cursor of another server names.
fn after_item(block: &Block, cursor: &QueryCursor) -> Result<QueryCursor> {
    if !is_stream(block) || !block.reads_items || !block.sources.is_empty() {
        return Err(Error::invalid(
            "Invalid Continuation Token: it names an item, and this query cannot continue after an item. Start again without it.",
        ));
    }
    let skip = if cursor.passed == 0 { block.offset } else { 0 };
    let take = block.take.map(|take| take.saturating_sub(cursor.passed));
    Ok(QueryCursor { skip, take, ..cursor.clone() })
}

/// The rows of such a query have a rank or a number, but no sort keys that a client knows.
fn check_no_resume_filter(page: PageRequest<'_>) -> Result<()> {
    match page.resume {
        Some(_) => Err(run::not_resumable()),
        None => Ok(()),
    }
}

fn wrong_query_error() -> Error {
    Error::invalid("The continuation token belongs to another query: start again without it.")
}

fn next_position(start: &PageStart) -> CursorPosition {
    match &start.at {
        run::ResumePoint::Key(resume_key) => CursorPosition::Key(resume_key.clone()),
        run::ResumePoint::Row(rows) => CursorPosition::Row(*rows),
        // A page from the beginning that skipped rows and returned none.
        run::ResumePoint::Beginning | run::ResumePoint::Item { .. } => CursorPosition::Row(0),
    }
}
