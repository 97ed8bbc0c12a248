//! Compiles expressions over a group: `GROUP BY` keys and aggregate results.
//!
//! Guarantees: in the `SELECT` of a grouping query, an expression that repeats a `GROUP BY` key refers to the group's
//! key, a path that starts with a key refers to a property of it, an aggregate call refers to its result, and nothing
//! else may read a row.

use pleiad_model::Result;

use super::Compiler;
use crate::block::ScalarExpr;
use crate::check::GroupKeys;
use crate::expr::aggregate::AggregateKind;
use crate::parse::ast::{Expr, ExprKind};

pub(super) struct Grouped {
    /// The first slot of the rows that were grouped.
    base: usize,
    keys: GroupKeys,
    pub aggregates: Vec<(AggregateKind, ScalarExpr)>,
}

impl Grouped {
    pub fn new(base: usize, keys: &[Expr]) -> Self {
        Grouped { base, keys: GroupKeys::of(keys), aggregates: Vec::new() }
    }
}

impl<'q> Compiler<'q> {
    /// The node for a key or an aggregate; `None` for an expression built from them.
    pub(super) fn over_group(&mut self, expr: &'q Expr) -> Result<Option<ScalarExpr>> {
        let Some(grouped) = &self.grouped else { return Ok(None) };
        let slot = grouped.base;
        if !matches!(expr.kind, ExprKind::Constant(_)) {
            if let Some(at) = grouped.keys.position(expr) {
                return Ok(Some(ScalarExpr::Key { slot, at }));
            }
            if let Some((at, steps)) = grouped.keys.prefix_of(expr) {
                let steps = steps.iter().map(|step| self.step(step)).collect::<Result<_>>()?;
                return Ok(Some(ScalarExpr::Access { base: Box::new(ScalarExpr::Key { slot, at }), steps }));
            }
        }
        let ExprKind::Call { function, arguments } = &expr.kind else { return Ok(None) };
        let Some(kind) = AggregateKind::find(function) else { return Ok(None) };
        let [argument] = arguments.as_slice() else {
            let message = format!("The {} function requires 1 argument(s).", function.to_uppercase());
            return Err(self.error(expr.span, "SC2050", message));
        };
        // The argument reads rows; an aggregate nested in it is an error.
        let saved = self.grouped.take();
        let argument = self.scalar(argument);
        self.grouped = saved;
        let argument = argument?;
        let Some(grouped) = &mut self.grouped else { return Ok(None) };
        grouped.aggregates.push((kind, argument));
        Ok(Some(ScalarExpr::Aggregate { slot, at: grouped.aggregates.len() - 1 }))
    }

    /// An expression over a group cannot read its rows.
    pub(super) fn check_slot(&self, slot: usize, expr: &Expr) -> Result<()> {
        match &self.grouped {
            Some(grouped) if slot >= grouped.base => {
                let message = format!(
                    "Property reference '{}' is invalid in the select list because it is not contained in either an \
                     aggregate function or the GROUP BY clause.",
                    expr.span.of(self.text)
                );
                Err(self.error(expr.span, "SC2102", message))
            }
            _ => Ok(()),
        }
    }
}
