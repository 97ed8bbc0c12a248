//! Opening a store: for use, for reading only, or as a salvaged copy.
//!
//! Guarantees: the write-ahead log is checked before RocksDB replays and deletes it. If synced bytes are missing, the
//! store is not opened and no file is changed. If the caller accepts the loss, the log files are copied first. After
//! that, and after a power failure that may have lost writes which were acknowledged before a sync, a marker stays until
//! the crates above have skipped the numbers that clients may have seen.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pleiad_model::{Error, Result};
use rocksdb::{ColumnFamilyDescriptor, DB, DEFAULT_COLUMN_FAMILY_NAME, Options, ReadOptions};

use super::checkpoint::CloseCleanup;
use super::directory::{self, DirectoryLock, StoreDir, cannot_open, cannot_use, sync_dir, write_atomically};
use super::ingest::SstIngester;
use super::log_check::{self, LogState};
use super::log_file::{salvage_records, write_log};
use super::options::{self, RocksOptions};
use super::row_cache::RowCache;
use super::synced_position::{LogEnd, SyncedFileWriter, SyncedPosition, log_numbers, log_path};
use super::{OpenDb, ReopenOptions, RocksStore};

/// A store that was opened without changing anything, and what its log files look like.
pub struct ReadOnlyStore {
    pub store: RocksStore,
    /// Synced bytes that are lost, one sentence each.
    pub problems: Vec<String>,
    /// Bytes at the end of the log that a crash interrupted.
    pub torn_bytes: u64,
}

/// A copy of a store with every row that can be read, also from behind damage in the log.
pub struct SalvagedStore {
    pub store: RocksStore,
    pub problems: Vec<String>,
    /// Bytes of the log files that cannot be read.
    pub skipped_bytes: u64,
}

/// The name of the marker of an accepted loss.
const LOSS: &str = "LOSS";

impl RocksStore {
    /// Opens the store in `dir`, which is created if it does not exist.
    pub fn open(dir: impl AsRef<Path>, options: RocksOptions) -> Result<Self> {
        let dir = dir.as_ref();
        let (store_dir, lock) = directory::prepare(dir)?;
        let block_cache = options::block_cache(&options);
        let store = RocksStore::open_at(store_dir, lock, ReopenOptions { options, block_cache })?;
        directory::upgrade_format(dir)?;
        store.engine.cleanup.store_dir.remove_leftovers()?;
        store.checkpoint_dir().remove_leftovers()?;
        Ok(store)
    }

    pub(super) fn open_at(store_dir: StoreDir, lock: DirectoryLock, reopen: ReopenOptions) -> Result<Self> {
        let db_options = options::db_options(&reopen.options, &reopen.block_cache);
        let db = open_checked(&store_dir, &db_options, reopen.options.accept_data_loss)?;
        let cannot_use = |error| cannot_use(&store_dir.dir, error);
        let newest_log = log_numbers(&store_dir.db_dir()).map_err(cannot_use)?.pop().unwrap_or(0);
        let position = SyncedPosition { log: newest_log, bytes: 0 };
        let synced_file = SyncedFileWriter::start(&store_dir.synced_file(), position).map_err(cannot_use)?;
        let ingester = SstIngester::new(store_dir.ingest_dir(), db_options)?;
        Ok(RocksStore::new(db, store_dir, lock, reopen, ingester, Some(synced_file)))
    }

    /// Opens an existing store without changing anything in the directory, whatever state the log is in: its readable
    /// beginning counts. Writes are rejected.
    pub fn open_read_only(dir: impl AsRef<Path>, options: RocksOptions) -> Result<ReadOnlyStore> {
        let (store_dir, lock) = directory::find(dir.as_ref())?;
        let block_cache = options::block_cache(&options);
        let db_options = options::db_options(&options, &block_cache);
        let state = check_log(&store_dir, &db_options)?;
        let db = open_db_read_only(&store_dir, &db_options)?;
        let ingester = SstIngester::unused(store_dir.ingest_dir(), db_options);
        let store = RocksStore::new(db, store_dir, lock, ReopenOptions { options, block_cache }, ingester, None);
        Ok(ReadOnlyStore { store, problems: state.problems(), torn_bytes: state.torn_bytes })
    }

    /// Copies the store in `dir` to `copy`, which must not exist, with all records of the log that can be read, and
    /// opens the copy. Table files are linked where the file system allows it.
    pub fn open_salvaged(dir: impl AsRef<Path>, copy: &Path, options: RocksOptions) -> Result<SalvagedStore> {
        let (store_dir, _lock) = directory::find(dir.as_ref())?;
        let block_cache = options::block_cache(&options);
        let state = check_log(&store_dir, &options::db_options(&options, &block_cache))?;
        let (to, lock) = directory::prepare(copy)?;
        let copied = copy_readable(&store_dir.db_dir(), &to.db_dir());
        let skipped_bytes = copied.map_err(|error| cannot_use(copy, error))?;
        let options = RocksOptions { accept_data_loss: true, ..options };
        let store = RocksStore::open_at(to, lock, ReopenOptions { options, block_cache })?;
        Ok(SalvagedStore { store, problems: state.problems(), skipped_bytes })
    }

    /// Whether a loss was accepted and numbers that clients may have seen are still to be skipped.
    pub fn has_unsettled_loss(&self) -> bool {
        self.engine.synced_file.is_some() && self.engine.cleanup.store_dir.dir.join(LOSS).exists()
    }

    /// The numbers were skipped, durably.
    pub fn settle_loss(&self) -> Result<()> {
        let dir = &self.engine.cleanup.store_dir.dir;
        let removed = fs::remove_file(dir.join(LOSS)).and_then(|()| sync_dir(dir));
        removed.map_err(|error| cannot_use(dir, error))
    }

    fn new(
        db: DB,
        store_dir: StoreDir,
        lock: DirectoryLock,
        reopen: ReopenOptions,
        ingester: SstIngester,
        synced_file: Option<SyncedFileWriter>,
    ) -> RocksStore {
        let engine = OpenDb {
            db,
            log_end: Mutex::new(LogEnd::new(store_dir.db_dir())),
            synced_file,
            cache_only: options::read_cache_only(),
            all_tiers: ReadOptions::default(),
            row_cache: Arc::new(RowCache::new(reopen.options.row_cache_bytes)),
            ingester,
            poison: OnceLock::new(),
            reopen,
            cleanup: CloseCleanup::new(store_dir),
            lock,
        };
        RocksStore { engine: Arc::new(engine) }
    }
}

fn open_checked(store_dir: &StoreDir, db_options: &Options, accept_data_loss: bool) -> Result<DB> {
    let state = check_log(store_dir, db_options)?;
    if state.unsynced_lost {
        mark_loss(store_dir, "the machine stopped before acknowledged writes were synced\n")?;
    }
    let mut problems = state.problems();
    if problems.is_empty() {
        match open_db(store_dir, db_options) {
            Err(error) if is_missing_log(&error) => problems.push(error.into_string()),
            db => return db.map_err(|error| cannot_open(&store_dir.dir, error)),
        }
    }
    if !accept_data_loss {
        return Err(log_check::refusal(&store_dir.dir, &problems));
    }
    accept_loss(store_dir, &problems)?;
    let db = open_db(store_dir, &options::without_log_verification(db_options));
    db.map_err(|error| cannot_open(&store_dir.dir, error))
}

/// The logs before the newest are listed in the manifest, which RocksDB compares.
fn is_missing_log(error: &rocksdb::Error) -> bool {
    ["Missing WAL", "Size mismatch: WAL"].iter().any(|text| error.as_ref().contains(text))
}

fn accept_loss(store_dir: &StoreDir, problems: &[String]) -> Result<()> {
    let kept = log_check::keep_logs_aside(store_dir)?;
    let text = format!("{}\nlog files as found: {}\n", problems.join("\n"), kept.display());
    mark_loss(store_dir, &text)?;
    let problems = problems.join("; ");
    tracing::warn!(%problems, kept = %kept.display(), "acknowledged writes are lost, which was accepted");
    Ok(())
}

/// Until the crates above have skipped the numbers of the lost writes.
fn mark_loss(store_dir: &StoreDir, text: &str) -> Result<()> {
    write_atomically(&store_dir.dir, LOSS, text).map_err(|error| cannot_use(&store_dir.dir, error))
}

fn check_log(store_dir: &StoreDir, db_options: &Options) -> Result<LogState> {
    log_check::check(store_dir, || {
        let db = open_db_read_only(store_dir, db_options)?;
        let needed_from = db.property_int_value("rocksdb.min-log-number-to-keep");
        needed_from
            .map(Option::unwrap_or_default)
            .map_err(|error| Error::unavailable(format!("cannot tell which logs are needed: {error}")))
    })
}

fn open_db(store_dir: &StoreDir, options: &Options) -> Result<DB, rocksdb::Error> {
    DB::open_cf_descriptors(options, store_dir.db_dir(), [family(options)])
}

/// RocksDB verifies the logs that the manifest lists. Without that it would clear the list, which a store that is opened
/// read-only cannot: it follows a null pointer.
fn open_db_read_only(store_dir: &StoreDir, options: &Options) -> Result<DB> {
    let db = DB::open_cf_descriptors_read_only(options, store_dir.db_dir(), [family(options)], false);
    db.map_err(|error| cannot_open(&store_dir.dir, error))
}

/// By name, since RocksDB's multi-get needs a named column family.
fn family(options: &Options) -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, options.clone())
}

/// Copies a store; the logs of the copy have the records that can be read. Returns the bytes that cannot.
fn copy_readable(from: &Path, to: &Path) -> io::Result<u64> {
    for file in fs::read_dir(from)? {
        super::checkpoint_dir::link(from, to, &file?.file_name().to_string_lossy())?;
    }
    let mut skipped_bytes = 0;
    for log in log_numbers(from)? {
        let salvaged = salvage_records(&fs::read(log_path(from, log))?);
        fs::write(log_path(to, log), write_log(&salvaged.records))?;
        skipped_bytes += salvaged.skipped_bytes as u64;
    }
    Ok(skipped_bytes)
}
