//! Online copy: copies the items of one or more partitions into other shards while reads and writes continue.
//!
//! Invariant: when the fence is up and the last round is written, every child holds exactly the rows of the items whose
//! effective key is in its range: the same items, docnums, etags, LSNs and index rows. Every step is restartable: after
//! an interruption it runs again with the same result. `engine` decides when to take which step, and what is published.
//!
//! ```text
//! log on ── all that was queued is durable ── snapshot ──▶ rows, keyspace by keyspace, ingested   copy
//! log ──▶ docnums of changed items ──▶ child's rows of each made equal to the parent's            catch up, repeatedly
//! fence ── all that was queued is durable ── one more round                                       last round
//! ```
//!
//! A split has one parent and several children, a merge several parents and one child. A copy for another container has
//! one of each and no log: it is the parent as of the snapshot.

mod catch_up; // applies logged changes to the children, item by item
mod docnum_bitmap; // sets of docnums
mod stream; // bulk copy of rows, in key order

use std::sync::Arc;

use pleiad_model::{Error, Result};
use pleiad_storage::{AnySnapshot, AnyStore, Batch, Blocking, Snapshot, Store, keyspace};

use crate::commit::Committer;
use crate::partition::Partition;
use crate::schema::Schema;
use crate::shard_state::{RetentionWatermark, ShardState};
use pleiad_model::partition_map::PartitionKeyRange;

pub use catch_up::CatchUpRound;

pub struct Copy {
    /// The job for which the parents write their change log.
    job: u64,
    parents: Vec<Arc<Partition>>,
    /// In the order of the hash space.
    children: Vec<PartitionKeyRange>,
    /// Its index transformation is finished, and no write uses another schema during the copy.
    schema: Arc<Schema>,
    store: Arc<AnyStore>,
    committer: Committer,
    /// The state of each child so far.
    states: Vec<ShardState>,
    /// The LSN up to which each parent's log has been applied.
    seen_lsn: Vec<u64>,
    figures: CopyFigures,
}

/// Approximate bytes of a row besides the contents of its item.
const ROW_BYTES: u64 = 48;

/// Progress of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFigures {
    pub items_total: u64,
    pub item_bytes_total: u64,
    pub items: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Index rows of the items copied so far: the total number of rows is estimated from them.
    terms: u64,
    /// Logged changes applied since.
    pub changes: u64,
}

impl CopyFigures {
    /// The figures before anything is copied.
    pub fn of(parents: &[Arc<Partition>]) -> CopyFigures {
        let usage = || parents.iter().map(|parent| parent.shard_state());
        CopyFigures {
            items_total: usage().map(|usage| usage.items).sum(),
            item_bytes_total: usage().map(|usage| usage.item_bytes).sum(),
            ..CopyFigures::default()
        }
    }

    /// Percentage of the estimated bytes: bytes take the time, and item rows, which have most of them, come first. At
    /// most 99: only a finished copy is at 100.
    pub fn percent(&self) -> u64 {
        // An item has a row in each of doc, feed, id and member. Part of its contents is in the index again.
        let terms = self.terms.checked_div(self.items).unwrap_or(4);
        let rows = self.items_total.saturating_mul(4 + terms);
        let index_bytes = if terms > 0 { self.item_bytes_total / 2 } else { 0 };
        let total = rows.saturating_mul(ROW_BYTES).saturating_add(self.item_bytes_total.saturating_add(index_bytes));
        (self.bytes.saturating_mul(100) / total.max(1)).min(99)
    }
}

/// Sums up several copies that run one after the other.
impl std::ops::AddAssign for CopyFigures {
    fn add_assign(&mut self, other: CopyFigures) {
        self.items_total += other.items_total;
        self.item_bytes_total += other.item_bytes_total;
        self.items += other.items;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.terms += other.terms;
        self.changes += other.changes;
    }
}

/// `on_progress` is called with the progress after every chunk; it may delay the copy, and an error aborts it.
impl Copy {
    pub fn new(
        job: u64,
        parents: Vec<Arc<Partition>>,
        children: Vec<PartitionKeyRange>,
        schema: Arc<Schema>,
        store: Arc<AnyStore>,
        committer: Committer,
    ) -> Copy {
        let figures = CopyFigures::of(&parents);
        let (states, seen_lsn) = (vec![ShardState::default(); children.len()], vec![0; parents.len()]);
        Copy { job, parents, children, schema, store, committer, states, seen_lsn, figures }
    }

    /// Copies the parents' current state. Returns the batch to be committed together with the job's progress.
    pub async fn run<E: From<Error>>(
        &mut self,
        on_progress: &mut impl AsyncFnMut(&CopyFigures) -> Result<(), E>,
    ) -> Result<Batch, E> {
        self.clear().await?;
        self.parents.iter().try_for_each(|parent| parent.begin_log(self.job))?;
        self.committer.commit(Batch::default()).await?;
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        self.stream(&snapshot, on_progress).await?;
        Ok(self.states_batch())
    }

    /// Copies one partition as of a snapshot into an unused shard, LSN included: the child begins with exactly the
    /// parent's state.
    pub async fn duplicate<E: From<Error>>(
        &mut self,
        snapshot: &AnySnapshot,
        on_progress: &mut impl AsyncFnMut(&CopyFigures) -> Result<(), E>,
    ) -> Result<(), E> {
        self.stream(snapshot, on_progress).await?;
        let mut batch = Batch::new();
        for (parent, child) in self.parents.iter().zip(&self.children) {
            let row = snapshot.get_many(&[keyspace::state(parent.range.shard)]).await?.pop().flatten();
            row.into_iter().for_each(|row| batch.put(keyspace::state(child.shard), row));
        }
        Ok(self.store.ingest(&batch).await?)
    }

    /// Continues after a restart with a copy that had been finished before.
    pub async fn resume(&mut self) -> Result<()> {
        for (child, state) in self.children.iter().zip(&mut self.states) {
            let row = self.store.get(&keyspace::state(child.shard)).await?;
            *state = ShardState::decode(&row.ok_or_else(|| Error::corrupt("a copied shard without its state"))?)?;
        }
        Ok(())
    }

    /// Drops all rows of the children; their shards can be used again.
    pub async fn clear(&mut self) -> Result<()> {
        for child in &self.children {
            let (from, to) = keyspace::shard_range(child.shard);
            self.store.drop_range(&from, &to).await?;
        }
        self.states.fill(ShardState::default());
        self.seen_lsn.fill(0);
        self.figures = CopyFigures::of(&self.parents);
        Ok(())
    }

    /// The states with which the children begin: their items, and the parents' LSN. The first write of a merged
    /// partition has a larger LSN than every write of its parents.
    pub fn initial_states(&self) -> Vec<ShardState> {
        let parents: Vec<ShardState> = self.parents.iter().map(|parent| parent.shard_state()).collect();
        let newest = parents.iter().map(|parent| parent.lsn).max().unwrap_or(0);
        let lsn = if parents.len() > 1 { newest + 1 } else { newest };
        let merged_lsn = match parents.as_slice() {
            [parent] => parent.merged_lsn,
            _ => newest,
        };
        let versions_from = self.versions_from(&parents);
        let first = |(child, state): (&PartitionKeyRange, &ShardState)| {
            let versions_from = versions_from.as_ref().map(|watermark| watermark.within(&child.keys));
            ShardState { lsn, versions_from, merged_lsn, ..state.clone() }
        };
        self.children.iter().zip(&self.states).map(first).collect()
    }

    /// The retention watermarks of the children: they retain every version that a parent had. A merged partition
    /// continues after the largest LSN of its parents, so a parent without a watermark, which has left no version yet
    /// and misses none, gets one at its own LSN now.
    fn versions_from(&self, parents: &[ShardState]) -> Option<RetentionWatermark> {
        if let [parent] = parents {
            return parent.versions_from.clone();
        }
        let has_versions = self.schema.retains_versions || parents.iter().any(|parent| parent.versions_from.is_some());
        let watermark =
            |parent: &ShardState| parent.versions_from.clone().unwrap_or(RetentionWatermark::at(parent.lsn));
        let keys = self.parents.iter().map(|parent| &parent.range.keys);
        has_versions.then(|| RetentionWatermark::merged(keys.zip(parents.iter().map(watermark))))
    }

    pub fn figures(&self) -> CopyFigures {
        self.figures
    }

    fn states_batch(&self) -> Batch {
        let mut batch = Batch::new();
        for (child, state) in self.children.iter().zip(&self.states) {
            batch.put(keyspace::state(child.shard), state.encode());
        }
        batch
    }

    /// The child that owns an effective key.
    fn child_of(&self, epk: &[u8]) -> usize {
        self.children.partition_point(|child| child.keys.min.as_bytes() <= epk).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests;
