//! Checkpoints of the RocksDB store: hard links to its table files.
//!
//! RocksDB's table files never change once they are written, so taking or opening a checkpoint gives each of them
//! another name; only the manifest is copied.
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
    async fn keep(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        self.engine.healthy()?;
        let (shelf, name) = (self.shelf(), name.to_owned());
        self.on_thread(move |engine| shelf.put(&name, taken_ms, |to| engine.checkpoint(to))).await
    }

    async fn kept(&self) -> Result<Vec<CheckpointInfo>> {
        let shelf = self.shelf();
        self.on_thread(move |_| shelf.list()).await
    }

    async fn forget(&self, name: &str) -> Result<bool> {
        let (shelf, name) = (self.shelf(), name.to_owned());
        self.on_thread(move |_| shelf.remove(&name)).await
    }

    async fn revive(&self, name: &str) -> Result<Option<RocksStore>> {
        let (shelf, name) = (self.shelf(), name.to_owned());
        self.on_thread(move |engine| {
            let home = engine.remains.home.next()?;
            if !shelf.link(&name, &home.files())? {
                return Ok(None);
            }
            let revived = RocksStore::at(home.clone(), engine.chosen.options.clone(), engine.chosen.blocks.clone());
            if revived.is_err() {
                home.clear();
            }
            revived.map(Some)
        })
        .await
    }

    async fn take_over(&self) -> Result<()> {
        self.on_thread(|engine| engine.remains.home.declare_live()).await
    }

    fn retire(&self) {
        self.engine.remains.doomed.store(true, Ordering::Release);
    }
}

impl RocksStore {
    pub(super) fn shelf(&self) -> CheckpointDir {
        CheckpointDir::of(&self.engine.remains.home.dir)
    }
}

impl OpenDb {
    /// Memory is flushed to table files first: a checkpoint has no log to replay.
    fn checkpoint(&self, to: &std::path::Path) -> Result<()> {
        let made = Checkpoint::new(&self.db).and_then(|checkpoint| checkpoint.create_checkpoint(to));
        made.map_err(|error| Error::unavailable(format!("the snapshot cannot be taken: {error}")))
    }
}

/// Deletes the files of a retired store when the database is closed.
pub struct CloseCleanup {
    pub home: StoreDir,
    doomed: AtomicBool,
}

impl CloseCleanup {
    pub fn new(home: StoreDir) -> CloseCleanup {
        CloseCleanup { home, doomed: AtomicBool::new(false) }
    }
}

impl Drop for CloseCleanup {
    fn drop(&mut self) {
        if self.doomed.load(Ordering::Acquire) {
            self.home.clear();
        }
    }
}
