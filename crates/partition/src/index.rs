//! Index terms: the (path, value) pairs under which an item is found in the index.
//!
//! Invariant: terms depend on the item, its `_ts` and the policy only, so that the terms of an old version
//! can be computed again when it is replaced or deleted. `row_changes` writes the rows.
//!
//! | term | path hash | value |
//! |---|---|---|
//! | a scalar at an indexed path | of the path | as `encoding` writes it |
//! | an array or object at an indexed path | of the path | its type |
//! | no value at an explicitly included path | of the path | undefined |
//! | the time of the last write | of `/_ts` | a number |
//! | a composite index | of its paths and their orders | its components, concatenated |
//! | a geometry under a spatial index | of its path, marked spatial | a cell |
//! | a vector under a vector index | of its path, marked vector | its elements, in a row of the vector keyspace |
//! | a word of a text under a full-text index; its length | of its path, language and analyzer, marked text | see `full_text` |
//! | an item that its writer excluded from the index | 0 | empty |
//!
//! Through the last term, readers of the index find the items that are not in it.

pub mod encoding; // order-preserving encoding of values
mod computed; // computed properties in the index
pub mod full_text; // full-text terms
mod path; // hashes of paths and composite indexes
mod rules; // a compiled policy, and the terms it produces
mod spatial; // spatial terms
mod usable; // what a query can use during an index transformation
mod vector; // vector terms

pub use computed::{ComputedDefinitions, Extract};
pub use encoding::{TermRange, TermType};
pub use path::{PathHash, composite_id, directions, full_text_id, spatial_id};
pub use rules::IndexRules;
pub use usable::{PolicyVersions, UsableIndex};
pub use vector::VectorRule;

use bytes::Bytes;
use pleiad_storage::keyspace;

/// One (path, value) pair and the keyspace of its row. Sorted and unique within an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexTerm {
    pub keyspace: Keyspace,
    pub path: u64,
    pub value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keyspace {
    /// The value is part of the row's key: lookups search by it.
    Index,
    /// The value is the row's value: lookups return it.
    Vector,
}

impl IndexTerm {
    pub fn index(path: u64, value: Vec<u8>) -> IndexTerm {
        IndexTerm { keyspace: Keyspace::Index, path, value }
    }

    pub fn vector(path: u64, value: Vec<u8>) -> IndexTerm {
        IndexTerm { keyspace: Keyspace::Vector, path, value }
    }

    /// The key of this term's row for the item with this docnum.
    pub fn row(&self, shard: u64, docnum: u64) -> Bytes {
        match self.keyspace {
            Keyspace::Index => keyspace::index(shard, self.path, &self.value, docnum),
            Keyspace::Vector => keyspace::vector(shard, self.path, docnum),
        }
    }

    /// The value of that row.
    pub fn content(&self) -> &[u8] {
        match self.keyspace {
            Keyspace::Index => &[],
            Keyspace::Vector => &self.value,
        }
    }
}

/// The path hash of the items that are excluded from the index.
pub const UNINDEXED: u64 = 0;

/// The only term of an item that its writer excluded from the index.
pub fn unindexed() -> Vec<IndexTerm> {
    vec![IndexTerm::index(UNINDEXED, Vec::new())]
}

/// Whether the term is charged. Terms that the service itself adds are free.
pub fn is_priced(term: &IndexTerm) -> bool {
    term.path != UNINDEXED && term.path != path::ts_path()
}

pub fn count_priced(terms: &[IndexTerm]) -> usize {
    terms.iter().filter(|term| is_priced(term)).count()
}

#[cfg(test)]
mod tests;
