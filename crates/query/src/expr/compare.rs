//! Equality and order.
//!
//! Promise: numbers compare as doubles, strings by their code points (the order of their UTF-8 bytes, which
//! is also the order of an index), objects whatever the order of their properties.

use std::cmp::Ordering;

use pleiad_model::{Object, Value};

use super::Term;
use crate::language::ast::BinaryOp;

/// `=`. Undefined beside anything is undefined; two types are never equal.
pub fn equal(left: &Term<'_>, right: &Term<'_>) -> Option<bool> {
    Some(same(left.as_ref()?, right.as_ref()?))
}

/// `<`, `>`, `<=`, `>=`: between two nulls, booleans, numbers or strings; otherwise undefined.
pub fn ordered(op: BinaryOp, left: &Term<'_>, right: &Term<'_>) -> Option<bool> {
    let ordering = match (left.as_deref()?, right.as_deref()?) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match a.as_f64().partial_cmp(&b.as_f64()) {
            Some(ordering) => ordering,
            None => return Some(false), // NaN is on no side of anything
        },
        _ => return None,
    };
    match op {
        BinaryOp::Less => Some(ordering.is_lt()),
        BinaryOp::Greater => Some(ordering.is_gt()),
        BinaryOp::LessOrEqual => Some(ordering.is_le()),
        BinaryOp::GreaterOrEqual => Some(ordering.is_ge()),
        _ => None,
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && same_properties(a, b),
        _ => false,
    }
}

fn same_properties(left: &Object, right: &Object) -> bool {
    by_name(left).into_iter().zip(by_name(right)).all(|((n, a), (m, b))| n == m && same(a, b))
}

/// Sorted, so that comparing two objects of a hundred thousand properties is not quadratic.
fn by_name(object: &Object) -> Vec<(&str, &Value)> {
    let mut properties: Vec<_> = object.iter().collect();
    properties.sort_unstable_by_key(|(name, _)| *name);
    properties
}
