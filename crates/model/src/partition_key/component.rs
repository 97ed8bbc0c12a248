//! Partition key components: one level of a key, and its encoding.
//!
//! Invariant: two components are equal exactly if their bytes are. Numbers are doubles compared by
//! their bits, so `1` and `1.0` are one key (S19), but `0` and `-0.0` are two because their hashes differ.
//!
//! ```text
//!   undefined 00 │ null 01 │ false 02 │ true 03
//!   number    05 │ double, little-endian       1    → 05 00 00 00 00 00 00 F0 3F
//!   string    08 │ UTF-8 │ terminator          "pk" → 08 70 6B FF
//! ```
//!
//! The terminator is FF, which no UTF-8 text contains, so no component is a prefix of another.
//! Version 1 hashes the same bytes with 00 as the terminator.

use std::hash::{Hash, Hasher};

use crate::{Error, Fact, Object, Result, Value, json};

#[derive(Clone, Debug)]
pub enum KeyComponent {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    String(String),
}

pub(super) const UNDEFINED: u8 = 0x00;
pub(super) const NULL: u8 = 0x01;
pub(super) const FALSE: u8 = 0x02;
pub(super) const TRUE: u8 = 0x03;
pub(super) const NUMBER: u8 = 0x05;
pub(super) const STRING: u8 = 0x08;

impl KeyComponent {
    /// The item's value at the key's path. Objects and arrays count as undefined (S10).
    pub fn of_property(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Object(_) | Value::Array(_)) => KeyComponent::Undefined,
            Some(Value::Null) => KeyComponent::Null,
            Some(Value::Bool(flag)) => KeyComponent::Bool(*flag),
            Some(Value::Number(n)) => KeyComponent::Number(n.as_f64()),
            Some(Value::String(text)) => KeyComponent::String(text.clone()),
        }
    }

    /// The inverse of `of_request`.
    pub(super) fn to_value(&self) -> Value {
        match self {
            KeyComponent::Undefined => Object::new().into(),
            KeyComponent::Null => Value::Null,
            KeyComponent::Bool(flag) => (*flag).into(),
            KeyComponent::Number(number) => (*number).into(),
            KeyComponent::String(text) => text.as_str().into(),
        }
    }

    /// A value from a client's request, where `{}` stands for undefined.
    pub(super) fn of_request(value: Value) -> Result<Self> {
        match value {
            Value::Object(object) if object.is_empty() => Ok(KeyComponent::Undefined),
            Value::Object(_) | Value::Array(_) => Err(Fact::KeyValueNotScalar.into()),
            Value::Null => Ok(KeyComponent::Null),
            Value::Bool(flag) => Ok(KeyComponent::Bool(flag)),
            Value::Number(n) => Ok(KeyComponent::Number(n.as_f64())),
            Value::String(text) => Ok(KeyComponent::String(text)),
        }
    }

    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            KeyComponent::Undefined => out.extend_from_slice(b"{}"),
            KeyComponent::Null => out.extend_from_slice(b"null"),
            KeyComponent::Bool(true) => out.extend_from_slice(b"true"),
            KeyComponent::Bool(false) => out.extend_from_slice(b"false"),
            KeyComponent::Number(n) => json::write_number((*n).into(), out),
            KeyComponent::String(text) => json::write_str(text, out),
        }
    }

    pub(super) fn type_byte(&self) -> u8 {
        match self {
            KeyComponent::Undefined => UNDEFINED,
            KeyComponent::Null => NULL,
            KeyComponent::Bool(false) => FALSE,
            KeyComponent::Bool(true) => TRUE,
            KeyComponent::Number(_) => NUMBER,
            KeyComponent::String(_) => STRING,
        }
    }

    pub(super) fn encoded_len(&self) -> usize {
        match self {
            KeyComponent::Number(_) => 1 + size_of::<f64>(),
            KeyComponent::String(text) => 1 + text.len() + 1,
            _ => 1,
        }
    }

    /// Writes `encoded_len` bytes at the front of `out` and returns the rest of it.
    pub(super) fn encode<'a>(&self, out: &'a mut [u8]) -> &'a mut [u8] {
        let (front, rest) = out.split_at_mut(self.encoded_len());
        front[0] = self.type_byte();
        match self {
            KeyComponent::Number(n) => front[1..].copy_from_slice(&n.to_le_bytes()),
            KeyComponent::String(text) => {
                front[1..=text.len()].copy_from_slice(text.as_bytes());
                front[1 + text.len()] = STRING_END;
            }
            _ => {}
        }
        rest
    }
}

impl KeyComponent {
    /// Decodes the first component and returns the bytes after it.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let corrupt = || Error::corrupt("partition key");
        let (tag, rest) = bytes.split_first().ok_or_else(corrupt)?;
        Ok(match *tag {
            UNDEFINED => (KeyComponent::Undefined, rest),
            NULL => (KeyComponent::Null, rest),
            FALSE => (KeyComponent::Bool(false), rest),
            TRUE => (KeyComponent::Bool(true), rest),
            NUMBER => {
                let (number, rest) = rest.split_first_chunk().ok_or_else(corrupt)?;
                (KeyComponent::Number(f64::from_le_bytes(*number)), rest)
            }
            STRING => {
                let end = rest.iter().position(|byte| *byte == STRING_END).ok_or_else(corrupt)?;
                let (text, rest) = rest.split_at(end);
                let text = std::str::from_utf8(text).map_err(|_| corrupt())?;
                (KeyComponent::String(text.to_owned()), rest.get(1..).unwrap_or_default())
            }
            _ => return Err(corrupt()),
        })
    }
}

pub(super) const STRING_END: u8 = 0xFF;

impl PartialEq for KeyComponent {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (KeyComponent::Number(a), KeyComponent::Number(b)) => a.to_bits() == b.to_bits(),
            (KeyComponent::String(a), KeyComponent::String(b)) => a == b,
            _ => self.type_byte() == other.type_byte(),
        }
    }
}

impl Eq for KeyComponent {}

impl Hash for KeyComponent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.type_byte().hash(state);
        match self {
            KeyComponent::Number(n) => n.to_bits().hash(state),
            KeyComponent::String(text) => text.hash(state),
            _ => {}
        }
    }
}
