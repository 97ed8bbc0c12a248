//! Sketches of a partition's vectors: kept up behind the writers, asked by readers.
//!
//! Promise: a search sees every write that its view sees: what changed since the sketch was last kept up is looked at exactly.
//! Whatever is found is measured by the vectors that the view has, so nobody is found who is gone, or where it was before.
//! A sketch that is not there, or too far behind, means that all vectors are looked at; never that one is missed.
//!
//! ```text
//! vector rows ──▶ sketch, up to an LSN ──▶ candidates ┐
//! feed rows behind that LSN ──▶ items that changed ───┴─▶ their vectors in the view ──▶ distances
//! ```
//!
//! Writers know nothing of sketches. `tend` follows the feed on a thread of its own, and leaves the graph in rows from time to
//! time, so that a restart reads it instead of building it again. When it is called is `engine`'s business.

mod persist; // a graph as rows
mod maintain; // behind the writers

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use pleiad_model::Result;
use pleiad_model::policy::{DistanceFunction, VectorIndexType};
use pleiad_vector::{AnnConfig, AnnIndex, Neighbor};

use crate::exact_knn::VectorQuery;
use crate::index::VectorRule;
use crate::partition::Partition;
use crate::snapshot::PartitionSnapshot;

/// With fewer, looking at all of them is quick enough.
pub const SKETCHED_ITEMS_MIN: u64 = 1_000;
/// Candidates held while a node is linked, where the policy does not say.
const LIST_DEFAULT: u32 = 100;
/// Items that changed since, of which more are not looked at one by one.
const BEHIND_MIN: usize = 1_000;
/// Items that readers missed, of which more are found out otherwise.
const MISSING_MAX: usize = 10_000;

/// What a partition has of its vectors in memory, by the number of their rows.
#[derive(Default)]
pub struct VectorIndexes {
    held: RwLock<HashMap<u64, Arc<MaintainedIndex>>>,
    /// Up to which LSN it is known that there are too few vectors for a sketch.
    few: Mutex<HashMap<u64, u64>>,
}

struct MaintainedIndex {
    sketch: RwLock<AnnIndex>,
    function: DistanceFunction,
    /// It knows every change up to here.
    lsn: AtomicU64,
    /// Where it was when `tend` last came by.
    seen_lsn: AtomicU64,
    /// Items that a search found and that had no vector.
    missing: Mutex<Vec<u64>>,
}

impl MaintainedIndex {
    fn new(sketch: AnnIndex, function: DistanceFunction, lsn: u64) -> MaintainedIndex {
        let (lsn, seen_lsn) = (AtomicU64::new(lsn), AtomicU64::new(0));
        MaintainedIndex { sketch: RwLock::new(sketch), function, lsn, seen_lsn, missing: Mutex::default() }
    }
}

impl VectorIndexes {
    fn get(&self, rule: &VectorRule) -> Option<Arc<MaintainedIndex>> {
        self.held.read().get(&rule.id).filter(|held| held.function == rule.function).cloned()
    }

    pub fn bytes(&self) -> usize {
        self.held.read().values().map(|held| held.sketch.read().bytes()).sum()
    }
}

/// What to sketch; `None` of an index that promises to look at every vector.
fn plan(rule: &VectorRule) -> Option<AnnConfig> {
    let list = usize::try_from(rule.search_list_size.unwrap_or(LIST_DEFAULT)).unwrap_or(usize::MAX);
    let list = match rule.index {
        VectorIndexType::Flat => return None,
        VectorIndexType::QuantizedFlat => None,
        VectorIndexType::DiskAnn => Some(list),
    };
    Some(AnnConfig { dimensions: rule.kind.dimensions, function: rule.function, list })
}

impl Partition {
    /// Whether a search need not look at every vector: there is a sketch, and it is not far behind.
    pub fn has_sketch(&self, rule: &VectorRule) -> bool {
        self.sketches.get(rule).is_some_and(|held| {
            let behind = self.lsn().saturating_sub(held.lsn.load(Ordering::Acquire));
            usize::try_from(behind).unwrap_or(usize::MAX) <= behind_max(held.sketch.read().len())
        })
    }

    pub fn sketch_bytes(&self) -> usize {
        self.sketches.bytes()
    }

    /// About the nearest `list` items with their distances, in no order; `None` if all have to be looked at.
    pub async fn nearest_about(
        &self,
        view: &PartitionSnapshot,
        wanted: VectorQuery<'_>,
        list: usize,
    ) -> Result<Option<Vec<Neighbor>>> {
        let Some(held) = self.sketches.get(wanted.rule).filter(|held| held.function == wanted.function) else {
            return Ok(None);
        };
        // Asked before the search: what comes in between is then looked at twice, and not missed.
        let lsn = held.lsn.load(Ordering::Acquire);
        let (found, known) = {
            let sketch = held.sketch.read();
            if list.saturating_mul(2) > sketch.len() {
                return Ok(None);
            }
            (sketch.search(wanted.to, list), sketch.len())
        };
        let Some(mut docnums) = view.changed_behind(lsn, behind_max(known)).await? else { return Ok(None) };
        let seen: HashSet<u64> = docnums.iter().copied().collect();
        docnums.extend(found.iter().filter(|docnum| !seen.contains(docnum)));
        let nears = view.nearest_of(wanted, &docnums).await?;
        if nears.len() < docnums.len() {
            held.miss(&found, &nears);
        }
        Ok(Some(nears))
    }
}

impl MaintainedIndex {
    /// Whether they are gone is found out by `tend`: the view may be older than they are.
    fn miss(&self, found: &[u64], nears: &[Neighbor]) {
        let there: HashSet<u64> = nears.iter().map(|near| near.docnum).collect();
        let mut missing = self.missing.lock();
        if missing.len() < MISSING_MAX {
            missing.extend(found.iter().filter(|docnum| !there.contains(docnum)));
        }
    }
}

/// So many changes are looked at one by one.
fn behind_max(known: usize) -> usize {
    BEHIND_MIN.max(known / 16)
}

#[cfg(test)]
mod tests;
