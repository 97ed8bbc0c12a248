//! Memcomparable encoding of values, for sorting, grouping and DISTINCT: the byte order is the order of the values.
//!
//! Invariant: equal values have equal bytes, regardless of property order; encodings are self-delimiting, so that
//! several can be concatenated; `undefined < null < false < true < numbers < strings < arrays < objects`.
//! Scalars have the same encoding as in an index (`model::memcomparable`), so that a query can resume in an index scan.
//! Strings are encoded at any length, because these bytes are never stored. Arrays and objects are encoded in full, but
//! by their distinct hash in a sort key of `ORDER BY`, because clients merge and resume sorted rows by it.
//!
//! ```text
//! undefined 00
//! null      01        false 02        true 03
//! number    05 │ double, sign bit flipped (negative: all bits), big-endian
//! string    08 │ UTF-8, 00 written as 00 FF │ 00 01
//! array     0A │ elements │ 00
//! object    0B │ (name as string, value)*, sorted by name │ 00
//!
//! in a sort key:
//! array     0A │ distinct hash, 16 bytes
//! object    0B │ distinct hash, 16 bytes
//!
//! [1, "a"]  0A 05bff0000000000000 08610001 00        as a sort key 0A f9dcea90144f1c2da14e5ad8d1c43906
//! ```

use std::borrow::Cow;

use pleiad_model::Value;
use pleiad_model::memcomparable::{
    ARRAY, FALSE, NULL, OBJECT, STRING, STRING_END, TRUE, UNDEFINED, escape, write_number,
};

use crate::distinct_hash::DistinctHash;

/// Terminates an array or object, whose members are never undefined.
const END: u8 = UNDEFINED;

/// Encodes the whole value: two values are equal if and only if their bytes are.
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

/// A value as `ORDER BY` compares it.
#[derive(Clone, Debug, PartialEq)]
pub enum SortValue<'v> {
    Undefined,
    /// Not an array or object.
    Scalar(Cow<'v, Value>),
    Array(DistinctHash),
    Object(DistinctHash),
}

impl<'v> SortValue<'v> {
    pub fn of(value: Option<&'v Value>) -> SortValue<'v> {
        match value {
            None => SortValue::Undefined,
            Some(array @ Value::Array(_)) => SortValue::Array(DistinctHash::of(array)),
            Some(object @ Value::Object(_)) => SortValue::Object(DistinctHash::of(object)),
            Some(scalar) => SortValue::Scalar(Cow::Borrowed(scalar)),
        }
    }
}

/// Encodes a sort key of `ORDER BY`. Equal arrays and objects are adjacent, which SDKs rely on to remove duplicates for
/// `DISTINCT`.
pub fn encode_key(value: &SortValue<'_>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    let mut hashed = |tag, hash: &DistinctHash| {
        out.push(tag);
        out.extend_from_slice(&hash.to_bytes());
    };
    match value {
        SortValue::Undefined => out.push(UNDEFINED),
        SortValue::Scalar(scalar) => encode_scalar(scalar, out),
        SortValue::Array(hash) => hashed(ARRAY, hash),
        SortValue::Object(hash) => hashed(OBJECT, hash),
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
        Value::Number(n) => write_number(n.as_f64(), out),
        Value::String(text) => string(text, out),
        Value::Array(_) | Value::Object(_) => {}
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    escape(text.as_bytes(), out);
    out.extend_from_slice(&STRING_END);
}

#[cfg(test)]
mod tests;
