//! Rows in, rows out, for feeds that fit in memory.
//!
//! Promise: rows keep their order; a query without `FROM` gives one row whatever comes in; nothing that JSON
//! cannot say gets out.

use std::borrow::Cow;

use pleiad_model::{Error, Object, Result, Value};

use crate::Parameters;
use crate::expr::{Room, Scope, Term, evaluate, follow, is_true};
use crate::language::{self, Fault, TEXT_BYTES_MAX};
use crate::plan::{Plan, Project, RootSource, plan, top_count};

/// What one run may build: rows, and whatever its expressions make on the way.
pub const BUILT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A parsed query, ready for any rows and parameters.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    plan: Plan,
}

/// Parses a query. Syntax and unresolved names are `Invalid`, what is not built is `Refused`.
pub fn parse(text: &str) -> Result<Query> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::invalid(format!(
            "The query text is {} bytes long; the limit is {TEXT_BYTES_MAX}.",
            text.len()
        )));
    }
    let select = language::parse(text).map_err(|fault| fault.into_error(text))?;
    Ok(Query { plan: plan(select, text)?, text: text.to_owned() })
}

impl Query {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The result over `rows`, in their order.
    pub fn run_over<'a>(&self, parameters: &Parameters, rows: impl Iterator<Item = &'a Value>) -> Result<Vec<Value>> {
        self.check_declared(parameters)?;
        let top = self.top(parameters)?;
        let run = Run { plan: &self.plan, parameters, room: Room::new(BUILT_BYTES_MAX) };
        match &self.plan.source {
            None => run.answer(&[]).transpose().into_iter().take(top).collect(),
            Some(source) => rows.filter_map(|row| run.row(source, row).transpose()).take(top).collect(),
        }
    }

    fn check_declared(&self, parameters: &Parameters) -> Result<()> {
        match self.plan.parameters.iter().find(|(name, _)| !parameters.is_declared(name)) {
            None => Ok(()),
            Some((name, span)) => {
                let message = format!("The query uses the parameter '{name}', which the request does not declare.");
                Err(Fault::plain(*span, message).into_error(&self.text))
            }
        }
    }

    fn top(&self, parameters: &Parameters) -> Result<usize> {
        let Some(count) = &self.plan.top else { return Ok(usize::MAX) };
        let scope = Scope { bindings: &[], parameters, room: &Room::new(0) };
        let value = evaluate(count, &scope)?;
        top_count(value.as_deref(), count.span).map_err(|fault| fault.into_error(&self.text))
    }
}

/// One pass over the rows.
struct Run<'q> {
    plan: &'q Plan,
    parameters: &'q Parameters,
    room: Room,
}

impl Run<'_> {
    /// The answer for one item of the root source; an item without the source's path has none.
    fn row(&self, source: &RootSource, item: &Value) -> Result<Option<Value>> {
        let nothing = self.scope(&[]);
        let Some(value) = follow(Some(Cow::Borrowed(item)), &source.path, &nothing)? else { return Ok(None) };
        // No text can spell the empty name, so a source without alias is bound and out of reach.
        self.answer(&[(source.alias.as_deref().unwrap_or(""), value.as_ref())])
    }

    fn answer(&self, bindings: &[(&str, &Value)]) -> Result<Option<Value>> {
        let scope = self.scope(bindings);
        match &self.plan.filter {
            Some(filter) if !is_true(filter, &scope)? => Ok(None),
            _ => self.project(&scope),
        }
    }

    fn scope<'s>(&'s self, bindings: &'s [(&'s str, &'s Value)]) -> Scope<'s> {
        Scope { bindings, parameters: self.parameters, room: &self.room }
    }

    fn project<'s>(&'s self, scope: &Scope<'s>) -> Result<Option<Value>> {
        match &self.plan.project {
            Project::Row => publish(scope.bindings.first().map(|(_, row)| Cow::Borrowed(*row)), scope),
            Project::Value(expr) => publish(evaluate(expr, scope)?, scope),
            Project::Object(columns) => {
                let mut object = Object::new();
                for (name, expr) in columns {
                    if let Some(value) = publish(evaluate(expr, scope)?, scope)? {
                        object.set(name.as_str(), value);
                    }
                }
                Ok(Some(Value::Object(object)))
            }
        }
    }
}

/// The door to JSON: NaN and infinities stay inside.
fn publish(term: Term<'_>, scope: &Scope<'_>) -> Result<Option<Value>> {
    match term {
        None => Ok(None),
        Some(value) if is_json(&value) => scope.own(value).map(Some),
        Some(_) => {
            Err(Error::invalid("The query's result holds NaN or an infinite number, which JSON cannot represent."))
        }
    }
}

fn is_json(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_finite(),
        Value::Array(items) => items.iter().all(is_json),
        Value::Object(object) => object.iter().all(|(_, value)| is_json(value)),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests;
