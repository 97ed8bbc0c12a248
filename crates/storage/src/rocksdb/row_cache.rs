//! Rows that were read lately, whole, in front of RocksDB.
//!
//! A point read is two look-ups, of an id and of an item, and a query begins with a look at the state of its partitions; each costs
//! RocksDB a search of its write buffer and of a block. Here each costs a hash. Only those three kinds of rows are kept: nothing
//! else is looked up one by one and often.
//!
//! Promise: a look-up that begins after a commit returned never sees what was there before it, no one sees new and
//! then old, and a snapshot sees what it would see in RocksDB. Commits are counted when they end. A row is kept only if no commit of its
//! stripe has ended since its reader looked at the count and none is at work there, and it is shown only to snapshots that were
//! taken after the last commit of its stripe.
//!
//! ```text
//! reader   moment: 4 ── get: old ─────────────────────────── keep? stripe changed at 5: no
//! commit        └─ begin: take the row out ── write new ── end: moment := 5, stripe changed at 5
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::keyspace::Tag;

/// Rows share stripes; sharing one costs a row that is not kept, never a wrong one.
const STRIPES: usize = 1024;
/// Larger rows would push out many that are asked for more often.
const VALUE_BYTES_MAX: usize = 16 * 1024;
/// What a kept row costs beside its bytes.
const OVERHEAD_BYTES: u64 = 96;

pub struct RowCache {
    kept: Cache<Bytes, CachedRow, CachedBytes>,
    stripes: Box<[Mutex<Stripe>]>,
    /// How many commits have ended.
    moment: AtomicU64,
}

#[derive(Clone)]
struct CachedRow {
    value: Bytes,
    /// It is the row's value for whoever looked at the count then or later.
    since: CommitSeq,
}

#[derive(Default)]
struct Stripe {
    /// When the last commit that changed a row here ended.
    changed: CommitSeq,
    /// Commits that are changing rows here now.
    writers: u32,
}

/// How many commits had ended when a reader began: all of them are in what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitSeq(u64);

/// Rows that a commit is changing. They are not kept again before this is dropped, however that comes about.
pub struct InvalidationGuard {
    rows: Arc<RowCache>,
    stripes: Vec<usize>,
}

impl RowCache {
    pub fn new(bytes_max: usize) -> Self {
        let kept = Cache::with_weighter(bytes_max / 1024, bytes_max as u64, CachedBytes);
        RowCache { kept, stripes: (0..STRIPES).map(|_| Mutex::default()).collect(), moment: AtomicU64::new(0) }
    }

    /// Whether rows of this kind are kept at all.
    pub fn keeps(key: &[u8]) -> bool {
        key.get(8).is_some_and(|tag| [Tag::Doc, Tag::Id, Tag::State].iter().any(|kept| *tag == *kept as u8))
    }

    /// Whether this row would be kept.
    pub fn keeps_row(key: &[u8], value: &[u8]) -> bool {
        RowCache::keeps(key) && value.len() <= VALUE_BYTES_MAX
    }

    /// The row as it is now.
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.kept.get(key).map(|kept| kept.value)
    }

    /// The row as a snapshot has it that was taken after `moment`.
    pub fn get_at(&self, key: &[u8], moment: CommitSeq) -> Option<Bytes> {
        self.kept.get(key).filter(|kept| kept.since <= moment).map(|kept| kept.value)
    }

    /// To be asked before RocksDB is.
    pub fn moment(&self) -> CommitSeq {
        CommitSeq(self.moment.load(Ordering::Acquire))
    }

    /// Keeps what was read after `moment`, now or in a snapshot, unless a commit came in between.
    pub fn keep(&self, key: &[u8], value: &Bytes, moment: CommitSeq) {
        if value.len() > VALUE_BYTES_MAX {
            return;
        }
        let stripe = self.stripe(stripe_of(key));
        if stripe.changed <= moment && stripe.writers == 0 {
            let kept = CachedRow { value: value.clone(), since: stripe.changed };
            self.kept.insert(Bytes::copy_from_slice(key), kept);
        }
    }

    /// A commit is about to change these rows.
    pub fn change<'a>(self: &Arc<Self>, keys: impl Iterator<Item = &'a [u8]>) -> InvalidationGuard {
        let mut stripes = Vec::new();
        for key in keys.filter(|key| RowCache::keeps(key)) {
            let at = stripe_of(key);
            let mut stripe = self.stripe(at);
            stripe.writers += 1;
            self.kept.remove(key);
            stripes.push(at);
        }
        InvalidationGuard { rows: self.clone(), stripes }
    }

    /// Who knows which rows are about to change.
    pub fn change_all(self: &Arc<Self>) -> InvalidationGuard {
        (0..STRIPES).for_each(|at| self.stripe(at).writers += 1);
        self.kept.clear();
        InvalidationGuard { rows: self.clone(), stripes: (0..STRIPES).collect() }
    }

    fn stripe(&self, at: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[at].lock()
    }
}

impl Drop for InvalidationGuard {
    fn drop(&mut self) {
        let ended = CommitSeq(self.rows.moment.fetch_add(1, Ordering::AcqRel) + 1);
        for &at in &self.stripes {
            let mut stripe = self.rows.stripe(at);
            stripe.changed = stripe.changed.max(ended);
            stripe.writers -= 1;
        }
    }
}

/// The end of a key is where keys differ: an item's number, or a hash.
fn stripe_of(key: &[u8]) -> usize {
    let end = key.last_chunk::<2>().map_or(0, |end| u16::from_be_bytes(*end));
    usize::from(end) % STRIPES
}

#[derive(Clone)]
struct CachedBytes;

impl Weighter<Bytes, CachedRow> for CachedBytes {
    fn weight(&self, key: &Bytes, kept: &CachedRow) -> u64 {
        key.len() as u64 + kept.value.len() as u64 + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests;
