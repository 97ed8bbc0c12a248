//! JavaScript to SQL: compiles the functions of the JavaScript query API to SQL.
//!
//! Guarantees: the SQL is equivalent to the function, with two exceptions that follow SQL on purpose, as in the
//! service: `<`, `<=`, `>` and `>=` compare only values of the same type, and a path through a missing property is
//! undefined instead of an exception.
//!
//! A function is parsed from its text; if it is one expression over its parameters, made of paths, literals,
//! comparisons, logic and a few string functions, it is translated. Everything else (outer variables, control flow,
//! other calls) is left to `query.js`, which runs it over the rows.
//!
//! ```text
//! filter(d => d.age < 30)  sortBy(d => d.name)  pluck("name")
//! SELECT VALUE r["name"] FROM r WHERE (r["age"] < 30) ORDER BY r["name"]
//! ```

mod js; // parser: text to syntax tree
mod lower; // syntax tree to SQL, where possible
mod sql; // SQL tree to text

#[cfg(test)]
mod tests;

use js::Lambda;
use lower::{LambdaScope, condition, projection};
use sql::Sql;

/// A projection that uses its input twice doubles the query with every stage; stages beyond this run in JavaScript.
const NODES_MAX: usize = 256;

/// Translates the longest prefix of the stages that is one query; returns its SQL and the number of stages.
///
/// A stage is its verb, its first function or property name, and its second function.
pub fn translate_prefix(stages: &[Vec<Option<String>>]) -> Vec<String> {
    let (mut query, mut stage_count) = (FluentQuery::new(), 0);
    while let Some(longer) = stages.get(stage_count).and_then(|stage| query.with_stage(stage)) {
        query = longer;
        stage_count += 1;
    }
    vec![query.to_string(), stage_count.to_string()]
}

/// A query under construction.
#[derive(Clone, Debug)]
struct FluentQuery {
    joins: Vec<(String, Sql)>,
    filters: Vec<Sql>,
    order: Option<(Sql, &'static str)>,
    /// The current row expression.
    row: Sql,
}

impl FluentQuery {
    fn new() -> FluentQuery {
        FluentQuery { joins: Vec::new(), filters: Vec::new(), order: None, row: Sql::root("r") }
    }

    /// This query with one more stage; None if the stage has no SQL, or the query would be too large.
    fn with_stage(&self, stage: &[Option<String>]) -> Option<FluentQuery> {
        let mut longer = self.clone();
        longer.extend(stage)?;
        (longer.node_count() <= NODES_MAX).then_some(longer)
    }

    fn node_count(&self) -> usize {
        let joins = self.joins.iter().map(|(_, inner)| inner);
        joins.chain(&self.filters).chain([&self.row]).map(Sql::node_count).sum()
    }

    fn extend(&mut self, stage: &[Option<String>]) -> Option<()> {
        let argument = |at: usize| stage.get(at).and_then(Option::as_deref);
        match (argument(0)?, argument(1)) {
            ("filter", Some(text)) => self.filter(text),
            ("map", Some(text)) => self.map(text),
            ("pluck", Some(name)) => self.pluck(name),
            ("sortBy", Some(text)) => self.sort(text, ""),
            ("sortByDescending", Some(text)) => self.sort(text, " DESC"),
            ("unwind", Some(text)) => self.unwind(text, argument(2)),
            _ => None,
        }
    }

    fn filter(&mut self, text: &str) -> Option<()> {
        let lambda = Lambda::parse(text)?;
        let filter = condition(&lambda.body, &self.scope(&lambda)?)?;
        self.filters.push(filter);
        Some(())
    }

    fn map(&mut self, text: &str) -> Option<()> {
        let lambda = Lambda::parse(text)?;
        self.row = projection(&lambda.body, &self.scope(&lambda)?)?;
        Some(())
    }

    fn pluck(&mut self, name: &str) -> Option<()> {
        self.row = self.row.member(name)?;
        Some(())
    }

    fn sort(&mut self, text: &str, direction: &'static str) -> Option<()> {
        let lambda = Lambda::parse(text)?;
        let key = projection(&lambda.body, &self.scope(&lambda)?)?;
        let is_possible = self.order.is_none() && self.joins.is_empty() && key.is_property_path();
        is_possible.then(|| self.order = Some((key, direction)))
    }

    /// `unwind(d => d.kids, (d, kid) => …)` is a join.
    fn unwind(&mut self, selector: &str, result: Option<&str>) -> Option<()> {
        let lambda = Lambda::parse(selector)?;
        let inner = projection(&lambda.body, &self.scope(&lambda)?)?;
        if self.order.is_some() || !inner.is_property_path() {
            return None;
        }
        let alias = format!("x{}", self.joins.len());
        let item = Sql::root(&alias);
        self.row = match result {
            None => item,
            Some(text) => join_projection(text, self.row.clone(), item)?,
        };
        self.joins.push((alias, inner));
        Some(())
    }

    fn scope(&self, lambda: &Lambda) -> Option<LambdaScope> {
        LambdaScope::of(&lambda.parameters, [self.row.clone()])
    }
}

fn join_projection(text: &str, row: Sql, item: Sql) -> Option<Sql> {
    let lambda = Lambda::parse(text)?;
    projection(&lambda.body, &LambdaScope::of(&lambda.parameters, [row, item])?)
}
