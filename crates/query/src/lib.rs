//! query: text in, rows out. Knows no partition, no store and no clock.
//!
//! Read in this order.
//!
//! ```text
//! "SELECT r.id FROM root r WHERE r.n > @n"
//!    language   text  → Select      every construct of the language, with its place in the text
//!    plan       Select → Plan       names resolved; what is not built is refused here, by name
//!    run        Plan + rows → rows
//!    expr       one scalar over one row: three-valued logic, undefined
//! ```

pub mod expr; // one scalar over one row
pub mod language; // text to syntax tree
mod parameters; // the values a client sends beside the text
mod plan; // which of the language this query uses, names resolved
mod run; // rows in, rows out

pub use parameters::Parameters;
pub use run::{Query, parse};
