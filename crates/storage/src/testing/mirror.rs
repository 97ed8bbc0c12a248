//! Two stores side by side: every call runs on both and their results are compared.
//!
//! Guarantees: any difference between the results is a panic that names the call. Sizes are not compared; they are
//! approximate by contract.

use std::fmt::Debug;

use bytes::Bytes;
use pleiad_model::{Kind, Result};

use crate::blocking::Blocking;
use crate::store::{Batch, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store};

pub struct Mirror<A, B>(pub A, pub B);

pub struct MirrorSnapshot<A, B>(A, B);

impl<A: Store, B: Store> Store for Mirror<A, B> {
    type Snapshot = MirrorSnapshot<A::Snapshot, B::Snapshot>;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        same("get", self.0.get(key).await, self.1.get(key).await)
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        same("get_many", self.0.get_many(keys).await, self.1.get_many(keys).await)
    }

    async fn snapshot(&self, blocking: Blocking) -> Result<Self::Snapshot> {
        Ok(MirrorSnapshot(self.0.snapshot(blocking).await?, self.1.snapshot(blocking).await?))
    }

    async fn commit(&self, batch: &Batch, durability: Durability) -> Result<()> {
        same("commit", self.0.commit(batch, durability).await, self.1.commit(batch, durability).await)
    }

    async fn sync(&self) -> Result<()> {
        same("sync", self.0.sync().await, self.1.sync().await)
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        same("ingest", self.0.ingest(rows).await, self.1.ingest(rows).await)
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        same("drop_range", self.0.drop_range(from, to).await, self.1.drop_range(from, to).await)
    }

    async fn size_bytes(&self, from: &[u8], to: &[u8], blocking: Blocking) -> Result<u64> {
        self.0.size_bytes(from, to, blocking).await
    }
}

impl<A: Checkpoints, B: Checkpoints> Checkpoints for Mirror<A, B> {
    async fn create_checkpoint(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        self.1.create_checkpoint(name, taken_ms).await?;
        self.0.create_checkpoint(name, taken_ms).await
    }

    async fn list_checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        self.0.list_checkpoints().await
    }

    async fn delete_checkpoint(&self, name: &str) -> Result<bool> {
        same("delete_checkpoint", self.0.delete_checkpoint(name).await, self.1.delete_checkpoint(name).await)
    }

    async fn open_checkpoint(&self, name: &str) -> Result<Option<Self>> {
        Ok(self
            .0
            .open_checkpoint(name)
            .await?
            .zip(self.1.open_checkpoint(name).await?)
            .map(|(left, right)| Mirror(left, right)))
    }

    async fn open_copy(&self) -> Result<Self> {
        Ok(Mirror(self.0.open_copy().await?, self.1.open_copy().await?))
    }

    async fn make_current(&self) -> Result<()> {
        same("make_current", self.0.make_current().await, self.1.make_current().await)
    }

    fn retire(&self) {
        self.0.retire();
        self.1.retire();
    }
}

impl<A: Snapshot, B: Snapshot> Snapshot for MirrorSnapshot<A, B> {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        same("snapshot get_many", self.0.get_many(keys).await, self.1.get_many(keys).await)
    }

    async fn scan(&self, from: &[u8], to: &[u8], direction: Direction, limit: Limit) -> Result<Chunk> {
        let left = self.0.scan(from, to, direction, limit).await;
        same("scan", left, self.1.scan(from, to, direction, limit).await)
    }
}

/// Values must be equal, errors of one kind; their messages may differ.
fn same<T: Debug + PartialEq>(call: &str, left: Result<T>, right: Result<T>) -> Result<T> {
    let kinds = |answer: &Result<T>| answer.as_ref().err().map(|error| error.kind) as Option<Kind>;
    assert_eq!(kinds(&left), kinds(&right), "the mirrored stores disagree on the error of {call}");
    if let (Ok(left), Ok(right)) = (&left, &right) {
        assert_eq!(left, right, "the mirrored stores disagree on what {call} gives");
    }
    left
}
