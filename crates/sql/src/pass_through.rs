//! Pass-through subqueries: a sorted query over a subquery in `FROM` that returns items, or parts of them, unchanged or
//! as members of an object.
//!
//! `ORDER BY` needs paths of the item, so such a query is flattened into its subquery. The rows are the same.
//!
//! ```text
//! SELECT s.id FROM (SELECT * FROM c WHERE c.n > 1) s ORDER BY s.id         SELECT c.id FROM c WHERE c.n > 1 ORDER BY c.id
//! SELECT VALUE s FROM (SELECT VALUE c.o FROM c) s ORDER BY s.id            SELECT VALUE c.o FROM c WHERE IS_DEFINED(c.o) ORDER BY c.o.id
//! SELECT VALUE s.o FROM (SELECT c.o FROM c) s ORDER BY s.o.id              SELECT VALUE c.o FROM c ORDER BY c.o.id
//! SELECT VALUE s FROM (SELECT VALUE {"i": c.id} FROM c) s ORDER BY s.i     SELECT VALUE {"i": c.id} FROM c ORDER BY c.id
//! ```
//!
//! Any other query, and one whose names would collide, stays as it is.

use std::cell::Cell;
use std::collections::HashSet;

use crate::parse::Span;
use crate::parse::ast::{AstStep, Expr, ExprKind, FromItem, Name, OrderBy, Select, SelectItem, SelectSpec};

/// Whether an expression aggregates rows.
type IsAggregate = fn(&Expr) -> bool;

/// Flattens a query with sort keys; returns any other unchanged.
pub fn flatten_sorted(select: Select, is_aggregate: IsAggregate) -> Select {
    match select.order_by {
        Some(OrderBy::Keys(_)) => flatten(&select, is_aggregate).unwrap_or(select),
        _ => select,
    }
}

fn flatten(select: &Select, is_aggregate: IsAggregate) -> Option<Select> {
    let [FromItem { unnest: false, expr, alias: Some(alias) }] = select.from.as_slice() else { return None };
    let ExprKind::Subquery { select: inner, .. } = &expr.kind else { return None };
    let nested = flatten(inner, is_aggregate);
    let inner = nested.as_ref().unwrap_or(inner);
    if inner.spec.items().iter().any(|item| is_aggregate(&item.expr)) {
        return None;
    }
    let rows = Rows::of(inner, &alias.text)?;
    let mut outer = select.clone();
    rows.replace_in(&mut outer)?;
    outer.from = inner.from.clone();
    let filters = [inner.filter.clone(), rows.is_defined(), outer.filter.take()];
    outer.filter = and(filters.into_iter().flatten().collect());
    Some(outer)
}

/// What the rows of a subquery consist of.
struct Rows<'q> {
    /// The alias of the item in the subquery, and that of the row in the outer query.
    root: &'q str,
    alias: &'q str,
    columns: Columns<'q>,
    is_joined: bool,
    /// The outer query uses a row with computed values. It may do so once: they are not computed again.
    is_computed: Cell<bool>,
}

enum Columns<'q> {
    Item,
    /// `SELECT VALUE c.o`: undefined values give no row.
    Part(&'q Expr),
    /// The members of an object: paths, or computed values.
    List(Vec<(&'q str, &'q Expr)>),
}

impl<'q> Rows<'q> {
    fn of(inner: &'q Select, alias: &'q str) -> Option<Self> {
        let (source, joined) = inner.from.split_first()?;
        let root = source.name()?;
        let is_joined = !joined.is_empty();
        let combines = inner.distinct || !inner.group_by.is_empty();
        let is_limited = inner.top.is_some() || inner.offset_limit.is_some() || inner.order_by.is_some();
        if source.unnest || !is_path(&source.expr, None) || combines || is_limited {
            return None;
        }
        let columns = match &inner.spec {
            SelectSpec::Star(_) if is_joined => return None,
            SelectSpec::Star(_) => Columns::Item,
            SelectSpec::Value(SelectItem { expr, .. }) => match &expr.kind {
                ExprKind::Name(name) if name == root => Columns::Item,
                ExprKind::Object(members) => members_of(members.iter().map(|(name, expr)| (name.as_str(), expr)))?,
                _ => Columns::Part(Some(expr).filter(|expr| is_path(expr, Some(root)))?),
            },
            SelectSpec::List(items) => {
                let columns = items.iter().map(|item| Some((item.name()?, &item.expr)));
                members_of(columns.collect::<Option<Vec<_>>>()?.into_iter())?
            }
        };
        Some(Rows { root, alias, columns, is_joined, is_computed: Cell::new(false) })
    }

    fn is_defined(&self) -> Option<Expr> {
        let Columns::Part(part) = self.columns else { return None };
        let kind = ExprKind::Call { function: "IS_DEFINED".to_owned(), arguments: vec![part.clone()] };
        Some(Expr { kind, span: part.span })
    }

    /// Replaces the row's alias in all clauses but `FROM`. Columns keep their names.
    fn replace_in(&self, outer: &mut Select) -> Option<()> {
        match &mut outer.spec {
            SelectSpec::Star(_) if matches!(self.columns, Columns::Item) && !self.is_joined => {}
            SelectSpec::Star(span) => {
                let expr = Expr { kind: self.row()?, span: *span };
                outer.spec = SelectSpec::Value(SelectItem { expr, alias: None });
            }
            SelectSpec::Value(item) => self.replace(&mut item.expr)?,
            SelectSpec::List(items) => items.iter_mut().try_for_each(|item| self.replace_column(item))?,
        }
        outer.filter.iter_mut().try_for_each(|filter| self.replace(filter))?;
        outer.group_by.iter_mut().try_for_each(|key| self.replace(key))?;
        match &mut outer.order_by {
            Some(OrderBy::Keys(keys)) => keys.iter_mut().try_for_each(|key| self.replace(&mut key.expr)),
            Some(OrderBy::Rank(_)) => None,
            None => Some(()),
        }
    }

    fn replace_column(&self, item: &mut SelectItem) -> Option<()> {
        let name = item.name().map(str::to_owned);
        self.replace(&mut item.expr)?;
        if item.name() != name.as_deref() {
            item.alias = name.map(|text| Name { text, span: item.expr.span });
        }
        Some(())
    }

    fn replace(&self, expr: &mut Expr) -> Option<()> {
        match &mut expr.kind {
            ExprKind::Name(name) if name == self.alias => expr.kind = self.row()?,
            // The outer query cannot use other names: `check` reports them. Subqueries may bind the names again.
            ExprKind::Name(_) | ExprKind::Subquery { .. } => return None,
            ExprKind::Access { base, steps } => {
                steps.iter_mut().filter_map(AstStep::index_mut).try_for_each(|index| self.replace(index))?;
                match &base.kind {
                    ExprKind::Name(name) if name == self.alias => expr.kind = self.part(steps)?,
                    _ => self.replace(base)?,
                }
            }
            _ => expr.each_child_mut(&mut |child| self.replace(child))?,
        }
        Some(())
    }

    fn row(&self) -> Option<ExprKind> {
        Some(match &self.columns {
            Columns::Item => ExprKind::Name(self.root.to_owned()),
            Columns::Part(part) => part.kind.clone(),
            Columns::List(columns) => {
                if !columns.iter().all(|(_, expr)| is_path(expr, Some(self.root))) && self.is_computed.replace(true) {
                    return None;
                }
                let property = |(name, expr): &(&str, &Expr)| ((*name).to_owned(), (*expr).clone());
                ExprKind::Object(columns.iter().map(property).collect())
            }
        })
    }

    /// The path below a row.
    fn part(&self, steps: &[AstStep]) -> Option<ExprKind> {
        let below = |part: &ExprKind, steps: &[AstStep]| match part {
            _ if steps.is_empty() => part.clone(),
            ExprKind::Access { base, steps: first } => {
                ExprKind::Access { base: base.clone(), steps: [first.as_slice(), steps].concat() }
            }
            part => ExprKind::Access {
                base: Box::new(Expr { kind: part.clone(), span: Span::default() }),
                steps: steps.to_vec(),
            },
        };
        match &self.columns {
            Columns::List(columns) => {
                let (first, rest) = steps.split_first()?;
                let (_, part) = columns.iter().find(|(name, _)| Some(*name) == first.property())?;
                is_path(part, Some(self.root)).then(|| below(&part.kind, rest))
            }
            _ => Some(below(&self.row()?, steps)),
        }
    }
}

/// `None` for two members of one name.
fn members_of<'q>(members: impl Iterator<Item = (&'q str, &'q Expr)>) -> Option<Columns<'q>> {
    let members: Vec<(&str, &Expr)> = members.collect();
    let names: HashSet<&str> = members.iter().map(|(name, _)| *name).collect();
    (members.len() == names.len()).then_some(Columns::List(members))
}

/// `c` or `c.a["b"]`, for one alias or for any.
fn is_path(expr: &Expr, root: Option<&str>) -> bool {
    match &expr.kind {
        ExprKind::Name(name) => root.is_none_or(|root| root == name),
        ExprKind::Access { base, steps } => {
            matches!(base.kind, ExprKind::Name(_))
                && is_path(base, root)
                && steps.iter().all(|step| step.property().is_some())
        }
        _ => false,
    }
}

fn and(filters: Vec<Expr>) -> Option<Expr> {
    let term = |filter: Expr| match filter.kind {
        ExprKind::And(terms) => terms,
        _ => vec![filter],
    };
    let mut terms: Vec<Expr> = filters.into_iter().flat_map(term).collect();
    if terms.len() < 2 {
        return terms.pop();
    }
    let span = terms.first()?.span;
    Some(Expr { kind: ExprKind::And(terms), span })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::parse::print::{print, print_expr};

    fn flattened(text: &str) -> Option<String> {
        let is_aggregate = |expr: &Expr| print_expr(expr).contains("COUNT(");
        flatten(&parse(text).unwrap(), is_aggregate).map(|select| print(&select))
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(flattened(text).as_deref(), Some(want), "{text}");
    }

    #[test]
    fn whole_items() {
        check(
            "SELECT VALUE s FROM (SELECT * FROM c WHERE c.n > 1) s WHERE s.m ORDER BY s.id OFFSET 1 LIMIT 2",
            "SELECT VALUE c FROM c WHERE c.n > 1 AND c.m ORDER BY c.id OFFSET 1 LIMIT 2",
        );
        check("SELECT * FROM (SELECT VALUE c FROM c) c ORDER BY c.id", "SELECT * FROM c ORDER BY c.id");
        check(
            "SELECT s, s.a FROM (SELECT VALUE t FROM (SELECT * FROM c) t) s ORDER BY s.a",
            "SELECT c AS s, c.a FROM c ORDER BY c.a",
        );
    }

    #[test]
    fn parts_of_items() {
        check(
            "SELECT VALUE s FROM (SELECT VALUE c.o FROM c WHERE c.n = 1 OR c.m) s ORDER BY s.id",
            "SELECT VALUE c.o FROM c WHERE (c.n = 1 OR c.m) AND IS_DEFINED(c.o) ORDER BY c.o.id",
        );
        check("SELECT VALUE s.o FROM (SELECT c.o FROM c) s ORDER BY s.o.id", "SELECT VALUE c.o FROM c ORDER BY c.o.id");
        check(
            "SELECT s.p, s FROM (SELECT c.o AS p, c FROM c) s ORDER BY s.c.id",
            r#"SELECT c.o AS p, {"p": c.o, "c": c} AS s FROM c ORDER BY c.id"#,
        );
    }

    /// As LINQ writes it.
    #[test]
    fn objects_with_parts_of_items() {
        check(
            r#"SELECT VALUE r FROM (SELECT VALUE {"a": c["x"], "n": ARRAY_LENGTH(c.list), "v": v} FROM c JOIN (SELECT VALUE COUNT(1) FROM t IN c.tags) AS v) AS r ORDER BY r["a"] ASC, r.a.b"#,
            r#"SELECT VALUE {"a": c["x"], "n": ARRAY_LENGTH(c.list), "v": v} FROM c JOIN (SELECT VALUE COUNT(1) FROM t IN c.tags) AS v ORDER BY c["x"], c["x"].b"#,
        );
        check(
            "SELECT * FROM (SELECT VALUE c FROM c JOIN t IN c.tags) s ORDER BY s.id",
            "SELECT VALUE c FROM c JOIN t IN c.tags ORDER BY c.id",
        );
        check(
            "SELECT s.id, s AS row FROM (SELECT c.id, t FROM c JOIN t IN c.tags) s ORDER BY s.id",
            r#"SELECT c.id, {"id": c.id, "t": t} AS row FROM c JOIN t IN c.tags ORDER BY c.id"#,
        );
    }

    #[test]
    fn other_queries_stay_as_they_are() {
        for text in [
            r#"SELECT s, s AS t FROM (SELECT VALUE {"a": c.a, "r": RAND()} FROM c) s ORDER BY s.a"#,
            r#"SELECT VALUE s FROM (SELECT VALUE {"a": c.a + 1} FROM c) s ORDER BY s.a"#,
            r#"SELECT VALUE s FROM (SELECT VALUE {"n": COUNT(1)} FROM c) s ORDER BY s.n"#,
            "SELECT VALUE t FROM (SELECT c.id, t FROM c JOIN t IN c.tags) s ORDER BY s.id",
            "SELECT * FROM c ORDER BY c.id",
            "SELECT VALUE c.id FROM (SELECT * FROM c) s ORDER BY s.id",
            "SELECT VALUE s FROM (SELECT DISTINCT c.a FROM c) s ORDER BY s.a",
            "SELECT VALUE s FROM (SELECT c.a FROM c GROUP BY c.a) s ORDER BY s.a",
            "SELECT VALUE s FROM (SELECT VALUE t FROM t IN c.tags) s ORDER BY s.a",
            "SELECT VALUE s FROM (SELECT c.a + 1 AS a FROM c) s ORDER BY s.a",
            "SELECT VALUE s FROM (SELECT c.a FROM c) s ORDER BY s.b",
            "SELECT VALUE EXISTS(SELECT 1 FROM c IN s.tags) FROM (SELECT * FROM c) s ORDER BY s.b",
            "SELECT VALUE s FROM (SELECT * FROM c) s JOIN t IN s.tags ORDER BY s.b",
        ] {
            assert_eq!(flattened(text), None, "{text}");
        }
    }
}
