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
pub const INDEXED_VECTORS_MIN: u64 = 1_000;
/// The search list size while a node is linked, if the policy has none.
const SEARCH_LIST_DEFAULT: u32 = 100;
/// However small the index, a search compares up to this many changed items exactly.
const TOLERATED_LAG_MIN: usize = 1_000;
/// Missing items that readers report; beyond that, `maintain` notices that the index is larger than the partition.
const MISSING_MAX: usize = 10_000;

/// The ANN indexes of a partition, by the path hash of their vector rows.
#[derive(Default)]
pub struct VectorIndexes {
    indexes: RwLock<HashMap<u64, Arc<MaintainedIndex>>>,
    /// The LSN at which there were too few vectors for an ANN index, or too little memory.
    not_built_lsn: Mutex<HashMap<u64, u64>>,
}

struct MaintainedIndex {
    ann_index: RwLock<AnnIndex>,
    function: DistanceFunction,
    /// It includes every change up to this LSN.
    lsn: AtomicU64,
    /// Its LSN at the end of the last maintenance pass.
    last_pass_lsn: AtomicU64,
    /// Items that a search found and that have no vector in its snapshot.
    missing: Mutex<Vec<u64>>,
}

impl MaintainedIndex {
    fn new(ann_index: AnnIndex, function: DistanceFunction, lsn: u64) -> MaintainedIndex {
        let (lsn, last_pass_lsn) = (AtomicU64::new(lsn), AtomicU64::new(0));
        MaintainedIndex { ann_index: RwLock::new(ann_index), function, lsn, last_pass_lsn, missing: Mutex::default() }
    }
}

impl VectorIndexes {
    fn get(&self, rule: &VectorRule) -> Option<Arc<MaintainedIndex>> {
        self.indexes.read().get(&rule.id).filter(|index| index.function == rule.function).cloned()
    }

    pub fn bytes(&self) -> usize {
        self.indexes.read().values().map(|index| index.ann_index.read().bytes()).sum()
    }
}

/// The configuration of the ANN index; `None` for an index type that searches exactly.
fn ann_config(rule: &VectorRule) -> Option<AnnConfig> {
    let list = usize::try_from(rule.search_list_size.unwrap_or(SEARCH_LIST_DEFAULT)).unwrap_or(usize::MAX);
    let list = match rule.index {
        VectorIndexType::Flat => return None,
        VectorIndexType::QuantizedFlat => None,
        VectorIndexType::DiskAnn => Some(list),
    };
    Some(AnnConfig { dimensions: rule.kind.dimensions, function: rule.function, search_list_size: list })
}

impl Partition {
    /// Whether a search need not compare every vector: there is an ANN index, and it does not lag far.
    pub fn has_ann_index(&self, rule: &VectorRule) -> bool {
        self.vector_indexes.get(rule).is_some_and(|index| {
            let lag = self.lsn().saturating_sub(index.lsn.load(Ordering::Acquire));
            usize::try_from(lag).unwrap_or(usize::MAX) <= tolerated_lag(index.ann_index.read().len())
        })
    }

    pub fn ann_index_bytes(&self) -> usize {
        self.vector_indexes.bytes()
    }

    /// Approximately the nearest `list` items with their distances, unordered; `None` if an exact search is needed.
    pub async fn ann_search(
        &self,
        view: &PartitionSnapshot,
        query: VectorQuery<'_>,
        list: usize,
    ) -> Result<Option<Vec<Neighbor>>> {
        let Some(index) = self.vector_indexes.get(query.rule).filter(|index| index.function == query.function) else {
            return Ok(None);
        };
        // Read before the search: an item that is indexed in between is then compared twice, and not missed.
        let lsn = index.lsn.load(Ordering::Acquire);
        let (found, len) = {
            let ann_index = index.ann_index.read();
            if list.saturating_mul(2) > ann_index.len() {
                return Ok(None);
            }
            (ann_index.search(query.vector, list), ann_index.len())
        };
        let Some(mut docnums) = view.changed_after(lsn, tolerated_lag(len)).await? else { return Ok(None) };
        let changed: HashSet<u64> = docnums.iter().copied().collect();
        docnums.extend(found.iter().filter(|docnum| !changed.contains(docnum)));
        let neighbors = view.distances_of(query, &docnums).await?;
        if neighbors.len() < docnums.len() {
            index.report_missing(&found, &neighbors);
        }
        Ok(Some(neighbors))
    }
}

impl MaintainedIndex {
    /// `maintain` finds out whether they are deleted: the snapshot may be older than the items.
    fn report_missing(&self, found: &[u64], neighbors: &[Neighbor]) {
        let present: HashSet<u64> = neighbors.iter().map(|neighbor| neighbor.docnum).collect();
        let mut missing = self.missing.lock();
        if missing.len() < MISSING_MAX {
            missing.extend(found.iter().filter(|docnum| !present.contains(docnum)));
        }
    }
}

/// The number of changed items that a search compares exactly; an index that lags further is not used.
fn tolerated_lag(len: usize) -> usize {
    TOLERATED_LAG_MIN.max(len / 16)
}

#[cfg(test)]
mod tests;
