//! Rows that were read lately, whole, in front of RocksDB.
//!
//! A point read is two look-ups, of an id and of an item; each costs RocksDB a search of its write buffer
//! and of a block. Here each costs a hash. Only those two kinds of rows are kept: nothing else is
//! looked up one by one and often.
//!
//! Promise: a look-up that begins after a commit returned never sees what was there before it. A reader
//! may be overtaken between RocksDB and here, so it notes the row's stamp before it reads, and takes its
//! row out again if the stamp has moved; a commit moves the stamp first and takes the row out second.
//!
//! ```text
//! reader   stamp 4 ── get: old ───────────────────── keep old ── stamp 5? take it out
//! commit                └─ write new ── stamp := 5 ── take it out
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::keyspace::Tag;

/// Rows share stamps; sharing one costs a row that is not kept, never a wrong one.
const STAMPS: usize = 4096;
/// Larger rows would push out many that are asked for more often.
const VALUE_BYTES_MAX: usize = 16 * 1024;
/// What a kept row costs beside its bytes.
const OVERHEAD_BYTES: u64 = 96;

pub struct Rows {
    kept: Cache<Bytes, Bytes, Weight>,
    stamps: Box<[AtomicU64]>,
}

/// What a reader noted before it went to RocksDB.
#[derive(Clone, Copy)]
pub struct Noted {
    stamp: u64,
}

impl Rows {
    pub fn new(bytes_max: usize) -> Self {
        let kept = Cache::with_weighter(bytes_max / 1024, bytes_max as u64, Weight);
        Rows { kept, stamps: (0..STAMPS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether rows of this kind are kept at all.
    pub fn keeps(key: &[u8]) -> bool {
        key.get(8).is_some_and(|tag| *tag == Tag::Doc as u8 || *tag == Tag::Id as u8)
    }

    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.kept.get(key)
    }

    pub fn note(&self, key: &[u8]) -> Noted {
        Noted { stamp: self.stamp(key).load(Ordering::SeqCst) }
    }

    /// Keeps what was read after `noted`, unless a commit came in between.
    pub fn keep(&self, key: &[u8], value: &Bytes, noted: Noted) {
        if value.len() > VALUE_BYTES_MAX {
            return;
        }
        self.kept.insert(Bytes::copy_from_slice(key), value.clone());
        if self.stamp(key).load(Ordering::SeqCst) != noted.stamp {
            self.kept.remove(key);
        }
    }

    /// The row has changed in RocksDB.
    pub fn changed(&self, key: &[u8]) {
        self.stamp(key).fetch_add(1, Ordering::SeqCst);
        self.kept.remove(key);
    }

    /// Who knows which rows have changed.
    pub fn all_changed(&self) {
        for stamp in &self.stamps {
            stamp.fetch_add(1, Ordering::SeqCst);
        }
        self.kept.clear();
    }

    /// The end of a key is where keys differ: an item's number, or a hash.
    fn stamp(&self, key: &[u8]) -> &AtomicU64 {
        let end = key.last_chunk::<2>().map_or(0, |end| u16::from_be_bytes(*end));
        &self.stamps[usize::from(end) % STAMPS]
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<Bytes, Bytes> for Weight {
    fn weight(&self, key: &Bytes, value: &Bytes) -> u64 {
        key.len() as u64 + value.len() as u64 + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests;
