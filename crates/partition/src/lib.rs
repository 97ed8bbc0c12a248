//! Physical partitions: each owns one contiguous range of the hash space, and stores and indexes its items.
//!
//! The crate is independent of the query language and of every protocol.

pub mod record; // an item as stored bytes
pub mod version_row; // one change with its before and after images
pub mod key; // an item's identity, and the size of its logical partition
pub mod unique; // unique constraints
pub mod index; // the index terms of an item
pub mod schema; // the part of a container's definition that decides how items are stored
pub mod usage; // recent request units, throttling and busiest keys
pub mod governor; // admission against the request-unit budget
pub mod price; // request charges
pub mod commit; // group commit: many transactions, one durable batch
pub mod key_tombstones; // delete by partition key: one tombstone per key
pub mod row_changes; // the rows that one item change puts and deletes
pub mod shard_state; // the state row of a shard: LSN, counters, watermarks
pub mod snapshot; // a consistent view of one partition
pub mod ttl; // time to live
pub mod key_statistics; // the largest logical partitions
pub mod missing_values; // items that an ordered index scan cannot return
pub mod feed; // read feed: items in docnum order, page by page
pub mod change_feed; // changes since an LSN: latest versions, or all of them
pub mod exact_knn; // exact k-nearest-neighbor search over all vectors
pub mod vector_index; // ANN indexes over vectors
mod upgrade; // rewrites shards that an earlier version wrote
pub mod partition; // one partition: reads, checks, writes, transactions
pub mod check; // consistency check: every row that should exist exists, and no other
pub mod salvage; // reads what can be read of a damaged shard
pub mod copy; // online copy of a partition into other shards, for splits and merges
#[cfg(test)]
mod testing; // test items, and a gate that pauses the committer

pub use commit::Committer;
pub use key::ItemKey;
pub use partition::transaction::{OperationEffect, Transaction};
pub use partition::{
    Draft, MaintenanceError, Outdated, Partition, Precondition, Queued, Rejected, Verb, WriteError, Written,
};
pub use record::{Record, RecordView};
pub use schema::{IndexingConfig, Schema, SizeLimits};
