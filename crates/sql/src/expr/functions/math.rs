//! Mathematical functions.
//!
//! All use IEEE doubles. Results outside a function's domain are NaN or infinite, which is allowed inside an
//! expression. Rounding leaves an integer exactly unchanged.

use std::borrow::Cow;
use std::f64::consts::PI;

use pleiad_model::{Number, Result, Value};

use super::arguments::{at, float_value, integer_value, number, or_default};
use super::{Function, Varies};
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("ABS", 1, abs),
    Function::exactly("ACOS", 1, |args, _| apply_unary(args, f64::acos)),
    Function::exactly("ASIN", 1, |args, _| apply_unary(args, f64::asin)),
    Function::exactly("ATAN", 1, |args, _| apply_unary(args, f64::atan)),
    Function::exactly("ATN2", 2, |args, _| apply_binary(args, f64::atan2)),
    Function::exactly("CEILING", 1, |args, _| rounded(args, f64::ceil)),
    Function::exactly("COS", 1, |args, _| apply_unary(args, f64::cos)),
    Function::exactly("COT", 1, |args, _| apply_unary(args, |n| 1.0 / n.tan())),
    Function::exactly("DEGREES", 1, |args, _| apply_unary(args, f64::to_degrees)),
    Function::exactly("EXP", 1, |args, _| apply_unary(args, f64::exp)),
    Function::exactly("FLOOR", 1, |args, _| rounded(args, f64::floor)),
    Function::between("LOG", 1, 2, log),
    Function::exactly("LOG10", 1, |args, _| apply_unary(args, f64::log10)),
    Function::between("NUMBERBIN", 1, 2, number_bin),
    Function::exactly("PI", 0, |_, _| float_value(Some(PI))),
    Function::exactly("POWER", 2, |args, _| apply_binary(args, f64::powf)),
    Function::exactly("RADIANS", 1, |args, _| apply_unary(args, f64::to_radians)),
    Function::exactly("RAND", 0, rand).varying(Varies::PerCall),
    Function::exactly("ROUND", 1, |args, _| rounded(args, f64::round)), // half away from zero
    Function::exactly("SIGN", 1, sign),
    Function::exactly("SIN", 1, |args, _| apply_unary(args, f64::sin)),
    Function::exactly("SQRT", 1, |args, _| apply_unary(args, f64::sqrt)),
    Function::exactly("SQUARE", 1, |args, _| apply_unary(args, |n| n * n)),
    Function::exactly("TAN", 1, |args, _| apply_unary(args, f64::tan)),
    Function::exactly("TRUNC", 1, |args, _| rounded(args, f64::trunc)),
];

fn apply_unary<'a>(args: &[Datum<'a>], function: fn(f64) -> f64) -> Result<Datum<'a>> {
    float_value(number(args, 0).map(function))
}

fn apply_binary<'a>(args: &[Datum<'a>], function: fn(f64, f64) -> f64) -> Result<Datum<'a>> {
    float_value(number(args, 0).zip(number(args, 1)).map(|(a, b)| function(a, b)))
}

fn rounded<'a>(args: &[Datum<'a>], function: fn(f64) -> f64) -> Result<Datum<'a>> {
    match at(args, 0).as_ref().and_then(|value| value.as_number()) {
        Some(Number::Float(n)) => float_value(Some(function(n))),
        whole => Ok(whole.map(|whole| Cow::Owned(Value::Number(whole)))),
    }
}

fn abs<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let magnitude = at(args, 0).as_ref().and_then(|value| value.as_number()).map(|number| match number {
        Number::Int(n) => Number::from(n.unsigned_abs()),
        Number::UInt(n) => Number::UInt(n),
        Number::Float(n) => Number::Float(n.abs()),
    });
    Ok(magnitude.map(|number| Cow::Owned(Value::Number(number))))
}

/// NaN has no sign.
fn sign<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let order = number(args, 0).and_then(|n| n.partial_cmp(&0.0));
    integer_value(order.map(|order| order as i64))
}

/// Bases 2 and 10 use their own functions: ln 2 / ln 10 is one bit off.
fn log<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let Some(n) = number(args, 0) else { return Ok(None) };
    if args.len() == 1 {
        return float_value(Some(n.ln()));
    }
    float_value(number(args, 1).map(|base| match base {
        2.0 => n.log2(),
        10.0 => n.log10(),
        base => n.ln() / base.ln(),
    }))
}

fn number_bin<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let width = or_default(args, 1, 1.0, || number(args, 1)).filter(|width| *width != 0.0);
    float_value(number(args, 0).zip(width).map(|(n, width)| (n / width).floor() * width))
}

/// 53 random bits, the precision of a double below 1.
fn rand<'a>(_: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    const STEPS: f64 = (1u64 << 53) as f64;
    float_value(Some((cx.env.random_u64() >> 11) as f64 / STEPS))
}
