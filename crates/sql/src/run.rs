//! A block over rows: sources multiply them, filters drop them, a collector keeps what the page needs.
//!
//! Promise: the answer does not depend on how rows were found. Whoever feeds a `Pass` may leave out rows that no
//! filter would keep, and nothing else.
//!
//! ```text
//! item ─ rows ─ filters ─┬─ stream    in order of arrival              resume after an item
//!                        ├─ sorted    the smallest of (keys, docnum)   resume after a key
//!                        ├─ groups    keys with their aggregates       resume after a key
//!                        └─ distinct  rows, each once, maybe sorted    resume after a key
//! ```

mod collect; // what a page keeps
mod groups; // rows with something in common
mod mark; // the place behind a row
mod page; // where a page starts and ends
mod pass; // items in, a page out
mod project; // a row as text
mod rows; // sources and filters
mod whole; // feeds that fit in memory

pub use mark::{Cut, END_BYTES, Mark};
pub use page::{At, Finished, PageSize, RowSet, Start};
pub use pass::Pass;
pub(crate) use project::is_json;
pub(crate) use rows::subquery;
pub use whole::{Query, parse};

/// Go on, or enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Go,
    Stop,
}

#[cfg(test)]
mod tests;
