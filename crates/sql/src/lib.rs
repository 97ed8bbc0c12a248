//! query: text in, rows out. Knows no partition, no store and no clock.
//!
//! Read in this order.
//!
//! ```text
//! "SELECT r.id FROM root r WHERE r.n > @n"
//!    language    text → Select        every construct of the language, with its place in the text
//!    check       Select               what the language forbids, with the service's codes
//!    query_plan  Select → plan        for clients that drive a query over many partitions
//!    compile     Select → Block       names resolved, constants folded
//!    access      Block → conditions   what an index could find
//!    run         Block + items → page
//!    expr        one scalar over one row: three-valued logic, undefined
//! ```

pub mod parse; // text to syntax tree
mod parameters; // the values a client sends beside the text
pub mod check; // what the language forbids
pub mod advice; // what might be written instead
pub mod rank; // several scores, one order
pub mod pruning; // which partition keys a filter allows
pub mod query_plan; // what clients need to drive a query over many partitions
pub mod derived_table; // a query over the rows of another one
pub mod compile; // names, constants, subqueries
pub mod block; // a query that can be run
pub mod document; // what a query sees of a row
pub mod computed; // properties that no item stores
pub mod index_projection; // what a global secondary index keeps of an item
pub mod index_predicate; // what an index could find
pub mod run; // items in, a page out
pub mod expr; // one scalar over one row
pub mod sort_encoding; // values as bytes that sort
#[cfg(any(test, feature = "testing"))]
pub mod testing; // cases by chance, and what must hold of them

pub use parameters::Parameters;
pub use run::{InMemoryQuery, parse};
