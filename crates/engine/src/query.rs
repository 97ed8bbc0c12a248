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
mod plan; // for clients that merge by themselves
mod document; // what a query sees of an item
mod cursor; // where the next page starts
mod statements; // texts that were read lately
mod reach; // which partitions
mod reader; // one partition, at one moment
mod functions; // user-defined functions of a page
mod part; // parts of the index
mod seek; // conditions on several paths, from a composite index
mod find; // items that may meet a condition
mod choose; // the cheapest way to them
mod feed; // items into a pass
mod tab; // what a page owes, and to whom
mod relevance; // texts by how relevant they are
mod rows; // slices, one after the other or all at once and merged
mod threads; // all at once: on all cores, the long ones in pieces
mod page; // one page
mod staged; // a query over the rows of another one
mod ranked; // scores of several queries, fused
mod inside; // a query inside a transaction
mod report; // how it was done

pub use cursor::{At as CursorAt, QueryCursor, Stretch};
pub(crate) use cursor::{WHOLE_ITEM, in_progress, is_begun, left};
pub(crate) use document::Stored;
pub use document::write_item;
pub(crate) use inside::Inside;
pub(crate) use page::at_once;
pub use page::{Across, ItemQuery, QueryPage, Tell};
pub use pleiad_sql::Parameters;
pub use pleiad_sql::run::{KeyDigest, PageSize, ResumeKey, RowSet};
pub(crate) use reach::next_slice;
pub(crate) use reader::Moment;
pub use report::{IndexUse, Report};
pub use threads::Sharing;

#[cfg(any(test, feature = "testing"))]
pub mod exam; // every plan gives what a scan gives
#[cfg(test)]
mod tests;
