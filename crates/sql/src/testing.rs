//! Random documents, policies and queries, and the properties that hold for all of them.
//!
//! Guarantees: the same bytes generate the same case, for property tests with a seed and for fuzzers with their input.
//! Cases are small and collide often: few names, few values, many of them nearly equal. Generated queries contain no
//! expression that fails on a row, so that an error cannot hide a plan that misses rows.
//!
//! ```text
//! bytes ─ choices ─┬─ documents   items without id and key
//!                  ├─ policies    indexing policies
//!                  └─ queries     text and parameters
//! holds            evaluates an index predicate on a document
//! exam             properties, for property tests and fuzzers alike
//! ```

mod choices; // bytes to choices
mod documents; // items
pub mod exam; // the properties
mod filters; // conditions of WHERE
mod holds; // index predicates, evaluated without an index
mod policies; // indexing policies
mod queries; // whole queries

pub use choices::Choices;
pub use documents::{document, scalar, value};
pub use holds::holds;
pub use policies::policy;
pub use queries::{TestQuery, query};

#[cfg(test)]
mod tests;
