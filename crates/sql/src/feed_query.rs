//! Feed query: a filter and a projection that are applied to one change at a time.
//!
//! Guarantees: an accepted query makes at most one row of each change, and the row depends on nothing but the change. So
//! rows have the order of the feed, and the feed's position says which changes the query has seen.
//!
//! ```text
//! SELECT c.id, c.total FROM c WHERE c.total > 10      {"id":"7","total":12,…}  →  {"id":"7","total":12}
//!                                                     {"id":"8","total":3,…}   →  no row
//! ```

use pleiad_model::env::Env;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Result};

use crate::block::{Block, Output};
use crate::check::{self, has_aggregate};
use crate::compile::{BindContext, compile};
use crate::document::{Document, SlotValue};
use crate::expr::{Context, Interrupt, MemoryBudget};
use crate::parse::ast::{ExprKind, Select};
use crate::run::first_row;

/// The memory budget of one change: for its row and for the temporaries of its expressions.
const CHANGE_BYTES_MAX: usize = 8 * 1024 * 1024;

pub struct FeedQuery {
    block: Block,
    geospatial: Geospatial,
    started_ms: u64,
}

impl FeedQuery {
    pub fn compile(text: &str, bind: BindContext<'_>) -> Result<FeedQuery> {
        let select = check::parse_and_check(text)?;
        check_shape(&select)?;
        check::check_parameters(&select, bind.parameters, text)?;
        if let Some((name, _)) = check::user_functions(&select).first() {
            let feature = format_args!("The user-defined function udf.{name} in the query of a change feed");
            return Err(Error::unsupported(feature));
        }
        let block = compile(&select, text, bind)?;
        Ok(FeedQuery { block, geospatial: bind.geospatial, started_ms: bind.started_ms.unwrap_or(0) })
    }

    /// The row of a change as JSON text; `None` if the filter drops the change or the row is undefined.
    pub fn row(&self, change: &dyn Document, env: &dyn Env, interrupt: &dyn Interrupt) -> Result<Option<Vec<u8>>> {
        let cx = Context {
            env,
            started_ms: self.started_ms,
            geospatial: self.geospatial,
            user_functions: None,
            memory: MemoryBudget::new(CHANGE_BYTES_MAX),
            interrupt: Some(interrupt),
        };
        let Output::Rows(output) = &self.block.output else {
            return Err(Error::internal("the query of a change feed aggregates"));
        };
        first_row(&self.block, output, SlotValue::Item(change), &cx)
    }
}

fn check_shape(select: &Select) -> Result<()> {
    let from_root =
        matches!(select.from.as_slice(), [root] if !root.unnest && matches!(root.expr.kind, ExprKind::Name(_)));
    let wrong = [
        (!from_root, "its FROM names the container and nothing else"),
        (select.distinct, "it has no DISTINCT"),
        (select.top.is_some() || select.offset_limit.is_some(), "it has no TOP, OFFSET or LIMIT"),
        (!select.group_by.is_empty(), "it has no GROUP BY"),
        (select.order_by.is_some(), "it has no ORDER BY"),
        (has_aggregate(&select.spec), "it has no aggregate"),
    ];
    match wrong.into_iter().find(|(is, _)| *is) {
        Some((_, rule)) => {
            Err(Error::invalid(format!("The query of a change feed filters and projects single changes: {rule}.")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
