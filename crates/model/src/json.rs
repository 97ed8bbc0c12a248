//! JSON parser and writer.
//!
//! Guarantees: if all numbers of `v` are finite, `parse(write(v))` is `v` again, with numbers compared
//! as doubles. A duplicate name keeps its first position and its last value. Parsing takes time linear
//! in the length of any text; nesting is bounded, so no text can exhaust the stack.
//!
//! Size limits and the contents of a document are checked in `item`.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::{Error, Number, Object, Result, Value};

pub mod lazy; // access to values in the text, without parsing it
mod surrogates; // escapes of lone surrogates

#[cfg(test)]
mod tests;

/// Nesting depth of arrays and objects, the outermost one included.
pub const NESTING_MAX: usize = 128;

/// Up to this many names, comparing every pair is cheaper than hashing them.
const PAIRWISE_NAMES_MAX: usize = 24;

/// A lone surrogate is not a character, but JavaScript writes it; the service reads it as U+FFFD.
pub fn parse(text: &[u8]) -> Result<Value> {
    read(text).or_else(|error| match surrogates::replace_lone_surrogates(text) {
        Some(repaired) => read(&repaired),
        None => Err(error),
    })
}

fn read(text: &[u8]) -> Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    // `NestedValueSeed` counts the levels: serde_json's own limit is one level lower than `NESTING_MAX`.
    reader.disable_recursion_limit();
    let value = NestedValueSeed(0).deserialize(&mut reader).map_err(invalid)?;
    reader.end().map_err(invalid)?;
    Ok(value)
}

fn invalid(error: serde_json::Error) -> Error {
    Error::invalid(format!("The input content is not valid JSON: {error}."))
}

/// Deserializes one value that is nested in this many open arrays and objects.
#[derive(Clone, Copy)]
struct NestedValueSeed(usize);

impl NestedValueSeed {
    fn enter<E: serde::de::Error>(self) -> Result<NestedValueSeed, E> {
        if self.0 == NESTING_MAX {
            return Err(E::custom(format_args!("more than {NESTING_MAX} arrays and objects inside each other")));
        }
        Ok(NestedValueSeed(self.0 + 1))
    }
}

impl<'de> DeserializeSeed<'de> for NestedValueSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NestedValueSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::from(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(Value::from(n))
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<Value, E> {
        if n.is_finite() { Ok(Value::from(n)) } else { Err(E::custom("number out of range")) }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut reader: A) -> Result<Value, A::Error> {
        let inside = self.enter()?;
        let mut items = Vec::new();
        while let Some(item) = reader.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut reader: A) -> Result<Value, A::Error> {
        let inside = self.enter()?;
        let mut properties = Vec::new();
        while let Some(name) = reader.next_key::<String>()? {
            properties.push((name, reader.next_value_seed(inside)?));
        }
        Ok(Value::Object(with_unique_names(properties)))
    }
}

/// Builds an object from properties in text order: a duplicate name keeps its first position and its last value.
pub fn with_unique_names(properties: Vec<(String, Value)>) -> Object {
    if has_duplicate_names(&properties) { keep_last_values(properties) } else { Object::from_unique(properties) }
}

fn has_duplicate_names(properties: &[(String, Value)]) -> bool {
    if properties.len() <= PAIRWISE_NAMES_MAX {
        return (1..properties.len()).any(|at| properties[..at].iter().any(|(name, _)| *name == properties[at].0));
    }
    let mut seen = HashSet::with_capacity(properties.len());
    !properties.iter().all(|(name, _)| seen.insert(name.as_str()))
}

fn keep_last_values(properties: Vec<(String, Value)>) -> Object {
    let mut positions = HashMap::with_capacity(properties.len());
    let mut unique: Vec<(String, Value)> = Vec::with_capacity(properties.len());
    for (name, value) in properties {
        let position = *positions.entry(name.clone()).or_insert(unique.len());
        match unique.get_mut(position) {
            Some((_, old)) => *old = value,
            None => unique.push((name, value)),
        }
    }
    Object::from_unique(unique)
}

pub fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    // Every byte is from a `String` or is ASCII, so the lossy conversion never replaces anything.
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Compact text: no spaces, raw UTF-8, only the escapes that JSON requires.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(n) => write_number(*n, out),
        Value::String(text) => write_str(text, out),
        Value::Array(items) => write_array(items, out),
        Value::Object(object) => write_object(object, out),
    }
}

/// As `write`, but every double is recognizable as one: `2.0`. For readers that infer a number's type from its text.
pub fn write_doubles(value: &Value, out: &mut Vec<u8>) {
    write_with(value, out, &|number, out| match number {
        Number::Float(n) if n.is_finite() => out.extend_from_slice(zmij::Buffer::new().format_finite(n).as_bytes()),
        number => write_number(number, out),
    });
}

/// As `write`, with a caller-supplied number format.
pub fn write_with(value: &Value, out: &mut Vec<u8>, number: &dyn Fn(Number, &mut Vec<u8>)) {
    match value {
        Value::Number(n) => number(*n, out),
        Value::Array(items) => write_array_with(items, out, |item, out| write_with(item, out, number)),
        Value::Object(members) => write_object_with(members, out, |value, out| write_with(value, out, number)),
        other => write(other, out),
    }
}

pub fn write_array(items: &[Value], out: &mut Vec<u8>) {
    write_array_with(items, out, write);
}

pub fn write_object(members: &Object, out: &mut Vec<u8>) {
    write_object_with(members, out, write);
}

fn write_array_with(items: &[Value], out: &mut Vec<u8>, write: impl Fn(&Value, &mut Vec<u8>)) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_object_with(members: &Object, out: &mut Vec<u8>, write: impl Fn(&Value, &mut Vec<u8>)) {
    out.push(b'{');
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_str(name, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

pub fn write_number(number: Number, out: &mut Vec<u8>) {
    match number {
        Number::Int(n) => out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes()),
        Number::UInt(n) => out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes()),
        Number::Float(n) => write_float(n, out),
    }
}

/// `105.00` is written as `105`, as in JavaScript; `-0.0` keeps its sign because it hashes to
/// another partition than `0`.
fn write_float(n: f64, out: &mut Vec<u8>) {
    const EXPONENT_FROM: f64 = 1e21;
    let is_negative_zero = n == 0.0 && n.is_sign_negative();
    if n.fract() == 0.0 && n.abs() < EXPONENT_FROM && !is_negative_zero {
        out.extend_from_slice(itoa::Buffer::new().format(n as i128).as_bytes());
    } else if n.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(n).as_bytes());
    } else {
        out.extend_from_slice(b"null"); // JSON has no infinity; an overflowed sum is written as null
    }
}

/// A JSON string with its quotes.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[byte as usize];
        if escape != RAW {
            out.extend_from_slice(&bytes[written..at]);
            write_escape(byte, escape, out);
            written = at + 1;
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

fn write_escape(byte: u8, escape: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'\\', escape]);
    if escape == b'u' {
        out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

const RAW: u8 = 0;

/// For each byte, the letter that follows the backslash, or `RAW` if it needs no escape.
const ESCAPES: [u8; 256] = {
    let mut table = [RAW; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = b'u';
        control += 1;
    }
    table[0x08] = b'b';
    table[b'\t' as usize] = b't';
    table[b'\n' as usize] = b'n';
    table[0x0C] = b'f';
    table[b'\r' as usize] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};
