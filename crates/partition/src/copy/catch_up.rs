//! Catch-up: applies the changes of the parents since the bulk copy to the children.
//!
//! The log names the items that changed, not how: each item is read in the parents' newest snapshot and in its child,
//! and the child's rows are made equal to the parent's. This is idempotent, so a round that a crash interrupted is
//! repeated. Within a round all rows of old versions are removed before any row of a new one is added: an id may have
//! moved from one item to another. Key tombstones, of which there are few, are compared in every round.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use pleiad_model::{Error, Result};
use pleiad_storage::keyspace::{self, Tag};
use pleiad_storage::{AnySnapshot, Batch, Blocking, Direction, Limit, Snapshot, Store};

use super::docnum_bitmap::DocnumBitmap;
use super::stream::lsn_in;
use super::{Copy, CopyFigures};
use crate::check::CheckedItem;
use crate::row_changes::RowChanges;
use crate::version_row::epk_of;

const LOG_CHUNK: Limit = Limit::rows(4096);
const VERSIONS_CHUNK: Limit = Limit { rows: 4096, bytes: 1 << 20 };
/// Items compared together: at most 128 MB with the largest items.
const ITEMS_PER_CHUNK: usize = 32;
/// Commits stay small, so that writers of other partitions do not wait long for them.
const BATCH_BYTES: usize = 1 << 20;

/// One round, committed except for its last batch.
pub struct CatchUpRound {
    /// Number of logged changes applied.
    pub changes: u64,
    /// The rows still to be committed.
    pub batch: Batch,
}

/// The changed items of one parent that belong to one child.
struct Touched {
    parent_shard: u64,
    child: usize,
    docnums: DocnumBitmap,
}

/// The old (child) and new (parent) version of one item.
struct ItemDelta {
    old: Option<CheckedItem>,
    new: Option<CheckedItem>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CatchUpPass {
    /// Removes old versions, and copies the key statistics.
    Remove,
    /// Adds new versions.
    Insert,
}

impl Copy {
    /// Applies the parents' changes up to now. The caller commits the round's batch before the next round.
    pub async fn catch_up<E: From<Error>>(
        &mut self,
        on_progress: &mut impl AsyncFnMut(&CopyFigures) -> Result<(), E>,
    ) -> Result<CatchUpRound, E> {
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        let mut round = CatchUpRound { changes: 0, batch: Batch::new() };
        self.copy_versions(&snapshot, &mut round.batch).await?;
        self.copy_key_tombstones(&snapshot, &mut round.batch).await?;
        for touched in self.touched(&snapshot, &mut round.changes).await? {
            for pass in [CatchUpPass::Remove, CatchUpPass::Insert] {
                self.pass(&snapshot, &touched, pass, &mut round.batch, on_progress).await?;
            }
        }
        if !round.batch.is_empty() {
            round.batch.append(&mut self.states_batch());
        }
        self.figures.changes += round.changes;
        on_progress(&self.figures).await?;
        Ok(round)
    }

    /// Version rows never change: the new ones are copied as they are.
    async fn copy_versions(&self, snapshot: &AnySnapshot, batch: &mut Batch) -> Result<()> {
        for (parent, seen) in self.parents.iter().zip(&self.seen_lsn) {
            let (mut from, to) = keyspace::versions_from(parent.range.shard, seen + 1);
            loop {
                let chunk = snapshot.scan(&from, &to, Direction::Forward, VERSIONS_CHUNK).await?;
                for (row, value) in &chunk.pairs {
                    let Some(child) = self.children.get(self.child_of(epk_of(value)?)) else { continue };
                    batch.put(keyspace::with_shard(row, child.shard), value);
                }
                if batch.bytes() >= BATCH_BYTES {
                    self.committer.commit(std::mem::take(batch)).await?;
                }
                match chunk.pairs.last() {
                    Some((last, _)) if chunk.more => from = keyspace::after(last),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Makes the tombstones of the children equal to the parents'. The items keep their LSNs, so that a tombstone covers
    /// the same items in a child.
    async fn copy_key_tombstones(&self, snapshot: &AnySnapshot, batch: &mut Batch) -> Result<()> {
        let mut wanted = vec![BTreeMap::new(); self.children.len()];
        for parent in &self.parents {
            for (row, lsn) in tombstone_rows(snapshot, parent.range.shard).await? {
                let at = self.child_of(&keyspace::decode_key_tombstone(&row)?);
                let (Some(child), Some(rows)) = (self.children.get(at), wanted.get_mut(at)) else { continue };
                rows.insert(Bytes::from(keyspace::with_shard(&row, child.shard)), lsn);
            }
        }
        let newest = self.store.snapshot(Blocking::Suspend).await?;
        for (child, wanted) in self.children.iter().zip(wanted) {
            let mut present = tombstone_rows(&newest, child.shard).await?;
            for (row, lsn) in wanted {
                if present.remove(&row).is_none_or(|present| present != lsn) {
                    batch.put(row, lsn);
                }
            }
            present.into_keys().for_each(|purged| batch.delete(purged));
        }
        Ok(())
    }

    async fn touched(&mut self, snapshot: &AnySnapshot, changes: &mut u64) -> Result<Vec<Touched>> {
        let mut touched: BTreeMap<(u64, usize), DocnumBitmap> = BTreeMap::new();
        for at in 0..self.parents.len() {
            let (Some(parent), Some(seen)) = (self.parents.get(at), self.seen_lsn.get(at)) else { continue };
            let shard = parent.range.shard;
            let (mut from, to) = keyspace::log_from(shard, seen + 1);
            loop {
                let chunk = snapshot.scan(&from, &to, Direction::Forward, LOG_CHUNK).await?;
                *changes += chunk.pairs.len() as u64;
                for (row, epk) in &chunk.pairs {
                    let (_, _, docnum) = keyspace::decode_log(row)?;
                    touched.entry((shard, self.child_of(epk))).or_default().insert(docnum);
                }
                match chunk.pairs.last() {
                    Some((last, _)) if chunk.more => from = keyspace::after(last),
                    _ => break,
                }
            }
            let lsn = lsn_in(snapshot, shard).await?;
            if let Some(seen) = self.seen_lsn.get_mut(at) {
                *seen = lsn;
            }
        }
        let touched = touched.into_iter();
        Ok(touched.map(|((parent_shard, child), docnums)| Touched { parent_shard, child, docnums }).collect())
    }

    async fn pass<E: From<Error>>(
        &mut self,
        snapshot: &AnySnapshot,
        touched: &Touched,
        pass: CatchUpPass,
        batch: &mut Batch,
        on_progress: &mut impl AsyncFnMut(&CopyFigures) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut docnums = touched.docnums.iter();
        loop {
            let chunk: Vec<u64> = docnums.by_ref().take(ITEMS_PER_CHUNK).collect();
            if chunk.is_empty() {
                return Ok(());
            }
            let differing = self.differing(snapshot, touched, &chunk).await?;
            if pass == CatchUpPass::Remove {
                self.copy_key_stats(snapshot, touched, &differing, batch).await?;
            }
            self.write(touched.child, &differing, pass, batch);
            if batch.bytes() >= BATCH_BYTES {
                batch.append(&mut self.states_batch());
                self.committer.commit(std::mem::take(batch)).await?;
                on_progress(&self.figures).await?;
            }
        }
    }

    /// Items whose committed row in the child differs from the parent's. Changes that are only in the batch so far are
    /// not seen, so an item can be found to differ in both passes; no version is counted twice, because each pass
    /// handles one side.
    async fn differing(&self, snapshot: &AnySnapshot, touched: &Touched, docnums: &[u64]) -> Result<Vec<ItemDelta>> {
        let Some(child) = self.children.get(touched.child) else { return Ok(Vec::new()) };
        let rows = |shard| -> Vec<Bytes> { docnums.iter().map(|&docnum| keyspace::doc(shard, docnum)).collect() };
        let (parent_rows, child_rows) = (rows(touched.parent_shard), rows(child.shard));
        let new = snapshot.get_many(&parent_rows).await?;
        let old = self.store.get_many(&child_rows).await?;
        let mut differing = Vec::new();
        for ((row, old), new) in child_rows.iter().zip(old).zip(new) {
            if old != new {
                let read =
                    |bytes: Option<Bytes>| bytes.map(|bytes| CheckedItem::read(&self.schema, row, bytes)).transpose();
                differing.push(ItemDelta { old: read(old)?, new: read(new)? });
            }
        }
        Ok(differing)
    }

    fn write(&mut self, child: usize, differing: &[ItemDelta], pass: CatchUpPass, batch: &mut Batch) {
        let (Some(range), Some(state)) = (self.children.get(child), self.states.get_mut(child)) else { return };
        let mut changes = RowChanges::default();
        for change in differing {
            match (pass, &change.old, &change.new) {
                (CatchUpPass::Remove, Some(old), _) => {
                    changes.remove(range.shard, &old.as_old());
                    state.items = state.items.saturating_sub(1);
                    state.item_bytes = state.item_bytes.saturating_sub(old.record.body().len() as u64);
                }
                (CatchUpPass::Insert, _, Some(new)) => {
                    changes.insert(range.shard, &new.as_new());
                    state.items += 1;
                    state.item_bytes += new.record.body().len() as u64;
                }
                _ => {}
            }
        }
        batch.append(&mut changes.batch);
    }

    /// Copies the statistics rows of the affected keys from the parent instead of recomputing them.
    async fn copy_key_stats(
        &self,
        snapshot: &AnySnapshot,
        touched: &Touched,
        differing: &[ItemDelta],
        batch: &mut Batch,
    ) -> Result<()> {
        let Some(child) = self.children.get(touched.child) else { return Ok(()) };
        let items = differing.iter().flat_map(|change| change.old.iter().chain(&change.new));
        let epks: BTreeSet<&[u8]> = items.map(|item| item.record.epk.as_bytes()).collect();
        if epks.is_empty() {
            return Ok(());
        }
        let newest = self.store.snapshot(Blocking::Suspend).await?;
        for epk in epks {
            let parent_rows = key_rows(snapshot, touched.parent_shard, epk).await?;
            let child_rows = key_rows(&newest, child.shard, epk).await?;
            child_rows
                .keys()
                .filter(|row| !parent_rows.contains_key(*row))
                .for_each(|row| batch.delete(with_shard(child.shard, row)));
            parent_rows.iter().for_each(|(row, value)| batch.put(with_shard(child.shard, row), value));
        }
        Ok(())
    }
}

async fn tombstone_rows(snapshot: &AnySnapshot, shard: u64) -> Result<BTreeMap<Bytes, Bytes>> {
    let (from, to) = keyspace::range(shard, Tag::KeyTombstone);
    Ok(snapshot.scan(&from, &to, Direction::Forward, Limit::NONE).await?.pairs.into_iter().collect())
}

/// The statistics rows of all keys with one effective key, without their shard prefix.
async fn key_rows(snapshot: &AnySnapshot, shard: u64, epk: &[u8]) -> Result<BTreeMap<Bytes, Bytes>> {
    let (from, to) = keyspace::epk_exact(shard, Tag::Key, epk);
    let chunk = snapshot.scan(&from, &to, Direction::Forward, Limit::NONE).await?;
    Ok(chunk.pairs.into_iter().map(|(row, value)| (row.slice(8.min(row.len())..), value)).collect())
}

fn with_shard(shard: u64, fields: &[u8]) -> Vec<u8> {
    [&shard.to_be_bytes(), fields].concat()
}
