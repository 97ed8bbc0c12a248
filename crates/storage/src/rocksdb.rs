//! The store on this machine's disk: RocksDB.
//!
//! Promise: what is at hand is answered on the caller's thread, without a task switch; what would wait
//! for the disk runs on the runtime's blocking threads. A write or sync that failed poisons the store:
//! there is one log, and once we do not know how much of it is on the disk, no later acknowledgement
//! may hide a loss. Reads go on; writes answer "unavailable" until a restart has read the log again.
//!
//! What the engine is told is in `options`, what the directory looks like in `directory`.
//!
//! ```text
//! get      rows read lately, block cache or write buffer ── hit → inline   miss → thread
//! commit   Written and small ─────────── room → inline       stall → thread
//!          Synced ───────────────────────────────────────────────── thread, waits for the disk
//! scan     few rows, all cached ───────────────  inline       else → thread
//! ```

mod directory;
mod ingest;
mod checkpoint;
mod options;
mod row_cache;
mod checkpoint_dir;
mod snapshot;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pleiad_model::{Error, Result};
use rocksdb::{
    Cache, ColumnFamilyDescriptor, DB, DBPinnableSlice, DEFAULT_COLUMN_FAMILY_NAME, ErrorKind, Range, ReadOptions,
    WriteBatch,
};

use crate::patience::{may_wait, not_at_hand};
use crate::store::{Batch, BatchWrite, Durability, Store, fenced, in_order};
use checkpoint::CloseCleanup;
use directory::StoreDir;
use ingest::SstIngester;
pub use options::RocksOptions;
use row_cache::{InvalidationGuard, RowCache};
pub use snapshot::RocksSnapshot;

/// A larger batch goes to a thread even if it need not wait: copying it takes as long as a switch.
const INLINE_BATCH_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone)]
pub struct RocksStore {
    engine: Arc<OpenDb>,
}

impl RocksStore {
    /// Opens the store in `dir`, which is made if it is not there.
    pub fn open(dir: impl AsRef<Path>, options: RocksOptions) -> Result<Self> {
        let dir = dir.as_ref();
        let home = directory::prepare(dir)?;
        let blocks = options::block_cache(&options);
        let store = RocksStore::at(home, options, blocks)?;
        directory::adopt(dir)?;
        store.engine.remains.home.sweep()?;
        store.shelf().sweep()?;
        Ok(store)
    }

    fn at(home: StoreDir, options: RocksOptions, blocks: Cache) -> Result<Self> {
        // Named, since only named families can be asked for many keys at once.
        let engine = options::engine(&options, &blocks);
        let family = ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, engine.clone());
        let db = DB::open_cf_descriptors(&engine, home.files(), [family]);
        let db = db.map_err(|error| directory::cannot_open(&home.dir, error))?;
        let (files, rows) = (SstIngester::new(home.ingest(), engine)?, RowCache::new(options.row_cache_bytes));
        let chosen = Chosen { options, blocks };
        Ok(RocksStore { engine: Arc::new(OpenDb::new(db, files, rows, chosen, CloseCleanup::new(home))) })
    }

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

    async fn get_stored(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.engine.get(key, &self.engine.at_hand) {
            Err(error) if would_wait(&error) => {
                let key = Bytes::copy_from_slice(key);
                self.on_thread(move |engine| engine.get(&key, &engine.anywhere).map_err(unreadable)).await
            }
            answer => answer.map_err(unreadable),
        }
    }

    /// What is kept of the rows goes before the write, and nothing is kept of them until it is over. A write that moved
    /// to a thread takes that along: its end may come after this future was dropped.
    async fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let changing = changing(&self.engine.rows, batch);
        if durability == Durability::Written && batch.bytes() <= INLINE_BATCH_BYTES_MAX {
            match self.engine.db.write_opt(translate(batch), &options::write_at_once()) {
                Err(error) if would_wait(&error) => {} // stalled before it wrote anything: wait on a thread
                answer => return self.engine.settle(answer),
            }
        }
        let writes = translate(batch);
        self.on_thread(move |engine| {
            let written = engine.settle(engine.db.write_opt(writes, &options::write(durability)));
            drop(changing);
            written
        })
        .await
    }

    fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenDb) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let engine = Arc::clone(&self.engine);
        on_thread(move || work(&engine))
    }
}

impl Store for RocksStore {
    type Snapshot = RocksSnapshot;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if !RowCache::keeps(key) {
            return self.get_stored(key).await;
        }
        if let Some(row) = self.engine.rows.get(key) {
            return Ok(Some(row));
        }
        let moment = self.engine.rows.moment();
        let row = self.get_stored(key).await?;
        if let Some(row) = &row {
            self.engine.rows.keep(key, row, moment);
        }
        Ok(row)
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        if let Some(found) = get_at_hand(&self.engine.db, keys, &self.engine.at_hand)? {
            return Ok(found);
        }
        let keys = keys.to_vec();
        self.on_thread(move |engine| get_many(&engine.db, &keys, &engine.anywhere)).await
    }

    async fn snapshot(&self) -> Result<RocksSnapshot> {
        Ok(RocksSnapshot::take(Arc::clone(&self.engine)))
    }

    async fn commit(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.engine.healthy()?;
        self.check_guards(batch).await?;
        if batch.op_count() == 0 {
            return Ok(());
        }
        self.write(batch, durability).await
    }

    async fn sync(&self) -> Result<()> {
        self.engine.healthy()?;
        self.on_thread(|engine| engine.settle(engine.db.flush_wal(true))).await
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        self.engine.healthy()?;
        in_order(rows)?;
        let rows = rows.clone();
        self.on_thread(move |engine| engine.files.ingest(&engine.db, &rows)).await
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.engine.healthy()?;
        if from >= to {
            return Ok(());
        }
        let (from, to) = (Bytes::copy_from_slice(from), Bytes::copy_from_slice(to));
        self.on_thread(move |engine| engine.drop_range(&from, &to)).await
    }

    /// Counts files only: what was written last may still be in the write buffer.
    async fn size_bytes(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        let (from, to) = (Bytes::copy_from_slice(from), Bytes::copy_from_slice(to));
        self.on_thread(move |engine| Ok(engine.size_bytes(&from, &to))).await
    }
}

/// The open database, shared by the store, its snapshots and the threads that work for them.
struct OpenDb {
    db: DB,
    /// Reads the write buffers and the block cache; "incomplete" when that is not enough.
    at_hand: ReadOptions,
    anywhere: ReadOptions,
    rows: Arc<RowCache>,
    files: SstIngester,
    /// Why no write is taken any more.
    poison: OnceLock<String>,
    chosen: Chosen,
    /// Dropped behind the database.
    remains: CloseCleanup,
}

/// What a second store in the same directory is opened with.
#[derive(Clone)]
struct Chosen {
    options: RocksOptions,
    blocks: Cache,
}

impl OpenDb {
    fn new(db: DB, files: SstIngester, rows: RowCache, chosen: Chosen, remains: CloseCleanup) -> Self {
        let (at_hand, anywhere) = (options::read_at_hand(), ReadOptions::default());
        OpenDb { db, at_hand, anywhere, rows: Arc::new(rows), files, poison: OnceLock::new(), chosen, remains }
    }

    fn get(&self, key: &[u8], options: &ReadOptions) -> Result<Option<Bytes>, rocksdb::Error> {
        let found = self.db.get_pinned_opt(key, options)?;
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    /// The order matters. Whole files go first; that may uncover older versions of a key in files that
    /// reach beyond the range, and the range delete, being newer than all of them, covers them again.
    /// The other way round its own tombstone could sit in a file that goes.
    ///
    /// Files go at once, also from a store that syncs its log later: what allowed the drop must be on the
    /// disk before them.
    fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.settle(self.db.flush_wal(true))?;
        let _changing = self.rows.change_all();
        self.settle(self.db.delete_file_in_range(from, to))?;
        let mut writes = WriteBatch::default();
        writes.delete_range(from, to);
        self.settle(self.db.write_opt(writes, &options::write(Durability::Synced)))?;
        self.db.compact_range_opt(Some(from), Some(to), &options::compact());
        Ok(())
    }

    fn size_bytes(&self, from: &[u8], to: &[u8]) -> u64 {
        let sizes = if from < to { self.db.get_approximate_sizes(&[Range::new(from, to)]) } else { Vec::new() };
        sizes.into_iter().sum()
    }

    fn healthy(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(why) => Err(Error::unavailable(format!(
                "the store takes no more writes because an earlier one failed ({why}); see to the disk, then restart Pleiad"
            ))),
        }
    }

    /// The answer of a write: a failure is the last answer that any write gets.
    fn settle(&self, answer: Result<(), rocksdb::Error>) -> Result<()> {
        if let Err(error) = answer {
            self.poison.get_or_init(|| error.into_string());
        }
        // Also for a write that succeeded while another failed: it lies behind a gap in the log.
        self.healthy()
    }
}

/// From here on asking together is cheaper than one by one.
const TOGETHER_MIN: usize = 4;
/// More look-ups than these take longer than the switch to a thread, wherever the rows are.
const AT_HAND_MAX: usize = 64;

/// What needs no disk, for a thread that must not wait; `None` if that is not all. One by one: RocksDB's look-up of
/// many keys reads files whatever the read tier says, and then keeps nothing of what it read.
fn get_at_hand(db: &DB, keys: &[Bytes], at_hand: &ReadOptions) -> Result<Option<Vec<Option<Bytes>>>> {
    if may_wait() || keys.len() > AT_HAND_MAX {
        return Ok(None);
    }
    let found = keys.iter().map(|key| Ok(db.get_pinned_opt(key, at_hand)?.as_deref().map(Bytes::copy_from_slice)));
    match found.collect::<Result<_, rocksdb::Error>>() {
        Err(error) if would_wait(&error) => Ok(None),
        answer => answer.map(Some).map_err(unreadable),
    }
}

fn get_many(db: &DB, keys: &[Bytes], anywhere: &ReadOptions) -> Result<Vec<Option<Bytes>>> {
    let copied = |value: Option<DBPinnableSlice<'_>>| value.as_deref().map(Bytes::copy_from_slice);
    look_up(db, keys, anywhere).into_iter().map(|value| value.map(copied).map_err(unreadable)).collect()
}

/// Keys that are looked up together share the way to their blocks.
fn look_up<'db, K: AsRef<[u8]>>(db: &'db DB, keys: &[K], anywhere: &ReadOptions) -> Vec<PinnedValue<'db>> {
    match db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME) {
        Some(family) if keys.len() >= TOGETHER_MIN => {
            db.batched_multi_get_cf_opt(family, keys, keys.is_sorted_by_key(K::as_ref), anywhere)
        }
        _ => keys.iter().map(|key| db.get_pinned_opt(key, anywhere)).collect(),
    }
}

/// A value where RocksDB has it.
type PinnedValue<'db> = Result<Option<DBPinnableSlice<'db>>, rocksdb::Error>;

fn changing(rows: &Arc<RowCache>, batch: &Batch) -> InvalidationGuard {
    if batch.ops().any(|op| matches!(op, BatchWrite::DeleteRange { .. })) {
        return rows.change_all();
    }
    rows.change(batch.ops().filter_map(|op| match op {
        BatchWrite::Put { key, .. } | BatchWrite::Delete { key } => Some(key),
        _ => None,
    }))
}

fn translate(batch: &Batch) -> WriteBatch {
    // RocksDB's record is a tag and two lengths longer than ours.
    let mut writes = WriteBatch::with_capacity_bytes(batch.bytes() + batch.op_count() * 8 + 16);
    for op in batch.ops() {
        match op {
            BatchWrite::Put { key, value } => writes.put(key, value),
            BatchWrite::Delete { key } => writes.delete(key),
            // An upside-down range is nothing to us and an error to RocksDB.
            BatchWrite::DeleteRange { from, to } if from < to => writes.delete_range(from, to),
            BatchWrite::DeleteRange { .. } | BatchWrite::Expect { .. } => {}
        }
    }
    writes
}

/// Runs what may wait for the disk where waiting hurts nobody. Without a runtime (simple programs,
/// tests) there is nobody to hurt.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    not_at_hand()?;
    let Some(runtime) = tokio::runtime::Handle::try_current().ok().filter(|_| !may_wait()) else {
        return work();
    };
    match runtime.spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::unavailable("Pleiad is shutting down; ask again when it is back")),
    }
}

fn would_wait(error: &rocksdb::Error) -> bool {
    error.kind() == ErrorKind::Incomplete
}

fn unreadable(error: rocksdb::Error) -> Error {
    Error::internal(format!(
        "the store cannot be read ({error}); check the disk, and restore a backup if files are damaged"
    ))
}

#[cfg(test)]
mod tests;
