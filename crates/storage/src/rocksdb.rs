//! RocksDB store: the store on the local disk.
//!
//! Guarantees: what is in memory is returned on the caller's thread, without a task switch; a call that would block
//! on the disk runs on the runtime's blocking threads, unless the blocking mode of its snapshot says otherwise. A failed
//! write or sync poisons the store: there is one log, and once it is unknown how much of it is on the disk, no later
//! acknowledgement may hide a loss. Reads continue; writes fail with "unavailable". When the disk works again, a copy
//! (`open_copy`) or a restart replays the log.
//!
//! A store whose write-ahead log has lost synced bytes is not opened, unless the caller accepts the loss.
//!
//! `options` holds the RocksDB settings, `directory` the layout of the data directory.
//!
//! ```text
//! get      row cache, block cache or write buffer ───── hit → inline       miss → blocking thread
//! commit   Written and small ───────────────────── no stall → inline      stall → blocking thread
//!          Synced ─────────────────────────────────────────────────────────────── blocking thread, waits for the disk
//! scan     few rows, all cached ───────────────────────────── inline       else → blocking thread
//! ```

mod options; // RocksDB settings
mod directory; // layout of the data directory
mod log_file; // the write-ahead log as bytes
mod synced_position; // how much of the log is synced
mod log_check; // tells a torn tail from a damaged log
mod open; // opening a store: checked, read-only, or a salvaged copy
mod ingest; // rows as table files
mod checkpoint_dir; // the directory of checkpoints
mod checkpoint; // checkpoints of a store
mod row_cache; // rows in front of RocksDB
mod snapshot; // snapshots of a store

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use pleiad_model::{Error, Result};
use rocksdb::{
    Cache, DB, DBPinnableSlice, DEFAULT_COLUMN_FAMILY_NAME, ErrorKind, Range, ReadOptions, WriteBatch, WriteOptions,
};

use crate::blocking::Blocking;
use crate::store::{Batch, BatchWrite, Durability, Store, fenced, sorted_puts};
use checkpoint::CloseCleanup;
use directory::DirectoryLock;
use ingest::SstIngester;
pub use open::{ReadOnlyStore, SalvagedStore};
pub use options::RocksOptions;
use row_cache::{InvalidationGuard, RowCache};
pub use snapshot::RocksSnapshot;
use synced_position::{LogEnd, SyncedFileWriter};

/// A larger batch goes to a blocking thread even if it would not block: copying it takes as long as a task switch.
const INLINE_BATCH_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone)]
pub struct RocksStore {
    engine: Arc<OpenDb>,
}

impl RocksStore {
    async fn check_guards(&self, batch: &Batch) -> Result<()> {
        for guard in batch.guards() {
            if let BatchWrite::Expect { key, value } = guard
                && self.get(key).await?.as_deref() != value
            {
                return Err(fenced());
            }
        }
        Ok(())
    }

    async fn get_from_db(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.engine.get(key, &self.engine.cache_only) {
            Err(error) if would_block(&error) => {
                let key = Bytes::copy_from_slice(key);
                self.on_blocking_thread(move |engine| engine.get(&key, &engine.all_tiers).map_err(unreadable)).await
            }
            answer => answer.map_err(unreadable),
        }
    }

    /// Removes the batch's rows from the row cache before the write, and keeps them out until it has ended. A write
    /// that moves to a blocking thread takes the guard along: it may end after this future was dropped.
    async fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let guard = invalidate(&self.engine.row_cache, batch);
        if durability == Durability::Written && batch.bytes() <= INLINE_BATCH_BYTES_MAX {
            match self.engine.append(to_write_batch(batch), &options::write_no_stall(), durability) {
                Err(error) if would_block(&error) => {} // write stall, nothing was written: wait on a blocking thread
                answer => return self.engine.poison_on_error(answer),
            }
        }
        let writes = to_write_batch(batch);
        self.on_blocking_thread(move |engine| {
            let written = engine.poison_on_error(engine.append(writes, &options::write(durability), durability));
            drop(guard);
            written
        })
        .await
    }

    fn on_blocking_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenDb) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let engine = Arc::clone(&self.engine);
        on_blocking_thread(Blocking::Suspend, move || work(&engine))
    }
}

impl Store for RocksStore {
    type Snapshot = RocksSnapshot;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if !RowCache::is_cached_kind(key) {
            return self.get_from_db(key).await;
        }
        if let Some(row) = self.engine.row_cache.get(key) {
            return Ok(Some(row));
        }
        let seq = self.engine.row_cache.commit_seq();
        let row = self.get_from_db(key).await?;
        if let Some(row) = &row {
            self.engine.row_cache.insert(key, row, seq);
        }
        Ok(row)
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        if let Some(found) = get_many_cached(&self.engine.db, keys, &self.engine.cache_only)? {
            return Ok(found);
        }
        let keys = keys.to_vec();
        self.on_blocking_thread(move |engine| get_many(&engine.db, &keys, &engine.all_tiers)).await
    }

    async fn snapshot(&self, blocking: Blocking) -> Result<RocksSnapshot> {
        Ok(RocksSnapshot::take(Arc::clone(&self.engine), blocking))
    }

    async fn commit(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.engine.check_healthy()?;
        self.check_guards(batch).await?;
        if batch.op_count() == 0 {
            return Ok(());
        }
        self.write(batch, durability).await
    }

    async fn sync(&self) -> Result<()> {
        self.engine.check_healthy()?;
        self.on_blocking_thread(|engine| engine.poison_on_error(engine.sync_log())).await
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        self.engine.check_healthy()?;
        sorted_puts(rows)?;
        let rows = rows.clone();
        self.on_blocking_thread(move |engine| engine.ingester.ingest(&engine.db, &rows)).await
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.engine.check_healthy()?;
        if from >= to {
            return Ok(());
        }
        let (from, to) = (Bytes::copy_from_slice(from), Bytes::copy_from_slice(to));
        self.on_blocking_thread(move |engine| engine.drop_range(&from, &to)).await
    }

    /// Counts files only: the latest writes may still be in the write buffer.
    async fn size_bytes(&self, from: &[u8], to: &[u8], blocking: Blocking) -> Result<u64> {
        let (engine, from, to) = (Arc::clone(&self.engine), Bytes::copy_from_slice(from), Bytes::copy_from_slice(to));
        on_blocking_thread(blocking, move || Ok(engine.size_bytes(&from, &to))).await
    }
}

/// The open database, shared by the store, its snapshots and the blocking threads that work for them.
struct OpenDb {
    db: DB,
    /// Locked by every write to the log.
    log_end: Mutex<LogEnd>,
    /// `None` if the store is read-only.
    synced_file: Option<SyncedFileWriter>,
    /// Reads the write buffers and the block cache; "incomplete" when the row is in neither.
    cache_only: ReadOptions,
    all_tiers: ReadOptions,
    row_cache: Arc<RowCache>,
    ingester: SstIngester,
    /// Why writes are rejected.
    poison: OnceLock<String>,
    reopen: ReopenOptions,
    /// Dropped after the database.
    cleanup: CloseCleanup,
    /// Dropped last.
    lock: DirectoryLock,
}

/// The settings for opening a second store in the same directory.
#[derive(Clone)]
struct ReopenOptions {
    options: RocksOptions,
    block_cache: Cache,
}

impl OpenDb {
    fn append(&self, writes: WriteBatch, options: &WriteOptions, durability: Durability) -> Result<(), rocksdb::Error> {
        let mut log_end = self.log_end.lock();
        self.db.write_opt(writes, options)?;
        match (durability, &self.synced_file) {
            (Durability::Synced, _) => self.note_synced(&mut log_end),
            (Durability::Written, Some(synced_file)) => synced_file.note_unsynced(),
            (Durability::Written, None) => {}
        }
        Ok(())
    }

    fn sync_log(&self) -> Result<(), rocksdb::Error> {
        let mut log_end = self.log_end.lock();
        self.db.flush_wal(true)?;
        self.note_synced(&mut log_end);
        Ok(())
    }

    /// Everything in the log is synced now. An error means that the next start knows of an earlier position.
    fn note_synced(&self, log_end: &mut LogEnd) {
        let Some(synced_file) = &self.synced_file else { return };
        match log_end.find() {
            Ok(position) => synced_file.note(position),
            Err(error) => tracing::debug!(%error, "the end of the write-ahead log is not known"),
        }
    }

    fn get(&self, key: &[u8], options: &ReadOptions) -> Result<Option<Bytes>, rocksdb::Error> {
        let found = self.db.get_pinned_opt(key, options)?;
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    /// The order matters. Whole files are deleted first; that may uncover older versions of a key in files that
    /// extend beyond the range, and the range delete, being newer than all of them, covers them again. In the reverse
    /// order its own tombstone could be in one of the deleted files.
    ///
    /// Files are deleted immediately, even in a store that syncs its log later. So the log is synced first: the record
    /// that allowed the drop must be on the disk before any file is deleted.
    fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.poison_on_error(self.sync_log())?;
        let _guard = self.row_cache.invalidate_all();
        self.poison_on_error(self.db.delete_file_in_range(from, to))?;
        let mut writes = WriteBatch::default();
        writes.delete_range(from, to);
        self.poison_on_error(self.append(writes, &options::write(Durability::Synced), Durability::Synced))?;
        self.db.compact_range_opt(Some(from), Some(to), &options::compact());
        Ok(())
    }

    fn size_bytes(&self, from: &[u8], to: &[u8]) -> u64 {
        let sizes = if from < to { self.db.get_approximate_sizes(&[Range::new(from, to)]) } else { Vec::new() };
        sizes.into_iter().sum()
    }

    fn check_healthy(&self) -> Result<()> {
        if self.synced_file.is_none() {
            return Err(Error::unavailable("the data directory was opened for reading only"));
        }
        match self.poison.get() {
            None => Ok(()),
            Some(why) => Err(Error::unavailable(format!(
                "the store takes no writes because an earlier one failed ({why}); see to the disk, and writes continue"
            ))),
        }
    }

    /// The result of a write: after the first failure, every write gets an error.
    fn poison_on_error(&self, answer: Result<(), rocksdb::Error>) -> Result<()> {
        if let Err(error) = answer {
            self.poison.get_or_init(|| error.into_string());
        }
        // Also for a write that succeeded while another failed: it comes after a gap in the log.
        self.check_healthy()
    }
}

/// From this many keys on, one multi-get is cheaper than single gets.
const MULTI_GET_MIN: usize = 4;
/// More lookups than this take longer than the switch to a blocking thread, even if all rows are in memory.
const INLINE_GETS_MAX: usize = 64;

/// The rows of all keys without disk access, for a thread that must not block; `None` if some are not in memory. Uses
/// single gets: RocksDB's multi-get reads files in spite of the read tier, and then caches nothing of what it read.
fn get_many_cached(db: &DB, keys: &[Bytes], cache_only: &ReadOptions) -> Result<Option<Vec<Option<Bytes>>>> {
    if keys.len() > INLINE_GETS_MAX {
        return Ok(None);
    }
    let found = keys.iter().map(|key| Ok(db.get_pinned_opt(key, cache_only)?.as_deref().map(Bytes::copy_from_slice)));
    match found.collect::<Result<_, rocksdb::Error>>() {
        Err(error) if would_block(&error) => Ok(None),
        answer => answer.map(Some).map_err(unreadable),
    }
}

fn get_many(db: &DB, keys: &[Bytes], all_tiers: &ReadOptions) -> Result<Vec<Option<Bytes>>> {
    let copied = |value: Option<DBPinnableSlice<'_>>| value.as_deref().map(Bytes::copy_from_slice);
    multi_get(db, keys, all_tiers).into_iter().map(|value| value.map(copied).map_err(unreadable)).collect()
}

/// Keys that are looked up together share the search for their blocks.
fn multi_get<'db, K: AsRef<[u8]>>(db: &'db DB, keys: &[K], all_tiers: &ReadOptions) -> Vec<PinnedValue<'db>> {
    match db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME) {
        Some(family) if keys.len() >= MULTI_GET_MIN => {
            db.batched_multi_get_cf_opt(family, keys, keys.is_sorted_by_key(K::as_ref), all_tiers)
        }
        _ => keys.iter().map(|key| db.get_pinned_opt(key, all_tiers)).collect(),
    }
}

/// A value in RocksDB's own memory, not copied.
type PinnedValue<'db> = Result<Option<DBPinnableSlice<'db>>, rocksdb::Error>;

fn invalidate(row_cache: &Arc<RowCache>, batch: &Batch) -> InvalidationGuard {
    if batch.ops().any(|op| matches!(op, BatchWrite::DeleteRange { .. })) {
        return row_cache.invalidate_all();
    }
    row_cache.invalidate(batch.ops().filter_map(|op| match op {
        BatchWrite::Put { key, .. } | BatchWrite::Delete { key } => Some(key),
        _ => None,
    }))
}

fn to_write_batch(batch: &Batch) -> WriteBatch {
    // RocksDB's record is longer than the batch's by a tag and two lengths.
    let mut writes = WriteBatch::with_capacity_bytes(batch.bytes() + batch.op_count() * 8 + 16);
    for op in batch.ops() {
        match op {
            BatchWrite::Put { key, value } => writes.put(key, value),
            BatchWrite::Delete { key } => writes.delete(key),
            // For a batch, an inverted range is empty; for RocksDB it is an error.
            BatchWrite::DeleteRange { from, to } if from < to => writes.delete_range(from, to),
            BatchWrite::DeleteRange { .. } | BatchWrite::Expect { .. } => {}
        }
    }
    writes
}

/// Runs work that may block: on a blocking thread of the runtime, or on the caller's thread if that is one, or if there
/// is no runtime (simple programs, tests). Refuses an inline caller.
async fn on_blocking_thread<T: Send + 'static>(
    blocking: Blocking,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    blocking.before_blocking().await;
    let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| blocking == Blocking::Suspend);
    let Some(runtime) = runtime else { return work() };
    match runtime.spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::unavailable("Pleiad is shutting down; ask again when it is back")),
    }
}

fn would_block(error: &rocksdb::Error) -> bool {
    error.kind() == ErrorKind::Incomplete
}

fn unreadable(error: rocksdb::Error) -> Error {
    Error::internal(format!(
        "the store cannot be read ({error}); check the disk, and restore a backup if files are damaged"
    ))
}

#[cfg(test)]
mod tests;
