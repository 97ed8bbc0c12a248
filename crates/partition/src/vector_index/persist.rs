//! Persisted ANN graph: one row per node with its neighbors.
//!
//! Invariant: rows are hints. A neighbor list may name deleted items, or be missing: the loader skips such items and
//! links nodes without a list again. So rows are written in batches of any size, and only the LSN must be written last.
//!
//! ```text
//! graph row of an item    docnum u64 │ docnum u64 │ …                 its neighbors
//! graph row of 0          LSN u64 │ function u8                       the lists match the vectors up to this LSN
//! ```

use pleiad_model::policy::DistanceFunction;
use pleiad_model::{Error, Result};
use pleiad_storage::{Batch, Blocking, Snapshot, Store, keyspace};
use pleiad_vector::{AnnIndex, NeighborChange};

use crate::index::VectorRule;
use crate::partition::{MaintenanceError, Partition};
use crate::schema::Schema;

/// The size of one batch: it bounds how long other writers wait.
const BATCH_BYTES: usize = 1 << 20;

fn function_code(function: DistanceFunction) -> u8 {
    match function {
        DistanceFunction::Cosine => 0,
        DistanceFunction::DotProduct => 1,
        DistanceFunction::Euclidean => 2,
    }
}

pub fn encode_neighbors(neighbors: &[u64]) -> Vec<u8> {
    neighbors.iter().flat_map(|docnum| docnum.to_be_bytes()).collect()
}

pub fn decode_neighbors(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|docnum| u64::from_be_bytes(*docnum))
}

pub fn encode_position(lsn: u64, function: DistanceFunction) -> Vec<u8> {
    [&lsn.to_be_bytes()[..], &[function_code(function)]].concat()
}

/// `None` if the graph was built for another distance function.
pub fn decode_position(bytes: &[u8], function: DistanceFunction) -> Result<Option<u64>> {
    let (lsn, rest) = bytes.split_first_chunk().ok_or_else(|| Error::corrupt("the place of a graph"))?;
    Ok((rest == [function_code(function)]).then(|| u64::from_be_bytes(*lsn)))
}

impl Partition {
    /// The LSN up to which the rows of a graph include the partition's changes.
    pub(super) async fn saved_lsn(&self, rule: &VectorRule) -> Result<Option<u64>> {
        let row = self.store.get(&keyspace::graph(self.range.shard, rule.id, 0)).await?;
        row.map_or(Ok(None), |row| decode_position(&row, rule.function))
    }

    /// Gives every node the neighbors in its row.
    pub(super) async fn load_links(&self, rule: &VectorRule, ann_index: &mut AnnIndex) -> Result<()> {
        let (from, to) = keyspace::graph_range(self.range.shard, rule.id);
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        snapshot
            .visit(&from, &to, &mut |row, bytes| {
                if let Ok((_, docnum @ 1..)) = keyspace::decode_graph(row) {
                    ann_index.restore_neighbors(docnum, decode_neighbors(bytes));
                }
                true
            })
            .await?;
        ann_index.finish_restore();
        Ok(())
    }

    pub(super) async fn save_graph(
        &self,
        schema: &Schema,
        rule: &VectorRule,
        changed: Vec<NeighborChange>,
        lsn: u64,
    ) -> Result<(), MaintenanceError> {
        let (shard, mut batch) = (self.range.shard, Batch::new());
        for (docnum, neighbors) in changed {
            let row = keyspace::graph(shard, rule.id, docnum);
            match neighbors {
                Some(neighbors) => batch.put(row, encode_neighbors(&neighbors)),
                None => batch.delete(row),
            }
            if batch.bytes() >= BATCH_BYTES {
                self.write_rows(schema, std::mem::take(&mut batch)).await?;
            }
        }
        batch.put(keyspace::graph(shard, rule.id, 0), encode_position(lsn, rule.function));
        self.write_rows(schema, batch).await
    }

    /// Deletes all rows of a graph that is no longer in the policy.
    pub(super) async fn delete_graph(&self, schema: &Schema, path: u64) -> Result<(), MaintenanceError> {
        let (from, to) = keyspace::graph_range(self.range.shard, path);
        let mut batch = Batch::new();
        batch.delete_range(from, to);
        self.write_rows(schema, batch).await
    }
}
