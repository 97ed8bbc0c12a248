//! One scalar over one row.
//!
//! Promise: types never make an error. An operator whose operands do not fit gives *undefined*, which is
//! `None`, and the logic of `AND`, `OR` and `NOT` is three-valued over it. Inside an expression a number may
//! be NaN or infinite; `run` lets neither out.

mod arithmetic; // numbers and bits
mod compare; // equal, less
mod like; // patterns
mod scope; // what names stand for, and how much may be built

use std::borrow::Cow;

use pleiad_model::{Error, Object, Result, Value};

use crate::language::ast::{BinaryOp, Expr, ExprKind, Step, UnaryOp};
use like::Pattern;
pub use scope::{Room, Scope};

/// A value, borrowed from the row, the query or the parameters where possible; `None` is undefined.
pub type Term<'a> = Option<Cow<'a, Value>>;

pub fn evaluate<'a>(expr: &'a Expr, scope: &Scope<'a>) -> Result<Term<'a>> {
    match &expr.kind {
        ExprKind::Undefined => Ok(None),
        ExprKind::Constant(value) => Ok(Some(Cow::Borrowed(value))),
        ExprKind::Name(name) => Ok(scope.binding(name).map(Cow::Borrowed)),
        ExprKind::Parameter(name) => Ok(scope.parameters.get(name).map(Cow::Borrowed)),
        ExprKind::Access { base, steps } => access(base, steps, scope),
        ExprKind::Unary { op, operand } => unary(*op, operand, scope),
        ExprKind::Binary { first, rest } => binary(first, rest, scope),
        ExprKind::And(terms) => all(terms, scope).map(logical),
        ExprKind::Or(terms) => any(terms, scope).map(logical),
        ExprKind::Coalesce(terms) => coalesce(terms, scope),
        ExprKind::Conditional { arms, otherwise } => conditional(arms, otherwise, scope),
        ExprKind::In { not, operand, list } => Ok(logical(negate_if(*not, is_in(operand, list, scope)?))),
        ExprKind::Between { not, operand, low, high } => {
            Ok(logical(negate_if(*not, is_between(operand, low, high, scope)?)))
        }
        ExprKind::Like { not, operand, pattern, escape } => {
            Ok(logical(negate_if(*not, is_like(operand, pattern, *escape, scope)?)))
        }
        ExprKind::Object(properties) => object(properties, scope),
        ExprKind::Array(items) => array(items, scope),
        ExprKind::Call { .. } | ExprKind::UserCall { .. } | ExprKind::Subquery { .. } => Err(unbuilt(&expr.kind)),
    }
}

/// Whether a row that meets this condition stays: only `true` keeps it.
pub fn is_true<'a>(condition: &'a Expr, scope: &Scope<'a>) -> Result<bool> {
    Ok(boolean(&evaluate(condition, scope)?) == Some(true))
}

/// The refusal for a scalar that parses but is not built.
pub(crate) fn unbuilt(kind: &ExprKind) -> Error {
    match kind {
        ExprKind::Call { function, .. } => {
            Error::refused(format_args!("The query function {}", function.to_uppercase()))
        }
        ExprKind::UserCall { function, .. } => Error::refused(format_args!("The user-defined function udf.{function}")),
        _ => Error::refused("A subquery"),
    }
}

// Logic. A non-boolean counts as undefined.

fn boolean(term: &Term<'_>) -> Option<bool> {
    term.as_ref()?.as_bool()
}

fn logical<'a>(truth: Option<bool>) -> Term<'a> {
    truth.map(|truth| Cow::Owned(Value::Bool(truth)))
}

fn negate_if(not: bool, truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| truth != not)
}

fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn either(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn all(terms: &[Expr], scope: &Scope<'_>) -> Result<Option<bool>> {
    let mut truth = Some(true);
    for term in terms {
        truth = both(truth, boolean(&evaluate(term, scope)?));
        if truth == Some(false) {
            break;
        }
    }
    Ok(truth)
}

fn any(terms: &[Expr], scope: &Scope<'_>) -> Result<Option<bool>> {
    let mut truth = Some(false);
    for term in terms {
        truth = either(truth, boolean(&evaluate(term, scope)?));
        if truth == Some(true) {
            break;
        }
    }
    Ok(truth)
}

// Choices.

fn coalesce<'a>(terms: &'a [Expr], scope: &Scope<'a>) -> Result<Term<'a>> {
    for term in terms {
        let value = evaluate(term, scope)?;
        if value.is_some() {
            return Ok(value);
        }
    }
    Ok(None)
}

fn conditional<'a>(arms: &'a [(Expr, Expr)], otherwise: &'a Expr, scope: &Scope<'a>) -> Result<Term<'a>> {
    for (condition, value) in arms {
        if is_true(condition, scope)? {
            return evaluate(value, scope);
        }
    }
    evaluate(otherwise, scope)
}

// Predicates.

/// The `OR` of the equalities: an undefined entry matters only when nothing matches.
fn is_in(operand: &Expr, list: &[Expr], scope: &Scope<'_>) -> Result<Option<bool>> {
    let operand = evaluate(operand, scope)?;
    if operand.is_none() {
        return Ok(None);
    }
    let mut truth = Some(false);
    for entry in list {
        truth = either(truth, compare::equal(&operand, &evaluate(entry, scope)?));
        if truth == Some(true) {
            break;
        }
    }
    Ok(truth)
}

fn is_between(operand: &Expr, low: &Expr, high: &Expr, scope: &Scope<'_>) -> Result<Option<bool>> {
    let operand = evaluate(operand, scope)?;
    let above = compare::ordered(BinaryOp::GreaterOrEqual, &operand, &evaluate(low, scope)?);
    let below = compare::ordered(BinaryOp::LessOrEqual, &operand, &evaluate(high, scope)?);
    Ok(both(above, below))
}

fn is_like(operand: &Expr, pattern: &Expr, escape: Option<char>, scope: &Scope<'_>) -> Result<Option<bool>> {
    let (operand, pattern) = (evaluate(operand, scope)?, evaluate(pattern, scope)?);
    match (string(&operand), string(&pattern)) {
        (Some(text), Some(pattern)) => Ok(Some(Pattern::compile(pattern, escape)?.matches(text))),
        _ => Ok(None),
    }
}

fn string<'v>(term: &'v Term<'_>) -> Option<&'v str> {
    term.as_ref()?.as_str()
}

// Operators.

fn unary<'a>(op: UnaryOp, operand: &'a Expr, scope: &Scope<'a>) -> Result<Term<'a>> {
    let operand = evaluate(operand, scope)?;
    Ok(match op {
        UnaryOp::Not => logical(negate_if(true, boolean(&operand))),
        _ => operand.and_then(|v| v.as_number()).map(|n| Cow::Owned(Value::Number(arithmetic::unary(op, n)))),
    })
}

/// Left to right through one level's chain.
fn binary<'a>(first: &'a Expr, rest: &'a [(BinaryOp, Expr)], scope: &Scope<'a>) -> Result<Term<'a>> {
    let mut left = evaluate(first, scope)?;
    for (op, operand) in rest {
        let right = evaluate(operand, scope)?;
        left = apply(*op, left, right, scope)?;
    }
    Ok(left)
}

fn apply<'a>(op: BinaryOp, left: Term<'a>, right: Term<'a>, scope: &Scope<'a>) -> Result<Term<'a>> {
    use BinaryOp::*;
    match op {
        Equal => Ok(logical(compare::equal(&left, &right))),
        NotEqual => Ok(logical(negate_if(true, compare::equal(&left, &right)))),
        Less | Greater | LessOrEqual | GreaterOrEqual => Ok(logical(compare::ordered(op, &left, &right))),
        Concat => concat(left, right, scope),
        _ => Ok(arithmetic::term(op, &left, &right)),
    }
}

/// Appends in place once the left side is ours: a long chain copies each part once.
fn concat<'a>(left: Term<'a>, right: Term<'a>, scope: &Scope<'a>) -> Result<Term<'a>> {
    let (Some(left), Some(tail)) = (left, string(&right)) else { return Ok(None) };
    if left.as_str().is_none() {
        return Ok(None);
    }
    scope.room.take(tail.len())?;
    let Value::String(mut text) = scope.own(left)? else { return Ok(None) };
    text.push_str(tail);
    Ok(Some(Cow::Owned(Value::String(text))))
}

// Paths.

fn access<'a>(base: &'a Expr, steps: &'a [Step], scope: &Scope<'a>) -> Result<Term<'a>> {
    follow(evaluate(base, scope)?, steps, scope)
}

/// Walks down from a value.
pub(crate) fn follow<'a>(mut term: Term<'a>, steps: &'a [Step], scope: &Scope<'a>) -> Result<Term<'a>> {
    for step in steps {
        let Some(value) = term else { return Ok(None) };
        term = match step {
            Step::Property(name) => property(value, name),
            Step::Index(index) => element(value, evaluate(index, scope)?),
        };
    }
    Ok(term)
}

fn property<'a>(value: Cow<'a, Value>, name: &str) -> Term<'a> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut object)) => object.remove(name).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

/// A string reaches into objects, a number into arrays: `c[0]` is not `c["0"]`.
fn element<'a>(value: Cow<'a, Value>, index: Term<'_>) -> Term<'a> {
    match index?.as_ref() {
        Value::String(name) => property(value, name),
        Value::Number(position) => item(value, usize::try_from(position.as_i64()?).ok()?),
        _ => None,
    }
}

fn item(value: Cow<'_, Value>, position: usize) -> Term<'_> {
    match value {
        Cow::Borrowed(value) => value.as_array()?.get(position).map(Cow::Borrowed),
        Cow::Owned(Value::Array(items)) => items.into_iter().nth(position).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

// Constructors leave undefined out.

fn object<'a>(properties: &'a [(String, Expr)], scope: &Scope<'a>) -> Result<Term<'a>> {
    let mut object = Object::new();
    for (name, expr) in properties {
        if let Some(value) = evaluate(expr, scope)? {
            scope.room.take(name.len())?;
            object.set(name.as_str(), scope.own(value)?);
        }
    }
    Ok(Some(Cow::Owned(Value::Object(object))))
}

fn array<'a>(items: &'a [Expr], scope: &Scope<'a>) -> Result<Term<'a>> {
    let mut array = Vec::with_capacity(items.len());
    for expr in items {
        if let Some(value) = evaluate(expr, scope)? {
            array.push(scope.own(value)?);
        }
    }
    Ok(Some(Cow::Owned(Value::Array(array))))
}

#[cfg(test)]
mod tests;
