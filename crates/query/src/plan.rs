//! What a query needs, names resolved.
//!
//! Promise: a `Plan` can hold only what `run` and `expr` can do. Whatever else the language has is refused
//! here by its name, before any row is looked at.

use pleiad_model::{Error, Result, Value};

use crate::expr::unbuilt;
use crate::language::ast::{Expr, ExprKind, Name, OrderBy, Select, SelectItem, SelectSpec, Source, Step};
use crate::language::{Fault, Span};

#[derive(Clone, Debug)]
pub struct Plan {
    pub source: Option<RootSource>,
    pub filter: Option<Expr>,
    pub project: Project,
    pub top: Option<Expr>,
    /// Every parameter that the text uses.
    pub parameters: Vec<(String, Span)>,
}

/// `FROM root.a.b alias`: one row per item that has the path.
#[derive(Clone, Debug)]
pub struct RootSource {
    pub path: Vec<Step>,
    /// Absent when the path ends in an index and nobody named it.
    pub alias: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Project {
    Row,
    Value(Expr),
    Object(Vec<(String, Expr)>),
}

/// `text` is what the query was parsed from; faults point into it.
pub fn plan(select: Select, text: &str) -> Result<Plan> {
    refuse_clauses(&select)?;
    let source = root_source(select.from)?;
    let mut names = Names { alias: source.as_ref().and_then(|s| s.alias.as_deref()), parameters: Vec::new(), text };
    let project = project(select.spec, source.is_some()).map_err(|fault| fault.into_error(text))?;
    for expr in project.scalars().chain(&select.filter).chain(&select.top) {
        names.resolve(expr)?;
    }
    if let Some(Expr { kind: ExprKind::Constant(value), span }) = &select.top {
        top_count(Some(value), *span).map_err(|fault| fault.into_error(text))?;
    }
    let parameters = names.parameters;
    Ok(Plan { source, filter: select.filter, project, top: select.top, parameters })
}

/// The count of a `TOP` clause: a whole number that fits in 32 bits.
pub fn top_count(value: Option<&Value>, span: Span) -> Result<usize, Fault> {
    const NOT_AN_INTEGER: &str = "The count value provided for a TOP clause must be an integer.";
    const TOO_LARGE: &str = "The count value provided for a TOP clause exceeds the maximum allowed value.";
    let number = value.and_then(Value::as_number).map(|number| number.as_f64());
    let whole =
        number.filter(|n| n.fract() == 0.0 && *n >= 0.0).ok_or_else(|| Fault::coded(span, "SC2060", NOT_AN_INTEGER))?;
    if whole > f64::from(u32::MAX) {
        return Err(Fault::coded(span, "SC2060", TOO_LARGE));
    }
    Ok(whole as usize)
}

fn refuse_clauses(select: &Select) -> Result<()> {
    let present = [
        (select.distinct, "SELECT DISTINCT"),
        (select.from.len() > 1, "JOIN"),
        (select.from.iter().any(|source| source.each), "FROM … IN"),
        (!select.group_by.is_empty(), "GROUP BY"),
        (matches!(select.order_by, Some(OrderBy::Rank(_))), "ORDER BY RANK"),
        (select.order_by.is_some(), "ORDER BY"),
        (select.offset_limit.is_some(), "OFFSET LIMIT"),
    ];
    match present.into_iter().find(|(present, _)| *present) {
        Some((_, clause)) => Err(Error::refused(format_args!("The query clause {clause}"))),
        None => Ok(()),
    }
}

/// The one source that is left after the refusals.
fn root_source(from: Vec<Source>) -> Result<Option<RootSource>> {
    let Some(source) = from.into_iter().next() else { return Ok(None) };
    let alias = source.alias.map(|name| name.text).or_else(|| source.of.inferred_name().map(str::to_owned));
    let path = match source.of.kind {
        ExprKind::Name(_) => Vec::new(),
        ExprKind::Access { base, steps } if matches!(base.kind, ExprKind::Name(_)) => steps,
        ExprKind::Access { base, .. } => return Err(unbuilt(&base.kind)),
        kind => return Err(unbuilt(&kind)),
    };
    Ok(Some(RootSource { path, alias }))
}

fn project(spec: SelectSpec, has_source: bool) -> Result<Project, Fault> {
    match spec {
        SelectSpec::Star(_) if has_source => Ok(Project::Row),
        SelectSpec::Star(span) => {
            Err(Fault::coded(span, "SC2040", "'SELECT *' is only valid with a single input set."))
        }
        SelectSpec::Value(item) => Ok(Project::Value(item.expr)),
        SelectSpec::List(items) => Ok(Project::Object(columns(items)?)),
    }
}

/// Gives each item its name; those without one are `$1`, `$2`, … among themselves.
fn columns(items: Vec<SelectItem>) -> Result<Vec<(String, Expr)>, Fault> {
    let mut seen = std::collections::HashSet::new();
    let mut unnamed = 0;
    let mut columns = Vec::with_capacity(items.len());
    for SelectItem { expr, alias } in items {
        let span = alias.as_ref().map_or(expr.span, |name| name.span);
        let name = column_name(&expr, alias).unwrap_or_else(|| {
            unnamed += 1;
            format!("${unnamed}")
        });
        if !seen.insert(name.clone()) {
            return Err(Fault::plain(
                span,
                format!("The SELECT list names '{name}' twice. Give one of them an alias."),
            ));
        }
        columns.push((name, expr));
    }
    Ok(columns)
}

fn column_name(expr: &Expr, alias: Option<Name>) -> Option<String> {
    alias.map(|name| name.text).or_else(|| expr.inferred_name().map(str::to_owned))
}

impl Project {
    fn scalars(&self) -> impl Iterator<Item = &Expr> {
        let (value, columns) = match self {
            Project::Row => (None, [].as_slice()),
            Project::Value(expr) => (Some(expr), [].as_slice()),
            Project::Object(columns) => (None, columns.as_slice()),
        };
        value.into_iter().chain(columns.iter().map(|(_, expr)| expr))
    }
}

struct Names<'q> {
    alias: Option<&'q str>,
    parameters: Vec<(String, Span)>,
    text: &'q str,
}

impl Names<'_> {
    /// Every name is bound, every parameter noted, nothing unbuilt below.
    fn resolve(&mut self, expr: &Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Call { .. } | ExprKind::UserCall { .. } | ExprKind::Subquery { .. } => {
                return Err(unbuilt(&expr.kind));
            }
            ExprKind::Name(name) if self.alias != Some(name.as_str()) => return Err(self.unresolved(name, expr.span)),
            ExprKind::Parameter(name) => self.parameters.push((name.clone(), expr.span)),
            _ => {}
        }
        expr.each_child(&mut |child| self.resolve(child))
    }

    fn unresolved(&self, name: &str, span: Span) -> Error {
        Fault::coded(span, "SC2001", format!("Identifier '{name}' could not be resolved.")).into_error(self.text)
    }
}
