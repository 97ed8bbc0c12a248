//! Values as bytes whose order is the values' order, for sorting, grouping and telling apart.
//!
//! Promise: equal values have equal bytes, whatever the order of their properties; an encoding ends by itself,
//! so that several can follow each other; `undefined < null < false < true < numbers < strings < arrays <
//! objects`. These bytes live as long as a query: what is stored has an encoding of its own in `partition`.
//!
//! ```text
//! undefined 00
//! null      01        false 02        true 03
//! number    05 │ double, sign bit flipped (negative: all bits), big-endian
//! string    08 │ UTF-8, 00 written as 00 FF │ 00 01
//! array     0A │ elements │ 00
//! object    0B │ (name as string, value)*, sorted by name │ 00
//!
//! [1, "a"]  0A 05bff0000000000000 08610001 00
//! ```

use pleiad_model::Value;

const UNDEFINED: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x08;
const ARRAY: u8 = 0x0A;
const OBJECT: u8 = 0x0B;
const END: u8 = 0x00;

/// The whole value: two values are the same when these bytes are.
pub fn encode(value: Option<&Value>, out: &mut Vec<u8>) {
    match value {
        None => out.push(UNDEFINED),
        Some(Value::Array(items)) => {
            out.push(ARRAY);
            items.iter().for_each(|item| encode(Some(item), out));
            out.push(END);
        }
        Some(Value::Object(object)) => {
            out.push(OBJECT);
            let mut properties: Vec<_> = object.iter().collect();
            properties.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in properties {
                string(name, out);
                encode(Some(value), out);
            }
            out.push(END);
        }
        Some(scalar) => encode_scalar(scalar, out),
    }
}

/// A key of `ORDER BY`: arrays are equal among themselves, and so are objects.
pub fn encode_key(value: Option<&Value>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        Some(Value::Array(_)) => out.push(ARRAY),
        Some(Value::Object(_)) => out.push(OBJECT),
        other => encode(other, out),
    }
    if descending {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

fn encode_scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Number(n) => number(n.as_f64(), out),
        Value::String(text) => string(text, out),
        Value::Array(_) | Value::Object(_) => {}
    }
}

fn number(number: f64, out: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0 and leaves every other number alone.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits };
    out.push(NUMBER);
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    for part in text.as_bytes().split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0x00, 0x01]);
}

#[cfg(test)]
mod tests;
