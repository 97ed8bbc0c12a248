//! 64-bit integer functions.
//!
//! The result is undefined if an argument has a fraction or is outside the range of a signed 64-bit integer, and for a
//! division by zero. Overflow wraps around. A shift uses the low six bits of its distance.

use pleiad_model::Result;

use super::Function;
use super::arguments::{integer, integer_value};
use crate::expr::Datum;

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("INTADD", 2, |args, _| apply_binary(args, |a, b| Some(a.wrapping_add(b)))),
    Function::exactly("INTBITAND", 2, |args, _| apply_binary(args, |a, b| Some(a & b))),
    Function::exactly("INTBITLEFTSHIFT", 2, |args, _| apply_binary(args, |a, b| Some(a.wrapping_shl(b as u32)))),
    Function::exactly("INTBITNOT", 1, |args, _| integer_value(integer(args, 0).map(|a| !a))),
    Function::exactly("INTBITOR", 2, |args, _| apply_binary(args, |a, b| Some(a | b))),
    Function::exactly("INTBITRIGHTSHIFT", 2, |args, _| apply_binary(args, |a, b| Some(a.wrapping_shr(b as u32)))),
    Function::exactly("INTBITXOR", 2, |args, _| apply_binary(args, |a, b| Some(a ^ b))),
    Function::exactly("INTDIV", 2, |args, _| apply_binary(args, |a, b| (b != 0).then(|| a.wrapping_div(b)))),
    Function::exactly("INTMOD", 2, |args, _| apply_binary(args, |a, b| (b != 0).then(|| a.wrapping_rem(b)))),
    Function::exactly("INTMUL", 2, |args, _| apply_binary(args, |a, b| Some(a.wrapping_mul(b)))),
    Function::exactly("INTSUB", 2, |args, _| apply_binary(args, |a, b| Some(a.wrapping_sub(b)))),
];

fn apply_binary<'a>(args: &[Datum<'a>], function: fn(i64, i64) -> Option<i64>) -> Result<Datum<'a>> {
    integer_value(integer(args, 0).zip(integer(args, 1)).and_then(|(a, b)| function(a, b)))
}
