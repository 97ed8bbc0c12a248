//! sql: the Cosmos SQL language, from query text to rows, independent of partitions, stores and clocks.
//!
//! Read in this order.
//!
//! ```text
//! "SELECT r.id FROM root r WHERE r.n > @n"
//!    parse            text → Select        every construct of the language, with its position in the text
//!    check            Select               semantic analysis, with the service's error codes
//!    query_plan       Select → plan        for clients that run a query over many partitions
//!    compile          Select → Block       names resolved, constants folded
//!    index_predicate  Block → predicates   the part that an index can evaluate
//!    run              Block + items → page
//!    expr             one scalar over one row: three-valued logic, undefined
//! ```

pub mod parse; // text to syntax tree
pub mod advice; // query advice
mod distinct_hash; // the hash by which clients compare arrays and objects
pub mod sort_encoding; // memcomparable encoding of values
mod parameters; // the parameter values of a request
pub mod rank; // ORDER BY RANK and rank fusion
mod pass_through; // a subquery in FROM that returns items unchanged
pub mod check; // semantic analysis
pub mod compile; // names, constants, subqueries
pub mod block; // a compiled query
pub mod document; // the document and the bindings that expressions read
pub mod expr; // one scalar over one row
pub mod index_predicate; // the part of a filter that an index can evaluate
pub mod run; // items in, a page out
pub mod computed; // computed properties
pub mod index_projection; // the projection of a global secondary index
pub mod feed_query; // a filter and a projection of single changes
pub mod pruning; // which partition keys a filter allows
pub mod query_plan; // query plans for SDKs
pub mod derived_table; // a subquery in FROM that is evaluated first
#[cfg(any(test, feature = "testing"))]
pub mod testing; // random cases, and the properties that hold for all of them

pub use distinct_hash::DistinctHash;
pub use parameters::Parameters;
pub use run::{InMemoryQuery, parse};
