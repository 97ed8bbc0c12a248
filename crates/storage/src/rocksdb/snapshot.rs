//! Snapshot of the RocksDB store.
//!
//! Guarantees: a snapshot returns the same bytes for as long as it exists, and keeps the database open that long. It
//! is cheap to take and costs disk space only for what was overwritten since.

use std::sync::Arc;

use bytes::Bytes;
use pleiad_model::Result;
use rocksdb::{DBPinnableSlice, ReadOptions, ReadTier};
use self_cell::self_cell;

use super::row_cache::{CommitSeq as Counted, RowCache as Kept};
use super::{OpenDb, get_at_hand, get_many, look_up, on_thread, options, unreadable, would_wait};
use crate::patience::{is_at_hand, not_at_hand};
use crate::store::{Chunk, Direction, Limit, Snapshot, VisitPair, VisitValue};

/// Longer scans go directly to a blocking thread: even from the cache they take longer than the switch.
const INLINE_ROWS_MAX: usize = 64;
/// The same limit for work that is tried without blocking.
const AT_HAND_ROWS_MAX: usize = 1024;
/// Deleted keys that an inline scan steps over before it gives up.
const INLINE_SKIPS_MAX: u64 = 256;
/// A scan that may read this much reads its files ahead, in pieces of up to `READAHEAD_BYTES_MAX`: RocksDB's own
/// readahead begins with the third block of a file and at 8 KB, and would begin there again for every chunk.
const READAHEAD_FROM_BYTES: usize = 256 << 10;
const READAHEAD_BYTES_MAX: usize = 2 << 20;

/// The number of keys that RocksDB looks up in one batch.
const LOOKED_UP_TOGETHER: usize = 32;

#[derive(Clone)]
pub struct RocksSnapshot {
    view: Arc<OwnedSnapshot>,
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
    at_hand: ReadOptions,
    anywhere: ReadOptions,
    snapshot: rocksdb::Snapshot<'a>,
    /// For lookups in the row cache.
    counted: Counted,
}

impl RocksSnapshot {
    pub(super) fn take(engine: Arc<OpenDb>) -> Self {
        RocksSnapshot { view: Arc::new(OwnedSnapshot::new(engine, |engine| SnapshotRef::take(engine))) }
    }

    async fn get_anywhere(&self, keys: Vec<Bytes>) -> Result<Vec<Option<Bytes>>> {
        self.on_thread(move |view| get_many(&view.borrow_owner().db, &keys, &view.borrow_dependent().anywhere)).await
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OwnedSnapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let view = Arc::clone(&self.view);
        on_thread(move || work(&view)).await
    }
}

impl<'a> SnapshotRef<'a> {
    fn take(engine: &'a Arc<OpenDb>) -> Self {
        let counted = engine.rows.moment(); // must be read before the snapshot is taken
        let snapshot = engine.db.snapshot();
        let (mut at_hand, mut anywhere) = (options::read_at_hand(), ReadOptions::default());
        at_hand.set_snapshot(&snapshot);
        anywhere.set_snapshot(&snapshot);
        SnapshotRef { at_hand, anywhere, snapshot, counted }
    }
}

impl SnapshotRef<'_> {
    /// Calls `visit` for the rows of the keys, in order; returns false if it stopped. Rows that were not cached
    /// become so.
    fn show(&self, engine: &OpenDb, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        if is_at_hand() {
            return self.show_at_hand(engine, keys, visit);
        }
        let kept: Vec<Option<Bytes>> = keys.iter().map(|key| engine.rows.get_at(key, self.counted)).collect();
        let of_kept = || keys.iter().zip(&kept);
        let missing: Vec<&Bytes> = of_kept().filter(|(_, kept)| kept.is_none()).map(|(key, _)| key).collect();
        let mut looked_up = look_up(&engine.db, &missing, &self.anywhere).into_iter();
        for (key, kept) in of_kept() {
            let value = match kept {
                Some(_) => None,
                None => looked_up.next().transpose().map_err(unreadable)?.flatten(),
            };
            self.keep(engine, key, value.as_deref());
            if !visit(kept.as_deref().or(value.as_deref())) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One by one, since the visitor may stop before the last key.
    fn show_at_hand(&self, engine: &OpenDb, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        for key in keys {
            let goes_on = match engine.rows.get_at(key, self.counted) {
                Some(value) => visit(Some(&value)),
                None => {
                    let value = self.look_up_at_hand(engine, key)?;
                    self.keep(engine, key, value.as_deref());
                    visit(value.as_deref())
                }
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn look_up_at_hand<'e>(&self, engine: &'e OpenDb, key: &[u8]) -> Result<Option<DBPinnableSlice<'e>>> {
        match engine.db.get_pinned_opt(key, &self.at_hand) {
            Err(error) if would_wait(&error) => not_at_hand().map(|()| None),
            answer => answer.map_err(unreadable),
        }
    }

    fn keep(&self, engine: &OpenDb, key: &[u8], value: Option<&[u8]>) {
        if let Some(value) = value.filter(|value| Kept::keeps_row(key, value)) {
            engine.rows.keep(key, &Bytes::copy_from_slice(value), self.counted);
        }
    }
}

impl Snapshot for RocksSnapshot {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let (engine, moment) = (self.view.borrow_owner(), self.view.borrow_dependent());
        let kept = keys.iter().map(|key| engine.rows.get_at(key, moment.counted).map(Some));
        if let Some(kept) = kept.collect() {
            return Ok(kept);
        }
        let found = match get_at_hand(&engine.db, keys, &moment.at_hand)? {
            Some(found) => found,
            None => self.get_anywhere(keys.to_vec()).await?,
        };
        for (key, value) in keys.iter().zip(&found) {
            if let Some(value) = value.as_ref().filter(|value| Kept::keeps_row(key, value)) {
                engine.rows.keep(key, value, moment.counted);
            }
        }
        Ok(found)
    }

    async fn visit_many(&self, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        let (engine, moment) = (self.view.borrow_owner(), self.view.borrow_dependent());
        for keys in keys.chunks(LOOKED_UP_TOGETHER) {
            if !moment.show(engine, keys, visit)? {
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
        if limit.rows <= if is_at_hand() { AT_HAND_ROWS_MAX } else { INLINE_ROWS_MAX } {
            match scan.run(self.view.borrow_dependent(), scan.short()) {
                Err(error) if would_wait(&error) => {}
                answer => return answer.map_err(unreadable),
            }
        }
        self.on_thread(move |view| scan.run(view.borrow_dependent(), scan.long()).map_err(unreadable)).await
    }

    async fn visit(&self, from: &[u8], to: &[u8], visit: VisitPair<'_>) -> Result<bool> {
        if from >= to {
            return Ok(false);
        }
        not_at_hand()?;
        let mut options = ReadOptions::default();
        options.set_readahead_size(READAHEAD_BYTES_MAX);
        options.set_iterate_upper_bound(to);
        let mut rows = self.view.borrow_dependent().snapshot.raw_iterator_opt(options);
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
    fn short(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_read_tier(ReadTier::BlockCache);
        options.set_max_skippable_internal_keys(INLINE_SKIPS_MAX);
        options
    }

    /// Blocks that are read are cached: queries read them again. A limit in rows alone is for small rows, whose total
    /// size is unknown, so that it sets no readahead.
    fn long(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        if self.limit.rows > INLINE_ROWS_MAX && (READAHEAD_FROM_BYTES..usize::MAX).contains(&self.limit.bytes) {
            options.set_readahead_size(self.limit.bytes.min(READAHEAD_BYTES_MAX));
        }
        options
    }

    fn run(&self, moment: &SnapshotRef<'_>, mut options: ReadOptions) -> Result<Chunk, rocksdb::Error> {
        options.set_iterate_lower_bound(self.from.as_slice());
        options.set_iterate_upper_bound(self.to.as_slice());
        let mut rows = moment.snapshot.raw_iterator_opt(options);
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
        // The iterator ended: the status tells whether by the end of the range, of the cached blocks, or by a read
        // error.
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
