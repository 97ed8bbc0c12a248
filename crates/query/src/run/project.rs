//! A row as a value, or straight as text.
//!
//! Promise: what leaves is JSON: NaN and infinities stay inside. A property of an item is copied as the text
//! it is.

use std::borrow::Cow;

use pleiad_model::{Error, Object, Result, Value, json};

use crate::block::{Node, Project};
use crate::document::{Bound, Rows, lookup};
use crate::expr::{Context, Term, evaluate};

/// The row's value; `None` when it has none.
pub fn project<'a>(output: &'a Project, rows: Rows<'a>, cx: &Context<'_>) -> Result<Term<'a>> {
    match output {
        Project::Value(node) => evaluate(node, rows, cx),
        Project::Object(columns) => {
            let mut object = Object::new();
            for (name, node) in columns {
                if let Some(value) = evaluate(node, rows, cx)? {
                    object.set(name.as_str(), cx.own(value)?);
                }
            }
            Ok(Some(Cow::Owned(Value::Object(object))))
        }
    }
}

/// Appends the row's text; says whether there is one.
pub fn write(output: &Project, rows: Rows<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
    match output {
        Project::Value(node) => write_node(node, rows, cx, out),
        Project::Object(columns) => write_object(columns, rows, cx, out),
    }
}

fn write_node(node: &Node, rows: Rows<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
    match node {
        Node::Slot(slot) => {
            if let Some(Bound::Item(item)) = lookup(rows, *slot) {
                let before = out.len();
                item.write(out);
                return cx.room.take(out.len() - before).map(|()| true);
            }
        }
        Node::Path { slot, steps } => {
            if let Some(bound) = lookup(rows, *slot)
                && bound.is_text()
            {
                let text = bound.text(steps);
                cx.room.take(text.as_deref().map_or(0, <[u8]>::len))?;
                out.extend_from_slice(text.as_deref().unwrap_or_default());
                return Ok(text.is_some());
            }
        }
        Node::Object(properties) => return write_object(properties, rows, cx, out),
        Node::Array(items) => return write_array(items, rows, cx, out),
        _ => {}
    }
    match evaluate(node, rows, cx)? {
        Some(Cow::Borrowed(value)) => {
            let before = out.len();
            write_value(value, out)?;
            cx.room.take(out.len() - before).map(|()| true)
        }
        // Paid for when it was built.
        Some(Cow::Owned(value)) => write_value(&value, out).map(|()| true),
        None => Ok(false),
    }
}

fn write_object(properties: &[(String, Node)], rows: Rows<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
    out.push(b'{');
    let start = out.len();
    for (at, (name, node)) in properties.iter().enumerate() {
        if is_repeated(properties, at) {
            continue;
        }
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

/// Of a name that repeats in a constructor the last counts.
fn is_repeated(properties: &[(String, Node)], at: usize) -> bool {
    match properties.get(at..) {
        Some([(name, _), later @ ..]) => properties.len() <= PAIRWISE_MAX && later.iter().any(|(n, _)| n == name),
        _ => false,
    }
}

/// Larger constructors are checked for repeated names when they are parsed.
const PAIRWISE_MAX: usize = 64;

fn write_array(items: &[Node], rows: Rows<'_>, cx: &Context<'_>, out: &mut Vec<u8>) -> Result<bool> {
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

pub fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    if !is_json(value) {
        let message = "The query's result holds NaN or an infinite number, which JSON cannot represent.";
        return Err(Error::invalid(message));
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
