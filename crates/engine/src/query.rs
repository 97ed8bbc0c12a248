//! Item queries: plans, executes and pages a query over the items of a container.
//!
//! Invariant: nothing is stored between pages. A page depends only on the items, the query and the cursor where the
//! previous page ended, so that a query continues after a restart or a change of the partitions. Every page, except of
//! an approximate vector search, returns what a scan of all items would return; an index only finds it sooner.
//!
//! ```text
//! text → block        route: EPK ranges → slices          planner   full scan, one key's items, index, ordered scan
//!                     merge: slices in sequence, or all   scan      items into a row pipeline
//!                     of them merged into one page        page      rows and a cursor
//! ```
//!
//! The `sql` crate defines the language and its meaning; `wire` encodes a page for clients.

mod metadata; // queries over the few resources of an account
mod document; // an item as queries see it
mod cursor; // where the next page starts
mod statement_cache; // parsed and compiled queries
mod sdk_plan; // the plan for clients that merge partitions themselves
mod route; // from pruned keys to partitions
mod stop; // why a page ends early: to run again, or failed
mod page_thread; // an async worker or a blocking thread
mod reader; // reads one partition at one snapshot
mod functions; // user-defined functions of a page
mod index_spec; // names an index in plans and index metrics
mod composite_seek; // predicates on several paths, from one range of a composite index
mod index_lookup; // posting lists for an index predicate
mod planner; // the cheapest access path of a slice
mod scan; // executes an access path
mod page_cost; // the request charge of a page, per partition
mod full_text_rank; // ORDER BY a full-text score, from the index
mod merge; // the executor: slices in sequence, or merged
mod parallel; // slices on all cores, long ones in morsels
mod page; // one page
mod derived_table; // a subquery in FROM, evaluated first
mod hybrid_search; // ORDER BY RANK: scores of several queries, fused
mod in_transaction; // a query inside a transaction
mod report; // query metrics, access paths and index metrics

pub use cursor::{CursorBinding, CursorPosition, QueryCursor, RangeCursor, WHOLE_ITEM};
pub(crate) use cursor::{is_within, overlaps, remaining, unfinished};
pub(crate) use document::StoredItem;
pub use document::write_item;
pub(crate) use in_transaction::TransactionQuery;
pub(crate) use page::queries_max;
pub use page::{CrossPartition, ItemQuery, PageReach, QueryPage, ReportOptions};
pub use parallel::Parallelism;
pub use pleiad_sql::DistinctHash;
pub use pleiad_sql::Parameters;
pub use pleiad_sql::advice::Advice;
pub use pleiad_sql::run::{KeyDigest, PageSize, ResumeFilter, ResumeKey, RowSet};
pub use pleiad_sql::sort_encoding::SortValue;
pub(crate) use reader::TransactionSnapshot;
pub use report::{IndexMetric, QueryReport};
pub(crate) use route::next_slice;

#[cfg(any(test, feature = "testing"))]
pub mod exam; // every access path returns what a scan returns
#[cfg(test)]
mod tests;
