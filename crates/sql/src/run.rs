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

mod collector; // what a page keeps
mod aggregate; // rows with something in common
mod resume_key; // the place behind a row
mod page; // where a page starts and ends
mod pipeline; // items in, a page out
mod project; // a row as text
mod nested_loop; // sources and filters
mod in_memory; // feeds that fit in memory

pub use in_memory::{InMemoryQuery, parse};
pub(crate) use nested_loop::subquery;
pub use page::{Finished, PageSize, PageStart, ResumePoint, RowSet};
pub use pipeline::RowPipeline;
pub(crate) use project::is_json;
pub use resume_key::{END_BYTES, KeyDigest, ResumeKey};

/// Go on, or enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

#[cfg(test)]
mod tests;
