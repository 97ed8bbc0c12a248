//! Items without a value at a path, for whoever meets the others in the order of its index.
//!
//! An index under `/*` has no row of an item that has no value at a path. Who they are is found out by looking at all items once, and
//! followed through the feed from then on. Writers know nothing of it.
//!
//! Promise: whoever lacks the path in a view is a candidate for it. Others may be candidates as well, and some may be gone: whoever
//! asks looks at each.
//!
//! ```text
//! items of a view ──▶ who lacks it, at its LSN ──────────────┐
//! feed rows of a view behind such an LSN ──▶ who changed ────┴─▶ candidates
//! ```
//!
//! Nobody is ever taken out: who lacked the path at an earlier LSN is a candidate for views of that time, too. When more were added
//! than there are items, everything is found out again.

mod docnum_set; // a set of numbers

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

/// Paths of a partition that are remembered; the one that was asked for longest ago is forgotten first.
const PATHS_MAX: usize = 32;
/// LSNs at which all was known that are remembered.
const MOMENTS_MAX: usize = 64;
/// More changes than these take a while.
const AT_HAND_CHANGES_MAX: u64 = 64;
/// So many are added to few items before these are looked at again.
const ADDED_MIN: u64 = 1_000;
/// Items that are asked for at once.
const LOOKED_AT: usize = 256;

/// Says whether an item lacks the path; fails when there is no more time to find out.
pub type IsMissing<'l> = &'l mut (dyn FnMut(RecordView<'_>) -> Result<bool> + Send);

/// What a partition knows of the paths that were asked for, the latest last.
#[derive(Default)]
pub struct MissingValues(Mutex<Vec<(Vec<PathStep>, Arc<PathCandidates>)>>);

/// Under one schema: computed properties come and go with it.
struct PathCandidates {
    schema_version: u64,
    known: RwLock<CandidateState>,
    /// One finds out at a time; others wait for what it knows.
    turn: tokio::sync::Mutex<()>,
}

struct CandidateState {
    docnums: DocnumSet,
    /// Items up to this number were looked at, at one moment or another; `None` if all were.
    scanned: Option<u64>,
    /// What changed among them up to here is known.
    lsn: u64,
    /// LSNs at which all was known, in order.
    moments: Vec<u64>,
    /// Since all items were looked at.
    added: u64,
}

/// Who may lack a path in a view.
pub struct Candidates {
    path: Arc<PathCandidates>,
    /// They changed between a moment at which all was known and that of the view.
    changed: Vec<u64>,
}

impl Candidates {
    /// The first of them in a range of numbers, or the last; in that order.
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
    /// What is known of a path, or nothing: who still reads what was known before keeps it.
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
    /// Who may lack a path in a view. `None` if the view is from before that was found out: a newer one will do.
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

    /// Finds out what is not known yet. That is right for the view, but for items that changed between an earlier moment and its
    /// own: those are told.
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

    /// What changed since items were first looked at.
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

    /// All items that nobody looked at. Who is stopped leaves what it found to the next.
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

/// A look at items, one after the other, until it fails.
struct MissingScan<'l> {
    lacks: IsMissing<'l>,
    found: Vec<u64>,
    /// The last that was looked at.
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
        // A view can go on from any that is older than itself: the first stays, and of older ones fewer and fewer.
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
