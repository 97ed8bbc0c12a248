//! Semantic analysis: the rules of the language that the grammar cannot express.
//!
//! Guarantees: in a query that passes, names resolve, functions exist and have the right number of arguments,
//! aggregates and clauses appear where they are allowed, and counts are integers. Every error has a position, the
//! service's code and message where they are known, and a hint where one helps. Unsupported features are rejected by
//! name. `compile` and `run` check values.
//!
//! ```text
//! SELECT name FROM c             SC2001  Identifier 'name' could not be resolved. Write c.name for …
//! SELECT LEN(c.name) FROM c      SC2005  'LEN' is not a recognized built-in function name. Write LENGTH(text).
//! SELECT c.a, COUNT(1) FROM c    SC2102  Property reference 'c.a' is invalid in the select list because …
//! ```

mod calls; // functions and their argument counts
mod clauses; // which clauses may be combined
mod counts; // TOP, OFFSET, LIMIT
mod groups; // aggregates and GROUP BY
mod names; // name resolution
mod rank; // ORDER BY RANK
mod suggest; // suggestions for unknown function names

use std::collections::HashSet;

use pleiad_model::{Error, Result};

pub use counts::{Counts, counts};
pub use groups::{GroupKeys, aggregate, contains_aggregate, has_aggregate};

use crate::Parameters;
use crate::parse::ast::{AstStep, Expr, ExprKind, Select};
use crate::parse::{self, Diagnostic, Span, TEXT_BYTES_MAX};
use crate::pass_through::flatten_sorted;
use names::NameScope;

/// The largest number of `JOIN`s in a query, subqueries included.
pub const JOINS_MAX: usize = 10;

/// The largest number of distinct user-defined functions in a query.
pub const USER_FUNCTIONS_MAX: usize = 10;

/// Parses a query and checks its length, syntax and semantics.
pub fn parse_and_check(text: &str) -> Result<Select> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("The query text is {} bytes long; the limit is {TEXT_BYTES_MAX}.", text.len());
        return Err(Error::invalid(message));
    }
    let select = parse::parse(text).map_err(|diagnostic| diagnostic.into_error(text))?;
    let select = flatten_sorted(select, contains_aggregate);
    check(&select, text)?;
    Ok(select)
}

/// Checks a tree that was parsed from `text`; positions in errors refer to it.
pub fn check(select: &Select, text: &str) -> Result<()> {
    let mut checker = Checker::default();
    let misplaced = rank::source_errors(select).into_iter().chain(clauses::subquery_errors(select));
    let checked = Diagnostic::combine(misplaced).map_or(Ok(()), Err);
    let checked = checked.and_then(|()| checker.block(select, &NameScope::outermost()));
    checked.map_err(|diagnostic| diagnostic.into_error(text))?;
    clauses::check_joined_order(select)
}

/// The counts of `TOP`, `OFFSET` and `LIMIT`, with parameters bound; an error if one is not a valid count.
pub fn check_parameters(select: &Select, parameters: &Parameters, text: &str) -> Result<Counts> {
    counts(select, parameters).map_err(|diagnostic| diagnostic.into_error(text))
}

/// The names of the parameters that a query uses, in text order, each once.
pub fn parameter_names(select: &Select) -> Vec<&str> {
    let mut names = Vec::new();
    collect_parameters(select, &mut names);
    names
}

fn collect_parameters<'q>(select: &'q Select, names: &mut Vec<&'q str>) {
    let visited: Result<(), std::convert::Infallible> = select.each_scalar(&mut |scalar| {
        collect_parameters_in(scalar, names);
        Ok(())
    });
    let Ok(()) = visited;
}

fn collect_parameters_in<'q>(expr: &'q Expr, names: &mut Vec<&'q str>) {
    match &expr.kind {
        ExprKind::Subquery { select, .. } => collect_parameters(select, names),
        ExprKind::Parameter(name) if !names.contains(&name.as_str()) => names.push(name),
        _ => {}
    }
    let visited: Result<(), std::convert::Infallible> = expr.each_child(&mut |child| {
        collect_parameters_in(child, names);
        Ok(())
    });
    let Ok(()) = visited;
}

/// The user-defined functions that a query calls, each with the span of its first call.
pub fn user_functions(select: &Select) -> Vec<(&str, Span)> {
    let mut found = Vec::new();
    collect_functions(select, &mut found);
    found
}

fn collect_functions<'q>(select: &'q Select, found: &mut Vec<(&'q str, Span)>) {
    let visited: Result<(), std::convert::Infallible> = select.each_scalar(&mut |scalar| {
        collect_functions_in(scalar, found);
        Ok(())
    });
    let Ok(()) = visited;
}

fn collect_functions_in<'q>(expr: &'q Expr, found: &mut Vec<(&'q str, Span)>) {
    match &expr.kind {
        ExprKind::Subquery { select, .. } => return collect_functions(select, found),
        ExprKind::UserCall { function, .. } if found.iter().all(|(name, _)| name != function) => {
            found.push((function, expr.span));
        }
        _ => {}
    }
    let visited: Result<(), std::convert::Infallible> = expr.each_child(&mut |child| {
        collect_functions_in(child, found);
        Ok(())
    });
    let Ok(()) = visited;
}

type Checked = Result<(), Diagnostic>;

/// The context of a scalar, which decides whether it may contain aggregates.
#[derive(Clone, Copy, PartialEq)]
enum ExprContext {
    Select,
    /// In the argument of the aggregate with this span.
    Aggregate(Span),
    /// In a clause that is evaluated for single rows.
    Row(&'static str),
}

/// Counters over the whole query.
#[derive(Default)]
struct Checker<'q> {
    joins: usize,
    user_functions: HashSet<&'q str>,
}

impl<'q> Checker<'q> {
    fn block(&mut self, select: &'q Select, outer: &NameScope<'q>) -> Checked {
        clauses::check(select)?;
        self.count_joins(select)?;
        let scope = self.sources(select, outer)?;
        for item in select.spec.items() {
            self.scalar(&item.expr, &scope, ExprContext::Select)?;
        }
        if let Some(filter) = &select.filter {
            self.scalar(filter, &scope, ExprContext::Row("WHERE"))?;
        }
        for key in &select.group_by {
            self.scalar(key, &scope, ExprContext::Row("GROUP BY"))?;
        }
        groups::check(select)?;
        self.order_by(select, &scope)?;
        counts::check_constants(select)?;
        Ok(())
    }

    fn count_joins(&mut self, select: &Select) -> Result<(), Diagnostic> {
        self.joins += select.from.len().saturating_sub(1);
        match select.from.last() {
            Some(last) if self.joins > JOINS_MAX => {
                let message = format!("The query has more than {JOINS_MAX} JOINs. Split it.");
                Err(Diagnostic::plain(last.expr.span, message))
            }
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, expr: &'q Expr, scope: &NameScope<'q>, context: ExprContext) -> Checked {
        match &expr.kind {
            ExprKind::Name(name) => scope.resolve(name, expr.span),
            ExprKind::Access { steps, .. } if steps.iter().filter_map(AstStep::index).any(depends_on_row) => {
                const INDEXER: &str = "The specified query includes 'member indexer' which is currently not supported.";
                Err(Diagnostic::coded(expr.span, "SC2990", INDEXER))
            }
            ExprKind::Call { function, arguments } => self.call(expr, function, arguments, scope, context),
            ExprKind::UserCall { function, arguments } => {
                self.user_function(function, expr.span)?;
                self.scalars(arguments, scope, context)
            }
            ExprKind::Subquery { select, .. } => match context {
                ExprContext::Aggregate(around) if !scope.is_correlated() => Err(groups::nested_aggregate(around)),
                _ => self.block(select, scope),
            },
            _ => expr.each_child(&mut |child| self.scalar(child, scope, context)),
        }
    }

    fn scalars(&mut self, exprs: &'q [Expr], scope: &NameScope<'q>, context: ExprContext) -> Checked {
        exprs.iter().try_for_each(|expr| self.scalar(expr, scope, context))
    }

    fn user_function(&mut self, name: &'q str, span: Span) -> Result<(), Diagnostic> {
        self.user_functions.insert(name);
        if self.user_functions.len() <= USER_FUNCTIONS_MAX {
            return Ok(());
        }
        let message = format!(
            "The SQL query exceeded the maximum number of user-defined function calls. \
             The allowed limit is {USER_FUNCTIONS_MAX}."
        );
        Err(Diagnostic::coded(span, "SC3005", message))
    }
}

/// Whether the value can differ from row to row.
fn depends_on_row(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Name(_) | ExprKind::Subquery { .. } | ExprKind::UserCall { .. })
        || expr.each_child(&mut |child| if depends_on_row(child) { Err(()) } else { Ok(()) }).is_err()
}

#[cfg(test)]
mod tests;
