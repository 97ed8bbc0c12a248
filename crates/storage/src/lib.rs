//! storage: an ordered, transactional map from bytes to bytes, below everything that has a meaning.
//!
//! Promise: what a commit acknowledged is there, all of it or none; a snapshot never moves. We know
//! no JSON, no partition and no protocol. Which bytes mean what is drawn in `keyspace`, what the
//! values contain is the business of the crates above.
//!
//! Read in this order.

pub mod store; // what a store can do, and what is asked of it at once
mod patience; // threads that may wait, and work that must not

pub mod keyspace; // which key holds what

pub mod memory; // the store that forgets

#[cfg(feature = "embedded")]
pub mod rocksdb; // the store on this machine's disk

mod any; // whichever of them was chosen at start

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how an exam is failed
pub mod testing; // the exam every store passes, and stores that misbehave on request

pub use any::{AnySnapshot, AnyStore};
pub use memory::Memory;
pub use patience::{at_hand, has_given_up, not_at_hand, waiting_here};
#[cfg(feature = "embedded")]
pub use rocksdb::{RocksOptions, RocksStore};
pub use store::{
    Batch, BatchWrite, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store, VisitPair,
    VisitValue,
};
