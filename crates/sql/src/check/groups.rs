//! Checks aggregates and `GROUP BY`: what a query may select from a group.
//!
//! A block with `GROUP BY`, or with an aggregate in its `SELECT`, sees groups instead of rows: it may use the keys,
//! aggregates, and expressions over those and constants, such as a property of a key.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Checked, Checker, ExprContext};
use crate::check::names::NameScope;
use crate::expr::aggregate::AggregateKind;
use crate::parse::ast::{AstStep, Expr, ExprKind, OrderBy, OrderByItem, Select, SelectSpec};
use crate::parse::print::{print_canonical, print_expr};
use crate::parse::{Diagnostic, Span};

/// The function and the argument, if this is a call of an aggregate.
pub fn aggregate(expr: &Expr) -> Option<(AggregateKind, &Expr)> {
    let ExprKind::Call { function, arguments } = &expr.kind else { return None };
    Some((AggregateKind::find(function)?, arguments.first()?))
}

/// Whether the select list aggregates rows.
pub fn has_aggregate(spec: &SelectSpec) -> bool {
    spec.items().iter().any(|item| contains_aggregate(&item.expr))
}

/// Whether this scalar is or contains an aggregate. Aggregates in subqueries do not count.
pub fn contains_aggregate(expr: &Expr) -> bool {
    let mut found = aggregate(expr).is_some();
    let _ = expr.each_child(&mut |child| {
        found |= contains_aggregate(child);
        if found { Err(()) } else { Ok(()) }
    });
    found
}

pub(super) fn is_aggregated(select: &Select) -> bool {
    !select.group_by.is_empty() || has_aggregate(&select.spec)
}

pub(super) fn nested_aggregate(around: Span) -> Diagnostic {
    const NESTED: &str = "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
    Diagnostic::coded(around, "SC2101", NESTED)
}

impl<'q> Checker<'q> {
    pub(super) fn aggregate(
        &mut self,
        call: &'q Expr,
        arguments: &'q [Expr],
        scope: &NameScope<'q>,
        context: ExprContext,
    ) -> Checked {
        match context {
            ExprContext::Select => self.scalars(arguments, scope, ExprContext::Aggregate(call.span)),
            ExprContext::Aggregate(around) => Err(nested_aggregate(around)),
            ExprContext::Row(clause) => {
                let message = format!("An aggregate function cannot stand in {clause}: it looks at one row at a time.");
                Err(Diagnostic::plain(call.span, message))
            }
        }
    }
}

pub(super) fn check(select: &Select) -> Result<(), Diagnostic> {
    select.group_by.iter().try_for_each(check_key)?;
    if !is_aggregated(select) {
        return Ok(());
    }
    let rows = select.from.iter().filter_map(|source| source.name()).collect();
    let listed = GroupChecker { keys: GroupKeys::of(&select.group_by), rows, clause: GroupedClause::SelectList };
    let sorted = GroupChecker { clause: GroupedClause::OrderBy, ..listed.clone() };
    let diagnostics = select.spec.items().iter().filter_map(|item| listed.check(&item.expr).err());
    let diagnostics =
        diagnostics.chain(grouped_sort_keys(select).iter().filter_map(|key| sorted.check(&key.expr).err()));
    Diagnostic::combine(diagnostics).map_or(Ok(()), Err)
}

/// The sort keys to check. Without `GROUP BY` there is a single row, which any key sorts.
fn grouped_sort_keys(select: &Select) -> &[OrderByItem] {
    match &select.order_by {
        Some(OrderBy::Keys(keys)) if !select.group_by.is_empty() => keys,
        _ => &[],
    }
}

fn check_key(key: &Expr) -> Result<(), Diagnostic> {
    let message = match key.kind {
        ExprKind::Constant(_) | ExprKind::Parameter(_) | ExprKind::Undefined => {
            "A constant cannot be a GROUP BY key: it is the same for every item."
        }
        ExprKind::Subquery { .. } => {
            "A subquery cannot be a GROUP BY key. Bind it with JOIN (SELECT …) x, and group by x."
        }
        _ => return Ok(()),
    };
    Err(Diagnostic::plain(key.span, message))
}

/// The keys of a group. Two expressions are equal if their canonical texts are.
#[derive(Clone)]
pub struct GroupKeys {
    texts: HashMap<String, usize>,
    /// The lengths of the keys in steps. A path may have thousands of steps; only its prefixes of these lengths are
    /// compared.
    lengths: BTreeSet<usize>,
}

impl GroupKeys {
    pub fn of(keys: &[Expr]) -> Self {
        let length = |key: &Expr| match &key.kind {
            ExprKind::Access { steps, .. } => steps.len(),
            _ => 0,
        };
        let texts = keys.iter().enumerate().map(|(at, key)| (print_canonical(key), at)).collect();
        GroupKeys { texts, lengths: keys.iter().map(length).collect() }
    }

    /// The number of the key that equals the expression.
    pub fn position(&self, expr: &Expr) -> Option<usize> {
        if self.texts.is_empty() { None } else { self.texts.get(&print_canonical(expr)).copied() }
    }

    /// The key that is a prefix of a path, and the remaining steps: `c.a` and `.b` for `c.a.b`.
    pub fn prefix_of<'e>(&self, expr: &'e Expr) -> Option<(usize, &'e [AstStep])> {
        let ExprKind::Access { base, steps } = &expr.kind else { return None };
        self.lengths.range(..steps.len()).rev().find_map(|count| {
            let (prefix, rest) = steps.split_at(*count);
            let at = match prefix {
                [] => self.position(base),
                taken => {
                    let kind = ExprKind::Access { base: base.clone(), steps: taken.to_vec() };
                    self.position(&Expr { kind, span: expr.span })
                }
            };
            Some((at?, rest))
        })
    }
}

#[derive(Clone)]
struct GroupChecker<'q> {
    keys: GroupKeys,
    /// Aliases of single rows, which a grouped block may not use.
    rows: HashSet<&'q str>,
    clause: GroupedClause,
}

/// The clause that uses the group.
#[derive(Clone, Copy)]
enum GroupedClause {
    SelectList,
    OrderBy,
}

impl<'q> GroupChecker<'q> {
    fn check(&self, expr: &'q Expr) -> Result<(), Diagnostic> {
        if aggregate(expr).is_some() || self.keys.position(expr).is_some() {
            return Ok(());
        }
        if let Some((_, steps)) = self.keys.prefix_of(expr) {
            return steps.iter().filter_map(AstStep::index).try_for_each(|index| self.check(index));
        }
        match &expr.kind {
            ExprKind::Name(name) if self.rows.contains(name.as_str()) => Err(self.not_grouped(expr)),
            ExprKind::Access { base, .. } if self.is_row(base) => Err(self.not_grouped(expr)),
            ExprKind::Subquery { select, .. } => self.check_subquery(select),
            _ => expr.each_child(&mut |child| self.check(child)),
        }
    }

    fn is_row(&self, expr: &Expr) -> bool {
        matches!(&expr.kind, ExprKind::Name(name) if self.rows.contains(name.as_str()))
    }

    /// Aliases of the subquery shadow the outer ones.
    fn check_subquery(&self, select: &'q Select) -> Result<(), Diagnostic> {
        select.from.iter().try_for_each(|source| self.check(&source.expr))?;
        let own: HashSet<&str> = select.from.iter().filter_map(|source| source.name()).collect();
        let rows = self.rows.difference(&own).copied().collect();
        let inside = GroupChecker { rows, ..self.clone() };
        select.each_scalar(&mut |scalar| inside.check_in_subquery(scalar, select))
    }

    /// In a subquery not even an aggregate's argument may use the outer rows.
    fn check_in_subquery(&self, expr: &'q Expr, of: &'q Select) -> Result<(), Diagnostic> {
        let is_source = of.from.iter().any(|source| std::ptr::eq(&source.expr, expr));
        match aggregate(expr) {
            _ if is_source => Ok(()),
            Some((_, argument)) => self.check(argument),
            None => self.check(expr),
        }
    }

    fn not_grouped(&self, expr: &Expr) -> Diagnostic {
        let (code, clause) = match self.clause {
            GroupedClause::SelectList => ("SC2102", "select list"),
            GroupedClause::OrderBy => ("SC2103", "ORDER BY clause"),
        };
        let property = property(expr);
        let message = format!(
            "Property reference '{}' is invalid in the {clause} because it is not contained in either an aggregate \
             function or the GROUP BY clause.",
            print_expr(&property)
        );
        Diagnostic::coded(property.span, code, message)
    }
}

/// A path up to its first element: `c.a` for `c.a[0].b`.
fn property(expr: &Expr) -> Cow<'_, Expr> {
    let ExprKind::Access { base, steps } = &expr.kind else { return Cow::Borrowed(expr) };
    let count = steps.iter().take_while(|step| step.property().is_some()).count();
    match steps.get(count).and_then(AstStep::index) {
        None => Cow::Borrowed(expr),
        Some(_) if count == 0 => Cow::Borrowed(base),
        Some(element) => {
            let kind = ExprKind::Access { base: base.clone(), steps: steps[..count].to_vec() };
            // Ends before the bracket of the index.
            let span = Span { start: expr.span.start, end: element.span.start.saturating_sub(1) };
            Cow::Owned(Expr { kind, span })
        }
    }
}
