//! Comparison of a property with a constant on the item's JSON text, without parsing it into a value.
//!
//! Guarantees: the same result as evaluating both sides. A scan does this for every item, so it allocates nothing.

use std::cmp::Ordering;

use pleiad_model::Value;
use pleiad_model::json::lazy;

use crate::block::ScalarExpr;
use crate::document::{Bindings, SlotValue, lookup};
use crate::expr::functions::Function;
use crate::parse::ast::BinaryOp;

/// `None` if this is a different comparison, or the text alone cannot decide it.
pub fn compare(first: &ScalarExpr, rest: &[(BinaryOp, ScalarExpr)], rows: Bindings<'_>) -> Option<Option<bool>> {
    let [(op, second)] = rest else { return None };
    match (first, second) {
        (ScalarExpr::Path { slot, steps }, ScalarExpr::Constant(constant)) => {
            let bound = lookup(rows, *slot).filter(|bound| bound.is_text())?;
            match bound.text(steps) {
                Some(text) => compare_text(*op, &text, constant),
                None => op.is_comparison().then_some(None),
            }
        }
        (ScalarExpr::Slot(slot), ScalarExpr::Constant(constant)) => match lookup(rows, *slot)? {
            SlotValue::Text(text) => compare_text(*op, text, constant),
            _ => None,
        },
        _ => None,
    }
}

/// `ARRAY_CONTAINS(path, scalar)`. `None` for any other call, or if the text alone cannot decide it.
pub fn array_contains(function: &Function, arguments: &[ScalarExpr], rows: Bindings<'_>) -> Option<Option<bool>> {
    let [ScalarExpr::Path { slot, steps }, ScalarExpr::Constant(wanted @ (Value::String(_) | Value::Number(_)))] =
        arguments
    else {
        return None;
    };
    if function.name != "ARRAY_CONTAINS" {
        return None;
    }
    let bound = lookup(rows, *slot).filter(|bound| bound.is_text())?;
    let Some(array) = bound.text(steps) else { return Some(None) };
    if lazy::json_type(&array) != Some(lazy::JsonType::Array) {
        return Some(None);
    }
    let mut certain = true;
    for element in lazy::elements(&array) {
        match compare_text(BinaryOp::Equal, element, wanted) {
            Some(Some(true)) => return Some(Some(true)),
            Some(_) => {}
            // A string with escapes may be equal; other types are not.
            None => certain &= element.first() != wanted_first(wanted),
        }
    }
    certain.then_some(Some(false))
}

/// The first byte of an equal element that cannot be compared as raw text.
fn wanted_first(wanted: &Value) -> Option<&'static u8> {
    matches!(wanted, Value::String(_)).then_some(&b'"')
}

fn compare_text(op: BinaryOp, text: &[u8], constant: &Value) -> Option<Option<bool>> {
    match (text.first()?, constant) {
        (b'-' | b'0'..=b'9', Value::Number(constant)) => {
            let number = lazy::number(text)?.as_f64();
            Some(Some(number.partial_cmp(&constant.as_f64()).map_or(op == BinaryOp::NotEqual, |o| holds(op, o))))
                .filter(|_| op.is_comparison())
        }
        (b'"', Value::String(constant)) => {
            let raw = text.get(1..text.len().checked_sub(1)?)?;
            // Escapes must be decoded before comparing.
            let plain = !raw.contains(&b'\\');
            (plain && op.is_comparison()).then(|| Some(holds(op, raw.cmp(constant.as_bytes()))))
        }
        _ => None,
    }
}

fn holds(op: BinaryOp, ordering: Ordering) -> bool {
    match op {
        BinaryOp::Equal => ordering.is_eq(),
        BinaryOp::NotEqual => ordering.is_ne(),
        BinaryOp::Less => ordering.is_lt(),
        BinaryOp::Greater => ordering.is_gt(),
        BinaryOp::LessOrEqual => ordering.is_le(),
        BinaryOp::GreaterOrEqual => ordering.is_ge(),
        _ => false,
    }
}
