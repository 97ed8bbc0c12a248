//! The ordered encoding of scalars: bytes compare as the values do.
//!
//! Promise: within a type, byte order is value order, and values that are equal have equal bytes
//! (`1`, `1.0`; `0`, `-0.0`). Types are contiguous: null, false, true, numbers, strings. An encoded
//! value ends by itself, so that an item number can follow it in a key.
//!
//! ```text
//! null    01
//! false   02
//! true    03
//! number  05 │ double, sign bit flipped (negative: all bits), big-endian
//! string  08 │ UTF-8, 00 written as 00 FF │ 00 01
//! string  08 │ first 1,000 bytes likewise │ 00 02 │ SHA-256 of the whole, 16 bytes     when longer
//!
//! 1       05 bff0000000000000
//! "a\0b"  08 61 00ff 62 0001
//! ```
//!
//! Strings that share their first 1,000 bytes are told apart but not ordered; readers who need
//! their order look at the items.

use pleiad_model::Value;

/// Longer strings keep this many bytes in order; the key must stay below 2,704 bytes even when every
/// byte is a zero that doubles.
pub const STRING_BYTES_ORDERED: usize = 1000;

const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x08;

const END: [u8; 2] = [0x00, 0x01];
const END_HASHED: [u8; 2] = [0x00, 0x02];

/// Encodes a scalar. Arrays and objects have no terms of their own and encode as nothing.
pub fn encode_scalar(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => vec![NULL],
        Value::Bool(false) => vec![FALSE],
        Value::Bool(true) => vec![TRUE],
        Value::Number(number) => encode_number(number.as_f64()),
        Value::String(text) => encode_string(text),
        Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

fn encode_number(number: f64) -> Vec<u8> {
    // Adding zero turns -0.0 into 0.0 and leaves every other number alone.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits };
    let mut out = Vec::with_capacity(9);
    out.push(NUMBER);
    out.extend_from_slice(&ordered.to_be_bytes());
    out
}

fn encode_string(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let kept = &bytes[..bytes.len().min(STRING_BYTES_ORDERED)];
    let mut out = Vec::with_capacity(kept.len() + 3);
    out.push(STRING);
    for &byte in kept {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    if kept.len() == bytes.len() {
        out.extend_from_slice(&END);
    } else {
        out.extend_from_slice(&END_HASHED);
        out.extend_from_slice(&ring::digest::digest(&ring::digest::SHA256, bytes).as_ref()[..16]);
    }
    out
}

#[cfg(test)]
mod tests;
