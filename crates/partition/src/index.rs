//! Which terms an item puts into the index.
//!
//! Promise: terms depend on the item, its time and the policy only, so that the terms of an old version
//! can be worked out again when it is replaced or deleted. Rows are written by `transaction`.
//!
//! | term | path hash | value |
//! |---|---|---|
//! | a scalar at an indexed path | of the path | as `order` writes it |
//! | an array or object at an indexed path | of the path | that it is one |
//! | no value at an explicit path | of the path | undefined |
//! | the time of the last write | of `/_ts` | a number |
//! | a composite index | of its paths and their orders | its components, one after the other |
//! | a geometry under a spatial index | of its path, as a spatial one | a cell |
//! | a vector under a vector index | of its path, as a vector's | its elements, in a row of their own keyspace |
//! | a word of a text under a full-text index, and how many it has | of its path and language, as a text | `full_text` says |
//! | an item that its writer wanted out of the index | 0 | nothing |
//!
//! The last is how whoever reads the index finds the items that are not in it.

pub mod encoding; // values as bytes whose order is the values' order
mod computed; // properties that no item stores
pub mod full_text; // the words of texts
mod path; // paths and composite indexes as numbers
mod rules; // a policy, and the terms it asks for
mod spatial; // where geometry is found
mod usable; // what a query may rely on
mod vector; // the vectors of an item

pub use computed::{ComputedDefinitions, Extract};
pub use encoding::{TermRange, TermType};
pub use path::{PathHash, composite_id, directions, full_text_id, spatial_id};
pub use rules::IndexRules;
pub use usable::{PolicyVersions, UsableIndex};
pub use vector::VectorRule;

use bytes::Bytes;
use pleiad_storage::keyspace;

/// One (path, value) pair, and where its row is. Sorted and unique within an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexTerm {
    pub keyspace: Keyspace,
    pub path: u64,
    pub value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keyspace {
    /// The value is part of the row's key: it is what is searched for.
    Index,
    /// The value lies in the row: it is what is found.
    Vector,
}

impl IndexTerm {
    pub fn index(path: u64, value: Vec<u8>) -> IndexTerm {
        IndexTerm { keyspace: Keyspace::Index, path, value }
    }

    pub fn vector(path: u64, value: Vec<u8>) -> IndexTerm {
        IndexTerm { keyspace: Keyspace::Vector, path, value }
    }

    /// The row of the item with this number.
    pub fn row(&self, shard: u64, docnum: u64) -> Bytes {
        match self.keyspace {
            Keyspace::Index => keyspace::index(shard, self.path, &self.value, docnum),
            Keyspace::Vector => keyspace::vector(shard, self.path, docnum),
        }
    }

    /// What lies in it.
    pub fn content(&self) -> &[u8] {
        match self.keyspace {
            Keyspace::Index => &[],
            Keyspace::Vector => &self.value,
        }
    }
}

/// The path hash of items that are not in the index.
pub const UNINDEXED: u64 = 0;

/// The only term of an item that its writer wanted out of the index.
pub fn unindexed() -> Vec<IndexTerm> {
    vec![IndexTerm::index(UNINDEXED, Vec::new())]
}

/// Is it paid for? What the service itself adds is not.
pub fn is_priced(term: &IndexTerm) -> bool {
    term.path != UNINDEXED && term.path != path::ts()
}

pub fn priced(terms: &[IndexTerm]) -> usize {
    terms.iter().filter(|term| is_priced(term)).count()
}

#[cfg(test)]
mod tests;
