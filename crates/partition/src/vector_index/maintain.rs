//! Background maintenance of ANN indexes: builds them, and applies the changes of the feed.
//!
//! One thread maintains all indexes; readers wait for it no longer than it takes to insert a few vectors. A new index
//! is published when it is complete.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLock;
use pleiad_model::Result;
use pleiad_storage::{Blocking, Limit};
use pleiad_vector::{AnnIndex, element};

use super::{INDEXED_VECTORS_MIN, MaintainedIndex, ann_config};
use crate::change_feed::ChangeRow;
use crate::index::VectorRule;
use crate::partition::{MaintenanceError, Partition};
use crate::schema::Schema;
use crate::snapshot::PartitionSnapshot;

/// Changes read at a time, and vectors inserted before the lock is released for readers.
const FEED_CHUNK: usize = 512;
const PUT_CHUNK: usize = 8;
/// Vectors inserted between two cancellation checks, while a graph is built.
const BUILD_CHUNK: usize = 64;
/// A graph is saved when this many neighbor lists changed and a quarter of all, or when there are no new writes.
const SAVE_CHANGED_MIN: usize = 1_000;
/// The feed rows of one transaction can be more than `FEED_CHUNK`.
const TRANSACTION_ROWS_MAX: usize = 1 << 20;
/// Memory per vector in addition to its quantized elements.
const VECTOR_OVERHEAD_BYTES: usize = 256;

/// Cancellation check: returns false when the work should stop.
pub type ShouldContinue<'g> = &'g mut (dyn FnMut() -> bool + Send);

impl Partition {
    /// One maintenance pass over the indexes of the schema. Returns true if there is more to do immediately. Builds no
    /// index that takes more than `budget_bytes`. For a blocking thread.
    pub async fn maintain_vector_indexes(
        &self,
        schema: &Schema,
        budget_bytes: usize,
        should_continue: ShouldContinue<'_>,
    ) -> Result<bool, MaintenanceError> {
        let rules: Vec<&VectorRule> =
            schema.usable_index().vectors().filter(|rule| ann_config(rule).is_some()).collect();
        self.drop_unlisted(schema, &rules).await?;
        let mut more = false;
        for rule in rules {
            match self.vector_indexes.get(rule) {
                Some(index) => more |= self.catch_up_index(schema, rule, &index).await?,
                None => self.load_or_build(rule, budget_bytes, should_continue).await?,
            }
        }
        Ok(more)
    }

    async fn drop_unlisted(&self, schema: &Schema, rules: &[&VectorRule]) -> Result<(), MaintenanceError> {
        let is_listed = |id: &u64| rules.iter().any(|rule| rule.id == *id);
        let unlisted: Vec<u64> =
            self.vector_indexes.indexes.read().keys().filter(|id| !is_listed(id)).copied().collect();
        for id in unlisted {
            self.vector_indexes.indexes.write().remove(&id);
            self.delete_graph(schema, id).await?;
        }
        Ok(())
    }

    // Creation.

    async fn load_or_build(
        &self,
        rule: &VectorRule,
        budget_bytes: usize,
        should_continue: ShouldContinue<'_>,
    ) -> Result<()> {
        let Some(config) = ann_config(rule) else { return Ok(()) };
        if self.vector_indexes.not_built_lsn.lock().get(&rule.id) == Some(&self.lsn()) {
            return Ok(());
        }
        let view = self.snapshot(Blocking::Suspend).await?;
        let items = usize::try_from(view.items()).unwrap_or(usize::MAX);
        let fits = items.saturating_mul(config.dimensions + VECTOR_OVERHEAD_BYTES) <= budget_bytes;
        if view.items() < INDEXED_VECTORS_MIN || !fits {
            self.vector_indexes.not_built_lsn.lock().insert(rule.id, view.lsn());
            return Ok(());
        }
        let mut ann_index = AnnIndex::new(config);
        let is_complete = match self.saved_lsn(rule).await? {
            _ if config.search_list_size.is_none() => load_vectors(&view, rule, &mut ann_index).await?,
            Some(lsn) if lsn <= view.lsn() => {
                self.load_graph(&view, rule, &mut ann_index, lsn, should_continue).await?
            }
            _ => self.build_index(&view, rule, &mut ann_index, should_continue).await?,
        };
        if is_complete && ann_index.len() as u64 >= INDEXED_VECTORS_MIN {
            let index = MaintainedIndex::new(ann_index, rule.function, view.lsn());
            self.vector_indexes.indexes.write().insert(rule.id, Arc::new(index));
        } else if is_complete {
            self.vector_indexes.not_built_lsn.lock().insert(rule.id, view.lsn());
        }
        Ok(())
    }

    /// Inserts every vector, one after the other.
    async fn build_index(
        &self,
        view: &PartitionSnapshot,
        rule: &VectorRule,
        ann_index: &mut AnnIndex,
        should_continue: ShouldContinue<'_>,
    ) -> Result<bool> {
        let mut vector = Vec::new();
        let stopped = view
            .visit_vectors(rule.id, &mut |docnum, bytes| {
                if decode(rule, bytes, &mut vector) {
                    ann_index.put(docnum, &vector);
                }
                !ann_index.len().is_multiple_of(BUILD_CHUNK) || (should_continue() && !self.rejects_writes())
            })
            .await?;
        Ok(!stopped)
    }

    /// Loads the graph from its rows. Items that changed after these were written, and items without links, are linked
    /// again.
    async fn load_graph(
        &self,
        view: &PartitionSnapshot,
        rule: &VectorRule,
        ann_index: &mut AnnIndex,
        lsn: u64,
        should_continue: ShouldContinue<'_>,
    ) -> Result<bool> {
        load_vectors(view, rule, ann_index).await?;
        self.load_links(rule, ann_index).await?;
        let (changed, _) = view.feed_rows((lsn + 1, 0, 0), Limit::NONE).await?;
        let mut to_link: Vec<u64> = changed.into_iter().map(|row| row.docnum).chain(ann_index.unlinked()).collect();
        to_link.sort_unstable();
        to_link.dedup();
        for chunk in to_link.chunks(BUILD_CHUNK) {
            if !should_continue() || self.rejects_writes() {
                return Ok(false);
            }
            chunk.iter().for_each(|docnum| ann_index.reinsert(*docnum));
        }
        Ok(true)
    }

    // Maintenance.

    async fn catch_up_index(
        &self,
        schema: &Schema,
        rule: &VectorRule,
        index: &MaintainedIndex,
    ) -> Result<bool, MaintenanceError> {
        let view = self.snapshot(Blocking::Suspend).await?;
        let more = self.apply_feed(&view, rule, index).await?;
        if !more {
            remove_missing(&view, rule, index).await?;
        }
        if index.ann_index.read().needs_rebuild() {
            let rebuilt = index.ann_index.read().rebuilt();
            *index.ann_index.write() = rebuilt;
        }
        let lsn = index.lsn.load(Ordering::Acquire);
        let is_idle = index.last_pass_lsn.swap(lsn, Ordering::Relaxed) == lsn && !more;
        let (changed, len) = {
            let ann_index = index.ann_index.read();
            (ann_index.changed_count(), ann_index.len())
        };
        if changed > 0 && (is_idle || changed >= SAVE_CHANGED_MIN.max(len / 4)) {
            let changed = index.ann_index.write().take_changed();
            self.save_graph(schema, rule, changed, lsn).await?;
        }
        Ok(more)
    }

    async fn apply_feed(&self, view: &PartitionSnapshot, rule: &VectorRule, index: &MaintainedIndex) -> Result<bool> {
        let lsn = index.lsn.load(Ordering::Acquire);
        if view.lsn() <= lsn {
            return Ok(false);
        }
        let (rows, more) = whole_transactions(view, lsn + 1).await?;
        let last = if more { rows.last().map_or(lsn, |row| row.lsn) } else { view.lsn() };
        let docnums: Vec<u64> = rows.into_iter().map(|row| row.docnum).collect();
        apply(&index.ann_index, read_vectors(view, rule, &docnums).await?);
        index.lsn.store(last, Ordering::Release);
        Ok(more)
    }
}

/// The next changes in whole transactions, and whether there are more.
async fn whole_transactions(view: &PartitionSnapshot, from_lsn: u64) -> Result<(Vec<ChangeRow>, bool)> {
    let (mut rows, more) = view.feed_rows((from_lsn, 0, 0), Limit::rows(FEED_CHUNK)).await?;
    let Some(last) = rows.last().map(|row| row.lsn).filter(|_| more) else { return Ok((rows, more)) };
    if rows.first().is_some_and(|first| first.lsn < last) {
        rows.retain(|row| row.lsn < last);
        return Ok((rows, true));
    }
    let (mut rows, _) = view.feed_rows((from_lsn, 0, 0), Limit::rows(TRANSACTION_ROWS_MAX)).await?;
    rows.retain(|row| row.lsn == last);
    Ok((rows, true))
}

fn apply(ann_index: &RwLock<AnnIndex>, vectors: Vec<(u64, Option<Vec<f32>>)>) {
    for chunk in vectors.chunks(PUT_CHUNK) {
        let mut ann_index = ann_index.write();
        chunk.iter().for_each(|(docnum, vector)| put(&mut ann_index, *docnum, vector.as_deref()));
    }
}

fn put(ann_index: &mut AnnIndex, docnum: u64, vector: Option<&[f32]>) {
    match vector {
        Some(vector) => ann_index.put(docnum, vector),
        None => ann_index.remove(docnum),
    }
}

/// Removes deleted items from the index. A delete leaves no feed row: readers report such items as missing, and if
/// there are many, the index is larger than the number of items.
async fn remove_missing(view: &PartitionSnapshot, rule: &VectorRule, index: &MaintainedIndex) -> Result<()> {
    let mut missing = std::mem::take(&mut *index.missing.lock());
    let len = index.ann_index.read().len() as u64;
    if len > view.items() + view.items() / 8 {
        missing = index.ann_index.read().docnums().collect();
    }
    for chunk in missing.chunks(FEED_CHUNK) {
        let found = read_vectors(view, rule, chunk).await?;
        let deleted = found.into_iter().filter(|(_, vector)| vector.is_none()).collect();
        apply(&index.ann_index, deleted);
    }
    Ok(())
}

async fn load_vectors(view: &PartitionSnapshot, rule: &VectorRule, ann_index: &mut AnnIndex) -> Result<bool> {
    let mut vector = Vec::new();
    view.visit_vectors(rule.id, &mut |docnum, bytes| {
        if decode(rule, bytes, &mut vector) {
            ann_index.restore(docnum, &vector);
        }
        true
    })
    .await?;
    Ok(true)
}

/// The vectors of these items; `None` for an item without one.
async fn read_vectors(
    view: &PartitionSnapshot,
    rule: &VectorRule,
    docnums: &[u64],
) -> Result<Vec<(u64, Option<Vec<f32>>)>> {
    let mut found = Vec::with_capacity(docnums.len());
    let mut numbers = docnums.iter();
    view.visit_vectors_of(rule.id, docnums, &mut |bytes| {
        let mut vector = Vec::new();
        let is_vector = bytes.is_some_and(|bytes| decode(rule, bytes, &mut vector));
        found.extend(numbers.next().map(|docnum| (*docnum, is_vector.then_some(vector))));
        true
    })
    .await?;
    Ok(found)
}

fn decode(rule: &VectorRule, bytes: &[u8], vector: &mut Vec<f32>) -> bool {
    element::decode(bytes, rule.kind.data_type, rule.kind.dimensions, vector)
}
