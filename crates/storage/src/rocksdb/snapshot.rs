//! Snapshot of the RocksDB store.
//!
//! Guarantees: a snapshot returns the same bytes for as long as it exists, and keeps the database open that long. It
//! is cheap to take and costs disk space only for what was overwritten since.

use std::sync::Arc;

use bytes::Bytes;
use pleiad_model::Result;
use rocksdb::{DBPinnableSlice, ReadOptions, ReadTier};
use self_cell::self_cell;

use super::row_cache::{CommitSeq, RowCache};
use super::{OpenDb, get_many, get_many_cached, multi_get, on_blocking_thread, options, unreadable, would_block};
use crate::blocking::Blocking;
use crate::store::{Chunk, Direction, Limit, Snapshot, VisitPair, VisitValue};

/// Longer scans go directly to a blocking thread: even from the cache they take longer than the switch.
const INLINE_ROWS_MAX: usize = 64;
/// The same limit for an inline caller, which would have to run again on a blocking thread.
const INLINE_CALLER_ROWS_MAX: usize = 1024;
/// Deleted keys that an inline scan steps over before it ends.
const INLINE_SKIPS_MAX: u64 = 256;
/// A scan that may read this much reads its files ahead, in pieces of up to `READAHEAD_BYTES_MAX`: RocksDB's own
/// readahead begins with the third block of a file and at 8 KB, and would begin there again for every chunk.
const READAHEAD_FROM_BYTES: usize = 256 << 10;
const READAHEAD_BYTES_MAX: usize = 2 << 20;

/// The number of keys that RocksDB looks up in one batch.
const KEYS_PER_LOOKUP: usize = 32;

#[derive(Clone)]
pub struct RocksSnapshot {
    owned: Arc<OwnedSnapshot>,
    blocking: Blocking,
}

self_cell! {
    /// A snapshot together with the open database that it borrows from.
    struct OwnedSnapshot {
        owner: Arc<OpenDb>,
        #[covariant]
        dependent: SnapshotRef,
    }
}

struct SnapshotRef<'a> {
    cache_only: ReadOptions,
    all_tiers: ReadOptions,
    snapshot: rocksdb::Snapshot<'a>,
    /// For lookups in the row cache.
    commit_seq: CommitSeq,
}

impl RocksSnapshot {
    pub(super) fn take(engine: Arc<OpenDb>, blocking: Blocking) -> Self {
        let owned = OwnedSnapshot::new(engine, |engine| SnapshotRef::take(engine));
        RocksSnapshot { owned: Arc::new(owned), blocking }
    }

    async fn get_many_blocking(&self, keys: Vec<Bytes>) -> Result<Vec<Option<Bytes>>> {
        self.on_blocking_thread(move |owned| {
            get_many(&owned.borrow_owner().db, &keys, &owned.borrow_dependent().all_tiers)
        })
        .await
    }

    async fn on_blocking_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OwnedSnapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let owned = Arc::clone(&self.owned);
        on_blocking_thread(self.blocking, move || work(&owned)).await
    }
}

impl<'a> SnapshotRef<'a> {
    fn take(engine: &'a Arc<OpenDb>) -> Self {
        let commit_seq = engine.row_cache.commit_seq(); // must be read before the snapshot is taken
        let snapshot = engine.db.snapshot();
        let (mut cache_only, mut all_tiers) = (options::read_cache_only(), ReadOptions::default());
        cache_only.set_snapshot(&snapshot);
        all_tiers.set_snapshot(&snapshot);
        SnapshotRef { cache_only, all_tiers, snapshot, commit_seq }
    }
}

impl SnapshotRef<'_> {
    /// Calls `visit` for the rows of the keys, in order; returns false if it stopped. Adds the rows that it reads from
    /// RocksDB to the row cache.
    fn visit_rows(&self, engine: &OpenDb, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        let cached: Vec<Option<Bytes>> = keys.iter().map(|key| engine.row_cache.get_at(key, self.commit_seq)).collect();
        let with_cached = || keys.iter().zip(&cached);
        let missing: Vec<&Bytes> = with_cached().filter(|(_, cached)| cached.is_none()).map(|(key, _)| key).collect();
        let mut looked_up = multi_get(&engine.db, &missing, &self.all_tiers).into_iter();
        for (key, cached) in with_cached() {
            let value = match cached {
                Some(_) => None,
                None => looked_up.next().transpose().map_err(unreadable)?.flatten(),
            };
            self.cache_row(engine, key, value.as_deref());
            if !visit(cached.as_deref().or(value.as_deref())) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for an inline caller, one by one: the visitor may stop before a row that is not in memory.
    async fn visit_rows_inline(&self, engine: &OpenDb, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        for key in keys {
            let wants_more = match engine.row_cache.get_at(key, self.commit_seq) {
                Some(value) => visit(Some(&value)),
                None => {
                    let value = self.get_inline(engine, key).await?;
                    self.cache_row(engine, key, value.as_deref());
                    visit(value.as_deref())
                }
            };
            if !wants_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn get_inline<'e>(&self, engine: &'e OpenDb, key: &[u8]) -> Result<Option<DBPinnableSlice<'e>>> {
        let answer = match engine.db.get_pinned_opt(key, &self.cache_only) {
            Err(error) if would_block(&error) => {
                Blocking::Inline.before_blocking().await;
                engine.db.get_pinned_opt(key, &self.all_tiers)
            }
            answer => answer,
        };
        answer.map_err(unreadable)
    }

    fn cache_row(&self, engine: &OpenDb, key: &[u8], value: Option<&[u8]>) {
        if let Some(value) = value.filter(|value| RowCache::is_cacheable(key, value)) {
            engine.row_cache.insert(key, &Bytes::copy_from_slice(value), self.commit_seq);
        }
    }
}

impl Snapshot for RocksSnapshot {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let (engine, snapshot_ref) = (self.owned.borrow_owner(), self.owned.borrow_dependent());
        let cached = keys.iter().map(|key| engine.row_cache.get_at(key, snapshot_ref.commit_seq).map(Some));
        if let Some(cached) = cached.collect() {
            return Ok(cached);
        }
        let in_memory = match self.blocking {
            Blocking::Thread => None,
            Blocking::Suspend | Blocking::Inline => get_many_cached(&engine.db, keys, &snapshot_ref.cache_only)?,
        };
        let found = match in_memory {
            Some(found) => found,
            None => self.get_many_blocking(keys.to_vec()).await?,
        };
        for (key, value) in keys.iter().zip(&found) {
            if let Some(value) = value.as_ref().filter(|value| RowCache::is_cacheable(key, value)) {
                engine.row_cache.insert(key, value, snapshot_ref.commit_seq);
            }
        }
        Ok(found)
    }

    async fn visit_many(&self, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        let (engine, snapshot_ref) = (self.owned.borrow_owner(), self.owned.borrow_dependent());
        for keys in keys.chunks(KEYS_PER_LOOKUP) {
            let wants_more = match self.blocking {
                Blocking::Inline => snapshot_ref.visit_rows_inline(engine, keys, visit).await?,
                Blocking::Suspend | Blocking::Thread => snapshot_ref.visit_rows(engine, keys, visit)?,
            };
            if !wants_more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn scan(&self, from: &[u8], to: &[u8], direction: Direction, limit: Limit) -> Result<Chunk> {
        if from >= to {
            return Ok(Chunk::default());
        }
        let scan = RocksScan { from: from.to_vec(), to: to.to_vec(), direction, limit };
        let inline_rows_max = match self.blocking {
            Blocking::Inline => INLINE_CALLER_ROWS_MAX,
            Blocking::Suspend | Blocking::Thread => INLINE_ROWS_MAX,
        };
        if limit.rows <= inline_rows_max {
            match scan.run(self.owned.borrow_dependent(), scan.inline_options()) {
                Err(error) if would_block(&error) => {}
                answer => return answer.map_err(unreadable),
            }
        }
        self.on_blocking_thread(move |owned| {
            scan.run(owned.borrow_dependent(), scan.blocking_options()).map_err(unreadable)
        })
        .await
    }

    async fn visit(&self, from: &[u8], to: &[u8], visit: VisitPair<'_>) -> Result<bool> {
        if from >= to {
            return Ok(false);
        }
        self.blocking.before_blocking().await;
        let mut options = ReadOptions::default();
        options.set_readahead_size(READAHEAD_BYTES_MAX);
        options.set_iterate_upper_bound(to);
        let mut rows = self.owned.borrow_dependent().snapshot.raw_iterator_opt(options);
        rows.seek(from);
        while let Some((key, value)) = rows.item() {
            if !visit(key, value) {
                return Ok(true);
            }
            rows.next();
        }
        rows.status().map_err(unreadable)?;
        Ok(false)
    }
}

struct RocksScan {
    from: Vec<u8>,
    to: Vec<u8>,
    direction: Direction,
    limit: Limit,
}

impl RocksScan {
    fn inline_options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_read_tier(ReadTier::BlockCache);
        options.set_max_skippable_internal_keys(INLINE_SKIPS_MAX);
        options
    }

    /// Blocks that are read are cached: queries read them again. A limit without bytes is for small rows; their total
    /// size is unknown, so no readahead is set.
    fn blocking_options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        if self.limit.rows > INLINE_ROWS_MAX && (READAHEAD_FROM_BYTES..usize::MAX).contains(&self.limit.bytes) {
            options.set_readahead_size(self.limit.bytes.min(READAHEAD_BYTES_MAX));
        }
        options
    }

    fn run(&self, snapshot_ref: &SnapshotRef<'_>, mut options: ReadOptions) -> Result<Chunk, rocksdb::Error> {
        options.set_iterate_lower_bound(self.from.as_slice());
        options.set_iterate_upper_bound(self.to.as_slice());
        let mut rows = snapshot_ref.snapshot.raw_iterator_opt(options);
        let mut read = ChunkBuilder::default();
        match self.direction {
            Direction::Forward => rows.seek_to_first(),
            Direction::Backward => rows.seek_to_last(),
        }
        while let Some((key, value)) = rows.item() {
            if !self.limit.admits(read.lengths.len(), read.bytes.len()) {
                return Ok(read.finish(true));
            }
            read.push(key, value);
            match self.direction {
                Direction::Forward => rows.next(),
                Direction::Backward => rows.prev(),
            }
        }
        // The iterator ended: at the end of the range, at a block that is not cached, or with a read error. The status
        // distinguishes them.
        rows.status()?;
        Ok(read.finish(false))
    }
}

/// The rows of one scan, end to end in one shared allocation.
#[derive(Default)]
struct ChunkBuilder {
    bytes: Vec<u8>,
    lengths: Vec<(usize, usize)>,
}

impl ChunkBuilder {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len()));
    }

    fn finish(self, more: bool) -> Chunk {
        let mut rest = Bytes::from(self.bytes);
        let pairs = self.lengths.into_iter().map(|(key, value)| (rest.split_to(key), rest.split_to(value))).collect();
        Chunk { pairs, more }
    }
}
