//! Arithmetic and bitwise operators, with JavaScript semantics.
//!
//! Arithmetic uses IEEE doubles. Addition, subtraction, multiplication and remainder of 64-bit integers are exact if
//! the result is a 64-bit integer. Bitwise operators work on 32-bit integers. Results may be NaN or infinite.

use std::borrow::Cow;

use pleiad_model::{Number, Value};

use super::Datum;
use crate::parse::ast::{BinaryOp, UnaryOp};

/// Applies a binary operator; undefined unless both sides are numbers.
pub fn apply<'a>(op: BinaryOp, left: &Datum<'_>, right: &Datum<'_>) -> Datum<'a> {
    let (left, right) = (left.as_ref()?.as_number()?, right.as_ref()?.as_number()?);
    let number = match integers(op, left, right) {
        Some(exact) => Number::Int(exact),
        None => Number::Float(binary(op, left.as_f64(), right.as_f64())?),
    };
    Some(Cow::Owned(Value::Number(number)))
}

fn integers(op: BinaryOp, left: Number, right: Number) -> Option<i64> {
    let (Number::Int(left), Number::Int(right)) = (left, right) else { return None };
    match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Subtract => left.checked_sub(right),
        BinaryOp::Multiply => left.checked_mul(right),
        BinaryOp::Remainder => left.checked_rem(right),
        _ => None,
    }
}

pub fn unary(op: UnaryOp, operand: Number) -> Number {
    match op {
        UnaryOp::Minus => minus(operand),
        UnaryOp::BitNot => Number::Float(f64::from(!to_int32(operand.as_f64()))),
        UnaryOp::Plus | UnaryOp::Not => operand,
    }
}

/// Exact for integers: a negative literal is parsed as unary minus.
fn minus(operand: Number) -> Number {
    const MIN_MAGNITUDE: u64 = i64::MIN.unsigned_abs();
    match operand {
        Number::Int(i64::MIN) => Number::UInt(MIN_MAGNITUDE),
        Number::Int(n) => Number::Int(-n),
        Number::UInt(MIN_MAGNITUDE) => Number::Int(i64::MIN),
        Number::UInt(_) | Number::Float(_) => Number::Float(-operand.as_f64()),
    }
}

#[rustfmt::skip]
fn binary(op: BinaryOp, left: f64, right: f64) -> Option<f64> {
    Some(match op {
        BinaryOp::Multiply => left * right,
        BinaryOp::Divide => left / right,
        BinaryOp::Remainder => left % right,
        BinaryOp::Add => left + right,
        BinaryOp::Subtract => left - right,
        BinaryOp::ShiftLeft => f64::from(to_int32(left).wrapping_shl(shift(right))),
        BinaryOp::ShiftRight => f64::from(to_int32(left).wrapping_shr(shift(right))),
        BinaryOp::ShiftRightUnsigned => f64::from(to_uint32(left).wrapping_shr(shift(right))),
        BinaryOp::BitAnd => f64::from(to_int32(left) & to_int32(right)),
        BinaryOp::BitXor => f64::from(to_int32(left) ^ to_int32(right)),
        BinaryOp::BitOr => f64::from(to_int32(left) | to_int32(right)),
        _ => return None,
    })
}

/// The low 32 bits of the integer part; 0 for NaN and infinities.
fn to_int32(n: f64) -> i32 {
    (n.trunc() % 4_294_967_296.0) as i64 as i32
}

fn to_uint32(n: f64) -> u32 {
    to_int32(n) as u32
}

fn shift(n: f64) -> u32 {
    to_uint32(n) & 31
}
