//! Vector indexes: the ANN indexes of a partition, maintained asynchronously from the feed.
//!
//! Invariant: a search sees every write that its snapshot sees: items that changed after the index's LSN are compared
//! exactly. All distances are computed from the vectors of the snapshot, so no deleted item and no old vector is
//! returned. Without an index, or if it lags too far, the search compares all vectors, so none is missed.
//!
//! ```text
//! vector rows ──▶ ANN index, up to an LSN ──▶ candidates ┐
//! feed rows after that LSN ──▶ items that changed ───────┴─▶ their vectors in the snapshot ──▶ distances
//! ```
//!
//! Writers do no work for the indexes. `maintain` follows the feed on a thread of its own and saves the graph in rows
//! from time to time, so that a restart loads it instead of building it again. `engine` decides when to call it.

mod persist; // the graph as rows
mod maintain; // background maintenance from the feed

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

/// With fewer vectors, an exact search is fast enough.
pub const SKETCHED_ITEMS_MIN: u64 = 1_000;
/// The search list size while a node is linked, if the policy has none.
const LIST_DEFAULT: u32 = 100;
/// However small the index, a search compares up to this many changed items exactly.
const BEHIND_MIN: usize = 1_000;
/// Missing items that readers report; beyond that, `maintain` notices that the index is larger than the partition.
const MISSING_MAX: usize = 10_000;

/// The ANN indexes of a partition, by the path hash of their vector rows.
#[derive(Default)]
pub struct VectorIndexes {
    held: RwLock<HashMap<u64, Arc<MaintainedIndex>>>,
    /// The LSN at which there were too few vectors for an ANN index, or too little memory.
    few: Mutex<HashMap<u64, u64>>,
}

struct MaintainedIndex {
    sketch: RwLock<AnnIndex>,
    function: DistanceFunction,
    /// It includes every change up to this LSN.
    lsn: AtomicU64,
    /// Its LSN at the end of the last maintenance pass.
    seen_lsn: AtomicU64,
    /// Items that a search found and that have no vector in its snapshot.
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

/// The configuration of the ANN index; `None` for an index type that searches exactly.
fn plan(rule: &VectorRule) -> Option<AnnConfig> {
    let list = usize::try_from(rule.search_list_size.unwrap_or(LIST_DEFAULT)).unwrap_or(usize::MAX);
    let list = match rule.index {
        VectorIndexType::Flat => return None,
        VectorIndexType::QuantizedFlat => None,
        VectorIndexType::DiskAnn => Some(list),
    };
    Some(AnnConfig { dimensions: rule.kind.dimensions, function: rule.function, search_list_size: list })
}

impl Partition {
    /// Whether a search need not compare every vector: there is an ANN index, and it does not lag far.
    pub fn has_sketch(&self, rule: &VectorRule) -> bool {
        self.sketches.get(rule).is_some_and(|held| {
            let behind = self.lsn().saturating_sub(held.lsn.load(Ordering::Acquire));
            usize::try_from(behind).unwrap_or(usize::MAX) <= behind_max(held.sketch.read().len())
        })
    }

    pub fn sketch_bytes(&self) -> usize {
        self.sketches.bytes()
    }

    /// Approximately the nearest `list` items with their distances, unordered; `None` if an exact search is needed.
    pub async fn nearest_about(
        &self,
        view: &PartitionSnapshot,
        wanted: VectorQuery<'_>,
        list: usize,
    ) -> Result<Option<Vec<Neighbor>>> {
        let Some(held) = self.sketches.get(wanted.rule).filter(|held| held.function == wanted.function) else {
            return Ok(None);
        };
        // Read before the search: an item that is indexed in between is then compared twice, and not missed.
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
    /// `maintain` finds out whether they are deleted: the snapshot may be older than the items.
    fn miss(&self, found: &[u64], nears: &[Neighbor]) {
        let there: HashSet<u64> = nears.iter().map(|near| near.docnum).collect();
        let mut missing = self.missing.lock();
        if missing.len() < MISSING_MAX {
            missing.extend(found.iter().filter(|docnum| !there.contains(docnum)));
        }
    }
}

/// The number of changed items that a search compares exactly; an index that lags further is not used.
fn behind_max(known: usize) -> usize {
    BEHIND_MIN.max(known / 16)
}

#[cfg(test)]
mod tests;
