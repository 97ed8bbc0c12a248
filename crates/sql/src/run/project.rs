//! Projection: evaluates the `SELECT` expression of a row, as a value or directly as JSON text.
//!
//! Guarantees: the output is valid JSON; NaN and infinities are an error. A property of an item is copied as its text,
//! without parsing.

use std::borrow::Cow;

use pleiad_model::{Error, Kind, Object, Result, Value, json};

use crate::block::{OutputExpr, ScalarExpr};
use crate::document::{Bindings, SlotValue, lookup};
use crate::expr::{Context, Datum, evaluate};

/// The value of the row; `None` if it is undefined.
pub fn project<'a>(output: &'a OutputExpr, rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    match output {
        OutputExpr::Value(node) => evaluate(node, rows, cx),
        OutputExpr::Object(columns) => {
            let mut object = Object::new();
            for (name, node) in columns {
                if let Some(value) = cx.charge_owned(|| evaluate(node, rows, cx))? {
                    object.set(name.as_str(), value);
                }
            }
            Ok(Some(Cow::Owned(Value::Object(object))))
        }
    }
}

/// Appends the JSON text of the row; returns false if its value is undefined.
pub fn write(output: &OutputExpr, rows: Bindings<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
    match output {
        OutputExpr::Value(node) => write_node(node, rows, cx, out),
        OutputExpr::Object(columns) => write_object(columns, rows, cx, out),
    }
}

fn write_node(node: &ScalarExpr, rows: Bindings<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
    match node {
        ScalarExpr::Slot(slot) => {
            if let Some(SlotValue::Item(item)) = lookup(rows, *slot) {
                let before = out.len();
                item.write(out);
                return cx.memory.reserve(out.len() - before).map(|()| true);
            }
        }
        ScalarExpr::Path { slot, steps } => {
            if let Some(bound) = lookup(rows, *slot)
                && bound.is_text()
            {
                let text = bound.text(steps);
                cx.memory.reserve(text.as_deref().map_or(0, <[u8]>::len))?;
                out.extend_from_slice(text.as_deref().unwrap_or_default());
                return Ok(text.is_some());
            }
        }
        ScalarExpr::Object(properties) => return write_object(properties, rows, cx, out),
        ScalarExpr::Array(items) => return write_array(items, rows, cx, out),
        _ => {}
    }
    let (mark, before) = (cx.memory.mark(), out.len());
    let is_there = match evaluate(node, rows, cx)? {
        Some(value) => write_value(&value, out).map(|()| true)?,
        None => false,
    };
    // Only the text stays charged, not the value it was written from.
    cx.memory.release_to(mark);
    cx.memory.reserve(out.len() - before).map(|()| is_there)
}

fn write_object(
    properties: &[(String, ScalarExpr)],
    rows: Bindings<'_>,
    cx: &Context<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    out.push(b'{');
    let start = out.len();
    for (name, node) in properties {
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        json::write_str(name, out);
        out.push(b':');
        if !write_node(node, rows, cx, out)? {
            out.truncate(before);
        }
    }
    out.push(b'}');
    Ok(true)
}

fn write_array(items: &[ScalarExpr], rows: Bindings<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
    out.push(b'[');
    let start = out.len();
    for node in items {
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        if !write_node(node, rows, cx, out)? {
            out.truncate(before);
        }
    }
    out.push(b']');
    Ok(true)
}

/// The service's message and format.
const NOT_FINITE: &str = r#"{"errors":[{"severity":"Error","code":4001,"message":"The response content contains a numeric value that cannot be represented in JSON (e.g. Infinity and NaN)."}]}"#;

pub fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    if !is_json(value) {
        return Err(Error::new(Kind::NotFinite, NOT_FINITE));
    }
    json::write(value, out);
    Ok(())
}

pub fn is_json(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_finite(),
        Value::Array(items) => items.iter().all(is_json),
        Value::Object(object) => object.iter().all(|(_, value)| is_json(value)),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
