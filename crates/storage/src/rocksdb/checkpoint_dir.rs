//! The directory of checkpoints.
//!
//! ```text
//! <dir>/snapshots/7/store/   RocksDB's files, linked
//! <dir>/snapshots/7/KEPT     when it was taken, and its name: "1700000000000\nbefore the migration"
//! ```
//!
//! Invariant: an entry is valid while its KEPT file exists, which is written last and deleted first; an entry that a
//! crash leaves without one is deleted at the next start. Of two entries with one name the later is valid, so that
//! there is always one while it is replaced. An entry that cannot be read is skipped and not deleted: the account
//! does not depend on it, and an operator may repair it. Names are text, never file names.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result};

use super::directory::{cannot_use, create_dir_durably, entries, sync_dir, write_atomically};
use crate::store::CheckpointInfo;

#[derive(Clone)]
pub struct CheckpointDir {
    dir: PathBuf,
}

struct CheckpointEntry {
    number: u64,
    info: CheckpointInfo,
}

/// The entries of the directory.
#[derive(Default)]
struct CheckpointScan {
    entries: Vec<CheckpointEntry>,
    unreadable: Vec<u64>,
}

impl CheckpointScan {
    fn contains(&self, number: u64) -> bool {
        self.entries.iter().any(|entry| entry.number == number) || self.unreadable.contains(&number)
    }
}

/// RocksDB writes these files itself when a store is opened.
const NOT_LINKED: [&str; 3] = ["LOCK", "LOG", "OPTIONS"];

impl CheckpointDir {
    pub fn of(dir: &Path) -> CheckpointDir {
        CheckpointDir { dir: dir.join("snapshots") }
    }

    pub fn create(
        &self,
        name: &str,
        taken_ms: u64,
        make_files: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<CheckpointInfo> {
        let previous = self.scan()?.entries;
        let last_number = self.numbers()?.into_iter().max().unwrap_or(0);
        let dir =
            self.entry_dir(last_number.checked_add(1).ok_or_else(|| Error::unavailable("there are no numbers left"))?);
        let created = create_dir_durably(&dir).map_err(|error| self.failed(error)).and_then(|()| {
            make_files(&dir.join("store"))?;
            let written = write_atomically(&dir, "KEPT", &format!("{taken_ms}\n{name}"));
            written.and_then(|()| size_bytes(&dir.join("store"))).map_err(|error| self.failed(error))
        });
        if created.is_err() {
            let _ = fs::remove_dir_all(&dir); // if this fails, the next start removes it
        }
        let bytes = created?;
        previous
            .iter()
            .filter(|entry| entry.info.name == name)
            .try_for_each(|entry| self.delete_entry(entry.number))?;
        Ok(CheckpointInfo { name: name.to_owned(), taken_ms, bytes })
    }

    pub fn list(&self) -> Result<Vec<CheckpointInfo>> {
        let mut infos: Vec<CheckpointInfo> = self.scan()?.entries.into_iter().map(|entry| entry.info).collect();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(infos)
    }

    pub fn delete(&self, name: &str) -> Result<bool> {
        let found = self.find(name)?;
        if let Some(number) = found {
            self.delete_entry(number)?;
        }
        Ok(found.is_some())
    }

    /// Links the files of a checkpoint into `target`. False if there is no such checkpoint.
    pub fn link(&self, name: &str, target: &Path) -> Result<bool> {
        let Some(number) = self.find(name)? else { return Ok(false) };
        let from = self.entry_dir(number).join("store");
        // Opening the store rewrites its manifest, and syncs it and the directory.
        let linked = create_dir_durably(target).and_then(|()| {
            fs::read_dir(&from)?.try_for_each(|file| link(&from, target, &file?.file_name().to_string_lossy()))
        });
        if linked.is_err() {
            let _ = fs::remove_dir_all(target); // if this fails, the next start removes it
        }
        linked.map(|()| true).map_err(|error| self.failed(error))
    }

    /// Removes what a crash left.
    pub fn remove_leftovers(&self) -> Result<()> {
        let scan = self.scan()?;
        for name in entries(&self.dir)? {
            if !name.parse().is_ok_and(|number| scan.contains(number)) {
                let _ = fs::remove_dir_all(self.dir.join(name)); // fails for a plain file, which stays
            }
        }
        Ok(())
    }

    fn entry_dir(&self, number: u64) -> PathBuf {
        self.dir.join(number.to_string())
    }

    fn find(&self, name: &str) -> Result<Option<u64>> {
        Ok(self.scan()?.entries.iter().find(|entry| entry.info.name == name).map(|entry| entry.number))
    }

    fn numbers(&self) -> Result<Vec<u64>> {
        Ok(entries(&self.dir)?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The valid entries, and those that cannot be read.
    fn scan(&self) -> Result<CheckpointScan> {
        let mut numbers = self.numbers()?;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut scan = CheckpointScan::default();
        for number in numbers {
            match self.entry(number) {
                Ok(Some(entry)) if scan.entries.iter().all(|later| later.info.name != entry.info.name) => {
                    scan.entries.push(entry);
                }
                Ok(_) => {}
                Err(error) => {
                    let dir = self.entry_dir(number);
                    tracing::warn!(%error, dir = %dir.display(), "skipping a checkpoint that cannot be read");
                    scan.unreadable.push(number);
                }
            }
        }
        Ok(scan)
    }

    fn entry(&self, number: u64) -> io::Result<Option<CheckpointEntry>> {
        let text = match fs::read_to_string(self.entry_dir(number).join("KEPT")) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            text => text?,
        };
        let parts = text.split_once('\n').and_then(|(taken, name)| Some((taken.parse().ok()?, name.to_owned())));
        let (taken_ms, name) = parts.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "KEPT is not ours"))?;
        let bytes = size_bytes(&self.entry_dir(number).join("store"))?;
        Ok(Some(CheckpointEntry { number, info: CheckpointInfo { name, taken_ms, bytes } }))
    }

    fn delete_entry(&self, number: u64) -> Result<()> {
        let dir = self.entry_dir(number);
        let removed = fs::remove_file(dir.join("KEPT")).and_then(|()| sync_dir(&dir));
        removed.and_then(|()| fs::remove_dir_all(&dir)).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        cannot_use(&self.dir, error)
    }
}

/// Table files never change, so they are linked; RocksDB appends to some of the others, so these are copied.
pub fn link(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    if NOT_LINKED.iter().any(|prefix| name.starts_with(prefix)) {
        return Ok(());
    }
    let (old, new) = (from.join(name), to.join(name));
    let is_table = name.ends_with(".sst");
    if is_table && fs::hard_link(&old, &new).is_ok() {
        return Ok(());
    }
    fs::copy(&old, &new)?;
    // A table is copied on a file system without links. The other files are small and rewritten when the store is
    // opened.
    if is_table { File::open(&new)?.sync_all() } else { Ok(()) }
}

fn size_bytes(dir: &Path) -> io::Result<u64> {
    fs::read_dir(dir)?.map(|file| Ok(file?.metadata()?.len())).sum()
}
