//! Derived tables: a query over the rows of another one, as in
//! `SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c)`.
//!
//! A query is split in two if a row of the inner query combines many items, so that it cannot be evaluated item by
//! item. The outer query then reads the inner query's rows as if they were the container's items. Any other subquery in
//! `FROM` stays as it is and is evaluated for each item.
//!
//! ```text
//! SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c) AS v
//!   inner   SELECT DISTINCT VALUE c.n FROM c
//!   outer   SELECT VALUE COUNT(1) FROM v
//! ```

use crate::parse::ast::{Expr, ExprKind, FromItem, Select};
use crate::query_plan::combines_rows;

/// An alias that no query text can contain, so it collides with no other.
const UNNAMED: &str = "\0";

pub struct DerivedTable<'q> {
    pub inner: &'q Select,
    pub outer: Select,
}

/// Splits off a derived table, if there is one. The inner query may contain another.
pub fn split_derived_table(select: &Select) -> Option<DerivedTable<'_>> {
    let (source, others) = select.from.split_first()?;
    let ExprKind::Subquery { select: inner, .. } = &source.expr.kind else { return None };
    let is_derived_table = combines_rows(inner) && !inner.returns_whole_items() || split_derived_table(inner).is_some();
    if !inner.reads_items() || !is_derived_table {
        return None;
    }
    let first = FromItem { unnest: source.unnest, expr: rows_name(source), alias: source.alias.clone() };
    let from = std::iter::once(first).chain(others.iter().cloned()).collect();
    Some(DerivedTable { inner, outer: Select { from, ..select.clone() } })
}

/// The name under which the outer query reads the inner query's rows.
fn rows_name(source: &FromItem) -> Expr {
    let span = source.expr.span;
    let text = match &source.alias {
        Some(alias) if !source.unnest => alias.text.clone(),
        _ => UNNAMED.to_owned(),
    };
    Expr { kind: ExprKind::Name(text), span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::parse::print::print;

    fn split(text: &str) -> Option<(String, String)> {
        let select = check::parse_and_check(text).unwrap();
        split_derived_table(&select).map(|derived| (print(derived.inner), print(&derived.outer)))
    }

    #[test]
    fn rows_that_combine_items_become_a_derived_table() {
        let (inner, outer) = split("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c) AS v").unwrap();
        assert_eq!(inner, "SELECT DISTINCT VALUE c.n FROM c");
        assert_eq!(outer, "SELECT VALUE COUNT(1) FROM v AS v");
        assert!(split("SELECT x.n FROM (SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n) x WHERE x.k > 1").is_some());
        assert!(split("SELECT VALUE x FROM (SELECT VALUE y FROM (SELECT VALUE MAX(c.n) FROM c) y) x").is_some());
    }

    #[test]
    fn rows_of_single_items_do_not() {
        assert!(split("SELECT VALUE x FROM (SELECT VALUE c.n FROM c) x").is_none());
        assert!(split("SELECT VALUE x FROM (SELECT VALUE 1) x").is_none());
        assert!(split("SELECT VALUE x FROM (SELECT DISTINCT VALUE y FROM (SELECT VALUE 1) y) x").is_none());
        assert!(split("SELECT c.id FROM c JOIN (SELECT DISTINCT VALUE t FROM t IN c.tags)").is_none());
        assert!(split("SELECT c.id FROM c").is_none());
        assert!(split("SELECT VALUE x FROM (SELECT DISTINCT VALUE c FROM c) x").is_none());
        assert!(split("SELECT VALUE x FROM (SELECT DISTINCT VALUE c FROM c.a c) x").is_some());
    }
}
