//! Which stretch of a path's rows a reader needs.
//!
//! Promise: every item whose value is asked for lies in the range. Others may lie in it too, where the index
//! does not tell them apart: arrays from arrays, objects from objects, strings that share their first
//! 1,000 bytes (300 in a composite index) when an order is asked for. Whoever reads looks at the item again.
//!
//! ```text
//! exact(1)               05 bff0000000000000 … 05 bff0000000000001
//! x >= "b"               08 62 0001          … 09
//! prefix("ab")           08 6162             … 08 6163
//! of_type(Boolean)       02                  … 04
//! defined()              01                  … 0c
//!
//! as a component that descends, every byte is inverted and the ends change places:
//! x >= "b"               f7                  … f7 9d ffff
//! ```

use std::ops::Bound;

use bytes::Bytes;
use pleiad_model::Value;
use pleiad_storage::keyspace;

use pleiad_model::memcomparable::{ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, UNDEFINED, escape};

use super::{BEYOND, END_HASHED, TermType, component_stem, encode, plain_stem};

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

    /// The first and the last number of an item without a value that lies in the range.
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

    /// Values of the bounds' type between them. Bounds of two types have nothing between them; without
    /// bounds every value is.
    pub fn range(low: Bound<&Value>, high: Bound<&Value>) -> TermRange {
        PATH.range(low, high)
    }

    /// Strings that begin with this one.
    pub fn prefix(text: &str) -> TermRange {
        PATH.prefix(text)
    }

    /// `range`, of one component of a composite index.
    pub fn component_range(low: Bound<&Value>, high: Bound<&Value>, descending: bool) -> TermRange {
        COMPONENT.range(low, high).directed(descending)
    }

    /// `prefix`, of one component of a composite index.
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

    /// The same, behind these components of a composite index.
    pub fn behind(self, known: &[u8]) -> TermRange {
        TermRange { from: [known, &self.from].concat(), to: [known, &self.to].concat() }
    }

    /// What lies in both.
    pub fn and(self, other: TermRange) -> TermRange {
        let from = self.from.max(other.from);
        let to = self.to.min(other.to).max(from.clone());
        TermRange { from, to }
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

/// Where strings are cut.
struct Cutting(fn(&[u8]) -> &[u8]);

/// In a path's own index, and in a composite one.
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

    /// Where a value stands in the order: its own rows, or those of all strings that are cut like it.
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

    /// Longer strings with the beginning of this one.
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
