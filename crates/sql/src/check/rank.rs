//! Checks `ORDER BY RANK`: the clauses it may be combined with, and its arguments.

use super::clauses::is_document_path;
use super::groups::is_aggregated;
use super::names::NameScope;
use super::{Checked, Checker, ExprContext};
use crate::parse::ast::{Expr, ExprKind, Select};
use crate::parse::{Diagnostic, Span};
use crate::rank::{RankClause, Score, selected_property};

impl<'q> Checker<'q> {
    pub(super) fn rank(&mut self, select: &'q Select, score: &'q Expr, scope: &NameScope<'q>) -> Checked {
        check_other_clauses(select, score.span)?;
        for component in RankClause::parse(score, select.spans.order_by, None)?.components {
            match component.score {
                Score::Text { property, terms } => {
                    self.scalar(property, scope, ExprContext::Row("ORDER BY RANK"))?;
                    check_property(property, select)?;
                    self.scalars(terms, scope, ExprContext::Row("ORDER BY RANK"))?;
                }
                Score::Vector(_) => self.scalar(component.expr, scope, ExprContext::Row("ORDER BY RANK"))?,
            }
        }
        Ok(())
    }
}

fn check_property(property: &Expr, select: &Select) -> Result<(), Diagnostic> {
    if is_document_path(&selected_property(property), select) {
        return Ok(());
    }
    Err(Diagnostic::plain(
        property.span,
        "The first argument of FullTextScore must be a property of the item, such as c.text.",
    ))
}

/// The service has a code for each of three unsupported sources.
fn check_other_clauses(select: &Select, span: Span) -> Result<(), Diagnostic> {
    let source = |code, what: &str| {
        Err(Diagnostic::coded(span, code, format!("{what} is not supported together with the ORDER BY RANK clause.")))
    };
    let first = select.from.first();
    if select.from.len() > 1 {
        return source("SC2224", "JOIN");
    }
    if first.is_some_and(|first| first.unnest) {
        return source("SC2223", "FROM x IN");
    }
    if first.is_some_and(|first| matches!(first.expr.kind, ExprKind::Subquery { .. })) {
        return source("SC2225", "A subquery in FROM");
    }
    let unsupported = [
        (select.distinct, "DISTINCT"),
        (!select.group_by.is_empty(), "GROUP BY"),
        (is_aggregated(select), "An aggregate"),
    ];
    match unsupported.into_iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(Diagnostic::plain(span, format!("{what} cannot be combined with ORDER BY RANK."))),
        None => Ok(()),
    }
}
