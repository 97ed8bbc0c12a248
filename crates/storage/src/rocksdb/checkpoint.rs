//! Checkpoints of the RocksDB store: hard links to its table files.
//!
//! RocksDB's table files never change once they are written, so taking or opening a checkpoint gives each of them
//! another name; only the manifest and other small files are copied.
//!
//! A copy for a store whose disk has failed is made in the same way, with the write-ahead log, which opening replays.
//!
//! Invariant: two stores of one data directory are never confused: each has a subdirectory of its own, and LIVE, which
//! names the current one, is replaced atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pleiad_model::{Error, Result};
use rocksdb::checkpoint::Checkpoint;

use super::checkpoint_dir::{self, CheckpointDir};
use super::directory::{StoreDir, cannot_use, create_dir_durably};
use super::{OpenDb, RocksStore};
use crate::store::{CheckpointInfo, Checkpoints};

impl Checkpoints for RocksStore {
    async fn create_checkpoint(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        self.engine.check_healthy()?;
        let (checkpoints, name) = (self.checkpoint_dir(), name.to_owned());
        self.on_blocking_thread(move |engine| checkpoints.create(&name, taken_ms, |to| engine.checkpoint(to))).await
    }

    async fn list_checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        let checkpoints = self.checkpoint_dir();
        self.on_blocking_thread(move |_| checkpoints.list()).await
    }

    async fn delete_checkpoint(&self, name: &str) -> Result<bool> {
        let (checkpoints, name) = (self.checkpoint_dir(), name.to_owned());
        self.on_blocking_thread(move |_| checkpoints.delete(&name)).await
    }

    async fn open_checkpoint(&self, name: &str) -> Result<Option<RocksStore>> {
        let (checkpoints, name) = (self.checkpoint_dir(), name.to_owned());
        self.on_blocking_thread(move |engine| {
            let store_dir = engine.cleanup.store_dir.next_unused()?;
            if !checkpoints.link(&name, &store_dir.db_dir())? {
                return Ok(None);
            }
            let opened = RocksStore::open_at(store_dir.clone(), engine.lock.clone(), engine.reopen.clone());
            if opened.is_err() {
                store_dir.clear();
            }
            opened.map(Some)
        })
        .await
    }

    async fn open_copy(&self) -> Result<RocksStore> {
        self.on_blocking_thread(OpenDb::open_copy).await
    }

    async fn make_current(&self) -> Result<()> {
        self.on_blocking_thread(|engine| engine.cleanup.store_dir.declare_live()).await
    }

    fn retire(&self) {
        self.engine.cleanup.retired.store(true, Ordering::Release);
    }
}

impl RocksStore {
    pub(super) fn checkpoint_dir(&self) -> CheckpointDir {
        CheckpointDir::of(&self.engine.cleanup.store_dir.dir)
    }
}

impl OpenDb {
    /// Memory is flushed to table files first: a checkpoint has no log to replay.
    fn checkpoint(&self, to: &std::path::Path) -> Result<()> {
        let created = Checkpoint::new(&self.db).and_then(|checkpoint| checkpoint.create_checkpoint(to));
        created.map_err(|error| Error::unavailable(format!("the snapshot cannot be taken: {error}")))
    }
}

impl OpenDb {
    /// RocksDB cannot resume after every failure, and not before all readers have closed it. So the files are linked
    /// into a new directory and opened there, as after a crash, while readers go on here.
    fn open_copy(&self) -> Result<RocksStore> {
        let from = &self.cleanup.store_dir;
        probe(&from.dir).map_err(|error| Error::unavailable(format!("the disk still fails: {error}")))?;
        let to = from.next_unused()?;
        let copied = self.copy_files(&to.db_dir());
        let opened = copied.and_then(|()| RocksStore::open_at(to.clone(), self.lock.clone(), self.reopen.clone()));
        if opened.is_err() {
            to.clear();
        }
        opened
    }

    /// The manifest is copied before the files that it lists; in between, no file is deleted. What the manifest does not
    /// list yet is still in the log.
    fn copy_files(&self, to: &Path) -> Result<()> {
        let failed = |error: rocksdb::Error| Error::unavailable(format!("the store cannot be copied: {error}"));
        self.db.disable_file_deletions().map_err(failed)?;
        let from = self.cleanup.store_dir.db_dir();
        let copied = create_dir_durably(to).and_then(|()| {
            let names = fs::read_dir(&from)?
                .map(|file| -> io::Result<String> { Ok(file?.file_name().to_string_lossy().into_owned()) });
            let mut names = names.collect::<io::Result<Vec<String>>>()?;
            names.sort_by_key(|name| name.ends_with(".sst") || name.ends_with(".log"));
            names.iter().try_for_each(|name| checkpoint_dir::link(&from, to, name))
        });
        self.db.enable_file_deletions().map_err(failed)?;
        copied.map_err(|error| cannot_use(to, error))
    }
}

/// Writes a file and deletes it: cheaper than a copy that fails.
fn probe(dir: &Path) -> io::Result<()> {
    const BYTES: usize = 64 << 10;
    let path = dir.join("PROBE");
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&vec![1; BYTES])?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written.and(removed)
}

/// Deletes the files of a retired store when the database is closed.
pub struct CloseCleanup {
    pub store_dir: StoreDir,
    retired: AtomicBool,
}

impl CloseCleanup {
    pub fn new(store_dir: StoreDir) -> CloseCleanup {
        CloseCleanup { store_dir, retired: AtomicBool::new(false) }
    }
}

impl Drop for CloseCleanup {
    fn drop(&mut self) {
        if self.retired.load(Ordering::Acquire) {
            self.store_dir.clear();
        }
    }
}
