//! By what it is noticed that a file has changed: when it was written, and how long it is.

use std::path::Path;
use std::time::SystemTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    modified: SystemTime,
    bytes: u64,
}

impl FileStamp {
    /// `None` while there is no such file.
    pub fn of(path: &Path) -> Option<FileStamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(FileStamp { modified: metadata.modified().ok()?, bytes: metadata.len() })
    }
}
