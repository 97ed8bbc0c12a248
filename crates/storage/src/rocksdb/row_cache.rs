//! Row cache: recently read rows, kept in memory in front of RocksDB's own caches.
//!
//! A point read is two lookups, of an id and of an item, and a query begins by reading the shard state of its
//! partitions; each lookup costs RocksDB a search of its write buffer and of a block. Here it costs a hash lookup.
//! Only those three kinds of rows are cached: no others are looked up one by one and often.
//!
//! Invariant: a lookup that begins after a commit returned never gets a row from before the commit, no reader sees a
//! new row and then the old one, and a snapshot gets the row that it would read from RocksDB. Commits are counted
//! when they end. A row is cached only if no commit in its stripe has ended since its reader noted the count and none
//! is running there, and it is returned only to snapshots that were taken after the last commit in its stripe.
//!
//! ```text
//! reader   commit_seq: 4 ── get: old ─────────────────────────── insert? stripe changed at 5: no
//! commit        └─ begin: remove the row ── write new ── end: commits := 5, stripe changed at 5
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::keyspace::Tag;

/// Rows share stripes; a collision may prevent a row from being cached, but never returns a wrong row.
const STRIPES: usize = 1024;
/// Larger rows would evict many that are read more often.
const VALUE_BYTES_MAX: usize = 16 * 1024;
/// Memory that a cached row takes in addition to its bytes.
const OVERHEAD_BYTES: u64 = 96;

pub struct RowCache {
    cache: Cache<Bytes, CachedRow, CachedBytes>,
    stripes: Box<[Mutex<Stripe>]>,
    /// The number of commits that have ended.
    commits: AtomicU64,
}

#[derive(Clone)]
struct CachedRow {
    value: Bytes,
    /// The value is valid for readers that noted this count or a later one.
    since: CommitSeq,
}

#[derive(Default)]
struct Stripe {
    /// The count at the end of the last commit that changed a row here.
    changed_at: CommitSeq,
    /// Commits that are changing rows here now.
    writers: u32,
}

/// The number of commits that had ended when a reader began: it sees all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitSeq(u64);

/// The rows that a commit is changing. They are not cached again before the guard is dropped, however that happens.
pub struct InvalidationGuard {
    cache: Arc<RowCache>,
    stripes: Vec<usize>,
}

impl RowCache {
    pub fn new(bytes_max: usize) -> Self {
        let cache = Cache::with_weighter(bytes_max / 1024, bytes_max as u64, CachedBytes);
        RowCache { cache, stripes: (0..STRIPES).map(|_| Mutex::default()).collect(), commits: AtomicU64::new(0) }
    }

    /// Whether rows of this kind are cached at all.
    pub fn is_cached_kind(key: &[u8]) -> bool {
        key.get(8).is_some_and(|tag| [Tag::Doc, Tag::Id, Tag::State].iter().any(|cached| *tag == *cached as u8))
    }

    /// Whether this row may be cached.
    pub fn is_cacheable(key: &[u8], value: &[u8]) -> bool {
        RowCache::is_cached_kind(key) && value.len() <= VALUE_BYTES_MAX
    }

    /// The current row.
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.cache.get(key).map(|row| row.value)
    }

    /// The row as in a snapshot that was taken after `seq` was read.
    pub fn get_at(&self, key: &[u8], seq: CommitSeq) -> Option<Bytes> {
        self.cache.get(key).filter(|row| row.since <= seq).map(|row| row.value)
    }

    /// A reader must call this before it reads from RocksDB.
    pub fn commit_seq(&self) -> CommitSeq {
        CommitSeq(self.commits.load(Ordering::Acquire))
    }

    /// Caches a row that was read from the store or a snapshot after `seq` was read, unless a commit has changed its
    /// stripe since.
    pub fn insert(&self, key: &[u8], value: &Bytes, seq: CommitSeq) {
        if value.len() > VALUE_BYTES_MAX {
            return;
        }
        let stripe = self.stripe(stripe_of(key));
        if stripe.changed_at <= seq && stripe.writers == 0 {
            let row = CachedRow { value: value.clone(), since: stripe.changed_at };
            self.cache.insert(Bytes::copy_from_slice(key), row);
        }
    }

    /// Called before a commit changes these rows.
    pub fn invalidate<'a>(self: &Arc<Self>, keys: impl Iterator<Item = &'a [u8]>) -> InvalidationGuard {
        let mut stripes = Vec::new();
        for key in keys.filter(|key| RowCache::is_cached_kind(key)) {
            let at = stripe_of(key);
            let mut stripe = self.stripe(at);
            stripe.writers += 1;
            self.cache.remove(key);
            stripes.push(at);
        }
        InvalidationGuard { cache: self.clone(), stripes }
    }

    /// For a commit whose rows are unknown: a range delete.
    pub fn invalidate_all(self: &Arc<Self>) -> InvalidationGuard {
        (0..STRIPES).for_each(|at| self.stripe(at).writers += 1);
        self.cache.clear();
        InvalidationGuard { cache: self.clone(), stripes: (0..STRIPES).collect() }
    }

    fn stripe(&self, at: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[at].lock()
    }
}

impl Drop for InvalidationGuard {
    fn drop(&mut self) {
        let ended = CommitSeq(self.cache.commits.fetch_add(1, Ordering::AcqRel) + 1);
        for &at in &self.stripes {
            let mut stripe = self.cache.stripe(at);
            stripe.changed_at = stripe.changed_at.max(ended);
            stripe.writers -= 1;
        }
    }
}

/// Keys differ at their end: a docnum, or a hash.
fn stripe_of(key: &[u8]) -> usize {
    let end = key.last_chunk::<2>().map_or(0, |end| u16::from_be_bytes(*end));
    usize::from(end) % STRIPES
}

#[derive(Clone)]
struct CachedBytes;

impl Weighter<Bytes, CachedRow> for CachedBytes {
    fn weight(&self, key: &Bytes, row: &CachedRow) -> u64 {
        key.len() as u64 + row.value.len() as u64 + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests;
