//! Equality and order of values.
//!
//! Numbers compare as doubles; strings by code points, which is the order of their UTF-8 bytes and of an index; objects
//! regardless of the order of their properties.

use std::borrow::Borrow;
use std::cmp::Ordering;

use pleiad_model::{Object, Value};

use super::Datum;
use crate::parse::ast::BinaryOp;

/// `=`. Undefined if either side is undefined. Values of different types are never equal.
pub fn equal(left: &Datum<'_>, right: &Datum<'_>) -> Option<bool> {
    Some(same(left.as_ref()?, right.as_ref()?))
}

/// `<`, `>`, `<=`, `>=` of two nulls, booleans, numbers or strings; otherwise undefined.
pub fn ordered(op: BinaryOp, left: &Datum<'_>, right: &Datum<'_>) -> Option<bool> {
    let ordering = match (left.as_deref()?, right.as_deref()?) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match a.as_f64().partial_cmp(&b.as_f64()) {
            Some(ordering) => ordering,
            None => return Some(false), // every order comparison with NaN is false
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

pub(crate) fn same(left: &Value, right: &Value) -> bool {
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

/// A total order of all values: null < false < true < numbers < strings < arrays < objects. Arrays compare element by
/// element, objects property by property in the order of their names. Equal exactly where `=` is true, except that NaN
/// equals itself and sorts after all other numbers.
pub fn total_order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => number_order(a.as_f64(), b.as_f64()),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            first_difference(a.iter().zip(b).map(|(a, b)| total_order(a, b))).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => object_order(a, b),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// A value, or a reference to one, that sorts by `total_order`.
#[derive(Clone, Copy, Debug)]
pub struct Ordered<V>(pub V);

impl<V: Borrow<Value>> Ord for Ordered<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        total_order(self.0.borrow(), other.0.borrow())
    }
}

impl<V: Borrow<Value>> PartialOrd for Ordered<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Borrow<Value>> PartialEq for Ordered<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<V: Borrow<Value>> Eq for Ordered<V> {}

fn number_order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn object_order(left: &Object, right: &Object) -> Ordering {
    let pairs = by_name(left).into_iter().zip(by_name(right));
    first_difference(pairs.map(|((n, a), (m, b))| n.cmp(m).then_with(|| total_order(a, b))))
        .unwrap_or_else(|| left.len().cmp(&right.len()))
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Option<Ordering> {
    orders.find(|order| order.is_ne())
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// Properties sorted by name, so that comparing two objects with a hundred thousand properties is not quadratic.
pub(crate) fn by_name(object: &Object) -> Vec<(&str, &Value)> {
    let mut properties: Vec<_> = object.iter().collect();
    properties.sort_unstable_by_key(|(name, _)| *name);
    properties
}
