//! `ORDER BY RANK`: what it may stand beside, and what it may score.

use super::clauses::is_document_path;
use super::groups::is_aggregated;
use super::names::Scope;
use super::{Checked, Checker, Place};
use crate::language::ast::{Expr, ExprKind, Select};
use crate::language::{Fault, Span};
use crate::rank::{Ranking, Score};

impl<'q> Checker<'q> {
    pub(super) fn rank(&mut self, select: &'q Select, score: &'q Expr, scope: &Scope<'q>) -> Checked {
        check_beside(select, score.span)?;
        for component in Ranking::read(score, select.places.order_by)?.components {
            match component.score {
                Score::Text { property, terms } => {
                    self.scalar(property, scope, Place::Row("ORDER BY RANK"))?;
                    check_property(property, select)?;
                    self.scalars(terms, scope, Place::Row("ORDER BY RANK"))?;
                }
                Score::Vector(_) => self.scalar(component.expr, scope, Place::Row("ORDER BY RANK"))?,
            }
        }
        Ok(())
    }
}

fn check_property(property: &Expr, select: &Select) -> Result<(), Fault> {
    if is_document_path(property, select) {
        return Ok(());
    }
    Err(Fault::plain(
        property.span,
        "The first argument of FullTextScore must be a property of the item, such as c.text.",
    ))
}

/// The service tells three wrong sources apart.
fn check_beside(select: &Select, span: Span) -> Result<(), Fault> {
    let source = |code, what: &str| {
        Err(Fault::coded(span, code, format!("{what} is not supported together with the ORDER BY RANK clause.")))
    };
    let first = select.from.first();
    if select.from.len() > 1 {
        return source("SC2224", "JOIN");
    }
    if first.is_some_and(|first| first.each) {
        return source("SC2223", "FROM x IN");
    }
    if first.is_some_and(|first| matches!(first.of.kind, ExprKind::Subquery { .. })) {
        return source("SC2225", "A subquery in FROM");
    }
    let wrong = [
        (select.distinct, "DISTINCT"),
        (!select.group_by.is_empty(), "GROUP BY"),
        (is_aggregated(select), "An aggregate"),
    ];
    match wrong.into_iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(Fault::plain(span, format!("{what} cannot be combined with ORDER BY RANK."))),
        None => Ok(()),
    }
}
