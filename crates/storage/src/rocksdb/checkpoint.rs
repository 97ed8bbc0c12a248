//! Checkpoints of the RocksDB store: hard links to its table files.
//!
//! RocksDB's table files never change once they are written, so taking or opening a checkpoint gives each of them
//! another name; only the manifest and other small files are copied.
//!
//! Invariant: two stores of one data directory are never confused: each has a subdirectory of its own, and LIVE, which
//! names the current one, is replaced atomically.

use std::sync::atomic::{AtomicBool, Ordering};

use pleiad_model::{Error, Result};
use rocksdb::checkpoint::Checkpoint;

use super::checkpoint_dir::CheckpointDir;
use super::directory::StoreDir;
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
