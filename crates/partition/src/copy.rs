//! Items of one or more partitions, copied into other shards while everybody goes on working.
//!
//! Promise: when the fence is up and the last round is written, every child holds exactly the rows of the items whose effective key
//! is in its range: the same items, numbers, etags, LSNs and index rows. Whoever is stopped begins the step again, to the same
//! end. When to take which step, and what is published, is `engine`'s business.
//!
//! ```text
//! log on ── all that was queued is durable ── snapshot ──▶ rows, keyspace by keyspace, ingested     copy
//! log ──▶ numbers of items that changed ──▶ child's rows of each brought to the parent's            catch up, again and again
//! fence ── all that was queued is durable ── one more round                                         the last one
//! ```
//!
//! A split has one parent and several children, a merge several parents and one child. What is copied for another container has one of
//! each, and no log: it stays as it was at its snapshot.

mod catch_up; // what changed since, item by item
mod docnum_bitmap; // sets of item numbers
mod stream; // rows of parents, in order, into children

use std::sync::Arc;

use pleiad_model::{Error, Result};
use pleiad_storage::{AnySnapshot, AnyStore, Batch, Snapshot, Store, keyspace};

use crate::commit::Committer;
use crate::partition::Partition;
use crate::schema::Schema;
use crate::shard_state::{RetentionWatermark, ShardState};
use pleiad_model::partition_map::PartitionKeyRange;

pub use catch_up::CatchUpRound;

pub struct Copy {
    /// Whose log the parents keep.
    job: u64,
    parents: Vec<Arc<Partition>>,
    /// In the order of the hash space.
    children: Vec<PartitionKeyRange>,
    /// Its index is settled, and nobody writes under another while this goes on.
    schema: Arc<Schema>,
    store: Arc<AnyStore>,
    committer: Committer,
    /// What each child holds by now.
    states: Vec<ShardState>,
    /// Up to where each parent's log was followed.
    seen_lsn: Vec<u64>,
    figures: CopyFigures,
}

/// Of a row besides what it tells of its item, about.
const ROW_BYTES: u64 = 48;

/// How far a copy has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFigures {
    pub items_total: u64,
    pub item_bytes_total: u64,
    pub items: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Index rows of the items seen so far: how many rows there will be is guessed from them.
    terms: u64,
    /// Changes that were followed since.
    pub changes: u64,
}

impl CopyFigures {
    /// Nothing is copied yet.
    pub fn of(parents: &[Arc<Partition>]) -> CopyFigures {
        let usage = || parents.iter().map(|parent| parent.usage());
        CopyFigures {
            items_total: usage().map(|usage| usage.items).sum(),
            item_bytes_total: usage().map(|usage| usage.item_bytes).sum(),
            ..CopyFigures::default()
        }
    }

    /// Of the copy, in bytes: they are what takes time, and items come first, with most of them. Never 100: then it is over.
    pub fn percent(&self) -> u64 {
        // An item has a row in each of doc, feed, id and member. What is in the item is partly in the index again.
        let terms = self.terms.checked_div(self.items).unwrap_or(4);
        let rows = self.items_total.saturating_mul(4 + terms);
        let again = if terms > 0 { self.item_bytes_total / 2 } else { 0 };
        let total = rows.saturating_mul(ROW_BYTES).saturating_add(self.item_bytes_total.saturating_add(again));
        (self.bytes.saturating_mul(100) / total.max(1)).min(99)
    }
}

/// Of several copies, one after the other.
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

/// Told how far it has come after every chunk: may make it wait, and ends it by failing.
pub type OnCopyProgress<'w> = &'w mut (dyn FnMut(&CopyFigures) -> Result<()> + Send);

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

    /// Copies everything as it is now. Gives what is to be written with the news that it is done.
    pub async fn run(&mut self, watch: OnCopyProgress<'_>) -> Result<Batch> {
        self.clear().await?;
        self.parents.iter().try_for_each(|parent| parent.begin_log(self.job))?;
        self.committer.commit(Batch::default()).await?;
        let snapshot = self.store.snapshot().await?;
        self.stream(&snapshot, watch).await?;
        Ok(self.states_batch())
    }

    /// Copies one partition as it was into a shard that nobody has used, its place in history included: the child begins with
    /// exactly what the parent had.
    pub async fn duplicate(&mut self, snapshot: &AnySnapshot, watch: OnCopyProgress<'_>) -> Result<()> {
        self.stream(snapshot, watch).await?;
        let mut batch = Batch::new();
        for (parent, child) in self.parents.iter().zip(&self.children) {
            let row = snapshot.get_many(&[keyspace::state(parent.range.shard)]).await?.pop().flatten();
            row.into_iter().for_each(|row| batch.put(keyspace::state(child.shard), row));
        }
        self.store.ingest(&batch).await
    }

    /// Goes on behind a copy that was finished before a restart.
    pub async fn resume(&mut self) -> Result<()> {
        for (child, state) in self.children.iter().zip(&mut self.states) {
            let row = self.store.get(&keyspace::state(child.shard)).await?;
            *state = ShardState::decode(&row.ok_or_else(|| Error::corrupt("a copied shard without its state"))?)?;
        }
        Ok(())
    }

    /// Nothing is left of the children; their range can be used again.
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

    /// What the children begin with: their items, and the parents' place in history. The first write of a merged one is
    /// later than anything its parents wrote.
    pub fn first_states(&self) -> Vec<ShardState> {
        let parents: Vec<ShardState> = self.parents.iter().map(|parent| parent.usage()).collect();
        let newest = parents.iter().map(|parent| parent.lsn).max().unwrap_or(0);
        let lsn = if parents.len() > 1 { newest + 1 } else { newest };
        let merged_lsn = match parents.as_slice() {
            [parent] => parent.merged_lsn,
            _ => newest,
        };
        let versions_from = self.versions_from(&parents);
        let first = |(child, state): (&PartitionKeyRange, &ShardState)| {
            let versions_from = versions_from.as_ref().map(|kept| kept.within(&child.keys));
            ShardState { lsn, versions_from, merged_lsn, ..state.clone() }
        };
        self.children.iter().zip(&self.states).map(first).collect()
    }

    /// Nothing is missing that a parent had. A merge counts on behind all of its parents' LSNs, so that one that has left no version
    /// yet, and has them all, says so now.
    fn versions_from(&self, parents: &[ShardState]) -> Option<RetentionWatermark> {
        if let [parent] = parents {
            return parent.versions_from.clone();
        }
        let are_kept = self.schema.keeps_versions || parents.iter().any(|parent| parent.versions_from.is_some());
        let kept = |parent: &ShardState| parent.versions_from.clone().unwrap_or(RetentionWatermark::at(parent.lsn));
        let keys = self.parents.iter().map(|parent| &parent.range.keys);
        are_kept.then(|| RetentionWatermark::merged(keys.zip(parents.iter().map(kept))))
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
