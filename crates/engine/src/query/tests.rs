//! Every access path returns what a scan of all items returns (S100 to S110): random queries over random items,
//! compared with the same query over the same items in memory.

mod blocking; // pages that run inline, and pages that would block
mod cursors; // what a cursor is valid for
mod nearest; // vector search
mod order; // ORDER BY with items that have no value at the path
mod plan; // the exam, by seeds
mod resume; // resume filters
