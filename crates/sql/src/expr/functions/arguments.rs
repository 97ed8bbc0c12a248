//! Helpers to read the arguments of a call and to build its result.
//!
//! Guarantees: a missing argument reads as undefined, so a function never panics, even if the caller did not check the
//! number of arguments.

use std::borrow::Cow;

use pleiad_model::{Number, Result, Value};

use crate::expr::context::memory_bytes;
use crate::expr::{Context, Datum};

static ABSENT: Datum<'static> = None;

pub fn at<'v, 'a>(args: &'v [Datum<'a>], position: usize) -> &'v Datum<'a> {
    args.get(position).unwrap_or(&ABSENT)
}

/// Takes the argument out of the slice.
pub fn take<'a>(args: &mut [Datum<'a>], position: usize) -> Datum<'a> {
    args.get_mut(position)?.take()
}

pub fn number(args: &[Datum<'_>], position: usize) -> Option<f64> {
    at(args, position).as_ref()?.as_number().map(Number::as_f64)
}

/// A number without a fraction that fits into 64 bits, in any notation.
pub fn integer(args: &[Datum<'_>], position: usize) -> Option<i64> {
    at(args, position).as_ref()?.as_i64()
}

pub fn string<'v>(args: &'v [Datum<'_>], position: usize) -> Option<&'v str> {
    at(args, position).as_ref()?.as_str()
}

pub fn array<'v>(args: &'v [Datum<'_>], position: usize) -> Option<&'v [Value]> {
    at(args, position).as_ref()?.as_array()
}

/// An optional argument: `default` if the call does not have it, undefined if its type is wrong.
pub fn or_default<T>(args: &[Datum<'_>], position: usize, default: T, read: impl FnOnce() -> Option<T>) -> Option<T> {
    if position < args.len() { read() } else { Some(default) }
}

/// An optional flag, false by default.
pub fn flag(args: &[Datum<'_>], position: usize) -> Option<bool> {
    or_default(args, position, false, || at(args, position).as_ref()?.as_bool())
}

// Results.

pub fn boolean_value<'a>(truth: Option<bool>) -> Result<Datum<'a>> {
    Ok(truth.map(|truth| Cow::Owned(Value::Bool(truth))))
}

/// Returns minus zero as zero: `ROUND(-0.2)` should not print `-0.0`.
pub fn float_value<'a>(number: Option<f64>) -> Result<Datum<'a>> {
    Ok(number.map(|number| Cow::Owned(Value::from(number + 0.0))))
}

pub fn integer_value<'a>(number: Option<i64>) -> Result<Datum<'a>> {
    Ok(number.map(|number| Cow::Owned(Value::from(number))))
}

/// A length or a position.
pub fn size<'a>(size: Option<usize>) -> Result<Datum<'a>> {
    integer_value(size.and_then(|size| i64::try_from(size).ok()))
}

/// A copy of part of a string.
pub fn slice<'a>(text: Option<&str>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some(text) = text else { return Ok(None) };
    cx.memory.reserve(text.len())?;
    Ok(Some(Cow::Owned(Value::from(text))))
}

/// A newly built string of bounded length; charged after it is built.
pub fn text<'a>(text: Option<String>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some(text) = text else { return Ok(None) };
    cx.memory.reserve(text.len())?;
    Ok(Some(Cow::Owned(Value::String(text))))
}

pub fn items<'a>(items: Vec<Value>) -> Result<Datum<'a>> {
    Ok(Some(Cow::Owned(Value::Array(items))))
}

/// A copy for a result that is being built.
pub fn copy(value: &Value, cx: &Context<'_>) -> Result<Value> {
    cx.memory.reserve(memory_bytes(value))?;
    Ok(value.clone())
}

/// The string as an element of an array that is being built.
pub fn string_item(text: &str, cx: &Context<'_>) -> Result<Value> {
    cx.memory.reserve(size_of::<Value>() + text.len())?;
    Ok(Value::from(text))
}
