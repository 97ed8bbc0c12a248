//! What every store can do.
//!
//! Promise: `commit` is atomic, and durable as far as `Durability` says once it returns; a snapshot
//! shows one moment and goes on showing it; keys are ordered as bytes, shorter before longer.
//!
//! Everything is asynchronous and in batches because one kind of store is across a network. A store
//! orders commits as they are called: putting concurrent transactions in a row and merging them into
//! one batch is the job of the committer in `partition`.

use std::future::Future;

use bytes::Bytes;
use pleiad_model::{Error, Kind, Result};

mod batch;
mod checkpoint;
pub use batch::{Batch, BatchWrite};
pub use checkpoint::{CheckpointInfo, Checkpoints};

pub trait Store: Send + Sync + 'static {
    type Snapshot: Snapshot;

    /// The newest committed value.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// The newest committed values, in the order of `keys`. They are of one moment only for a
    /// snapshot's `get_many`; here a commit may fall between two keys.
    fn get_many(&self, keys: &[Bytes]) -> impl Future<Output = Result<Vec<Option<Bytes>>>> + Send;

    fn snapshot(&self) -> impl Future<Output = Result<Self::Snapshot>> + Send;

    /// Applies the whole batch, or nothing. Called by one committer at a time.
    fn commit(&self, batch: &Batch, durability: Durability) -> impl Future<Output = Result<()>> + Send;

    /// What was acknowledged before this call survives a power cut when it returns.
    fn sync(&self) -> impl Future<Output = Result<()>> + Send;

    /// Takes in rows for a range of keys that is empty and that nobody reads yet; they are durable when it returns. The
    /// batch holds puts only, in the order of their keys.
    ///
    /// For copies of whole partitions: cheaper than commits, for which every row is written several times. It is not
    /// atomic, and after a failure or a crash the caller drops the range.
    fn ingest(&self, rows: &Batch) -> impl Future<Output = Result<()>> + Send;

    /// Removes `[from, to)` and gives its space back to the operating system.
    ///
    /// For ranges nobody will read again: it is not atomic, a snapshot taken earlier may see parts of
    /// the range disappear, and after a crash half-way the caller must ask for it once more.
    fn drop_range(&self, from: &[u8], to: &[u8]) -> impl Future<Output = Result<()>> + Send;

    /// Roughly how many bytes `[from, to)` takes where it is stored.
    fn size_bytes(&self, from: &[u8], to: &[u8]) -> impl Future<Output = Result<u64>> + Send;
}

/// One moment of a store.
pub trait Snapshot: Send + Sync + 'static {
    fn get_many(&self, keys: &[Bytes]) -> impl Future<Output = Result<Vec<Option<Bytes>>>> + Send;

    /// Shows the values of the keys, in their order, where they lie, until `visit` says stop; tells whether it did. For
    /// threads that may wait, like `visit`.
    fn visit_many(&self, keys: &[Bytes], visit: VisitValue<'_>) -> impl Future<Output = Result<bool>> + Send {
        async move {
            let found = self.get_many(keys).await?;
            Ok(!found.iter().all(|value| visit(value.as_deref())))
        }
    }

    /// As many pairs of `[from, to)` as the limit admits: the first ones going forward, the last ones
    /// going backward, each in the order it is walked. While the chunk says that there are more, go on
    /// with `from` just behind its last key (`keyspace::after`), or `to` onto it.
    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: Limit,
    ) -> impl Future<Output = Result<Chunk>> + Send;

    /// Shows every pair of `[from, to)` in order, where it lies, until `visit` says stop; tells whether it did.
    ///
    /// For threads that may wait: a store on this machine reads from the disk on the caller's own thread, since whoever
    /// looks at millions of rows should neither copy them nor change threads for them.
    fn visit(&self, from: &[u8], to: &[u8], visit: VisitPair<'_>) -> impl Future<Output = Result<bool>> + Send {
        const AT_ONCE: Limit = Limit { rows: 1024, bytes: 1 << 20 };
        async move {
            let mut from = Bytes::copy_from_slice(from);
            loop {
                let chunk = self.scan(&from, to, Direction::Forward, AT_ONCE).await?;
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

/// Looks at one value, if there is one, and says whether to go on.
pub type VisitValue<'v> = &'v mut (dyn FnMut(Option<&[u8]>) -> bool + Send);

/// Looks at one pair and says whether to go on.
pub type VisitPair<'v> = &'v mut (dyn FnMut(&[u8], &[u8]) -> bool + Send);

/// How much of a range is read at once.
///
/// A chunk ends with its `rows`th pair, or with the pair that brings its keys and values to `bytes`. It has one
/// pair at least where there is one, so that whoever goes on arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub rows: usize,
    pub bytes: usize,
}

impl Limit {
    /// The whole range: for rows that are known to be few.
    pub const NONE: Limit = Limit::rows(usize::MAX);

    /// For rows that are known to be small.
    pub const fn rows(rows: usize) -> Limit {
        Limit { rows, bytes: usize::MAX }
    }

    /// Whether a chunk that has this much takes another pair.
    pub(crate) fn admits(self, rows: usize, bytes: usize) -> bool {
        rows == 0 || (rows < self.rows && bytes < self.bytes)
    }
}

/// Part of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    pub pairs: Vec<Pair>,
    /// Whether the range goes on behind the last pair.
    pub more: bool,
}

/// A key and its value.
pub type Pair = (Bytes, Bytes);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk: survives a power cut.
    Synced,
    /// It reached the operating system: survives the end of the process, not of the machine.
    Written,
}

/// The rows of an ingest, if they are what it takes: puts in the order of their keys.
pub(crate) fn in_order(batch: &Batch) -> Result<Vec<(&[u8], &[u8])>> {
    let rows: Option<Vec<_>> =
        batch.ops().map(|op| if let BatchWrite::Put { key, value } = op { Some((key, value)) } else { None }).collect();
    match rows {
        Some(rows) if rows.is_sorted_by(|(a, _), (b, _)| a < b) => Ok(rows),
        _ => Err(Error::internal("rows to ingest are out of order")),
    }
}

/// A guard did not hold: whoever built the batch no longer owns what it writes to.
pub(crate) fn fenced() -> Error {
    Error::new(Kind::Moved { epoch: 0 }, "the partition has another owner now; read the partition map again")
}
