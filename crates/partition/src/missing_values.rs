//! Missing values: the items that an ordered index scan cannot return.
//!
//! An index under `/*` has no row for an item without a value at the path, but ORDER BY returns such items, too. The
//! first query that needs them scans the partition once and caches the candidates with its snapshot's LSN; later
//! queries catch up from the feed. Writers do no extra work.
//!
//! Invariant: every item of a snapshot without a value at the path is a candidate. Candidates may be stale (the item
//! has a value in this snapshot, or is deleted): readers check each.
//!
//! ```text
//! items of a snapshot ──▶ docnums without a value, at its LSN ──────┐
//! feed rows of a snapshot after such an LSN ──▶ changed docnums ────┴─▶ candidates
//! ```
//!
//! Candidates are never removed: an item without a value at an earlier LSN stays a candidate for snapshots of that LSN.
//! When more candidates were added than there are items, all are dropped and the partition is scanned again.

mod docnum_set; // a sparse bitmap of docnums

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use pleiad_model::policy::PathStep;
use pleiad_model::{Error, Result};

use self::docnum_set::DocnumSet;
use crate::partition::Partition;
use crate::record::RecordView;
use crate::schema::Schema;
use crate::snapshot::PartitionSnapshot;

/// Cached paths per partition; the least recently used one is evicted first.
const PATHS_MAX: usize = 32;
/// Remembered LSNs at which the candidates were complete.
const COMPLETE_LSNS_MAX: usize = 64;
/// Catching up over more changes would block.
const INLINE_CHANGES_MAX: u64 = 64;
/// In a small partition, this many candidates are added before it is scanned again.
const ADDED_BEFORE_RESCAN_MIN: u64 = 1_000;
/// Items per read while catching up.
const CHECK_CHUNK: usize = 256;

/// Whether an item has no value at the path; fails after the query's deadline.
pub type IsMissing<'l> = &'l mut (dyn FnMut(RecordView<'_>) -> Result<bool> + Send);

/// The cached candidates of a partition by path, the most recently used last.
#[derive(Default)]
pub struct MissingValues(Mutex<Vec<(Vec<PathStep>, Arc<PathCandidates>)>>);

/// The candidates of one path under one schema, which decides the computed properties.
struct PathCandidates {
    schema_version: u64,
    state: RwLock<CandidateState>,
    /// Held by the one query that catches up; the others wait for its result.
    catch_up_lock: tokio::sync::Mutex<()>,
}

struct CandidateState {
    docnums: DocnumSet,
    /// Items up to this docnum were scanned, possibly in several snapshots; `None` if all were.
    scanned: Option<u64>,
    /// Changes of these items are included up to this LSN.
    lsn: u64,
    /// LSNs at which the candidates were complete, ascending.
    complete_lsns: Vec<u64>,
    /// Candidates added from the feed since the full scan.
    added: u64,
}

/// The items of a snapshot that may have no value at a path.
pub struct Candidates {
    path: Arc<PathCandidates>,
    /// Items that changed between an LSN with complete candidates and the snapshot's LSN.
    changed: Vec<u64>,
}

impl Candidates {
    /// The first `count` candidates in a docnum range, ascending; or the last, descending.
    pub fn next(&self, from: u64, upto: u64, backward: bool, count: usize) -> Vec<u64> {
        let state = self.path.state.read();
        let all = state.docnums.within(from..=upto);
        let mut found: Vec<u64> = if backward { all.rev().take(count).collect() } else { all.take(count).collect() };
        found.extend(self.changed.iter().filter(|docnum| (from..=upto).contains(docnum)));
        match backward {
            false => found.sort_unstable(),
            true => found.sort_unstable_by(|one, other| other.cmp(one)),
        }
        found.dedup();
        found.truncate(count);
        found
    }
}

impl MissingValues {
    /// The cached candidates of a path, or an empty entry that replaces outdated ones. Readers of those keep them.
    fn get_or_insert(&self, steps: &[PathStep], schema: &Schema, view: &PartitionSnapshot) -> Arc<PathCandidates> {
        let mut paths = self.0.lock();
        let cached = paths.iter().position(|(path, _)| path == steps).map(|at| paths.remove(at));
        let is_valid = |(_, cached): &(_, Arc<PathCandidates>)| {
            cached.schema_version == schema.version
                && cached.state.read().added <= view.items().max(ADDED_BEFORE_RESCAN_MIN)
        };
        let entry =
            cached.filter(is_valid).unwrap_or_else(|| (steps.to_vec(), Arc::new(PathCandidates::new(schema.version))));
        let path = entry.1.clone();
        if paths.len() == PATHS_MAX {
            paths.remove(0);
        }
        paths.push(entry);
        path
    }
}

impl Partition {
    /// The items of a snapshot that may have no value at a path. `None` if the snapshot is older than the first
    /// complete scan: retry with a newer one.
    pub async fn missing_candidates(
        &self,
        view: &PartitionSnapshot,
        schema: &Schema,
        path: &[PathStep],
        is_missing: IsMissing<'_>,
    ) -> Result<Option<Candidates>> {
        let path = self.missing_values.get_or_insert(path, schema, view);
        let changed = path.catch_up(view, is_missing).await?;
        Ok(changed.map(|changed| Candidates { path, changed }))
    }
}

impl PathCandidates {
    fn new(schema_version: u64) -> PathCandidates {
        let (docnums, complete_lsns) = Default::default();
        let state = CandidateState { docnums, scanned: Some(0), lsn: 0, complete_lsns, added: 0 };
        PathCandidates { schema_version, state: RwLock::new(state), catch_up_lock: tokio::sync::Mutex::default() }
    }

    /// Brings the candidates up to the snapshot's LSN. If they are already past it, returns the items that changed
    /// between the last earlier LSN with complete candidates and the snapshot's; `None` if there is no such LSN.
    async fn catch_up(&self, view: &PartitionSnapshot, is_missing: IsMissing<'_>) -> Result<Option<Vec<u64>>> {
        if self.state.read().is_complete_at(view.lsn()) {
            return Ok(Some(Vec::new()));
        }
        let _guard = self.catch_up_lock.lock().await;
        let (lsn, is_complete, complete_lsn) = {
            let state = self.state.read();
            let complete_lsn =
                state.complete_lsns.iter().rev().find(|complete_lsn| **complete_lsn <= view.lsn()).copied();
            (state.lsn, state.scanned.is_none(), complete_lsn)
        };
        if !is_complete || view.lsn().abs_diff(lsn) > INLINE_CHANGES_MAX {
            view.blocking().before_blocking().await;
        }
        if view.lsn() < lsn {
            let Some(complete_lsn) = complete_lsn else { return Ok(None) };
            return view.changed_after(complete_lsn, usize::MAX).await;
        }
        self.apply_changes(view, is_missing).await?;
        self.scan(view, is_missing).await?;
        Ok(Some(Vec::new()))
    }

    /// Adds the items without a value among those that changed since the last catch-up.
    async fn apply_changes(&self, view: &PartitionSnapshot, is_missing: IsMissing<'_>) -> Result<()> {
        let lsn = {
            let mut state = self.state.write();
            if state.scanned == Some(0) {
                state.lsn = view.lsn();
            }
            state.lsn
        };
        if lsn == view.lsn() {
            return Ok(());
        }
        let changed = view.changed_after(lsn, usize::MAX).await?.unwrap_or_default();
        let mut scan = MissingScan::new(is_missing);
        for docnums in changed.chunks(CHECK_CHUNK) {
            if view.visit_many(docnums, &mut |record| scan.check(record)).await? {
                break;
            }
        }
        let found = scan.finish()?;
        let mut state = self.state.write();
        state.added += found.len() as u64;
        found.into_iter().for_each(|docnum| state.docnums.insert(docnum));
        state.set_lsn(view.lsn());
        Ok(())
    }

    /// Scans the items that were not scanned yet. A scan that fails leaves its progress to the next one.
    async fn scan(&self, view: &PartitionSnapshot, is_missing: IsMissing<'_>) -> Result<()> {
        let Some(after) = self.state.read().scanned else { return Ok(()) };
        let mut scan = MissingScan::new(is_missing);
        let read = view.visit(after, u64::MAX, &mut |record| scan.check(record.map(Some))).await;
        let (upto, found) = (scan.upto.max(after), std::mem::take(&mut scan.found));
        let outcome = read.and_then(|_| scan.finish());
        let mut state = self.state.write();
        found.into_iter().for_each(|docnum| state.docnums.insert(docnum));
        state.scanned = outcome.is_err().then_some(upto);
        state.set_lsn(view.lsn());
        outcome.map(drop)
    }
}

/// Checks items one after the other until it fails.
struct MissingScan<'l> {
    is_missing: IsMissing<'l>,
    found: Vec<u64>,
    /// The docnum of the last item that was checked.
    upto: u64,
    failed: Option<Error>,
}

impl<'l> MissingScan<'l> {
    fn new(is_missing: IsMissing<'l>) -> MissingScan<'l> {
        MissingScan { is_missing, found: Vec::new(), upto: 0, failed: None }
    }

    fn check(&mut self, record: Result<Option<RecordView<'_>>>) -> bool {
        self.failed = record.and_then(|record| record.map_or(Ok(()), |record| self.check_record(record))).err();
        self.failed.is_none()
    }

    fn check_record(&mut self, record: RecordView<'_>) -> Result<()> {
        if (self.is_missing)(record)? {
            self.found.push(record.docnum);
        }
        self.upto = record.docnum;
        Ok(())
    }

    fn finish(self) -> Result<Vec<u64>> {
        self.failed.map_or(Ok(self.found), Err)
    }
}

impl CandidateState {
    fn is_complete_at(&self, lsn: u64) -> bool {
        self.scanned.is_none() && self.lsn == lsn
    }

    fn set_lsn(&mut self, lsn: u64) {
        self.lsn = lsn;
        if self.scanned.is_none() && self.complete_lsns.last() != Some(&lsn) {
            self.complete_lsns.push(lsn);
        }
        // A snapshot can continue from any earlier LSN in the list: keep the first, and thin out the older half.
        if self.complete_lsns.len() > COMPLETE_LSNS_MAX {
            let mut at = 0;
            self.complete_lsns.retain(|_| {
                at += 1;
                at > COMPLETE_LSNS_MAX / 2 || at % 2 == 1
            });
        }
    }
}

#[cfg(test)]
mod tests;
