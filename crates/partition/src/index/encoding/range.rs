//! Term ranges: the range of encoded values at a path that a predicate selects.
//!
//! Invariant: the rows of every matching item are in the range. Other rows may be in it too, where the index does not
//! distinguish values: arrays from arrays, objects from objects, and in comparisons strings that share their first
//! 1,000 bytes (300 in a composite index). Readers check the item again.
//!
//! ```text
//! exact(1)               05 bff0000000000000 … 05 bff0000000000001
//! x >= "b"               08 62 0001          … 09
//! prefix("ab")           08 6162             … 08 6163
//! of_type(Boolean)       02                  … 04
//! defined()              01                  … 0c
//!
//! in a descending component every byte is inverted, and the ends are swapped:
//! x >= "b"               f7                  … f7 9d ffff
//! ```

use std::ops::Bound;

use bytes::Bytes;
use pleiad_model::Value;
use pleiad_storage::keyspace;

use pleiad_model::memcomparable::{ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, UNDEFINED, escape};

use super::{AFTER_ALL_VALUES, END_HASHED, TermType, encode, truncate_component, truncate_plain};

/// Encoded values in `[from, to)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl TermRange {
    /// All rows at the path, including those of items without a value.
    pub fn all() -> TermRange {
        TermRange { from: vec![UNDEFINED], to: vec![AFTER_ALL_VALUES] }
    }

    pub fn defined() -> TermRange {
        TermRange { from: vec![NULL], to: vec![AFTER_ALL_VALUES] }
    }

    /// The first and the last docnum that the range allows for an item without a value.
    pub fn undefined_docnums(&self) -> Option<(u64, u64)> {
        let first = match self.from.split_first() {
            Some((&UNDEFINED, docnum)) => docnum.first_chunk().map_or(0, |docnum| u64::from_be_bytes(*docnum)),
            None => 0,
            Some(_) => return None,
        };
        let last = match self.to.split_first() {
            Some((&UNDEFINED, docnum)) => u64::from_be_bytes(*docnum.first_chunk()?).checked_sub(1)?,
            None => return None,
            Some(_) => u64::MAX,
        };
        (first <= last).then_some((first, last))
    }

    pub fn of_type(kind: TermType) -> TermRange {
        let (first, last) = match kind {
            TermType::Undefined => (UNDEFINED, UNDEFINED),
            TermType::Null => (NULL, NULL),
            TermType::Boolean => (FALSE, TRUE),
            TermType::Number => (NUMBER, NUMBER),
            TermType::String => (STRING, STRING),
            TermType::Array => (ARRAY, ARRAY),
            TermType::Object => (OBJECT, OBJECT),
        };
        TermRange { from: vec![first], to: vec![last + 1] }
    }

    /// Values equal to this one.
    pub fn exact(value: &Value) -> TermRange {
        PLAIN_TRUNCATION.exact(value)
    }

    /// The values of the bounds' type between the bounds. Bounds of different types give an empty range, no bounds give
    /// all defined values.
    pub fn range(low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        PLAIN_TRUNCATION.range(low, high)
    }

    /// Strings with this prefix.
    pub fn prefix(text: &str) -> TermRange {
        PLAIN_TRUNCATION.prefix(text)
    }

    /// `range` for one component of a composite index.
    pub fn component_range(low: Bound<&Value>, high: Bound<&Value>, descending: bool) -> TermRange {
        COMPONENT_TRUNCATION.range(low, high).directed(descending)
    }

    /// `prefix` for one component of a composite index.
    pub fn component_prefix(text: &str, descending: bool) -> TermRange {
        COMPONENT_TRUNCATION.prefix(text).directed(descending)
    }

    fn directed(self, descending: bool) -> TermRange {
        let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
        match descending {
            false => self,
            true if self.is_empty() => TermRange::empty(),
            true => TermRange { from: prefix_end(&inverted(&self.to)), to: prefix_end(&inverted(&self.from)) },
        }
    }

    /// This range for the component that follows these encoded components of a composite index.
    pub fn prefixed_by(self, components: &[u8]) -> TermRange {
        TermRange { from: [components, &self.from].concat(), to: [components, &self.to].concat() }
    }

    /// The intersection of two ranges.
    pub fn intersect(self, other: TermRange) -> TermRange {
        let from = self.from.max(other.from);
        let to = self.to.min(other.to).max(from.clone());
        TermRange { from, to }
    }

    /// All encodings with this prefix: one value, or the leading components of a composite index.
    pub fn starting_with(from: Vec<u8>) -> TermRange {
        let to = prefix_end(&from);
        TermRange { from, to }
    }

    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    pub fn contains(&self, encoded: &[u8]) -> bool {
        self.from.as_slice() <= encoded && encoded < self.to.as_slice()
    }

    /// The store keys `[from, to)` of the range at a path.
    pub fn keys(&self, shard: u64, path: u64) -> (Bytes, Bytes) {
        (keyspace::index_range(shard, path, &self.from).0, keyspace::index_range(shard, path, &self.to).0)
    }

    fn empty() -> TermRange {
        TermRange { from: vec![AFTER_ALL_VALUES], to: vec![AFTER_ALL_VALUES] }
    }
}

/// How strings are truncated.
struct StringTruncation(fn(&[u8]) -> &[u8]);

/// In a path's own index, and in a composite index.
const PLAIN_TRUNCATION: StringTruncation = StringTruncation(truncate_plain);
const COMPONENT_TRUNCATION: StringTruncation = StringTruncation(truncate_component);

impl StringTruncation {
    fn exact(&self, value: &Value) -> TermRange {
        let mut encoded = Vec::new();
        encode(value, self.0, &mut encoded);
        TermRange::starting_with(encoded)
    }

    fn range(&self, low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        match (type_of(low), type_of(high)) {
            (None, None) => TermRange::defined(),
            (Some(low), Some(high)) if low != high => TermRange::empty(),
            (Some(kind), _) | (None, Some(kind)) => self.within(kind, low, high),
        }
    }

    fn within(&self, kind: TermType, low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        let type_range = TermRange::of_type(kind);
        if matches!(kind, TermType::Array | TermType::Object) {
            return type_range;
        }
        let from = match low {
            Bound::Excluded(value) if !self.is_truncated(value) => self.value_range(value).to,
            Bound::Included(value) | Bound::Excluded(value) => self.value_range(value).from,
            Bound::Unbounded => type_range.from,
        };
        let to = match high {
            Bound::Excluded(value) if !self.is_truncated(value) => self.value_range(value).from,
            Bound::Included(value) | Bound::Excluded(value) => self.value_range(value).to,
            Bound::Unbounded => type_range.to,
        };
        if from < to { TermRange { from, to } } else { TermRange::empty() }
    }

    fn prefix(&self, text: &str) -> TermRange {
        if self.truncates(text) {
            return self.truncated_range(text);
        }
        let mut from = vec![STRING];
        escape(text.as_bytes(), &mut from);
        TermRange::starting_with(from)
    }

    /// The rows at which a value sorts: its own, or those of all strings that are truncated to the same prefix.
    fn value_range(&self, value: &Value) -> TermRange {
        match value {
            Value::String(text) if self.truncates(text) => self.truncated_range(text),
            _ => self.exact(value),
        }
    }

    fn is_truncated(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.truncates(text))
    }

    fn truncates(&self, text: &str) -> bool {
        (self.0)(text.as_bytes()).len() < text.len()
    }

    /// All strings that are truncated to the same prefix as this one.
    fn truncated_range(&self, text: &str) -> TermRange {
        let mut from = vec![STRING];
        escape((self.0)(text.as_bytes()), &mut from);
        from.extend_from_slice(&END_HASHED);
        TermRange::starting_with(from)
    }
}

fn type_of(bound: Bound<&Value>) -> Option<TermType> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(TermType::of(value)),
        Bound::Unbounded => None,
    }
}

/// The upper bound of everything that begins with `prefix`: its last byte below FF, incremented.
fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    // No key has nine FF bytes: at most eight descending undefined components, FF each, and then a docnum.
    const AFTER_ALL: [u8; 9] = [0xFF; 9];
    let Some(last) = prefix.iter().rposition(|&byte| byte != 0xFF) else { return AFTER_ALL.to_vec() };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    end
}

#[cfg(test)]
mod tests;
