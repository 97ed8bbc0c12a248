//! The query for one range: its rows contain what the client needs to merge them.
//!
//! ```text
//! ORDER BY     {"_rid": …, "orderByItems": [{"item": key}, …], "payload": row}
//! GROUP BY     {"groupByItems": [{"item": key}, …], "payload": {"n": value, "$1": {"item": partial}}}
//! aggregate    [{"item": partial}]
//! ```
//!
//! An undefined key is `{}`. For a minimum or maximum, some clients read `item` and others `item2`, which also has the
//! number of values.

use pleiad_model::{Error, Result};

use super::SdkPlan;
use super::shape::{GroupColumn, Groups, MergeShape};
use crate::check::aggregate;
use crate::expr::aggregate::AggregateKind;
use crate::parse::ast::{Expr, ExprKind, OrderBy, OrderByItem, Select, SelectSpec};
use crate::parse::print::{print, print_expr, print_from, print_list, print_str};
use crate::parse::{self, Span};

/// The placeholder for the client's position in the sort order; `true` for the first page.
pub(super) const ORDER_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// Empty if the client can run the original text.
pub(super) fn rewrite(plan: &SdkPlan<'_>) -> Result<String> {
    let select = plan.select;
    let text = match &plan.shape {
        MergeShape::Rows => rows(plan),
        MergeShape::Sorted(keys) => sorted(plan, keys),
        MergeShape::Aggregate(kind, argument) => {
            let (sources, order) = (source_clauses(select), order_clause(select));
            format!("SELECT VALUE [{}]{sources}{order}", partial_aggregate(*kind, argument))
        }
        MergeShape::Groups { keys, of } => {
            let by = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", print_list(keys)) };
            let items = if keys.is_empty() { String::new() } else { format!("{} AS groupByItems, ", items(keys)) };
            let (sources, order) = (source_clauses(select), order_clause(select));
            format!("SELECT {items}{} AS payload{sources}{by}{order}", group_payload(of))
        }
        MergeShape::DistinctCount { rows, .. } => print(rows),
    };
    check_parses(text)
}

/// Clients send the rewritten text back, so it must parse: rewriting may exceed the nesting limit.
fn check_parses(text: String) -> Result<String> {
    let sent = text.replace(ORDER_FILTER, "true");
    if !text.is_empty() && parse::parse(&sent).is_err() {
        return Err(nesting_error());
    }
    Ok(text)
}

pub(super) fn nesting_error() -> Error {
    Error::invalid("The query nests too deeply to run over several partitions. Flatten it or split it.")
}

fn rows(plan: &SdkPlan<'_>) -> String {
    let select = plan.select;
    let is_counted = plan.counts.top.is_some() || plan.counts.offset_limit.is_some();
    let offset_limit = match plan.counts.offset_limit {
        // Duplicates are removed before rows are counted, and only the client sees all of them.
        _ if select.distinct && is_counted => None,
        Some(_) if !select.distinct => window(plan),
        _ => return String::new(),
    };
    print(&Select { top: None, offset_limit, ..select.clone() })
}

/// `OFFSET 0 LIMIT offset + limit` for each range, because a single range may hold all rows that are skipped and
/// returned.
fn window(plan: &SdkPlan<'_>) -> Option<(Expr, Expr)> {
    let (offset, limit) = plan.counts.offset_limit?;
    let number = |n: u64| Expr { kind: ExprKind::Constant(n.into()), span: Span::default() };
    Some((number(0), number((offset + limit).min(u64::from(u32::MAX)))))
}

fn sorted(plan: &SdkPlan<'_>, keys: &[OrderByItem]) -> String {
    let select = plan.select;
    let root = select.from.first().and_then(|source| source.name()).unwrap_or_default();
    let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
    // Duplicates are removed before rows are counted.
    let counts_here = !select.distinct;
    let top = plan.counts.top.filter(|_| counts_here).map_or(String::new(), |top| format!("TOP {top} "));
    let paging = window(plan).filter(|_| counts_here).map_or(String::new(), |(offset, limit)| {
        format!(" OFFSET {} LIMIT {}", print_expr(&offset), print_expr(&limit))
    });
    format!(
        "SELECT {top}{root}._rid, {items} AS orderByItems, {payload} AS payload{from} WHERE {filter} ORDER BY {order}{paging}",
        items = items(&exprs),
        payload = payload(&select.spec, root),
        from = print_from(&select.from),
        filter = order_filter(select),
        order = order_keys(keys),
    )
}

fn order_keys(keys: &[OrderByItem]) -> String {
    let text = |key: &OrderByItem| {
        let direction = match (key.descending, key.direction) {
            (true, _) => " DESC",
            (false, Some(_)) => " ASC",
            (false, None) => "",
        };
        print_expr(&key.expr) + direction
    };
    keys.iter().map(text).collect::<Vec<_>>().join(", ")
}

pub(super) fn order_filter(select: &Select) -> String {
    let filter = match &select.filter {
        None => format!("({ORDER_FILTER})"),
        Some(filter) => format!("(({}) AND ({ORDER_FILTER}))", print_expr(filter)),
    };
    match &select.spec {
        // An undefined value gives no row.
        SelectSpec::Value(item) => format!("({filter} AND IS_DEFINED({}))", print_expr(&item.expr)),
        _ => filter,
    }
}

pub(super) fn payload(spec: &SelectSpec, root: &str) -> String {
    match spec {
        SelectSpec::Star(_) => root.to_owned(),
        SelectSpec::Value(item) => print_expr(&item.expr),
        SelectSpec::List(items) => {
            object(items.iter().zip(spec.column_names()).map(|(item, name)| (name, print_expr(&item.expr))))
        }
    }
}

fn group_payload(of: &Groups<'_>) -> String {
    match of {
        Groups::List(columns) => object(columns.iter().map(|column| (column.name.clone(), column_text(column)))),
        Groups::Value(expr) => match aggregate(expr) {
            Some((kind, argument)) => format!("[{}]", partial_aggregate(kind, argument)),
            None => print_expr(expr),
        },
    }
}

fn column_text(column: &GroupColumn<'_>) -> String {
    column.aggregate.map_or_else(|| print_expr(column.expr), |(kind, argument)| partial_aggregate(kind, argument))
}

/// The partial aggregate of one range.
fn partial_aggregate(kind: AggregateKind, argument: &Expr) -> String {
    let (name, of) = (kind.name(), print_expr(argument));
    match kind {
        AggregateKind::Average => format!(r#"{{"item": {{"sum": SUM({of}), "count": COUNT({of})}}}}"#),
        AggregateKind::Min | AggregateKind::Max => {
            let member = name.to_ascii_lowercase();
            format!(r#"{{"item": {name}({of}), "item2": {{"{member}": {name}({of}), "count": COUNT({of})}}}}"#)
        }
        _ => format!(r#"{{"item": {name}({of})}}"#),
    }
}

/// `[{"item": a}, {"item": b}]`
fn items(exprs: &[Expr]) -> String {
    let items: Vec<String> = exprs.iter().map(|expr| format!(r#"{{"item": {}}}"#, print_expr(expr))).collect();
    format!("[{}]", items.join(", "))
}

fn object(properties: impl Iterator<Item = (String, String)>) -> String {
    let properties: Vec<String> = properties.map(|(name, text)| format!("{}: {text}", print_str(&name))).collect();
    format!("{{{}}}", properties.join(", "))
}

/// `FROM` and `WHERE`, unchanged.
fn source_clauses(select: &Select) -> String {
    let filter = select.filter.as_ref().map_or(String::new(), |filter| format!(" WHERE {}", print_expr(filter)));
    print_from(&select.from) + &filter
}

/// The `ORDER BY` of a single row or of groups, unchanged.
fn order_clause(select: &Select) -> String {
    match &select.order_by {
        Some(OrderBy::Keys(keys)) => format!(" ORDER BY {}", order_keys(keys)),
        _ => String::new(),
    }
}
