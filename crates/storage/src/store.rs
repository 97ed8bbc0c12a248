//! The store interface: an ordered key-value store with atomic batches and snapshots.
//!
//! Guarantees: `commit` is atomic, and durable to the degree of `Durability` once it returns; a snapshot is
//! consistent and never changes; keys are ordered as bytes, shorter before longer.
//!
//! All calls are asynchronous and batched because a store may be accessed over a network. A store applies commits in
//! the order of the calls; the committer in `partition` orders concurrent transactions and merges them into one
//! batch.

use std::future::Future;

use bytes::Bytes;
use pleiad_model::{Error, Kind, Result};

use crate::blocking::Blocking;

mod batch;
mod checkpoint;
pub use batch::{Batch, BatchWrite};
pub use checkpoint::{CheckpointInfo, Checkpoints};

pub trait Store: Send + Sync + 'static {
    type Snapshot: Snapshot;

    /// The newest committed value.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// The newest committed values, in the order of `keys`. They are not a consistent snapshot: a commit may happen
    /// between two keys. For consistent values use a snapshot's `get_many`.
    fn get_many(&self, keys: &[Bytes]) -> impl Future<Output = Result<Vec<Option<Bytes>>>> + Send;

    /// All reads of the snapshot, and taking it, follow the blocking mode.
    fn snapshot(&self, blocking: Blocking) -> impl Future<Output = Result<Self::Snapshot>> + Send;

    /// Applies the whole batch or nothing. Called by one committer at a time.
    fn commit(&self, batch: &Batch, durability: Durability) -> impl Future<Output = Result<()>> + Send;

    /// When it returns, everything that was acknowledged before the call survives a power failure.
    fn sync(&self) -> impl Future<Output = Result<()>> + Send;

    /// Ingests rows into a key range that is empty and has no readers yet; they are durable when it returns. The
    /// batch holds puts only, in key order.
    ///
    /// For copies of whole partitions: cheaper than commits, which write every row several times. It is not atomic;
    /// after a failure or a crash the caller drops the range.
    fn ingest(&self, rows: &Batch) -> impl Future<Output = Result<()>> + Send;

    /// Removes `[from, to)` and returns its space to the operating system.
    ///
    /// For ranges without future readers: it is not atomic, a snapshot taken earlier may see parts of the range
    /// disappear, and after a crash halfway the caller must call it again.
    fn drop_range(&self, from: &[u8], to: &[u8]) -> impl Future<Output = Result<()>> + Send;

    /// The approximate size of `[from, to)` in storage, in bytes.
    fn size_bytes(&self, from: &[u8], to: &[u8], blocking: Blocking) -> impl Future<Output = Result<u64>> + Send;
}

/// An immutable, consistent view of a store.
pub trait Snapshot: Send + Sync + 'static {
    fn get_many(&self, keys: &[Bytes]) -> impl Future<Output = Result<Vec<Option<Bytes>>>> + Send;

    /// Calls `visit` with the value of each key, in the order of `keys`, without copying, until it returns false;
    /// returns true if it did. For modes `Thread` and `Inline`, like `visit`.
    fn visit_many(&self, keys: &[Bytes], visit: VisitValue<'_>) -> impl Future<Output = Result<bool>> + Send {
        async move {
            let found = self.get_many(keys).await?;
            Ok(!found.iter().all(|value| visit(value.as_deref())))
        }
    }

    /// As many pairs of `[from, to)` as the limit admits: the first ones forward, the last ones backward, each in
    /// scan order. While the chunk's `more` is set, continue with `from` just after its last key (`keyspace::after`),
    /// or, backward, with `to` at that key.
    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: Limit,
    ) -> impl Future<Output = Result<Chunk>> + Send;

    /// Calls `visit` with every pair of `[from, to)`, in order, without copying, until it returns false; returns true
    /// if it did.
    ///
    /// For `Blocking::Thread`: a store on the local disk reads on the caller's own thread, since a scan of millions of
    /// rows should neither copy them nor switch threads for them. It refuses an inline caller.
    fn visit(&self, from: &[u8], to: &[u8], visit: VisitPair<'_>) -> impl Future<Output = Result<bool>> + Send {
        const CHUNK_LIMIT: Limit = Limit { rows: 1024, bytes: 1 << 20 };
        async move {
            let mut from = Bytes::copy_from_slice(from);
            loop {
                let chunk = self.scan(&from, to, Direction::Forward, CHUNK_LIMIT).await?;
                if !chunk.pairs.iter().all(|(key, value)| visit(key, value)) {
                    return Ok(true);
                }
                match chunk.pairs.last() {
                    Some((last, _)) if chunk.more => from = crate::keyspace::after(last),
                    _ => return Ok(false),
                }
            }
        }
    }
}

/// Receives the value of one key, if there is one; returns false to stop.
pub type VisitValue<'v> = &'v mut (dyn FnMut(Option<&[u8]>) -> bool + Send);

/// Receives one pair; returns false to stop.
pub type VisitPair<'v> = &'v mut (dyn FnMut(&[u8], &[u8]) -> bool + Send);

/// How much of a range one call reads.
///
/// A chunk ends with its `rows`th pair, or with the pair that brings its keys and values to `bytes`. It has at least
/// one pair if the range has one, so that repeated calls make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub rows: usize,
    pub bytes: usize,
}

impl Limit {
    /// The whole range: for ranges that are known to have few rows.
    pub const NONE: Limit = Limit::rows(usize::MAX);

    /// For rows that are known to be small.
    pub const fn rows(rows: usize) -> Limit {
        Limit { rows, bytes: usize::MAX }
    }

    /// Whether a chunk of this size takes another pair.
    pub(crate) fn admits(self, rows: usize, bytes: usize) -> bool {
        rows == 0 || (rows < self.rows && bytes < self.bytes)
    }
}

/// Part of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    pub pairs: Vec<Pair>,
    /// Whether the range has pairs after the last one.
    pub more: bool,
}

/// A key and its value.
pub type Pair = (Bytes, Bytes);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// What kind of failure an acknowledged commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On the disk: survives a power failure.
    Synced,
    /// Handed to the operating system: survives the end of the process, but not a crash of the machine.
    Written,
}

/// The rows of an ingest, checked: puts in key order.
pub(crate) fn sorted_puts(batch: &Batch) -> Result<Vec<(&[u8], &[u8])>> {
    let rows: Option<Vec<_>> =
        batch.ops().map(|op| if let BatchWrite::Put { key, value } = op { Some((key, value)) } else { None }).collect();
    match rows {
        Some(rows) if rows.is_sorted_by(|(a, _), (b, _)| a < b) => Ok(rows),
        _ => Err(Error::internal("rows to ingest are out of order")),
    }
}

/// A guard failed: the writer of the batch no longer owns the partition.
pub(crate) fn fenced() -> Error {
    Error::new(Kind::Moved { epoch: 0 }, "the partition has another owner now; read the partition map again")
}
