//! In-memory store: a persistent (immutable) B-tree behind a lock.
//!
//! Guarantees: the same results as a store on disk, until the process ends. A snapshot is a clone of the tree's root;
//! a commit works on a clone that it publishes at the end, so no reader sees half of a commit. A checkpoint is
//! another clone. Durability has no meaning here and is ignored.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use parking_lot::{Mutex, RwLock};
use pleiad_model::Result;

use crate::blocking::Blocking;
use crate::store::{
    Batch, BatchWrite, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store, fenced,
    sorted_puts,
};

#[derive(Clone, Debug, Default)]
struct MemoryTree {
    rows: OrdMap<Bytes, Bytes>,
    /// Total size of keys and values.
    bytes: usize,
}

#[derive(Debug, Default)]
pub struct Memory {
    newest: RwLock<MemoryTree>,
    /// Shared with the stores that are opened from its checkpoints.
    checkpoints: Arc<Mutex<BTreeMap<String, TreeCheckpoint>>>,
}

#[derive(Debug)]
struct TreeCheckpoint {
    taken_ms: u64,
    tree: MemoryTree,
}

#[derive(Clone, Debug)]
pub struct MemorySnapshot {
    tree: MemoryTree,
}

impl Memory {
    pub fn new() -> Self {
        Memory::default()
    }
}

impl Store for Memory {
    type Snapshot = MemorySnapshot;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.newest.read().rows.get(key).cloned())
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        Ok(get_many(&self.newest.read(), keys))
    }

    /// Nothing blocks in memory: all modes read on the spot.
    async fn snapshot(&self, _: Blocking) -> Result<MemorySnapshot> {
        Ok(MemorySnapshot { tree: self.newest.read().clone() })
    }

    async fn commit(&self, batch: &Batch, _: Durability) -> Result<()> {
        let mut newest = self.newest.write();
        if !batch.guards().all(|guard| holds(&newest, guard)) {
            return Err(fenced());
        }
        let mut tree = newest.clone();
        batch.ops().for_each(|op| apply(&mut tree, op));
        *newest = tree;
        Ok(())
    }

    async fn sync(&self) -> Result<()> {
        Ok(())
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        sorted_puts(rows)?;
        self.commit(rows, Durability::Written).await
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        remove_range(&mut self.newest.write(), from, to);
        Ok(())
    }

    async fn size_bytes(&self, from: &[u8], to: &[u8], _: Blocking) -> Result<u64> {
        let tree = self.newest.read();
        let bytes: usize = pairs(&tree, from, to).map(|(key, value)| key.len() + value.len()).sum();
        Ok(bytes as u64)
    }
}

impl Checkpoints for Memory {
    async fn create_checkpoint(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        let checkpoint = TreeCheckpoint { taken_ms, tree: self.newest.read().clone() };
        let info = checkpoint.info(name);
        self.checkpoints.lock().insert(name.to_owned(), checkpoint);
        Ok(info)
    }

    async fn list_checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        Ok(self.checkpoints.lock().iter().map(|(name, checkpoint)| checkpoint.info(name)).collect())
    }

    async fn delete_checkpoint(&self, name: &str) -> Result<bool> {
        Ok(self.checkpoints.lock().remove(name).is_some())
    }

    async fn open_copy(&self) -> Result<Memory> {
        Ok(Memory { newest: RwLock::new(self.newest.read().clone()), checkpoints: self.checkpoints.clone() })
    }

    async fn open_checkpoint(&self, name: &str) -> Result<Option<Memory>> {
        let tree = self.checkpoints.lock().get(name).map(|checkpoint| checkpoint.tree.clone());
        Ok(tree.map(|tree| Memory { newest: RwLock::new(tree), checkpoints: self.checkpoints.clone() }))
    }

    /// Nothing to do: an in-memory store is not opened again.
    async fn make_current(&self) -> Result<()> {
        Ok(())
    }

    fn retire(&self) {}
}

impl TreeCheckpoint {
    fn info(&self, name: &str) -> CheckpointInfo {
        CheckpointInfo { name: name.to_owned(), taken_ms: self.taken_ms, bytes: self.tree.bytes as u64 }
    }
}

impl Snapshot for MemorySnapshot {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        Ok(get_many(&self.tree, keys))
    }

    async fn scan(&self, from: &[u8], to: &[u8], direction: Direction, limit: Limit) -> Result<Chunk> {
        let pairs = pairs(&self.tree, from, to);
        Ok(match direction {
            Direction::Forward => take_chunk(pairs, limit),
            Direction::Backward => take_chunk(pairs.rev(), limit),
        })
    }
}

fn take_chunk<'a>(pairs: impl Iterator<Item = (&'a Bytes, &'a Bytes)>, limit: Limit) -> Chunk {
    let (mut chunk, mut bytes) = (Chunk::default(), 0);
    for (key, value) in pairs {
        if !limit.admits(chunk.pairs.len(), bytes) {
            chunk.more = true;
            break;
        }
        bytes += key.len() + value.len();
        chunk.pairs.push((key.clone(), value.clone()));
    }
    chunk
}

fn get_many(tree: &MemoryTree, keys: &[Bytes]) -> Vec<Option<Bytes>> {
    keys.iter().map(|key| tree.rows.get(key).cloned()).collect()
}

/// The pairs of `[from, to)`; none if the range is inverted, for which the tree's `range` would panic.
fn pairs<'a>(tree: &'a MemoryTree, from: &[u8], to: &[u8]) -> impl DoubleEndedIterator<Item = (&'a Bytes, &'a Bytes)> {
    let to = to.max(from);
    tree.rows.range::<_, [u8]>((Bound::Included(from), Bound::Excluded(to)))
}

fn holds(tree: &MemoryTree, guard: BatchWrite<'_>) -> bool {
    match guard {
        BatchWrite::Expect { key, value } => tree.rows.get(key).map(Bytes::as_ref) == value,
        _ => true,
    }
}

fn apply(tree: &mut MemoryTree, op: BatchWrite<'_>) {
    match op {
        BatchWrite::Put { key, value } => tree.put(key, value),
        BatchWrite::Delete { key } => tree.remove(key),
        BatchWrite::DeleteRange { from, to } => remove_range(tree, from, to),
        BatchWrite::Expect { .. } => {}
    }
}

impl MemoryTree {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.remove(key);
        self.bytes += key.len() + value.len();
        self.rows.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(value) = self.rows.remove(key) {
            self.bytes -= key.len() + value.len();
        }
    }
}

fn remove_range(tree: &mut MemoryTree, from: &[u8], to: &[u8]) {
    let keys: Vec<Bytes> = pairs(tree, from, to).map(|(key, _)| key.clone()).collect();
    for key in keys {
        tree.remove(&key);
    }
}

#[cfg(test)]
mod tests;
