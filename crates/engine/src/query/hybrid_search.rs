//! Hybrid search: `ORDER BY RANK`, evaluated by the server: statistics of the whole container, one query for each
//! score, and rank fusion.
//!
//! The component queries are those that a client gets in its plan, so that both produce the same order. A later page
//! does all of it again and skips to its position, since nothing is stored between pages.

use pleiad_model::{Error, Kind, Result, Value, json};
use pleiad_sql::check;
use pleiad_sql::compile::compile;
use pleiad_sql::parse::ast::Select;
use pleiad_sql::query_plan::{GlobalStatistics, Hybrid, parse_scored_row};
use pleiad_sql::rank::{ScoredItem, fuse};
use pleiad_sql::run::{PageSize, RowSet};

use super::cursor::{CursorPosition, QueryCursor};
use super::page::{CrossPartition, MATERIALIZED, PageRequest, PageTask, QueryPage};
use super::page_cost::PageCost;
use super::report::QueryReport;
use super::route;
use super::stop::Stop;
use crate::feed::{self, FeedRange};
use crate::response::PartitionLsn;

impl PageTask {
    pub(super) fn run_hybrid_search(
        &self,
        hybrid: &Hybrid,
        select: &Select,
        page: PageRequest<'_>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
    ) -> Result<QueryPage, Stop> {
        // Only checks whether the query is allowed in this scope.
        route::routed_ranges(&self.at, page.scope, select, page.bind, page.cross_partition)?;
        let mut report = QueryReport::default();
        let mut run_query = |text: &str, scope: &FeedRange| {
            let (rows, query_report) = self.component(text, PageRequest { scope, ..page }, lsns, cost)?;
            report = std::mem::take(&mut report).and(query_report);
            Ok::<_, Stop>(rows)
        };
        let mut statistics = GlobalStatistics::default();
        if let Some(text) = hybrid.statistics_query() {
            run_query(text, self.statistics_scope())?.iter().try_for_each(|row| statistics.add(row))?;
        }
        let mut rows = Vec::new();
        for text in hybrid.component_queries(&statistics) {
            let found = run_query(&text, page.scope)?;
            rows.extend(found.iter().map(parse_scored_row).collect::<Result<Vec<ScoredItem>>>()?);
        }
        let fused = fuse(&hybrid.fusion_rules(), rows);
        let (rows, next) = self.window(hybrid, fused, select, page)?;
        Ok(QueryPage { report: report.with_rows(&rows), rows, next })
    }

    /// Statistics cover the whole container, whatever the scope of the query; a transaction sees only its partition.
    fn statistics_scope(&self) -> &FeedRange {
        if self.transaction.is_some() { &self.query.scope } else { &FeedRange::Container }
    }

    /// All rows of one component query, or of the statistics query.
    fn component(
        &self,
        text: &str,
        page: PageRequest<'_>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
    ) -> Result<(Vec<Value>, QueryReport), Stop> {
        let select = check::parse_and_check(text)?;
        let page = PageRequest { from: None, size: MATERIALIZED, cross_partition: CrossPartition::ByServer, ..page };
        let read = self.read(&select, &compile(&select, text, page.bind)?, page, lsns, cost)?;
        if read.next.is_some() {
            return Err(Error::new(Kind::TooLarge, TOO_MANY).into());
        }
        let rows = read.rows.iter().map(json::parse).collect::<Result<_>>()?;
        Ok((rows, read.report))
    }

    /// The page's part of the rows, and the cursor of the next page.
    fn window(
        &self,
        hybrid: &Hybrid,
        rows: Vec<ScoredItem>,
        select: &Select,
        page: PageRequest<'_>,
    ) -> Result<(RowSet, Option<QueryCursor>)> {
        let requested = [feed::resolve(&self.at, page.scope)?.keys];
        let passed = match page.from {
            None => 0,
            Some(cursor) => {
                self.check_binding(cursor, select, &requested)?;
                cursor.passed
            }
        };
        let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let (skip, take) = hybrid.window();
        let rows = rows.iter().skip(to_usize(skip)).take(take.map_or(usize::MAX, to_usize));
        let (returned, more) = fill_page(rows.skip(to_usize(passed)), page.size);
        let passed = passed + returned.len() as u64;
        let (bound_to, at) = (self.binding(select, &requested), CursorPosition::Row(passed));
        let next = more.then_some(QueryCursor { bound_to, skip: 0, take: None, passed, at });
        Ok((returned, next))
    }
}

/// As many rows as fit into a page, and whether others are left.
fn fill_page<'r>(rows: impl Iterator<Item = &'r ScoredItem>, size: PageSize) -> (RowSet, bool) {
    let mut page = RowSet::default();
    for row in rows {
        let text = json::to_string(&row.payload);
        if page.len() >= size.rows || !page.is_empty() && page.bytes() + text.len() > size.bytes {
            return (page, true);
        }
        page.push(text.as_bytes());
    }
    (page, false)
}

const TOO_MANY: &str =
    "ORDER BY RANK has more rows than can be held (64 MB). Give the query a TOP or a LIMIT, or select less.";
