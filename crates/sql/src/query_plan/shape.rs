//! The merge shape of a query: how the results of many partitions are merged.

use pleiad_model::{Error, Result};

use crate::check::{aggregate, contains_aggregate, has_aggregate};
use crate::expr::aggregate::AggregateKind;
use crate::parse::ast::{Expr, ExprKind, OrderBy, OrderByItem, Select, SelectItem, SelectSpec};
use crate::parse::print::print_expr;

/// The largest number of aggregates that clients merge with `GROUP BY`.
pub const GROUP_AGGREGATES_MAX: usize = 21;

/// Whether the concatenated results of several partitions differ from the query's result.
pub fn needs_merge(select: &Select) -> bool {
    let counted = select.top.is_some() || select.offset_limit.is_some();
    counted || select.order_by.is_some() || combines_rows(select) || subquery_combines_rows(select)
}

/// Whether a row of the result combines several rows.
pub fn combines_rows(select: &Select) -> bool {
    select.distinct || !select.group_by.is_empty() || has_aggregate(&select.spec)
}

/// Whether a subquery that reads the container combines rows.
fn subquery_combines_rows(select: &Select) -> bool {
    match select.from.first().map(|source| &source.expr.kind) {
        Some(ExprKind::Subquery { select, .. }) => {
            select.reads_items()
                && (combines_rows(select) && !select.returns_whole_items() || subquery_combines_rows(select))
        }
        _ => false,
    }
}

pub(super) enum MergeShape<'q> {
    /// Concatenated, without duplicates if the query is `DISTINCT`.
    Rows,
    Sorted(&'q [OrderByItem]),
    /// `SELECT VALUE AVG(…)`
    Aggregate(AggregateKind, &'q Expr),
    Groups {
        keys: &'q [Expr],
        of: Groups<'q>,
    },
    /// `SELECT COUNT(1) FROM (SELECT DISTINCT …)`
    DistinctCount {
        alias: String,
        rows: &'q Select,
    },
}

/// The output of a group.
pub(super) enum Groups<'q> {
    List(Vec<GroupColumn<'q>>),
    Value(&'q Expr),
}

pub(super) struct GroupColumn<'q> {
    pub name: String,
    pub expr: &'q Expr,
    pub aggregate: Option<(AggregateKind, &'q Expr)>,
}

impl<'q> MergeShape<'q> {
    pub fn of(select: &'q Select) -> Result<Self> {
        if let Some(count) = distinct_count(select) {
            return Ok(count);
        }
        if subquery_combines_rows(select) {
            let what = "DISTINCT, GROUP BY or an aggregate in a subquery over several partitions";
            return Err(Error::unsupported(what));
        }
        // Each range sorts its own groups; clients merge groups without an order.
        if let Some(OrderBy::Keys(keys)) = &select.order_by
            && select.group_by.is_empty()
            && !has_aggregate(&select.spec)
        {
            return Ok(MergeShape::Sorted(keys));
        }
        if select.group_by.is_empty() && !has_aggregate(&select.spec) {
            return Ok(MergeShape::Rows);
        }
        groups(select)
    }

    pub fn group_by(&self) -> &'q [Expr] {
        match self {
            MergeShape::Groups { keys, .. } => keys,
            _ => &[],
        }
    }

    pub fn order_by(&self) -> &'q [OrderByItem] {
        match self {
            MergeShape::Sorted(keys) => keys,
            _ => &[],
        }
    }

    /// The properties of a group's output object.
    pub fn columns(&self) -> &[GroupColumn<'q>] {
        match self {
            MergeShape::Groups { of: Groups::List(columns), .. } => columns,
            _ => &[],
        }
    }

    pub fn value_aggregate(&self) -> Option<AggregateKind> {
        match self {
            MergeShape::Aggregate(kind, _) => Some(*kind),
            MergeShape::Groups { of: Groups::Value(expr), .. } => aggregate(expr).map(|(kind, _)| kind),
            _ => None,
        }
    }

    pub fn aggregates(&self) -> Vec<AggregateKind> {
        let listed = self.columns().iter().filter_map(|column| column.aggregate.map(|(kind, _)| kind));
        listed.chain(self.value_aggregate()).collect()
    }
}

fn groups(select: &Select) -> Result<MergeShape<'_>> {
    if select.spec.items().iter().any(is_composed) {
        const COMPOSED: &str = r#"{"Errors":["Compositions of aggregates and other expressions are not allowed."]}"#;
        return Err(Error::invalid(COMPOSED));
    }
    let keys = select.group_by.as_slice();
    let shape = match &select.spec {
        SelectSpec::Value(SelectItem { expr, .. }) => match aggregate(expr) {
            Some((kind, argument)) if keys.is_empty() => MergeShape::Aggregate(kind, argument),
            _ => MergeShape::Groups { keys, of: Groups::Value(expr) },
        },
        spec => MergeShape::Groups { keys, of: Groups::List(columns(spec)) },
    };
    if !keys.is_empty() && shape.aggregates().len() > GROUP_AGGREGATES_MAX {
        return Err(Error::invalid(format!(
            "A GROUP BY over several partitions can have at most {GROUP_AGGREGATES_MAX} aggregates."
        )));
    }
    Ok(shape)
}

/// Clients merge plain aggregates, but not expressions over them.
fn is_composed(item: &SelectItem) -> bool {
    aggregate(&item.expr).is_none() && contains_aggregate(&item.expr)
}

fn columns(spec: &SelectSpec) -> Vec<GroupColumn<'_>> {
    let named = spec.items().iter().zip(spec.column_names());
    named.map(|(item, name)| GroupColumn { name, expr: &item.expr, aggregate: aggregate(&item.expr) }).collect()
}

fn distinct_count(select: &Select) -> Option<MergeShape<'_>> {
    let [source] = select.from.as_slice() else { return None };
    let ExprKind::Subquery { select: rows, .. } = &source.expr.kind else { return None };
    let [item] = select.spec.items() else { return None };
    let (kind, counted) = aggregate(&item.expr)?;
    let counts_rows = kind == AggregateKind::Count && matches!(counted.kind, ExprKind::Constant(_));
    let is_bare = select.filter.is_none() && select.group_by.is_empty() && !source.unnest && !select.distinct;
    let is_plain_distinct = rows.distinct && rows.reads_items() && rows.group_by.is_empty();
    if !counts_rows || !is_bare || !is_plain_distinct || has_aggregate(&rows.spec) || subquery_combines_rows(rows) {
        return None;
    }
    let alias = match &select.spec {
        SelectSpec::List(_) => select.spec.column_names().into_iter().next().unwrap_or_default(),
        _ => String::new(),
    };
    Some(MergeShape::DistinctCount { alias, rows })
}

/// Whether clients may drop duplicates by comparing neighbours: for `SELECT DISTINCT VALUE` of the only sort key.
pub(super) fn equal_rows_are_adjacent(select: &Select, keys: &[OrderByItem]) -> bool {
    match (&select.spec, keys) {
        (SelectSpec::Value(row), [key]) => print_expr(&row.expr) == print_expr(&key.expr),
        _ => false,
    }
}
