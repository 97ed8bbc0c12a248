//! Checks `ORDER BY RANK`: the clauses it may be combined with, and its arguments.

use super::clauses::is_document_path;
use super::groups::is_aggregated;
use super::names::NameScope;
use super::{Checked, Checker, ExprContext};
use crate::parse::ast::{Expr, ExprKind, FromItem, OrderBy, Select};
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

/// The sources that `ORDER BY RANK` does not allow: all of them, as the service reports them.
pub(super) fn source_errors(select: &Select) -> Vec<Diagnostic> {
    let Some(OrderBy::Rank(_)) = &select.order_by else { return Vec::new() };
    let mut diagnostics = Vec::new();
    if let [first, .., last] = select.from.as_slice() {
        let span = Span { start: source_span(first).start, end: source_span(last).end };
        let message = "The JOIN operator is not allowed with the ORDER BY RANK clause.";
        diagnostics.push(Diagnostic::coded(span, "SC2224", message));
    }
    for source in &select.from {
        if source.unnest {
            let message = "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.";
            diagnostics.push(Diagnostic::coded(source_span(source), "SC2223", message));
        }
        if matches!(source.expr.kind, ExprKind::Subquery { .. }) {
            let message = "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
            diagnostics.push(Diagnostic::coded(source.expr.span, "SC2225", message));
        }
    }
    diagnostics
}

/// With the alias, which stands before or after the expression.
fn source_span(source: &FromItem) -> Span {
    let (expr, alias) = (source.expr.span, source.alias.as_ref().map_or(source.expr.span, |alias| alias.span));
    Span { start: expr.start.min(alias.start), end: expr.end.max(alias.end) }
}

fn check_other_clauses(select: &Select, span: Span) -> Result<(), Diagnostic> {
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
