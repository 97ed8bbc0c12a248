//! Memcomparable encoding of values: the encoded bytes compare as the values do.
//!
//! Invariant: byte order is value order, and equal values have equal bytes (`1`, `1.0`; `0`, `-0.0`). Types are
//! contiguous: undefined, null, false, true, numbers, strings, arrays, objects. All arrays are encoded alike, and so
//! are all objects. An encoded value is self-delimiting, so that a docnum or another value can follow it.
//!
//! ```text
//! undefined 00
//! null      01
//! false     02
//! true      03
//! number    05 │ double, sign bit flipped (negative: all bits), big-endian
//! string    08 │ UTF-8, 00 written as 00 FF │ 00 01
//! string    08 │ its prefix, likewise       │ 00 02 │ SHA-256 of the whole, 16 bytes     when truncated
//! array     0A
//! object    0B
//!
//! 1         05 bff0000000000000
//! "a\0b"    08 61 00ff 62 0001
//! ```
//!
//! A long string is truncated to its first 1,000 bytes, in a composite index to the longest prefix whose escaped form
//! has at most 300 bytes. Truncated strings with the same prefix are distinct but not ordered; readers that need their
//! order compare the items.
//!
//! In a composite index the components follow one another. A descending one has every byte inverted, which
//! reverses the order and leaves the encoding prefix-free:
//!
//! ```text
//! (1 asc, null desc)   05 bff0000000000000 fe
//! ```

mod range; // ranges of encoded values

pub use range::TermRange;

use pleiad_model::memcomparable::{
    ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, STRING_END, TRUE, UNDEFINED, escape, write_number,
};
use pleiad_model::policy::COMPOSITE_PATHS_PER_INDEX_MAX;
use pleiad_model::{Number, Value};
use pleiad_storage::keyspace;

/// Longer strings are ordered by this many bytes. A zero takes two bytes when escaped.
pub const STRING_BYTES_ORDERED: usize = 1000;
/// The same in a composite index, counted after escaping: eight components must fit into a key.
pub const COMPONENT_STRING_BYTES_WRITTEN: usize = 300;

/// Sorts after every value.
const AFTER_ALL_VALUES: u8 = 0x0C;

const END_HASHED: [u8; 2] = [0x00, 0x02];
const HASH_BYTES: usize = 16;

/// What a truncated string takes in addition to its escaped prefix; no other value takes more than this and a prefix.
const TRUNCATED_BYTES: usize = 1 + END_HASHED.len() + HASH_BYTES;
/// The longest value in the index of a path: a truncated string of zeros.
const SCALAR_BYTES_MAX: usize = TRUNCATED_BYTES + 2 * STRING_BYTES_ORDERED;
/// The longest value in a composite index: every component is a truncated string.
const COMPOSITE_BYTES_MAX: usize = COMPOSITE_PATHS_PER_INDEX_MAX * (TRUNCATED_BYTES + COMPONENT_STRING_BYTES_WRITTEN);

// Every version of the index has truncated strings at these lengths: a longer one would not fit into a key, and a
// shorter one needs an upgrade that rewrites the index rows.
const _: () = assert!(SCALAR_BYTES_MAX <= keyspace::INDEX_VALUE_BYTES_MAX);
const _: () = assert!(COMPOSITE_BYTES_MAX <= keyspace::INDEX_VALUE_BYTES_MAX);

/// From here on, several integers have the same double.
const INTEGER_EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The types, in sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TermType {
    Undefined,
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl TermType {
    pub const ALL: [TermType; 7] = [
        TermType::Undefined,
        TermType::Null,
        TermType::Boolean,
        TermType::Number,
        TermType::String,
        TermType::Array,
        TermType::Object,
    ];

    pub fn of(value: &Value) -> TermType {
        match value {
            Value::Null => TermType::Null,
            Value::Bool(_) => TermType::Boolean,
            Value::Number(_) => TermType::Number,
            Value::String(_) => TermType::String,
            Value::Array(_) => TermType::Array,
            Value::Object(_) => TermType::Object,
        }
    }
}

/// What can be recovered of an encoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Undefined,
    /// The value itself.
    Exact(Value),
    /// A truncated string, or a number so large that several integers have its encoding.
    Inexact(TermType),
    Array,
    Object,
}

/// Encodes a value for the index of its path. Of arrays and objects only the type is encoded.
pub fn encode_scalar(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.as_str().map_or(9, |text| text.len().min(STRING_BYTES_ORDERED) + 3));
    encode(value, truncate_plain, &mut out);
    out
}

/// The term of an item without a value at an explicitly included path.
pub fn encode_undefined() -> Vec<u8> {
    vec![UNDEFINED]
}

/// Appends one component of a composite index; `None` is undefined.
pub fn encode_component(value: Option<&Value>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        None => out.push(UNDEFINED),
        Some(value) => encode(value, truncate_component, out),
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The value at the front, and how many bytes it takes. `None` for bytes that are no encoding.
pub fn decode(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let (tag, rest) = bytes.split_first()?;
    let (decoded, used) = match *tag {
        UNDEFINED => (Decoded::Undefined, 0),
        NULL => (Decoded::Exact(Value::Null), 0),
        FALSE => (Decoded::Exact(Value::Bool(false)), 0),
        TRUE => (Decoded::Exact(Value::Bool(true)), 0),
        NUMBER => (decode_number(*rest.first_chunk()?)?, 8),
        STRING => decode_string(rest)?,
        ARRAY => (Decoded::Array, 0),
        OBJECT => (Decoded::Object, 0),
        _ => return None,
    };
    Some((decoded, used + 1))
}

/// The scalar at the front and how many bytes it takes, if the encoding is exact.
pub fn decode_scalar(bytes: &[u8]) -> Option<(Value, usize)> {
    match decode(bytes)? {
        (Decoded::Exact(value), used) => Some((value, used)),
        _ => None,
    }
}

/// `decode`, for one component of a composite index.
pub fn decode_component(bytes: &[u8], descending: bool) -> Option<(Decoded, usize)> {
    if !descending {
        return decode(bytes);
    }
    let ascending: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    decode(&ascending)
}

fn encode(value: &Value, truncate: fn(&[u8]) -> &[u8], out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Number(number) => write_number(number.as_f64(), out),
        Value::String(text) => encode_string(text.as_bytes(), truncate, out),
        Value::Array(_) => out.push(ARRAY),
        Value::Object(_) => out.push(OBJECT),
    }
}

fn decode_number(ordered: [u8; 8]) -> Option<Decoded> {
    let ordered = u64::from_be_bytes(ordered);
    let number = f64::from_bits(if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered });
    if !number.is_finite() {
        return None;
    }
    if number.abs() >= INTEGER_EXACT_MAX {
        return Some(Decoded::Inexact(TermType::Number));
    }
    let integer = Number::Float(number).as_i64().map(Number::Int);
    Some(Decoded::Exact(Value::Number(integer.unwrap_or(Number::Float(number)))))
}

fn encode_string(bytes: &[u8], truncate: fn(&[u8]) -> &[u8], out: &mut Vec<u8>) {
    let prefix = truncate(bytes);
    out.push(STRING);
    escape(prefix, out);
    if prefix.len() == bytes.len() {
        out.extend_from_slice(&STRING_END);
    } else {
        out.extend_from_slice(&END_HASHED);
        out.extend_from_slice(&ring::digest::digest(&ring::digest::SHA256, bytes).as_ref()[..HASH_BYTES]);
    }
}

fn decode_string(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let mut text = Vec::new();
    let mut at = 0;
    loop {
        match bytes.get(at..)? {
            [0x00, 0xFF, ..] => {
                text.push(0);
                at += 2;
            }
            [0x00, 0x01, ..] => {
                return Some((Decoded::Exact(Value::String(String::from_utf8(text).ok()?)), at + STRING_END.len()));
            }
            [0x00, 0x02, hash @ ..] if hash.len() >= HASH_BYTES => {
                return Some((Decoded::Inexact(TermType::String), at + END_HASHED.len() + HASH_BYTES));
            }
            [byte, ..] if *byte != 0 => {
                text.push(*byte);
                at += 1;
            }
            _ => return None,
        }
    }
}

/// The prefix of a string that a path's own index stores.
fn truncate_plain(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(STRING_BYTES_ORDERED)]
}

/// The prefix of a string that a composite index stores. Its length depends on the prefix only, so that strings with
/// the same beginning are truncated at the same position.
fn truncate_component(bytes: &[u8]) -> &[u8] {
    let mut written = 0;
    let fits = |byte: &&u8| {
        written += if **byte == 0 { 2 } else { 1 };
        written <= COMPONENT_STRING_BYTES_WRITTEN
    };
    &bytes[..bytes.iter().take_while(fits).count()]
}

#[cfg(test)]
mod tests;
