//! Strings from and to other types.
//!
//! Promise: what is read is strict JSON, with white space around it; what is written is compact JSON, except that
//! a string stays itself and NaN and Infinity have names.

use std::borrow::Cow;

use pleiad_model::{Number, Result, Value, json};

use super::Function;
use super::arguments::{at, string, take, text};
use crate::expr::context::bytes;
use crate::expr::{Context, Term};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("STRINGTOARRAY", 1, |args, cx| read(args, cx, |first| first == b'[')),
    Function::exactly("STRINGTOBOOLEAN", 1, |args, cx| read(args, cx, |first| matches!(first, b't' | b'f'))),
    Function::exactly("STRINGTONULL", 1, |args, cx| read(args, cx, |first| first == b'n')),
    Function::exactly("STRINGTONUMBER", 1, |args, cx| read(args, cx, |first| first == b'-' || first.is_ascii_digit())),
    Function::exactly("STRINGTOOBJECT", 1, |args, cx| read(args, cx, |first| first == b'{')),
    Function::exactly("TOSTRING", 1, to_string),
];

/// The first byte of JSON text tells its type.
fn read<'a>(args: &[Term<'a>], cx: &Context<'_>, wanted: fn(u8) -> bool) -> Result<Term<'a>> {
    let Some(text) = string(args, 0).map(str::trim) else { return Ok(None) };
    if !text.bytes().next().is_some_and(wanted) {
        return Ok(None);
    }
    let Ok(value) = json::parse(text.as_bytes()) else { return Ok(None) };
    cx.room.take(bytes(&value))?;
    Ok(Some(Cow::Owned(value)))
}

fn to_string<'a>(args: &mut [Term<'a>], cx: &Context<'_>) -> Result<Term<'a>> {
    match at(args, 0).as_deref() {
        None => Ok(None),
        Some(Value::String(_)) => Ok(take(args, 0)),
        Some(Value::Number(number)) => text(Some(number_text(*number)), cx),
        Some(value) => text(Some(json::to_string(value)), cx),
    }
}

fn number_text(number: Number) -> String {
    match number.as_f64() {
        n if n.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ => json::to_string(&Value::Number(number)),
    }
}
