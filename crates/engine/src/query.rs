//! Many items, by what they hold.
//!
//! Promise: a page is worked out from the query and the place where the last one ended, and from nothing else, so
//! that any server can go on with it, after a restart or a change of the partitions. Every page gives what a scan
//! of all items would give; an index only finds it sooner.
//!
//! ```text
//! text → block        which partitions → slices           choose    scan, one key's items, index, or its order
//!                     one slice after the other, or all   feed      items into a pass
//!                     at once and merged                  page      rows and a cursor
//! ```
//!
//! Which of the language there is, and what it means, is `query`'s job; what clients see of a page is `wire`'s.

mod metadata; // the few resources of an account
mod sdk_plan; // for clients that merge by themselves
mod document; // what a query sees of an item
mod cursor; // where the next page starts
mod statement_cache; // texts that were read lately
mod route; // which partitions
mod reader; // one partition, at one moment
mod functions; // user-defined functions of a page
mod index_spec; // parts of the index
mod composite_seek; // conditions on several paths, from a composite index
mod index_lookup; // items that may meet a condition
mod planner; // the cheapest way to them
mod scan; // items into a pass
mod page_cost; // what a page owes, and to whom
mod full_text_rank; // texts by how relevant they are
mod merge; // slices, one after the other or all at once and merged
mod parallel; // all at once: on all cores, the long ones in pieces
mod page; // one page
mod derived_table; // a query over the rows of another one
mod hybrid_search; // scores of several queries, fused
mod in_transaction; // a query inside a transaction
mod report; // how it was done

pub use cursor::{CursorPosition as CursorAt, QueryCursor, RangeCursor};
pub(crate) use cursor::{WHOLE_ITEM, in_progress, is_begun, left};
pub(crate) use document::StoredItem;
pub use document::write_item;
pub(crate) use in_transaction::TransactionQuery;
pub(crate) use page::at_once;
pub use page::{CrossPartition, ItemQuery, QueryPage, ReportOptions};
pub use parallel::Parallelism;
pub use pleiad_sql::Parameters;
pub use pleiad_sql::run::{KeyDigest, PageSize, ResumeKey, RowSet};
pub(crate) use reader::TransactionSnapshot;
pub use report::{IndexMetric, QueryReport};
pub(crate) use route::next_slice;

#[cfg(any(test, feature = "testing"))]
pub mod exam; // every plan gives what a scan gives
#[cfg(test)]
mod tests;
