//! Documents, policies and queries by chance, and what must hold of any of them.
//!
//! Promise: the same bytes give the same case, whoever asks: property tests with a seed, fuzzers with their input.
//! Cases are small and collide a lot: few names, few values, many of them nearly equal. What is generated has no
//! expression that fails on a row, so that a plan which leaves rows out is not excused by an error.
//!
//! ```text
//! bytes ─ chance ─┬─ documents   items without id and key
//!                 ├─ policies    what an index may know of them
//!                 └─ queries     text and parameters
//! holds           what a condition means, without an index
//! exam            a body for property tests and fuzzers alike
//! ```

mod chance; // bytes to choices
mod documents; // items
pub mod exam; // what must hold
mod filters; // conditions of WHERE
mod holds; // conditions of an index, without one
mod policies; // indexing policies
mod queries; // whole queries

pub use chance::Choices;
pub use documents::{document, scalar, value};
pub use holds::holds;
pub use policies::policy;
pub use queries::{TestQuery, query};

#[cfg(test)]
mod tests;
