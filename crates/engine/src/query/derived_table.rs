//! Derived table: a subquery in FROM whose rows combine many items, evaluated first.
//!
//! The inner query runs to its end and its rows are materialised; the outer query reads them like items. A later page
//! does all of it again and skips to its position, since nothing is stored between pages.

use pleiad_model::{Error, Kind, Result, Value, json};
use pleiad_sql::compile::compile;
use pleiad_sql::derived_table::{DerivedTable, split_derived_table};
use pleiad_sql::document::SlotValue;
use pleiad_sql::parse::ast::Select;
use pleiad_sql::run::{self, Finished, Flow, PageStart, RowPipeline};

use super::cursor::{CursorPosition, QueryCursor};
use super::page::{MATERIALIZED, PageRequest, PageTask, QueryPage};
use super::page_cost::PageCost;
use super::report::QueryReport;
use super::stop::Stop;
use crate::feed;
use crate::response::PartitionLsn;

impl PageTask {
    pub(super) fn run_derived_table(
        &self,
        stages: &DerivedTable<'_>,
        page: PageRequest<'_>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
    ) -> Result<QueryPage, Stop> {
        let (rows, report) = self.materialize(stages.inner, page, lsns, cost)?;
        let (finished, next) = self.run_outer(&stages.outer, &rows, page)?;
        Ok(QueryPage { report: report.with_rows(&finished.rows), rows: finished.rows, next })
    }

    /// All rows of an inner query, and the report on reading them.
    fn materialize(
        &self,
        inner: &Select,
        page: PageRequest<'_>,
        lsns: &mut Vec<PartitionLsn>,
        cost: &mut PageCost<'_>,
    ) -> Result<(Vec<Value>, QueryReport), Stop> {
        let page = PageRequest { from: None, size: MATERIALIZED, ..page };
        let read = match split_derived_table(inner) {
            None => self.read(inner, &compile(inner, &self.query.text, page.bind)?, page, lsns, cost)?,
            Some(stages) => self.run_derived_table(&stages, page, lsns, cost)?,
        };
        if read.next.is_some() {
            return Err(Error::new(Kind::TooLarge, TOO_MANY).into());
        }
        let rows = read.rows.iter().map(json::parse).collect::<Result<_>>()?;
        Ok((rows, read.report))
    }

    fn run_outer(
        &self,
        outer: &Select,
        rows: &[Value],
        page: PageRequest<'_>,
    ) -> Result<(Finished, Option<QueryCursor>)> {
        let block = compile(outer, &self.query.text, page.bind)?;
        let requested = [feed::resolve(&self.at, page.scope)?.keys];
        let cursor = self.cursor(outer, &block, page.from, &requested, || CursorPosition::Row(0))?;
        let start = PageStart { skip: cursor.skip, take: cursor.take, at: run::ResumePoint::Beginning };
        let mut pipeline = RowPipeline::new(&block, self.context(), start, page.size);
        for (number, row) in (1..).zip(rows) {
            if pipeline.add_item(number, SlotValue::Value(row))? == Flow::Stop {
                break;
            }
        }
        let finished = pipeline.finish(None)?;
        let returned = finished.rows.len() as u64;
        let next = finished.next.is_some().then(|| QueryCursor {
            skip: cursor.skip + returned,
            take: cursor.take.map(|take| take.saturating_sub(returned)),
            bound_to: self.binding(outer, &requested),
            ..cursor
        });
        Ok((finished, next))
    }
}

const TOO_MANY: &str =
    "The subquery in FROM has more rows than can be held (64 MB). Narrow its filter, or run it by itself.";
