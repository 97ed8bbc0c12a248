//! storage: an ordered, transactional key-value store. Keys and values are bytes without a meaning here.
//!
//! Guarantees: an acknowledged commit is stored completely, any other commit completely or not at all; a snapshot
//! never changes. This crate has no notion of JSON, partitions or protocols. `keyspace` documents the layout of keys;
//! the crates above define what the values contain.
//!
//! Read in this order.

mod blocking; // what happens to a read that would block
pub mod keyspace; // key layout
pub mod store; // the store trait and write batches
pub mod memory; // the in-memory store
#[cfg(feature = "embedded")]
pub mod rocksdb; // the store on the local disk
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used)] // an exam fails by panicking
pub mod testing; // the exam that every store passes, and stores that fail on request
mod any; // enum over the stores, chosen at start

pub use any::{AnySnapshot, AnyStore};
pub use blocking::{Blocking, WouldBlock, try_inline};
pub use memory::Memory;
#[cfg(feature = "embedded")]
pub use rocksdb::{ReadOnlyStore, RocksOptions, RocksStore, SalvagedStore};
pub use store::{
    Batch, BatchWrite, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store, VisitPair,
    VisitValue,
};
