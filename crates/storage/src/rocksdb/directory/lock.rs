//! The lock of a data directory: one process at a time.
//!
//! RocksDB locks its file LOCK. A process that finds the file removed creates another one and locks that, so a second
//! server would be let in. This lock is on the directory itself, which cannot be replaced while it has files.
//!
//! Guarantees: the lock ends with the process, also if that is killed. On a file system without locks, RocksDB's lock
//! alone counts.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use pleiad_model::Result;

use super::{cannot_use, in_use};

/// Held while any store of the directory is open.
#[derive(Clone)]
pub struct DirectoryLock {
    _dir: Arc<File>,
}

impl DirectoryLock {
    pub fn take(dir: &Path) -> Result<DirectoryLock> {
        let file = File::open(dir).map_err(|error| cannot_use(dir, error))?;
        if is_locked_elsewhere(&file) {
            return Err(in_use(dir));
        }
        Ok(DirectoryLock { _dir: Arc::new(file) })
    }
}

#[cfg(unix)]
fn is_locked_elsewhere(dir: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(dir, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(not(unix))]
fn is_locked_elsewhere(_: &File) -> bool {
    false // a file in use cannot be removed there, so RocksDB's lock is enough
}
