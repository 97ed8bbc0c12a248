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

use super::{BEYOND, END_HASHED, TermType, component_stem, encode, plain_stem};

/// Encoded values in `[from, to)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl TermRange {
    /// All rows at the path, including those of items without a value.
    pub fn all() -> TermRange {
        TermRange { from: vec![UNDEFINED], to: vec![BEYOND] }
    }

    pub fn defined() -> TermRange {
        TermRange { from: vec![NULL], to: vec![BEYOND] }
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
        PATH.exact(value)
    }

    /// The values of the bounds' type between the bounds. Bounds of different types give an empty range, no bounds give
    /// all defined values.
    pub fn range(low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        PATH.range(low, high)
    }

    /// Strings with this prefix.
    pub fn prefix(text: &str) -> TermRange {
        PATH.prefix(text)
    }

    /// `range` for one component of a composite index.
    pub fn component_range(low: Bound<&Value>, high: Bound<&Value>, descending: bool) -> TermRange {
        COMPONENT.range(low, high).directed(descending)
    }

    /// `prefix` for one component of a composite index.
    pub fn component_prefix(text: &str, descending: bool) -> TermRange {
        COMPONENT.prefix(text).directed(descending)
    }

    fn directed(self, descending: bool) -> TermRange {
        let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect::<Vec<u8>>();
        match descending {
            false => self,
            true if self.is_empty() => TermRange::nothing(),
            true => TermRange { from: after_all(&inverted(&self.to)), to: after_all(&inverted(&self.from)) },
        }
    }

    /// This range for the component that follows these encoded components of a composite index.
    pub fn behind(self, known: &[u8]) -> TermRange {
        TermRange { from: [known, &self.from].concat(), to: [known, &self.to].concat() }
    }

    /// The intersection of two ranges.
    pub fn and(self, other: TermRange) -> TermRange {
        let from = self.from.max(other.from);
        let to = self.to.min(other.to).max(from.clone());
        TermRange { from, to }
    }

    /// All encodings with this prefix: one value, or the leading components of a composite index.
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

    /// The store keys `[from, to)` of the range at a path.
    pub fn keys(&self, shard: u64, path: u64) -> (Bytes, Bytes) {
        (keyspace::index_range(shard, path, &self.from).0, keyspace::index_range(shard, path, &self.to).0)
    }

    fn nothing() -> TermRange {
        TermRange { from: vec![BEYOND], to: vec![BEYOND] }
    }
}

/// How strings are truncated.
struct Cutting(fn(&[u8]) -> &[u8]);

/// In a path's own index, and in a composite index.
const PATH: Cutting = Cutting(plain_stem);
const COMPONENT: Cutting = Cutting(component_stem);

impl Cutting {
    fn exact(&self, value: &Value) -> TermRange {
        let mut encoded = Vec::new();
        encode(value, self.0, &mut encoded);
        TermRange::starting_with(encoded)
    }

    fn range(&self, low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        match (type_of(low), type_of(high)) {
            (None, None) => TermRange::defined(),
            (Some(low), Some(high)) if low != high => TermRange::nothing(),
            (Some(kind), _) | (None, Some(kind)) => self.within(kind, low, high),
        }
    }

    fn within(&self, kind: TermType, low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        let whole = TermRange::of_type(kind);
        if matches!(kind, TermType::Array | TermType::Object) {
            return whole;
        }
        let from = match low {
            Bound::Excluded(value) if !self.is_cut(value) => self.stretch(value).to,
            Bound::Included(value) | Bound::Excluded(value) => self.stretch(value).from,
            Bound::Unbounded => whole.from,
        };
        let to = match high {
            Bound::Excluded(value) if !self.is_cut(value) => self.stretch(value).from,
            Bound::Included(value) | Bound::Excluded(value) => self.stretch(value).to,
            Bound::Unbounded => whole.to,
        };
        if from < to { TermRange { from, to } } else { TermRange::nothing() }
    }

    fn prefix(&self, text: &str) -> TermRange {
        if self.cuts(text) {
            return self.cut(text);
        }
        let mut from = vec![STRING];
        escape(text.as_bytes(), &mut from);
        TermRange::starting_with(from)
    }

    /// The rows at which a value sorts: its own, or those of all strings that are truncated to the same prefix.
    fn stretch(&self, value: &Value) -> TermRange {
        match value {
            Value::String(text) if self.cuts(text) => self.cut(text),
            _ => self.exact(value),
        }
    }

    fn is_cut(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.cuts(text))
    }

    fn cuts(&self, text: &str) -> bool {
        (self.0)(text.as_bytes()).len() < text.len()
    }

    /// All strings that are truncated to the same prefix as this one.
    fn cut(&self, text: &str) -> TermRange {
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
fn after_all(prefix: &[u8]) -> Vec<u8> {
    // No encoding has nine: after eight descending undefined components a docnum follows.
    const BEHIND_ALL: [u8; 9] = [0xFF; 9];
    let Some(grows) = prefix.iter().rposition(|&byte| byte != 0xFF) else { return BEHIND_ALL.to_vec() };
    let mut end = prefix[..=grows].to_vec();
    end[grows] += 1;
    end
}

#[cfg(test)]
mod tests;
