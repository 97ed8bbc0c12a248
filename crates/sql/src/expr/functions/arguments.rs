//! What calls are given and what they answer.
//!
//! Promise: an argument that is absent reads as undefined, so no function reaches past its arguments
//! whatever the caller checked.

use std::borrow::Cow;

use pleiad_model::{Number, Result, Value};

use crate::expr::context::bytes;
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

/// A number without a fraction, whatever its spelling, in 64 bits.
pub fn integer(args: &[Datum<'_>], position: usize) -> Option<i64> {
    at(args, position).as_ref()?.as_i64()
}

pub fn string<'v>(args: &'v [Datum<'_>], position: usize) -> Option<&'v str> {
    at(args, position).as_ref()?.as_str()
}

pub fn array<'v>(args: &'v [Datum<'_>], position: usize) -> Option<&'v [Value]> {
    at(args, position).as_ref()?.as_array()
}

/// An optional argument: `default` when the call ends before it; undefined when it is there and does not fit.
pub fn or_default<T>(args: &[Datum<'_>], position: usize, default: T, read: impl FnOnce() -> Option<T>) -> Option<T> {
    if position < args.len() { read() } else { Some(default) }
}

/// An optional flag that is false when left out.
pub fn flag(args: &[Datum<'_>], position: usize) -> Option<bool> {
    or_default(args, position, false, || at(args, position).as_ref()?.as_bool())
}

// Answers.

pub fn truth<'a>(truth: Option<bool>) -> Result<Datum<'a>> {
    Ok(truth.map(|truth| Cow::Owned(Value::Bool(truth))))
}

/// Minus zero is answered as zero: nobody who rounds -0.2 expects to read `-0.0`.
pub fn real<'a>(number: Option<f64>) -> Result<Datum<'a>> {
    Ok(number.map(|number| Cow::Owned(Value::from(number + 0.0))))
}

pub fn whole<'a>(number: Option<i64>) -> Result<Datum<'a>> {
    Ok(number.map(|number| Cow::Owned(Value::from(number))))
}

/// A length or a position.
pub fn size<'a>(size: Option<usize>) -> Result<Datum<'a>> {
    whole(size.and_then(|size| i64::try_from(size).ok()))
}

/// A copy of part of a string.
pub fn slice<'a>(text: Option<&str>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some(text) = text else { return Ok(None) };
    cx.room.take(text.len())?;
    Ok(Some(Cow::Owned(Value::from(text))))
}

/// A string just made, no longer than the arguments.
pub fn text<'a>(text: Option<String>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some(text) = text else { return Ok(None) };
    cx.room.take(text.len())?;
    Ok(Some(Cow::Owned(Value::String(text))))
}

pub fn items<'a>(items: Vec<Value>) -> Result<Datum<'a>> {
    Ok(Some(Cow::Owned(Value::Array(items))))
}

/// A copy for a result that is being built.
pub fn copy(value: &Value, cx: &Context<'_>) -> Result<Value> {
    cx.room.take(bytes(value))?;
    Ok(value.clone())
}

/// The string as an item of an array that is being built.
pub fn string_item(text: &str, cx: &Context<'_>) -> Result<Value> {
    cx.room.take(size_of::<Value>() + text.len())?;
    Ok(Value::from(text))
}
