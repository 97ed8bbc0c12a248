//! In-memory queries: over metadata feeds (databases, containers, offers) and over single items (patch conditions).

use pleiad_model::env::Env;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Kind, Result, Value};

use super::{Flow, PageSize, PageStart, RowPipeline, RowSet};
use crate::Parameters;
use crate::check;
use crate::compile::{BindContext, compile};
use crate::document::{Document, SlotValue};
use crate::expr::{CheckLimit, Context, MemoryBudget};
use crate::parse::ast::Select;

/// The memory limit of one run: for its rows and for the temporaries of its expressions.
pub const RUN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The limit on interrupt checks. Such feeds are small; a query that needs more work is rejected.
const CHECKS_MAX: u32 = 1024;

/// A parsed query that can run with any rows and parameters.
#[derive(Clone, Debug)]
pub struct InMemoryQuery {
    text: String,
    select: Select,
}

/// Parses a query. Syntax errors and unresolved names are `Invalid`, unsupported features are `Unsupported`.
pub fn parse(text: &str) -> Result<InMemoryQuery> {
    Ok(InMemoryQuery { select: check::parse_and_check(text)?, text: text.to_owned() })
}

impl InMemoryQuery {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn select(&self) -> &Select {
        &self.select
    }

    /// Runs the query over `rows`, in their order.
    pub fn run_over<'a>(
        &self,
        parameters: &Parameters,
        env: &dyn Env,
        rows: impl Iterator<Item = &'a Value>,
    ) -> Result<RowSet> {
        self.run(parameters, Geospatial::Geography, env, rows.map(SlotValue::Value))
    }

    /// Whether the query, without parameters, returns a row for this item.
    pub fn matches(&self, item: &dyn Document, geospatial: Geospatial, env: &dyn Env) -> Result<bool> {
        let rows = self.run(&Parameters::default(), geospatial, env, std::iter::once(SlotValue::Item(item)))?;
        Ok(!rows.is_empty())
    }

    fn run<'a>(
        &self,
        parameters: &Parameters,
        geospatial: Geospatial,
        env: &dyn Env,
        rows: impl Iterator<Item = SlotValue<'a>>,
    ) -> Result<RowSet> {
        let started_ms = env.now_ms();
        let bind =
            BindContext { parameters, geospatial, embeddings: &[], full_text: None, started_ms: Some(started_ms) };
        let block = compile(&self.select, &self.text, bind)?;
        let cx = Context {
            env,
            started_ms,
            geospatial: bind.geospatial,
            user_functions: None,
            memory: MemoryBudget::new(RUN_BYTES_MAX),
            interrupt: Some(&CheckLimit::new(CHECKS_MAX)),
        };
        let start = PageStart::beginning(block.offset, block.take);
        let size = PageSize { rows: usize::MAX, bytes: RUN_BYTES_MAX };
        let mut pipeline = RowPipeline::new(&block, cx, start, size);
        if block.reads_items {
            for (docnum, row) in (0..).zip(rows) {
                if pipeline.add_item(docnum, row)? == Flow::Stop {
                    break;
                }
            }
        } else {
            pipeline.add_constant_row()?;
        }
        let finished = pipeline.finish(None)?;
        if finished.next.is_some() {
            let message = "The query's result is too large. Select fewer or smaller properties.";
            return Err(Error::new(Kind::TooLarge, message));
        }
        Ok(finished.rows)
    }
}
