//! Expression evaluation: the value of one scalar expression for one row.
//!
//! Guarantees: a type mismatch is never an error. An operator with operands of the wrong type returns *undefined*,
//! which is `None`; `AND`, `OR` and `NOT` are three-valued over it. Inside an expression a number may be NaN or
//! infinite; `run` returns neither to clients.

pub mod aggregate; // COUNT, SUM, MIN, …
mod arithmetic; // arithmetic and bitwise operators
pub mod compare; // equality and order
mod context; // clock, memory budget, interrupt, user-defined functions
mod distance; // VectorDistance
pub mod full_text; // full-text search and relevance
pub mod functions; // built-in functions
pub mod like; // LIKE patterns
mod raw_compare; // comparison of a property with a constant, without parsing

use std::borrow::Cow;

use pleiad_model::{Error, Object, Result, Value};

use crate::block::{AccessStep, LikeOperand, ScalarExpr};
use crate::document::{Bindings, GroupRow, SlotValue, lookup};
use crate::parse::ast::{BinaryOp, UnaryOp};
use crate::run::subquery;
pub use context::{CheckLimit, Context, Interrupt, MemoryBudget, UserFunctions, memory_bytes};
use like::LikePattern;

/// A value, borrowed from the row, the query or the parameters where possible; `None` is undefined.
pub type Datum<'a> = Option<Cow<'a, Value>>;

pub fn evaluate<'a>(node: &'a ScalarExpr, rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    match node {
        ScalarExpr::Undefined => Ok(None),
        ScalarExpr::Constant(value) => Ok(Some(Cow::Borrowed(value))),
        ScalarExpr::Slot(slot) => lookup(rows, *slot).map_or(Ok(None), SlotValue::value),
        ScalarExpr::Path { slot, steps } => lookup(rows, *slot).map_or(Ok(None), |bound| bound.path(steps)),
        ScalarExpr::Access { base, steps } => follow(evaluate(base, rows, cx)?, steps, rows, cx),
        ScalarExpr::Key { slot, at } => Ok(group(rows, *slot).and_then(|group| group.keys.get(*at)).and_then(borrowed)),
        ScalarExpr::Aggregate { slot, at } => {
            Ok(group(rows, *slot).and_then(|group| group.aggregates.get(*at)).and_then(borrowed))
        }
        ScalarExpr::Unary { op, operand } => unary(*op, evaluate(operand, rows, cx)?),
        ScalarExpr::Binary { first, rest } => binary(first, rest, rows, cx),
        ScalarExpr::And(terms) => all(terms, rows, cx).map(logical),
        ScalarExpr::Or(terms) => any(terms, rows, cx).map(logical),
        ScalarExpr::Coalesce(terms) => coalesce(terms, rows, cx),
        ScalarExpr::Conditional { arms, otherwise } => conditional(arms, otherwise, rows, cx),
        ScalarExpr::In { not, operand, list } => Ok(logical(negate_if(*not, is_in(operand, list, rows, cx)?))),
        ScalarExpr::Between { not, operand, low, high } => {
            Ok(logical(negate_if(*not, is_between(operand, low, high, rows, cx)?)))
        }
        ScalarExpr::Like { not, operand, pattern } => {
            Ok(logical(negate_if(*not, is_like(operand, pattern, rows, cx)?)))
        }
        ScalarExpr::Object(properties) => object(properties, rows, cx),
        ScalarExpr::Array(items) => array(items, rows, cx),
        ScalarExpr::Call { function, arguments } => call(function, arguments, rows, cx),
        ScalarExpr::Distance(distance) => distance::between(distance, rows, cx),
        ScalarExpr::UserCall { function, arguments } => user_call(function, arguments, rows, cx),
        ScalarExpr::FullText(call) => call.evaluate(rows, cx),
        ScalarExpr::Subquery { form, block } => subquery(*form, block, rows, cx).map(|value| value.map(Cow::Owned)),
    }
}

/// Whether a filter keeps the row: only `true` does, not undefined.
pub fn is_true(condition: &ScalarExpr, rows: Bindings<'_>, cx: &Context<'_>) -> Result<bool> {
    Ok(truth(condition, rows, cx)? == Some(true))
}

/// The truth value of a condition, without building a `Value`.
pub(crate) fn truth(node: &ScalarExpr, rows: Bindings<'_>, cx: &Context<'_>) -> Result<Option<bool>> {
    match node {
        ScalarExpr::And(terms) => all(terms, rows, cx),
        ScalarExpr::Or(terms) => any(terms, rows, cx),
        ScalarExpr::Binary { first, rest } => match raw_compare::compare(first, rest, rows) {
            Some(truth) => Ok(truth),
            None => Ok(boolean(&evaluate(node, rows, cx)?)),
        },
        ScalarExpr::Call { function, arguments } => match raw_compare::array_contains(function, arguments, rows) {
            Some(truth) => Ok(truth),
            None => Ok(boolean(&evaluate(node, rows, cx)?)),
        },
        _ => Ok(boolean(&evaluate(node, rows, cx)?)),
    }
}

fn group(rows: Bindings<'_>, slot: usize) -> Option<&GroupRow> {
    match lookup(rows, slot)? {
        SlotValue::Group(group) => Some(group),
        _ => None,
    }
}

fn borrowed(value: &Option<Value>) -> Datum<'_> {
    value.as_ref().map(Cow::Borrowed)
}

// Three-valued logic. A non-boolean counts as undefined.

fn boolean(datum: &Datum<'_>) -> Option<bool> {
    datum.as_ref()?.as_bool()
}

fn logical<'a>(truth: Option<bool>) -> Datum<'a> {
    truth.map(|truth| Cow::Owned(Value::Bool(truth)))
}

fn negate_if(not: bool, truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| truth != not)
}

pub(crate) fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

pub(crate) fn either(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn all(terms: &[ScalarExpr], rows: Bindings<'_>, cx: &Context<'_>) -> Result<Option<bool>> {
    let mut so_far = Some(true);
    for term in terms {
        so_far = both(so_far, truth(term, rows, cx)?);
        if so_far == Some(false) {
            break;
        }
    }
    Ok(so_far)
}

fn any(terms: &[ScalarExpr], rows: Bindings<'_>, cx: &Context<'_>) -> Result<Option<bool>> {
    let mut so_far = Some(false);
    for term in terms {
        so_far = either(so_far, truth(term, rows, cx)?);
        if so_far == Some(true) {
            break;
        }
    }
    Ok(so_far)
}

// Conditionals.

fn coalesce<'a>(terms: &'a [ScalarExpr], rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    for term in terms {
        let value = evaluate(term, rows, cx)?;
        if value.is_some() {
            return Ok(value);
        }
    }
    Ok(None)
}

fn conditional<'a>(
    arms: &'a [(ScalarExpr, ScalarExpr)],
    otherwise: &'a ScalarExpr,
    rows: Bindings<'a>,
    cx: &Context<'_>,
) -> Result<Datum<'a>> {
    for (condition, value) in arms {
        if is_true(condition, rows, cx)? {
            return evaluate(value, rows, cx);
        }
    }
    evaluate(otherwise, rows, cx)
}

// Predicates.

/// The three-valued `OR` of the equalities: an undefined entry matters only if nothing matches.
fn is_in(operand: &ScalarExpr, list: &[ScalarExpr], rows: Bindings<'_>, cx: &Context<'_>) -> Result<Option<bool>> {
    let operand = evaluate(operand, rows, cx)?;
    if operand.is_none() {
        return Ok(None);
    }
    let mut so_far = Some(false);
    for entry in list {
        so_far = either(so_far, compare::equal(&operand, &evaluate(entry, rows, cx)?));
        if so_far == Some(true) {
            break;
        }
    }
    Ok(so_far)
}

fn is_between(
    operand: &ScalarExpr,
    low: &ScalarExpr,
    high: &ScalarExpr,
    rows: Bindings<'_>,
    cx: &Context<'_>,
) -> Result<Option<bool>> {
    let operand = evaluate(operand, rows, cx)?;
    let above = compare::ordered(BinaryOp::GreaterOrEqual, &operand, &evaluate(low, rows, cx)?);
    let below = compare::ordered(BinaryOp::LessOrEqual, &operand, &evaluate(high, rows, cx)?);
    Ok(both(above, below))
}

fn is_like(operand: &ScalarExpr, pattern: &LikeOperand, rows: Bindings<'_>, cx: &Context<'_>) -> Result<Option<bool>> {
    let operand = evaluate(operand, rows, cx)?;
    let Some(text) = string(&operand) else { return Ok(None) };
    cx.count_steps(text.len())?;
    match pattern {
        LikeOperand::Known { pattern, .. } => Ok(Some(pattern.matches(text))),
        LikeOperand::Computed { node, escape } => match string(&evaluate(node, rows, cx)?) {
            Some(pattern) => Ok(Some(LikePattern::compile(pattern, *escape)?.matches(text))),
            None => Ok(None),
        },
    }
}

fn string<'v>(datum: &'v Datum<'_>) -> Option<&'v str> {
    datum.as_ref()?.as_str()
}

// Operators.

fn unary<'a>(op: UnaryOp, operand: Datum<'a>) -> Result<Datum<'a>> {
    Ok(match op {
        UnaryOp::Not => logical(negate_if(true, boolean(&operand))),
        _ => operand.and_then(|v| v.as_number()).map(|n| Cow::Owned(Value::Number(arithmetic::unary(op, n)))),
    })
}

/// Evaluates a chain of operators of one precedence level, left to right.
fn binary<'a>(
    first: &'a ScalarExpr,
    rest: &'a [(BinaryOp, ScalarExpr)],
    rows: Bindings<'a>,
    cx: &Context<'_>,
) -> Result<Datum<'a>> {
    let mut left = evaluate(first, rows, cx)?;
    for (op, operand) in rest {
        let right = evaluate(operand, rows, cx)?;
        left = apply(*op, left, right, cx)?;
    }
    Ok(left)
}

fn apply<'a>(op: BinaryOp, left: Datum<'a>, right: Datum<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    use BinaryOp::*;
    match op {
        Equal => Ok(logical(compare::equal(&left, &right))),
        NotEqual => Ok(logical(negate_if(true, compare::equal(&left, &right)))),
        Less | Greater | LessOrEqual | GreaterOrEqual => Ok(logical(compare::ordered(op, &left, &right))),
        Concat => concat(left, right, cx),
        _ => Ok(arithmetic::apply(op, &left, &right)),
    }
}

/// Appends in place if the left side is owned, so that a long chain copies each part once.
fn concat<'a>(left: Datum<'a>, right: Datum<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let (Some(left), Some(tail)) = (left, string(&right)) else { return Ok(None) };
    if left.as_str().is_none() {
        return Ok(None);
    }
    cx.memory.reserve(tail.len())?;
    let Value::String(mut text) = cx.own(left)? else { return Ok(None) };
    text.push_str(tail);
    Ok(Some(Cow::Owned(Value::String(text))))
}

// Calls.

fn call<'a>(
    function: &functions::Function,
    arguments: &'a [ScalarExpr],
    rows: Bindings<'a>,
    cx: &Context<'_>,
) -> Result<Datum<'a>> {
    let charged = |node: &'a ScalarExpr| cx.charge_result(|| evaluate(node, rows, cx));
    cx.charge_result(|| match arguments {
        [] => (function.call)(&mut [], cx),
        [one] => call_with(function, &mut [charged(one)?], cx),
        [one, two] => call_with(function, &mut [charged(one)?, charged(two)?], cx),
        _ => call_with(function, &mut evaluate_all(arguments, rows, cx)?, cx),
    })
}

fn call_with<'a>(function: &functions::Function, arguments: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    cx.count_steps(arguments.iter().flatten().map(|argument| argument_steps(argument)).sum())?;
    (function.call)(arguments, cx)
}

/// The work that a function does for an argument, in steps.
fn argument_steps(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Object(object) => object.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// A user-defined function is not called if an argument is undefined.
fn user_call<'a>(
    function: &str,
    arguments: &'a [ScalarExpr],
    rows: Bindings<'a>,
    cx: &Context<'_>,
) -> Result<Datum<'a>> {
    let Some(functions) = cx.user_functions else {
        return Err(Error::unsupported(format_args!("The user-defined function udf.{function}")));
    };
    let arguments = evaluate_all(arguments, rows, cx)?;
    if arguments.iter().any(Option::is_none) {
        return Ok(None);
    }
    Ok(functions.call(function, &arguments)?.map(Cow::Owned))
}

/// Evaluates all nodes; their values are in memory at the same time.
fn evaluate_all<'a>(nodes: &'a [ScalarExpr], rows: Bindings<'a>, cx: &Context<'_>) -> Result<Vec<Datum<'a>>> {
    nodes.iter().map(|node| cx.charge_result(|| evaluate(node, rows, cx))).collect()
}

// Paths.

/// Follows property and index steps down from a value.
fn follow<'a>(
    mut datum: Datum<'a>,
    steps: &'a [AccessStep],
    rows: Bindings<'a>,
    cx: &Context<'_>,
) -> Result<Datum<'a>> {
    for step in steps {
        let Some(value) = datum else { return Ok(None) };
        datum = match step {
            AccessStep::Property(name) => property(value, &name.text),
            AccessStep::Index(index) => element(value, evaluate(index, rows, cx)?),
        };
    }
    Ok(datum)
}

fn property<'a>(value: Cow<'a, Value>, name: &str) -> Datum<'a> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut object)) => object.remove(name).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

/// A string index applies to objects, a number to arrays: `c[0]` is not `c["0"]`.
fn element<'a>(value: Cow<'a, Value>, index: Datum<'_>) -> Datum<'a> {
    match index?.as_ref() {
        Value::String(name) => property(value, name),
        Value::Number(position) => item(value, usize::try_from(position.as_i64()?).ok()?),
        _ => None,
    }
}

fn item(value: Cow<'_, Value>, position: usize) -> Datum<'_> {
    match value {
        Cow::Borrowed(value) => value.as_array()?.get(position).map(Cow::Borrowed),
        Cow::Owned(Value::Array(items)) => items.into_iter().nth(position).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

// Constructors: undefined members are left out.

fn object<'a>(properties: &'a [(String, ScalarExpr)], rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let mut object = Object::new();
    for (name, node) in properties {
        if let Some(value) = cx.charge_owned(|| evaluate(node, rows, cx))? {
            cx.memory.reserve(name.len())?;
            object.set(name.as_str(), value);
        }
    }
    Ok(Some(Cow::Owned(Value::Object(object))))
}

fn array<'a>(items: &'a [ScalarExpr], rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let mut array = Vec::with_capacity(items.len());
    for node in items {
        array.extend(cx.charge_owned(|| evaluate(node, rows, cx))?);
    }
    Ok(Some(Cow::Owned(Value::Array(array))))
}

#[cfg(test)]
mod tests;
