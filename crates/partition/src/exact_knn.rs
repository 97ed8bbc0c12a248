//! Exact k-nearest-neighbor search: the distances of stored vectors to a query vector.
//!
//! Guarantees: distances are computed from the vectors of the snapshot, so no deleted item and no old vector is
//! returned. The caller sorts, filters and selects the nearest.

use pleiad_model::Result;
use pleiad_model::policy::DistanceFunction;
use pleiad_vector::{Neighbor, distance, element};

use crate::index::VectorRule;
use crate::snapshot::PartitionSnapshot;

/// A search for the vectors near another.
#[derive(Clone, Copy)]
pub struct VectorQuery<'w> {
    pub rule: &'w VectorRule,
    /// The query's distance function, which may differ from the index's.
    pub function: DistanceFunction,
    pub vector: &'w [f32],
}

/// With more vectors the caller scans the items, which needs no list in memory.
const NEIGHBORS_MAX: usize = 4 << 20;

impl PartitionSnapshot {
    /// The distances of all vectors; `None` if there are too many to hold in memory. For `Blocking::Thread` and `Inline`.
    pub async fn distances_of_all(&self, query: VectorQuery<'_>) -> Result<Option<Vec<Neighbor>>> {
        let (mut neighbors, mut vector) = (Vec::new(), Vec::with_capacity(query.rule.kind.dimensions));
        let too_many = self
            .visit_vectors(query.rule.id, &mut |docnum, bytes| {
                neighbors.extend(query.neighbor(docnum, bytes, &mut vector));
                neighbors.len() <= NEIGHBORS_MAX
            })
            .await?;
        Ok((!too_many).then_some(neighbors))
    }

    /// The distances of those of these items that have a vector.
    pub async fn distances_of(&self, query: VectorQuery<'_>, docnums: &[u64]) -> Result<Vec<Neighbor>> {
        let (mut neighbors, mut vector) = (Vec::with_capacity(docnums.len()), Vec::new());
        let mut numbers = docnums.iter();
        self.visit_vectors_of(query.rule.id, docnums, &mut |bytes| {
            if let (Some(docnum), Some(bytes)) = (numbers.next(), bytes) {
                neighbors.extend(query.neighbor(*docnum, bytes, &mut vector));
            }
            true
        })
        .await?;
        Ok(neighbors)
    }
}

impl VectorQuery<'_> {
    fn neighbor(&self, docnum: u64, bytes: &[u8], vector: &mut Vec<f32>) -> Option<Neighbor> {
        let kind = self.rule.kind;
        let distance = element::decode(bytes, kind.data_type, kind.dimensions, vector)
            .then(|| distance::distance(self.function, vector, self.vector))
            .flatten()?;
        Some(Neighbor { distance, docnum })
    }
}
