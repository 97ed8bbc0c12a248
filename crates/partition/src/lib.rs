//! partition: one contiguous range of the hash space, from a request's key to durable bytes.
//!
//! Knows no query language and no protocol. Read in this order.

pub mod change_feed; // what happened since
pub mod check; // is everything there that should be, and nothing else
pub mod commit; // many transactions become one durable batch
pub mod copy; // a partition's items in other shards, while it goes on working
pub mod key_tombstones; // keys whose items were all deleted at once
pub mod feed; // many items, in order, a page at a time
pub mod governor; // whether a request may be served now
pub mod index; // which terms an item puts into the index
pub mod key; // an item's identity, and what a logical partition weighs
pub mod key_statistics; // which logical partitions are large
pub mod missing_values; // who has no value where others have one
pub mod exact_knn; // the items whose vectors are nearest
pub mod partition; // one partition: read, check, write
pub mod price; // what the work costs in request units
pub mod record; // an item as bytes
pub mod schema; // what of a container's definition decides how its items are stored
pub mod vector_index; // pictures of vectors, for searches
pub mod shard_state; // what a shard must remember
#[cfg(test)]
mod testing; // items, and a committer that stands still
pub mod row_changes; // one item's change as rows
pub mod unique; // values that one item of a key may have
pub mod ttl; // which items are over
mod upgrade; // shards that an earlier version wrote
pub mod usage; // what was asked for lately
pub mod version_row; // one change, with what was before and after
pub mod snapshot; // one moment, for whoever reads many items

pub use commit::Committer;
pub use key::ItemKey;
pub use partition::transaction::{OperationEffect, Transaction};
pub use partition::{Draft, Partition, Precondition, Verb, Written};
pub use record::{Record, RecordView};
pub use schema::{IndexingConfig, Schema, SizeLimits};
