//! File stamps: detect that a file has changed by its modification time and length.

use std::path::Path;
use std::time::SystemTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    modified: SystemTime,
    bytes: u64,
}

impl FileStamp {
    /// `None` while the file does not exist.
    pub fn of(path: &Path) -> Option<FileStamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(FileStamp { modified: metadata.modified().ok()?, bytes: metadata.len() })
    }
}
