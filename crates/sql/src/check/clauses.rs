//! Checks which clauses may be combined, and which are allowed in a subquery.

use std::collections::HashSet;

use pleiad_model::Error;

use super::groups::is_aggregated;
use super::names::NameScope;
use super::{Checked, Checker, ExprContext};
use crate::compile::is_distance as is_vector_distance;
use crate::parse::Diagnostic;
use crate::parse::ast::{AstStep, Expr, ExprKind, FromItem, OrderBy, OrderByItem, Select, SelectSpec};

pub(super) fn check(select: &Select) -> Result<(), Diagnostic> {
    check_star(select)?;
    check_column_names(&select.spec)?;
    if let (Some(top), Some(_)) = (&select.top, &select.offset_limit) {
        return Err(Diagnostic::plain(top.span, "TOP cannot be combined with OFFSET LIMIT. Keep one of them."));
    }
    Ok(())
}

/// The clauses that subqueries may not have: all of them, inner subqueries first, as the service reports them.
pub(super) fn subquery_errors(select: &Select) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    select.each_subquery(&mut |inner| collect_subquery_errors(inner, &mut diagnostics));
    diagnostics
}

fn collect_subquery_errors(select: &Select, diagnostics: &mut Vec<Diagnostic>) {
    select.each_subquery(&mut |inner| collect_subquery_errors(inner, diagnostics));
    let mut reject = |span, code, message: &str| diagnostics.push(Diagnostic::coded(span, code, message));
    let spans = select.spans;
    match &select.order_by {
        Some(OrderBy::Rank(score)) => {
            reject(score.span, "SC2228", "The ORDER BY RANK clause is not supported in subqueries.");
        }
        Some(OrderBy::Keys(_)) => reject(spans.order_by, "SC2202", "'ORDER BY' is not supported in subqueries."),
        None => {}
    }
    if select.top.is_some() {
        reject(spans.top, "SC2203", "'TOP' is not supported in subqueries.");
    }
    if select.offset_limit.is_some() {
        reject(spans.offset_limit, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries.");
    }
}

fn check_star(select: &Select) -> Result<(), Diagnostic> {
    let SelectSpec::Star(span) = select.spec else { return Ok(()) };
    if !select.group_by.is_empty() {
        return Err(Diagnostic::coded(span, "SC2041", "'SELECT *' is not allowed with GROUP BY."));
    }
    if select.from.len() == 1 {
        return Ok(());
    }
    let diagnostic = Diagnostic::coded(span, "SC2040", "'SELECT *' is only valid with a single input set.");
    let hint =
        if select.from.is_empty() { "Add FROM c." } else { "Name what to select: SELECT c, x or SELECT VALUE c." };
    Err(diagnostic.with_hint(hint))
}

fn check_column_names(spec: &SelectSpec) -> Result<(), Diagnostic> {
    let SelectSpec::List(items) = spec else { return Ok(()) };
    let names = spec.column_names();
    let mut seen = HashSet::new();
    match items.iter().zip(&names).find(|(_, name)| !seen.insert(name.as_str())) {
        None => Ok(()),
        Some((item, name)) => {
            let span = item.alias.as_ref().map_or(item.expr.span, |alias| alias.span);
            Err(Diagnostic::duplicate_property(span, name).with_hint("Give one of them an alias."))
        }
    }
}

impl<'q> Checker<'q> {
    pub(super) fn order_by(&mut self, select: &'q Select, scope: &NameScope<'q>) -> Checked {
        match &select.order_by {
            None => Ok(()),
            Some(OrderBy::Rank(score)) => self.rank(select, score, scope),
            Some(OrderBy::Keys(keys)) => {
                for key in keys {
                    self.scalar(&key.expr, scope, ExprContext::Row("ORDER BY"))?;
                }
                check_order_keys(select, keys)
            }
        }
    }
}

fn check_order_keys(select: &Select, keys: &[OrderByItem]) -> Result<(), Diagnostic> {
    if is_single_row(select) && keys.iter().all(|key| matches!(key.expr.kind, ExprKind::Access { .. })) {
        return Ok(()); // it is always sorted
    }
    if let [only] = keys
        && (is_scalar_order(&only.expr) || is_vector_distance(&only.expr))
    {
        return check_direction(only);
    }
    match keys.iter().find(|key| !is_document_path(&key.expr, select) && !is_joined(&key.expr, select)) {
        None => Ok(()),
        Some(key) => {
            const NOT_A_PATH: &str =
                "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.";
            Err(Diagnostic::coded(key.expr.span, "2206", NOT_A_PATH))
        }
    }
}

/// An aggregate without `GROUP BY`.
fn is_single_row(select: &Select) -> bool {
    is_aggregated(select) && select.group_by.is_empty()
}

/// `VectorDistance` always sorts the nearest first and takes no direction. Query plans give one, with `_VectorScore`.
fn check_direction(key: &OrderByItem) -> Result<(), Diagnostic> {
    match key.direction {
        Some(at) if is_vector_distance(&key.expr) && !is_call(&key.expr, "_VECTORSCORE") => Err(Diagnostic::plain(
            at,
            "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.",
        )),
        _ => Ok(()),
    }
}

/// `ST_DISTANCE`, which an index can return in order, and `_FullTextScore`, which query plans sort by.
fn is_scalar_order(expr: &Expr) -> bool {
    is_call(expr, "ST_DISTANCE") || is_call(expr, "_FULLTEXTSCORE")
}

fn is_call(expr: &Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Call { function, .. } if function.eq_ignore_ascii_case(name))
}

/// Sorting by elements of an array. The service reports it without code and position.
pub(super) fn check_joined_order(select: &Select) -> Result<(), Error> {
    match &select.order_by {
        Some(OrderBy::Keys(keys)) if !is_single_row(select) && keys.iter().any(|key| is_joined(&key.expr, select)) => {
            Err(Error::invalid(r#"{"Errors":["Order-by over correlated collections is not supported."]}"#))
        }
        _ => Ok(()),
    }
}

/// `t.a`, where `t` is a joined source or an element of an array.
fn is_joined(expr: &Expr, select: &Select) -> bool {
    let name = match &expr.kind {
        ExprKind::Access { base, .. } => &base.kind,
        kind => kind,
    };
    let ExprKind::Name(name) = name else { return false };
    let is_joined = |(at, source): (usize, &FromItem)| (at > 0 || source.unnest) && source.name() == Some(name);
    select.from.iter().enumerate().any(is_joined)
}

/// `c.a.b`, where `c` is the item or the part of it that `FROM c.x` selects.
pub(super) fn is_document_path(expr: &Expr, select: &Select) -> bool {
    let ExprKind::Access { base, steps } = &expr.kind else { return false };
    let ExprKind::Name(name) = &base.kind else { return false };
    let Some(root) = select.from.first() else { return false };
    let is_item = !root.unnest && matches!(root.expr.kind, ExprKind::Name(_) | ExprKind::Access { .. });
    is_item && root.name() == Some(name) && steps.iter().all(is_constant_step)
}

fn is_constant_step(step: &AstStep) -> bool {
    match step {
        AstStep::Property(_) => true,
        AstStep::Index(index) => matches!(index.kind, ExprKind::Constant(_) | ExprKind::Parameter(_)),
    }
}
