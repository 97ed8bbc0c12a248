//! Ingestion of rows as SST files.
//!
//! Guarantees: a file is written completely, then moved among RocksDB's own files, which makes it durable; it enters
//! at the bottom level of the tree and is not rewritten. A failed ingest leaves the store as it was and does not
//! poison it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use pleiad_model::{Error, Result};
use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter};

use super::directory::cannot_use;
use crate::store::{Batch, sorted_puts};

pub struct SstIngester {
    dir: PathBuf,
    options: Options,
    next_number: AtomicU64,
}

impl SstIngester {
    /// At this point no other process has the directory open.
    pub fn new(dir: PathBuf, options: Options) -> Result<SstIngester> {
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot_use(&dir, error)),
            _ => Ok(SstIngester { dir, options, next_number: AtomicU64::new(1) }),
        }
    }

    /// For a store that is only read.
    pub fn unused(dir: PathBuf, options: Options) -> SstIngester {
        SstIngester { dir, options, next_number: AtomicU64::new(1) }
    }

    pub fn ingest(&self, db: &DB, rows: &Batch) -> Result<()> {
        if rows.op_count() == 0 {
            return Ok(());
        }
        fs::create_dir_all(&self.dir).map_err(|error| cannot_use(&self.dir, error))?;
        let path = self.dir.join(format!("{:06}.sst", self.next_number.fetch_add(1, Ordering::Relaxed)));
        let ingested = self.write(&path, rows).and_then(|()| ingest_file(db, &path));
        if ingested.is_err() {
            let _ = fs::remove_file(&path); // if this fails, the next start removes it
        }
        ingested
    }

    fn write(&self, path: &Path, rows: &Batch) -> Result<()> {
        let mut writer = SstFileWriter::create(&self.options);
        writer.open(path).map_err(failed)?;
        for (key, value) in sorted_puts(rows)? {
            writer.put(key, value).map_err(failed)?;
        }
        writer.finish().map_err(failed)
    }
}

fn ingest_file(db: &DB, path: &Path) -> Result<()> {
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    db.ingest_external_file_opts(&options, vec![path]).map_err(failed)
}

fn failed(error: rocksdb::Error) -> Error {
    Error::unavailable(format!("rows cannot be taken into the store: {error}"))
}
