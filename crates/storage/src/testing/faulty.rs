//! Fault injection for a store: calls fail according to a plan.
//!
//! Guarantees: after a failed commit or sync it behaves like the RocksDB store: no more writes until a restart, reads
//! continue. A failed commit was applied completely or not at all; as after a real crash, the caller cannot know
//! which.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use pleiad_model::{Error, Result};

use crate::store::{Batch, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store};

/// The calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// `get`, `get_many` and `scan`, of store and snapshots.
    Read,
    /// A commit that fails and is not applied.
    Commit,
    /// A commit that is applied although it is reported as failed.
    CommitKept,
    Sync,
    /// An ingest that fails and is not applied; writes continue.
    Ingest,
    /// A store that cannot be made current; the former one stays current.
    TakeOver,
}

/// The planned failures, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    plan: Arc<Mutex<FaultSchedule>>,
}

#[derive(Debug, Default)]
struct FaultSchedule {
    failures: Vec<(FaultPoint, usize)>,
    poisoned: bool,
}

impl FaultPlan {
    /// Makes one call fail, after `after` calls of its kind have succeeded: 0 is the next one.
    pub fn fail(&self, call: FaultPoint, then: usize) {
        self.plan.lock().failures.push((call, then));
    }

    /// Removes all planned failures and accepts writes again.
    pub fn restart(&self) {
        *self.plan.lock() = FaultSchedule::default();
    }

    /// Counts one call; returns true if it must fail.
    fn strikes(&self, call: FaultPoint) -> bool {
        let failures = &mut self.plan.lock().failures;
        let struck = failures.iter().position(|planned| *planned == (call, 0));
        match struck {
            Some(at) => drop(failures.remove(at)),
            None => failures.iter_mut().filter(|(of, _)| *of == call).for_each(|(_, then)| *then -= 1),
        }
        struck.is_some()
    }

    fn read(&self) -> Result<()> {
        if self.strikes(FaultPoint::Read) { Err(Error::internal("a read failed, as scripted")) } else { Ok(()) }
    }

    fn write(&self, call: FaultPoint) -> Result<()> {
        if self.strikes(call) {
            self.plan.lock().poisoned = true;
        }
        self.healthy()
    }

    fn healthy(&self) -> Result<()> {
        match self.plan.lock().poisoned {
            true => Err(Error::unavailable("a write failed, as scripted; restart")),
            false => Ok(()),
        }
    }
}

pub struct Faulty<S> {
    store: S,
    script: FaultPlan,
}

pub struct FaultySnapshot<S> {
    snapshot: S,
    script: FaultPlan,
}

impl<S: Store> Faulty<S> {
    pub fn new(store: S, script: FaultPlan) -> Self {
        Faulty { store, script }
    }
}

impl<S: Store> Store for Faulty<S> {
    type Snapshot = FaultySnapshot<S::Snapshot>;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.script.read()?;
        self.store.get(key).await
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        self.script.read()?;
        self.store.get_many(keys).await
    }

    async fn snapshot(&self) -> Result<Self::Snapshot> {
        Ok(FaultySnapshot { snapshot: self.store.snapshot().await?, script: self.script.clone() })
    }

    async fn commit(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.script.healthy()?;
        self.script.write(FaultPoint::Commit)?;
        self.store.commit(batch, durability).await?;
        self.script.write(FaultPoint::CommitKept)
    }

    async fn sync(&self) -> Result<()> {
        self.script.healthy()?;
        self.script.write(FaultPoint::Sync)?;
        self.store.sync().await
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        self.script.healthy()?;
        if self.script.strikes(FaultPoint::Ingest) {
            return Err(Error::unavailable("an ingest failed, as scripted"));
        }
        self.store.ingest(rows).await
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.script.healthy()?;
        self.store.drop_range(from, to).await
    }

    async fn size_bytes(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        self.store.size_bytes(from, to).await
    }
}

impl<S: Checkpoints> Checkpoints for Faulty<S> {
    async fn keep(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        self.script.healthy()?;
        self.store.keep(name, taken_ms).await
    }

    async fn kept(&self) -> Result<Vec<CheckpointInfo>> {
        self.store.kept().await
    }

    async fn forget(&self, name: &str) -> Result<bool> {
        self.store.forget(name).await
    }

    async fn revive(&self, name: &str) -> Result<Option<Self>> {
        self.script.read()?;
        let revived = self.store.revive(name).await?;
        Ok(revived.map(|store| Faulty { store, script: self.script.clone() }))
    }

    async fn take_over(&self) -> Result<()> {
        match self.script.strikes(FaultPoint::TakeOver) {
            true => Err(Error::unavailable("a revived store did not take over, as scripted")),
            false => self.store.take_over().await,
        }
    }

    fn retire(&self) {
        self.store.retire();
    }
}

impl<S: Snapshot> Snapshot for FaultySnapshot<S> {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        self.script.read()?;
        self.snapshot.get_many(keys).await
    }

    async fn scan(&self, from: &[u8], to: &[u8], direction: Direction, limit: Limit) -> Result<Chunk> {
        self.script.read()?;
        self.snapshot.scan(from, to, direction, limit).await
    }
}
