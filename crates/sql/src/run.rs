//! Query execution: runs a block over items. Sources multiply rows, filters drop them, a collector keeps what the page
//! needs.
//!
//! Invariant: the result does not depend on the access path. The caller of a `RowPipeline` may leave out items that the
//! filters would drop and items that cannot change the page (`RowPipeline::admits`), and no others.
//!
//! ```text
//! item ─ rows ─ filters ─┬─ stream    unordered (scan order)           resume after an item
//!                        ├─ sorted    top-k by (keys, docnum)          resume after a key
//!                        ├─ groups    keys with their aggregates       resume after a key
//!                        └─ distinct  unique rows, maybe sorted        resume after a key
//! ```

mod collector; // the rows of a page: stream, top-k, distinct
mod aggregate; // GROUP BY: hash aggregation
mod resume_key; // the sort key after which the next page continues
mod page; // where a page starts and ends
mod pipeline; // source, filter, projection, collector
mod resume_filter; // the sort keys from which a client resumes
mod project; // SELECT: a row as JSON text
mod nested_loop; // FROM and WHERE; subqueries
mod in_memory; // queries over rows in memory
mod single_row; // the only row of an item

pub use in_memory::{InMemoryQuery, parse};
pub(crate) use nested_loop::subquery;
pub use page::{Finished, PageSize, PageStart, ResumePoint, RowSet};
pub use pipeline::RowPipeline;
pub(crate) use project::is_json;
pub use resume_filter::{ResumeFilter, not_resumable};
pub use resume_key::{END_BYTES, KeyDigest, ResumeKey};
pub(crate) use single_row::first_row;

/// Whether a loop over rows continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

#[cfg(test)]
mod tests;
