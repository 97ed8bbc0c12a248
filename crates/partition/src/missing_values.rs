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
use pleiad_storage::not_at_hand;

use self::docnum_set::DocnumSet;
use crate::partition::Partition;
use crate::record::RecordView;
use crate::schema::Schema;
use crate::snapshot::PartitionSnapshot;

/// Cached paths per partition; the least recently used one is evicted first.
const PATHS_MAX: usize = 32;
/// Remembered LSNs at which the candidates were complete.
const MOMENTS_MAX: usize = 64;
/// Catching up over more changes would block.
const AT_HAND_CHANGES_MAX: u64 = 64;
/// In a small partition, this many candidates are added before it is scanned again.
const ADDED_MIN: u64 = 1_000;
/// Items per read while catching up.
const LOOKED_AT: usize = 256;

/// Whether an item has no value at the path; fails when the query's time is up.
pub type IsMissing<'l> = &'l mut (dyn FnMut(RecordView<'_>) -> Result<bool> + Send);

/// The cached candidates of a partition by path, the most recently used last.
#[derive(Default)]
pub struct MissingValues(Mutex<Vec<(Vec<PathStep>, Arc<PathCandidates>)>>);

/// The candidates of one path under one schema, which decides the computed properties.
struct PathCandidates {
    schema_version: u64,
    known: RwLock<CandidateState>,
    /// Held by the one query that catches up; the others wait for its result.
    turn: tokio::sync::Mutex<()>,
}

struct CandidateState {
    docnums: DocnumSet,
    /// Items up to this docnum were scanned, possibly in several snapshots; `None` if all were.
    scanned: Option<u64>,
    /// Changes of these items are included up to this LSN.
    lsn: u64,
    /// LSNs at which the candidates were complete, ascending.
    moments: Vec<u64>,
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
        let known = self.path.known.read();
        let all = known.docnums.within(from..=upto);
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
    fn of(&self, steps: &[PathStep], schema: &Schema, view: &PartitionSnapshot) -> Arc<PathCandidates> {
        let mut paths = self.0.lock();
        let held = paths.iter().position(|(path, _)| path == steps).map(|at| paths.remove(at));
        let is_good = |(_, held): &(_, Arc<PathCandidates>)| {
            held.schema_version == schema.version && held.known.read().added <= view.items().max(ADDED_MIN)
        };
        let latest =
            held.filter(is_good).unwrap_or_else(|| (steps.to_vec(), Arc::new(PathCandidates::new(schema.version))));
        let path = latest.1.clone();
        if paths.len() == PATHS_MAX {
            paths.remove(0);
        }
        paths.push(latest);
        path
    }
}

impl Partition {
    /// The items of a snapshot that may have no value at a path. `None` if the snapshot is older than the first
    /// complete scan: retry with a newer one.
    pub async fn lacking(
        &self,
        view: &PartitionSnapshot,
        schema: &Schema,
        path: &[PathStep],
        lacks: IsMissing<'_>,
    ) -> Result<Option<Candidates>> {
        let path = self.lacking.of(path, schema, view);
        let changed = path.changed(view, lacks).await?;
        Ok(changed.map(|changed| Candidates { path, changed }))
    }
}

impl PathCandidates {
    fn new(schema_version: u64) -> PathCandidates {
        let (docnums, moments) = Default::default();
        let known = CandidateState { docnums, scanned: Some(0), lsn: 0, moments, added: 0 };
        PathCandidates { schema_version, known: RwLock::new(known), turn: tokio::sync::Mutex::default() }
    }

    /// Brings the candidates up to the snapshot's LSN. If they are already past it, returns the items that changed
    /// between the last earlier LSN with complete candidates and the snapshot's; `None` if there is no such LSN.
    async fn changed(&self, view: &PartitionSnapshot, lacks: IsMissing<'_>) -> Result<Option<Vec<u64>>> {
        if self.known.read().is_whole_at(view.lsn()) {
            return Ok(Some(Vec::new()));
        }
        let _turn = self.turn.lock().await;
        let (lsn, is_whole, moment) = {
            let known = self.known.read();
            let moment = known.moments.iter().rev().find(|moment| **moment <= view.lsn()).copied();
            (known.lsn, known.scanned.is_none(), moment)
        };
        if !is_whole || view.lsn().abs_diff(lsn) > AT_HAND_CHANGES_MAX {
            not_at_hand()?;
        }
        if view.lsn() < lsn {
            let Some(moment) = moment else { return Ok(None) };
            return view.changed_behind(moment, usize::MAX).await;
        }
        self.follow(view, lacks).await?;
        self.scan(view, lacks).await?;
        Ok(Some(Vec::new()))
    }

    /// Adds the items without a value among those that changed since the last catch-up.
    async fn follow(&self, view: &PartitionSnapshot, lacks: IsMissing<'_>) -> Result<()> {
        let lsn = {
            let mut known = self.known.write();
            if known.scanned == Some(0) {
                known.lsn = view.lsn();
            }
            known.lsn
        };
        if lsn == view.lsn() {
            return Ok(());
        }
        let changed = view.changed_behind(lsn, usize::MAX).await?.unwrap_or_default();
        let mut look = MissingScan::new(lacks);
        for docnums in changed.chunks(LOOKED_AT) {
            if view.visit_many(docnums, &mut |record| look.at(record)).await? {
                break;
            }
        }
        let found = look.done()?;
        let mut known = self.known.write();
        known.added += found.len() as u64;
        found.into_iter().for_each(|docnum| known.docnums.insert(docnum));
        known.caught_up(view.lsn());
        Ok(())
    }

    /// Scans the items that were not scanned yet. A scan that fails leaves its progress to the next one.
    async fn scan(&self, view: &PartitionSnapshot, lacks: IsMissing<'_>) -> Result<()> {
        let Some(after) = self.known.read().scanned else { return Ok(()) };
        let mut look = MissingScan::new(lacks);
        let read = view.visit(after, u64::MAX, &mut |record| look.at(record.map(Some))).await;
        let (upto, found) = (look.upto.max(after), std::mem::take(&mut look.found));
        let done = read.and_then(|_| look.done());
        let mut known = self.known.write();
        found.into_iter().for_each(|docnum| known.docnums.insert(docnum));
        known.scanned = done.is_err().then_some(upto);
        known.caught_up(view.lsn());
        done.map(drop)
    }
}

/// Checks items one after the other until it fails.
struct MissingScan<'l> {
    lacks: IsMissing<'l>,
    found: Vec<u64>,
    /// The docnum of the last item that was checked.
    upto: u64,
    failed: Option<Error>,
}

impl<'l> MissingScan<'l> {
    fn new(lacks: IsMissing<'l>) -> MissingScan<'l> {
        MissingScan { lacks, found: Vec::new(), upto: 0, failed: None }
    }

    fn at(&mut self, record: Result<Option<RecordView<'_>>>) -> bool {
        self.failed = record.and_then(|record| record.map_or(Ok(()), |record| self.one(record))).err();
        self.failed.is_none()
    }

    fn one(&mut self, record: RecordView<'_>) -> Result<()> {
        if (self.lacks)(record)? {
            self.found.push(record.docnum);
        }
        self.upto = record.docnum;
        Ok(())
    }

    fn done(self) -> Result<Vec<u64>> {
        self.failed.map_or(Ok(self.found), Err)
    }
}

impl CandidateState {
    fn is_whole_at(&self, lsn: u64) -> bool {
        self.scanned.is_none() && self.lsn == lsn
    }

    fn caught_up(&mut self, lsn: u64) {
        self.lsn = lsn;
        if self.scanned.is_none() && self.moments.last() != Some(&lsn) {
            self.moments.push(lsn);
        }
        // A snapshot can continue from any earlier LSN in the list: keep the first, and thin out the older half.
        if self.moments.len() > MOMENTS_MAX {
            let mut at = 0;
            self.moments.retain(|_| {
                at += 1;
                at > MOMENTS_MAX / 2 || at % 2 == 1
            });
        }
    }
}

#[cfg(test)]
mod tests;
