//! Check of the write-ahead log before RocksDB replays it: a torn tail is normal, damage below the synced position is a
//! loss.
//!
//! ```text
//!      000010.log                  000012.log                                   SYNCED: 000012.log, 8,192 bytes
//! ├───────── synced ─────────┼──── synced ────┬┄┄ torn tail ┄┄┤
//!    must be readable, all of it       8,192 ─┘   may end anywhere: a power failure loses what was not synced
//! ```
//!
//! Guarantees: nothing is changed here. A log whose rows are in tables already is not needed, and its damage is not
//! reported.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result};

use super::directory::{StoreDir, cannot_use};
use super::log_file::readable_bytes;
use super::synced_position::{self, SyncedPosition, log_numbers, log_path};

/// A log file that lacks bytes which were synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    pub file: PathBuf,
    pub log: u64,
    /// How many bytes of it can be read, from the beginning; `None` if the file is missing.
    pub readable_bytes: Option<u64>,
    pub synced_bytes: u64,
}

/// The state of the log files, as found before they are replayed.
#[derive(Debug, Default)]
pub struct LogState {
    pub damaged: Vec<LogDamage>,
    /// Bytes behind the synced position that cannot be read: what a crash interrupted.
    pub torn_bytes: u64,
    /// The file with the synced position is damaged.
    pub position_unreadable: Option<PathBuf>,
    /// The machine stopped while acknowledged writes were not synced: those of the documented window may be lost.
    pub unsynced_lost: bool,
}

impl LogState {
    /// What is wrong, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        let position = self.position_unreadable.iter().map(|file| {
            format!("{} is damaged: how much of the write-ahead log was synced is not known", file.display())
        });
        self.damaged.iter().map(LogDamage::sentence).chain(position).collect()
    }
}

impl LogDamage {
    fn sentence(&self) -> String {
        let (file, synced) = (self.file.display(), self.synced_bytes);
        match self.readable_bytes {
            None => format!("{file} is missing: {synced} synced bytes of the write-ahead log are lost"),
            Some(readable) => format!(
                "{file} is damaged: of its {synced} synced bytes, {} cannot be read, from byte {readable} on",
                synced - readable
            ),
        }
    }
}

/// `needed_from` returns the number of the first log whose rows are not all in tables. It is called only if there is
/// damage, because it opens the store once more.
pub fn check(store_dir: &StoreDir, needed_from: impl FnOnce() -> Result<u64>) -> Result<LogState> {
    let mut state = LogState::default();
    let synced_file = store_dir.synced_file();
    let position = match synced_position::read(&synced_file) {
        Ok(synced) => {
            let synced = synced.unwrap_or_default();
            state.unsynced_lost = synced.has_lost_unsynced();
            synced.position
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            state.position_unreadable = Some(synced_file);
            SyncedPosition::default()
        }
        Err(error) => return Err(cannot_use(&store_dir.dir, error)),
    };
    let scanned = scan(&store_dir.db_dir(), position, &mut state);
    scanned.map_err(|error| cannot_use(&store_dir.dir, error))?;
    if !state.damaged.is_empty() {
        let needed_from = needed_from()?;
        state.damaged.retain(|damage| damage.log >= needed_from);
    }
    Ok(state)
}

fn scan(db_dir: &Path, position: SyncedPosition, state: &mut LogState) -> io::Result<()> {
    let mut logs = match log_numbers(db_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        logs => logs?,
    };
    if position.bytes > 0 && !logs.contains(&position.log) {
        logs.push(position.log);
    }
    for log in logs {
        let file = log_path(db_dir, log);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            bytes => Some(bytes?),
        };
        let file_bytes = bytes.as_ref().map_or(0, Vec::len) as u64;
        let readable = bytes.map(|bytes| readable_bytes(&bytes) as u64);
        let synced_bytes = match log.cmp(&position.log) {
            std::cmp::Ordering::Less => file_bytes,
            std::cmp::Ordering::Equal => position.bytes,
            std::cmp::Ordering::Greater => 0,
        };
        if readable.is_none_or(|readable| readable < synced_bytes) {
            state.damaged.push(LogDamage { file, log, readable_bytes: readable, synced_bytes });
        } else {
            state.torn_bytes += file_bytes - readable.unwrap_or(0);
        }
    }
    Ok(())
}

/// Why the store is not opened, and what the operator can do.
pub fn refusal(dir: &Path, problems: &[String]) -> Error {
    let (dir, problems) = (dir.display(), problems.join("; "));
    Error::unavailable(format!(
        "{problems}. Writes that were acknowledged would be lost, so the store was not opened, and nothing was changed. \
         Restore a backup; or write out what can be read with `pleiad salvage --data {dir} --out DIR`; or start without \
         those writes with --accept-data-loss, which keeps a copy of the log files"
    ))
}

/// Copies the log files to a directory of their own: opening the store deletes them.
pub fn keep_logs_aside(store_dir: &StoreDir) -> Result<PathBuf> {
    let kept = copy_logs(store_dir);
    kept.map_err(|error| cannot_use(&store_dir.dir, error))
}

fn copy_logs(store_dir: &StoreDir) -> io::Result<PathBuf> {
    let taken = |number: &u64| store_dir.dir.join(format!("damaged-{number}")).exists();
    let number = (1..).find(|number| !taken(number)).unwrap_or(u64::MAX);
    let to = store_dir.dir.join(format!("damaged-{number}"));
    super::directory::create_dir_durably(&to)?;
    for log in log_numbers(&store_dir.db_dir())? {
        let target = log_path(&to, log);
        fs::copy(log_path(&store_dir.db_dir(), log), &target)?;
        fs::File::open(&target)?.sync_all()?;
    }
    let synced_file = store_dir.synced_file();
    if synced_file.exists() {
        fs::copy(&synced_file, to.join("SYNCED"))?;
    }
    super::directory::sync_dir(&to)?;
    Ok(to)
}
