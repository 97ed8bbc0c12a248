//! Which stretch of a path's rows a reader needs.
//!
//! Promise: every item whose value is asked for lies in the range. Others may lie in it too, where the index
//! does not tell them apart: arrays from arrays, objects from objects, strings that share their first
//! 1,000 bytes when an order is asked for. Whoever reads looks at the item again.
//!
//! ```text
//! exact(1)               05 bff0000000000000 … 05 bff0000000000001
//! x >= "b"               08 62 0001          … 09
//! prefix("ab")           08 6162             … 08 6163
//! of_type(Boolean)       02                  … 04
//! defined()              01                  … 0c
//! ```

use std::ops::Bound;

use bytes::Bytes;
use pleiad_model::Value;
use pleiad_storage::keyspace;

use pleiad_model::ordered::{ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, UNDEFINED, escape};

use super::{BEYOND, END_HASHED, STRING_BYTES_ORDERED, Type, encode_scalar, plain_stem};

/// Encoded values from `from` up to, not including, `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl TermRange {
    /// Everything at the path, also that a value is missing.
    pub fn all() -> TermRange {
        TermRange { from: vec![UNDEFINED], to: vec![BEYOND] }
    }

    pub fn defined() -> TermRange {
        TermRange { from: vec![NULL], to: vec![BEYOND] }
    }

    pub fn of_type(kind: Type) -> TermRange {
        let (first, last) = match kind {
            Type::Undefined => (UNDEFINED, UNDEFINED),
            Type::Null => (NULL, NULL),
            Type::Boolean => (FALSE, TRUE),
            Type::Number => (NUMBER, NUMBER),
            Type::String => (STRING, STRING),
            Type::Array => (ARRAY, ARRAY),
            Type::Object => (OBJECT, OBJECT),
        };
        TermRange { from: vec![first], to: vec![last + 1] }
    }

    /// Values equal to this one.
    pub fn exact(value: &Value) -> TermRange {
        TermRange::starting_with(encode_scalar(value))
    }

    /// Values of the bounds' type between them. Bounds of two types have nothing between them; without
    /// bounds every value is.
    pub fn range(low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        match (type_of(low), type_of(high)) {
            (None, None) => TermRange::defined(),
            (Some(low), Some(high)) if low != high => TermRange::nothing(),
            (Some(kind), _) | (None, Some(kind)) => TermRange::within(kind, low, high),
        }
    }

    fn within(kind: Type, low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        let whole = TermRange::of_type(kind);
        if matches!(kind, Type::Array | Type::Object) {
            return whole;
        }
        let from = match low {
            Bound::Excluded(value) if !is_cut(value) => stretch(value).to,
            Bound::Included(value) | Bound::Excluded(value) => stretch(value).from,
            Bound::Unbounded => whole.from,
        };
        let to = match high {
            Bound::Excluded(value) if !is_cut(value) => stretch(value).from,
            Bound::Included(value) | Bound::Excluded(value) => stretch(value).to,
            Bound::Unbounded => whole.to,
        };
        if from < to { TermRange { from, to } } else { TermRange::nothing() }
    }

    /// Strings that begin with this one.
    pub fn prefix(text: &str) -> TermRange {
        if text.len() > STRING_BYTES_ORDERED {
            return cut(text);
        }
        let mut from = vec![STRING];
        escape(text.as_bytes(), &mut from);
        TermRange::starting_with(from)
    }

    /// Every encoding that begins with these bytes: one value, or the leading components of a composite index.
    pub fn starting_with(from: Vec<u8>) -> TermRange {
        let to = after_all(&from);
        TermRange { from, to }
    }

    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    pub fn contains(&self, encoded: &[u8]) -> bool {
        self.from.as_slice() <= encoded && encoded < self.to.as_slice()
    }

    /// The keys of the range at a path, `[from, to)`.
    pub fn keys(&self, shard: u64, path: u64) -> (Bytes, Bytes) {
        (keyspace::index_range(shard, path, &self.from).0, keyspace::index_range(shard, path, &self.to).0)
    }

    fn nothing() -> TermRange {
        TermRange { from: vec![BEYOND], to: vec![BEYOND] }
    }
}

fn type_of(bound: Bound<&Value>) -> Option<Type> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(Type::of(value)),
        Bound::Unbounded => None,
    }
}

/// Where a value stands in the order: its own rows, or those of all strings that are cut like it.
fn stretch(value: &Value) -> TermRange {
    match value {
        Value::String(text) if is_cut(value) => cut(text),
        _ => TermRange::exact(value),
    }
}

fn is_cut(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() > STRING_BYTES_ORDERED)
}

/// Longer strings with the beginning of this one.
fn cut(text: &str) -> TermRange {
    let mut from = vec![STRING];
    escape(plain_stem(text.as_bytes()), &mut from);
    from.extend_from_slice(&END_HASHED);
    TermRange::starting_with(from)
}

/// Behind everything that begins with `prefix`: its last byte that can grow, grown by one.
fn after_all(prefix: &[u8]) -> Vec<u8> {
    // Nothing encoded has so many: after eight undefined components, descending, an item number follows.
    const BEHIND_ALL: [u8; 9] = [0xFF; 9];
    let Some(grows) = prefix.iter().rposition(|&byte| byte != 0xFF) else { return BEHIND_ALL.to_vec() };
    let mut end = prefix[..=grows].to_vec();
    end[grows] += 1;
    end
}

#[cfg(test)]
mod tests;
