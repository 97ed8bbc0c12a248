//! Background maintenance of ANN indexes: builds them, and applies the changes of the feed.
//!
//! One thread maintains all indexes; readers wait for it no longer than it takes to insert a few vectors. A new index
//! is published when it is complete.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;
use pleiad_model::Result;
use pleiad_storage::Limit;
use pleiad_vector::{AnnIndex, element};

use super::{MaintainedIndex, SKETCHED_ITEMS_MIN, plan};
use crate::change_feed::ChangeRow;
use crate::index::VectorRule;
use crate::partition::Partition;
use crate::schema::Schema;
use crate::snapshot::PartitionSnapshot;

/// Changes read at a time, and vectors inserted before the lock is released for readers.
const FOLLOWED: usize = 512;
const PUT_AT_ONCE: usize = 8;
/// Vectors inserted between two cancellation checks, while a graph is built.
const BUILT_AT_ONCE: usize = 64;
/// A graph is saved when this many neighbour lists changed and a quarter of all, or when there are no new writes.
const CHANGED_MIN: usize = 1_000;
/// The feed rows of one transaction can be more than `FEED_CHUNK`.
const TRANSACTION_ROWS_MAX: usize = 1 << 20;
/// Memory per vector beside its quantized elements.
const SKETCHED_ITEM_BYTES: usize = 256;

/// Cancellation check: returns false when the work should stop.
pub type ShouldContinue<'g> = &'g mut (dyn FnMut() -> bool + Send);

impl Partition {
    /// One maintenance pass over the indexes of the schema. Returns true if there is more to do immediately. Builds no
    /// index that takes more than `budget_bytes`. For a blocking thread.
    pub async fn tend_sketches(&self, schema: &Schema, room_bytes: usize, goes_on: ShouldContinue<'_>) -> Result<bool> {
        let rules: Vec<&VectorRule> = schema.usable_index().vectors().filter(|rule| plan(rule).is_some()).collect();
        self.drop_others(schema, &rules).await?;
        let mut more = false;
        for rule in rules {
            match self.sketches.get(rule) {
                Some(held) => more |= self.follow(schema, rule, &held).await?,
                None => self.begin_sketch(rule, room_bytes, goes_on).await?,
            }
        }
        Ok(more)
    }

    async fn drop_others(&self, schema: &Schema, rules: &[&VectorRule]) -> Result<()> {
        let is_wanted = |id: &u64| rules.iter().any(|rule| rule.id == *id);
        let others: Vec<u64> = self.sketches.held.read().keys().filter(|id| !is_wanted(id)).copied().collect();
        for id in others {
            self.sketches.held.write().remove(&id);
            self.forget(schema, id).await?;
        }
        Ok(())
    }

    // Creation.

    async fn begin_sketch(&self, rule: &VectorRule, room_bytes: usize, goes_on: ShouldContinue<'_>) -> Result<()> {
        let Some(plan) = plan(rule) else { return Ok(()) };
        if self.sketches.few.lock().get(&rule.id) == Some(&self.lsn()) {
            return Ok(());
        }
        let view = self.view().await?;
        let items = usize::try_from(view.items()).unwrap_or(usize::MAX);
        let fits = items.saturating_mul(plan.dimensions + SKETCHED_ITEM_BYTES) <= room_bytes;
        if view.items() < SKETCHED_ITEMS_MIN || !fits {
            self.sketches.few.lock().insert(rule.id, view.lsn());
            return Ok(());
        }
        let mut sketch = AnnIndex::new(plan);
        let whole = match self.saved_lsn(rule).await? {
            _ if plan.search_list_size.is_none() => restore(&view, rule, &mut sketch).await?,
            Some(lsn) if lsn <= view.lsn() => self.come_back(&view, rule, &mut sketch, lsn, goes_on).await?,
            _ => self.build(&view, rule, &mut sketch, goes_on).await?,
        };
        if whole && sketch.len() as u64 >= SKETCHED_ITEMS_MIN {
            let held = MaintainedIndex::new(sketch, rule.function, view.lsn());
            self.sketches.held.write().insert(rule.id, Arc::new(held));
        } else if whole {
            self.sketches.few.lock().insert(rule.id, view.lsn());
        }
        Ok(())
    }

    /// Inserts every vector, one after the other.
    async fn build(
        &self,
        view: &PartitionSnapshot,
        rule: &VectorRule,
        sketch: &mut AnnIndex,
        goes_on: ShouldContinue<'_>,
    ) -> Result<bool> {
        let mut vector = Vec::new();
        let stopped = view
            .visit_vectors(rule.id, &mut |docnum, bytes| {
                if decode(rule, bytes, &mut vector) {
                    sketch.put(docnum, &vector);
                }
                !sketch.len().is_multiple_of(BUILT_AT_ONCE) || (goes_on() && !self.is_ending())
            })
            .await?;
        Ok(!stopped)
    }

    /// Loads the graph from its rows. Items that changed after these were written, and items without links, are linked
    /// again.
    async fn come_back(
        &self,
        view: &PartitionSnapshot,
        rule: &VectorRule,
        sketch: &mut AnnIndex,
        lsn: u64,
        goes_on: ShouldContinue<'_>,
    ) -> Result<bool> {
        restore(view, rule, sketch).await?;
        self.relink(rule, sketch).await?;
        let (changed, _) = view.feed_rows((lsn + 1, 0, 0), Limit::NONE).await?;
        let mut again: Vec<u64> = changed.into_iter().map(|row| row.docnum).chain(sketch.unlinked()).collect();
        again.sort_unstable();
        again.dedup();
        for some in again.chunks(BUILT_AT_ONCE) {
            if !goes_on() || self.is_ending() {
                return Ok(false);
            }
            some.iter().for_each(|docnum| sketch.reinsert(*docnum));
        }
        Ok(true)
    }

    // Maintenance.

    async fn follow(&self, schema: &Schema, rule: &VectorRule, held: &MaintainedIndex) -> Result<bool> {
        let view = self.view().await?;
        let more = self.follow_feed(&view, rule, held).await?;
        if !more {
            sweep(&view, rule, held).await?;
        }
        if held.sketch.read().needs_rebuild() {
            let renewed = held.sketch.read().rebuilt();
            *held.sketch.write() = renewed;
        }
        let lsn = held.lsn.load(Ordering::Acquire);
        let is_quiet = held.seen_lsn.swap(lsn, Ordering::Relaxed) == lsn && !more;
        let (changed, known) = {
            let sketch = held.sketch.read();
            (sketch.changed_count(), sketch.len())
        };
        if changed > 0 && (is_quiet || changed >= CHANGED_MIN.max(known / 4)) {
            let changed = held.sketch.write().take_changed();
            self.save(schema, rule, changed, lsn).await?;
        }
        Ok(more)
    }

    async fn follow_feed(&self, view: &PartitionSnapshot, rule: &VectorRule, held: &MaintainedIndex) -> Result<bool> {
        let lsn = held.lsn.load(Ordering::Acquire);
        if view.lsn() <= lsn {
            return Ok(false);
        }
        let (rows, more) = whole_transactions(view, lsn + 1).await?;
        let last = if more { rows.last().map_or(lsn, |row| row.lsn) } else { view.lsn() };
        let docnums: Vec<u64> = rows.into_iter().map(|row| row.docnum).collect();
        apply(&held.sketch, vectors(view, rule, &docnums).await?);
        held.lsn.store(last, Ordering::Release);
        Ok(more)
    }
}

/// The next changes in whole transactions, and whether there are more.
async fn whole_transactions(view: &PartitionSnapshot, from_lsn: u64) -> Result<(Vec<ChangeRow>, bool)> {
    let (mut rows, more) = view.feed_rows((from_lsn, 0, 0), Limit::rows(FOLLOWED)).await?;
    let Some(last) = rows.last().map(|row| row.lsn).filter(|_| more) else { return Ok((rows, more)) };
    if rows.first().is_some_and(|first| first.lsn < last) {
        rows.retain(|row| row.lsn < last);
        return Ok((rows, true));
    }
    let (mut rows, _) = view.feed_rows((from_lsn, 0, 0), Limit::rows(TRANSACTION_ROWS_MAX)).await?;
    rows.retain(|row| row.lsn == last);
    Ok((rows, true))
}

fn apply(sketch: &RwLock<AnnIndex>, vectors: Vec<(u64, Option<Vec<f32>>)>) {
    for some in vectors.chunks(PUT_AT_ONCE) {
        let mut sketch = sketch.write();
        some.iter().for_each(|(docnum, vector)| put(&mut sketch, *docnum, vector.as_deref()));
    }
}

fn put(sketch: &mut AnnIndex, docnum: u64, vector: Option<&[f32]>) {
    match vector {
        Some(vector) => sketch.put(docnum, vector),
        None => sketch.remove(docnum),
    }
}

/// Removes deleted items from the index. A delete leaves no feed row: readers report such items as missing, and if
/// there are many, the index is larger than the number of items.
async fn sweep(view: &PartitionSnapshot, rule: &VectorRule, held: &MaintainedIndex) -> Result<()> {
    let mut missing = std::mem::take(&mut *held.missing.lock());
    let known = held.sketch.read().len() as u64;
    if known > view.items() + view.items() / 8 {
        missing = held.sketch.read().docnums().collect();
    }
    for some in missing.chunks(FOLLOWED) {
        let found = vectors(view, rule, some).await?;
        let gone = found.into_iter().filter(|(_, vector)| vector.is_none()).collect();
        apply(&held.sketch, gone);
    }
    Ok(())
}

async fn restore(view: &PartitionSnapshot, rule: &VectorRule, sketch: &mut AnnIndex) -> Result<bool> {
    let mut vector = Vec::new();
    view.visit_vectors(rule.id, &mut |docnum, bytes| {
        if decode(rule, bytes, &mut vector) {
            sketch.restore(docnum, &vector);
        }
        true
    })
    .await?;
    Ok(true)
}

/// The vectors of these items; `None` for an item without one.
async fn vectors(view: &PartitionSnapshot, rule: &VectorRule, docnums: &[u64]) -> Result<Vec<(u64, Option<Vec<f32>>)>> {
    let mut found = Vec::with_capacity(docnums.len());
    let mut numbers = docnums.iter();
    view.visit_vectors_of(rule.id, docnums, &mut |bytes| {
        let mut vector = Vec::new();
        let is_one = bytes.is_some_and(|bytes| decode(rule, bytes, &mut vector));
        found.extend(numbers.next().map(|docnum| (*docnum, is_one.then_some(vector))));
        true
    })
    .await?;
    Ok(found)
}

fn decode(rule: &VectorRule, bytes: &[u8], vector: &mut Vec<f32>) -> bool {
    element::decode(bytes, rule.kind.data_type, rule.kind.dimensions, vector)
}
