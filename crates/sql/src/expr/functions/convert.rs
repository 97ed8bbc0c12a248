//! Conversion of strings from and to other types.
//!
//! Input is strict JSON, with optional white space around it. Output is compact JSON, except that a string stays
//! unchanged and NaN and infinities are written as `NaN`, `Infinity` and `-Infinity`.

use std::borrow::Cow;

use pleiad_model::{Number, Result, Value, json};

use super::Function;
use super::arguments::{at, string, take, text};
use crate::expr::context::memory_bytes;
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("STRINGTOARRAY", 1, |args, cx| read(args, cx, |first| first == b'[')),
    Function::exactly("STRINGTOBOOLEAN", 1, |args, cx| read(args, cx, |first| matches!(first, b't' | b'f'))),
    Function::exactly("STRINGTONULL", 1, |args, cx| read(args, cx, |first| first == b'n')),
    Function::exactly("STRINGTONUMBER", 1, |args, cx| read(args, cx, |first| first == b'-' || first.is_ascii_digit())),
    Function::exactly("STRINGTOOBJECT", 1, |args, cx| read(args, cx, |first| first == b'{')),
    Function::exactly("TOSTRING", 1, to_string),
];

/// The first byte of JSON text determines its type.
fn read<'a>(args: &[Datum<'a>], cx: &Context<'_>, wanted: fn(u8) -> bool) -> Result<Datum<'a>> {
    let Some(text) = string(args, 0).map(str::trim) else { return Ok(None) };
    if !text.bytes().next().is_some_and(wanted) {
        return Ok(None);
    }
    let Ok(value) = json::parse(text.as_bytes()) else { return Ok(None) };
    cx.memory.reserve(memory_bytes(&value))?;
    Ok(Some(Cow::Owned(value)))
}

fn to_string<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    match at(args, 0).as_deref() {
        None => Ok(None),
        Some(Value::String(_)) => Ok(take(args, 0)),
        Some(Value::Number(number)) => text(Some(number_text(*number)), cx),
        Some(value) => {
            let mut out = Vec::new();
            json::write_with(value, &mut out, &|number, out| out.extend_from_slice(number_text(number).as_bytes()));
            text(String::from_utf8(out).ok(), cx)
        }
    }
}

fn number_text(number: Number) -> String {
    match number {
        Number::Float(n) => float_text(n),
        whole => json::to_string(&Value::Number(whole)),
    }
}

/// JavaScript's number format: the shortest digits that round-trip, with an exponent only for very large or small
/// numbers.
fn float_text(n: f64) -> String {
    const POINT_MAX: i32 = 21;
    const POINT_MIN: i32 = -5;
    if !n.is_finite() {
        return if n.is_nan() {
            "NaN"
        } else if n > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let sign = if n < 0.0 { "-" } else { "" };
    let shortest = format!("{:e}", n.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i32>().unwrap_or(0) + 1; // number of digits before the decimal point
    let count = digits.len() as i32;
    match point {
        _ if !(POINT_MIN..=POINT_MAX).contains(&point) => format!("{sign}{mantissa}e{:+}", point - 1),
        ..=0 => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        _ if point >= count => format!("{sign}{digits}{}", "0".repeat((point - count) as usize)),
        _ => {
            let (whole, fraction) = digits.split_at(point as usize);
            format!("{sign}{whole}.{fraction}")
        }
    }
}
