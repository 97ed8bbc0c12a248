//! Fault injection for a store: calls fail, or suspend their caller, according to a plan.
//!
//! Guarantees: after a failed commit or sync it behaves like the RocksDB store: no more writes, reads continue; `restart`
//! stands for a restart, or for a disk that works again. A failed commit was applied completely or not at all; as after a real crash, the caller cannot know
//! which.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use parking_lot::Mutex;
use pleiad_model::{Error, Result};

use crate::blocking::Blocking;
use crate::store::{Batch, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store};

/// The calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// `get`, `get_many` and `scan`, of store and snapshots, and `open_checkpoint`.
    Read,
    /// A commit that fails and is not applied.
    Commit,
    /// A commit that is applied although it is reported as failed.
    CommitApplied,
    Sync,
    /// An ingest that fails and is not applied; writes continue.
    Ingest,
    /// A store that cannot be made current; the former one stays current.
    MakeCurrent,
}

/// The planned failures, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    schedule: Arc<Mutex<FaultSchedule>>,
}

#[derive(Debug, Default)]
struct FaultSchedule {
    failures: Vec<(FaultPoint, usize)>,
    poisoned: bool,
    suspends_reads: bool,
}

impl FaultPlan {
    /// Makes one call fail, after `after` calls of its kind have succeeded: 0 is the next one.
    pub fn fail(&self, point: FaultPoint, after: usize) {
        self.schedule.lock().failures.push((point, after));
    }

    /// From now on every read returns to its caller's executor once, as a read of a remote store does.
    pub fn suspend_reads(&self) {
        self.schedule.lock().suspends_reads = true;
    }

    /// Whether a planned failure has not happened yet.
    pub fn is_pending(&self) -> bool {
        !self.schedule.lock().failures.is_empty()
    }

    /// Removes all planned failures and accepts writes again.
    pub fn restart(&self) {
        *self.schedule.lock() = FaultSchedule::default();
    }

    /// Counts one call; returns true if it must fail.
    fn should_fail(&self, point: FaultPoint) -> bool {
        let failures = &mut self.schedule.lock().failures;
        let due = failures.iter().position(|planned| *planned == (point, 0));
        match due {
            Some(at) => drop(failures.remove(at)),
            None => failures.iter_mut().filter(|(of, _)| *of == point).for_each(|(_, after)| *after -= 1),
        }
        due.is_some()
    }

    async fn check_read(&self) -> Result<()> {
        let mut is_suspended = self.schedule.lock().suspends_reads;
        poll_fn(|context| {
            if !std::mem::take(&mut is_suspended) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        if self.should_fail(FaultPoint::Read) { Err(Error::internal("a read failed, as scripted")) } else { Ok(()) }
    }

    fn check_write(&self, point: FaultPoint) -> Result<()> {
        if self.should_fail(point) {
            self.schedule.lock().poisoned = true;
        }
        self.check_healthy()
    }

    fn check_healthy(&self) -> Result<()> {
        match self.schedule.lock().poisoned {
            true => Err(Error::unavailable("a write failed, as scripted; restart")),
            false => Ok(()),
        }
    }
}

pub struct Faulty<S> {
    store: S,
    faults: FaultPlan,
}

pub struct FaultySnapshot<S> {
    snapshot: S,
    faults: FaultPlan,
}

impl<S: Store> Faulty<S> {
    pub fn new(store: S, faults: FaultPlan) -> Self {
        Faulty { store, faults }
    }
}

impl<S: Store> Store for Faulty<S> {
    type Snapshot = FaultySnapshot<S::Snapshot>;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.faults.check_read().await?;
        self.store.get(key).await
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        self.faults.check_read().await?;
        self.store.get_many(keys).await
    }

    async fn snapshot(&self, blocking: Blocking) -> Result<Self::Snapshot> {
        Ok(FaultySnapshot { snapshot: self.store.snapshot(blocking).await?, faults: self.faults.clone() })
    }

    async fn commit(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.faults.check_healthy()?;
        self.faults.check_write(FaultPoint::Commit)?;
        self.store.commit(batch, durability).await?;
        self.faults.check_write(FaultPoint::CommitApplied)
    }

    async fn sync(&self) -> Result<()> {
        self.faults.check_healthy()?;
        self.faults.check_write(FaultPoint::Sync)?;
        self.store.sync().await
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        self.faults.check_healthy()?;
        if self.faults.should_fail(FaultPoint::Ingest) {
            return Err(Error::unavailable("an ingest failed, as scripted"));
        }
        self.store.ingest(rows).await
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.faults.check_healthy()?;
        self.store.drop_range(from, to).await
    }

    async fn size_bytes(&self, from: &[u8], to: &[u8], blocking: Blocking) -> Result<u64> {
        self.store.size_bytes(from, to, blocking).await
    }
}

impl<S: Checkpoints> Checkpoints for Faulty<S> {
    async fn create_checkpoint(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        self.faults.check_healthy()?;
        self.store.create_checkpoint(name, taken_ms).await
    }

    async fn list_checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        self.store.list_checkpoints().await
    }

    async fn delete_checkpoint(&self, name: &str) -> Result<bool> {
        self.store.delete_checkpoint(name).await
    }

    async fn open_checkpoint(&self, name: &str) -> Result<Option<Self>> {
        self.faults.check_read().await?;
        let opened = self.store.open_checkpoint(name).await?;
        Ok(opened.map(|store| Faulty { store, faults: self.faults.clone() }))
    }

    async fn open_copy(&self) -> Result<Self> {
        self.faults.check_healthy()?;
        Ok(Faulty { store: self.store.open_copy().await?, faults: self.faults.clone() })
    }

    async fn make_current(&self) -> Result<()> {
        match self.faults.should_fail(FaultPoint::MakeCurrent) {
            true => Err(Error::unavailable("a revived store did not take over, as scripted")),
            false => self.store.make_current().await,
        }
    }

    fn retire(&self) {
        self.store.retire();
    }
}

impl<S: Snapshot> Snapshot for FaultySnapshot<S> {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        self.faults.check_read().await?;
        self.snapshot.get_many(keys).await
    }

    async fn scan(&self, from: &[u8], to: &[u8], direction: Direction, limit: Limit) -> Result<Chunk> {
        self.faults.check_read().await?;
        self.snapshot.scan(from, to, direction, limit).await
    }
}
