//! Sequencer: assigns LSNs to a partition's writes and holds the queued, not yet durable rows.
//!
//! Invariant: under one short lock a transaction gets the next LSN, its rows, and its position in the committer's
//! queue; a rejected transaction leaves nothing behind. Rows that a later writer must see stay in memory until the
//! store has them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pleiad_model::{Error, Fact, Result};
use pleiad_storage::{Batch, keyspace};
use tokio::sync::oneshot;

use super::write::next_docnum;
use super::{MaintenanceError, Outdated, Partition, Rejected, WriteError, Written};
use crate::commit::{CommitEntry, Publish};
use crate::row_changes::{RowChanges, Versions};
use crate::schema::Schema;
use crate::shard_state::ShardState;

/// The part of a partition that the committer calls back.
pub(super) struct Sequencer {
    visible_lsn: AtomicU64,
    pub(super) state: Mutex<Sequence>,
}

pub(super) struct Sequence {
    pub(super) shard: ShardState,
    pub(super) pending: HashMap<Bytes, Pending>,
    /// The pending rows of each LSN, to be dropped when it is durable.
    pending_by_lsn: VecDeque<(u64, Vec<Bytes>)>,
    pub(super) closed: bool,
    /// Its items have moved, or are about to move, to other shards.
    pub(super) fenced: bool,
    /// The job that copies the partition and needs a log row for every change.
    pub(super) log_job: Option<u64>,
    /// The newest schema version of an accepted write, or one that was announced.
    pub(super) schema_version: u64,
}

pub(super) struct Pending {
    lsn: u64,
    value: Option<Bytes>,
}

impl Partition {
    /// Assigns an LSN to a transaction and hands it to the committer.
    pub(super) fn sequence<T>(
        &self,
        schema: &Schema,
        ts_s: u32,
        change: impl FnOnce(&mut ShardState, &mut RowChanges) -> Result<T, WriteError>,
    ) -> Result<Queued<T>, WriteError> {
        let mut sequence = self.sequencer.state.lock();
        sequence.admit(schema)?;
        let mut shard = sequence.shard.clone();
        shard.advance(schema.retains_versions);
        let versions = schema.retains_versions.then(|| Versions::new(shard.lsn, ts_s));
        let log_lsn = sequence.log_job.map(|_| shard.lsn);
        let mut changes = RowChanges { log_lsn, versions, ..RowChanges::default() };
        let written = change(&mut shard, &mut changes)?;
        let (done, durable) = oneshot::channel();
        let state = Some((keyspace::state(self.range.shard), shard.encode()));
        let owner: Arc<dyn Publish> = self.sequencer.clone();
        let batch = std::mem::take(&mut changes.batch);
        // Before the committer has the batch: a snapshot that contains the tombstone's row applies the tombstone.
        let tombstones_before = changes.key_tombstone.take().map(|tombstone| self.key_tombstones.add(tombstone));
        let enqueued = self.committer.enqueue(CommitEntry { batch, state, owner: Some((owner, shard.lsn)), done });
        // Nothing is published before the sequence lock is released, and nothing is changed if the committer rejects
        // this.
        if let Err(error) = enqueued {
            tombstones_before.into_iter().for_each(|before| self.key_tombstones.restore(before));
            return Err(error.into());
        }
        self.split_trigger.update(shard.item_bytes > schema.size_limits.partition_bytes_max);
        sequence.accept(shard, changes.pending);
        Ok(Queued { written, durable: Some(durable) })
    }

    /// A docnum for an item of a transaction that has no LSN yet. If the transaction never commits, the docnum stays
    /// unused.
    pub(super) fn reserve_docnum(&self) -> Result<u64> {
        next_docnum(&self.range, &mut self.sequencer.state.lock().shard)
    }

    /// Commits rows and a shard state without an LSN: no item's version changes.
    pub(crate) async fn commit_state(
        &self,
        change: impl FnOnce(&mut ShardState, &mut Batch),
    ) -> Result<(), MaintenanceError> {
        Ok(acknowledged(self.enqueue_state(change)?).await?)
    }

    fn enqueue_state(&self, change: impl FnOnce(&mut ShardState, &mut Batch)) -> Result<Durable, MaintenanceError> {
        let mut sequence = self.sequencer.state.lock();
        sequence.check_open()?;
        let (mut shard, mut batch) = (sequence.shard.clone(), Batch::new());
        change(&mut shard, &mut batch);
        let (done, durable) = oneshot::channel();
        let state = Some((keyspace::state(self.range.shard), shard.encode()));
        self.committer.enqueue(CommitEntry { batch, state, owner: None, done })?;
        sequence.shard = shard;
        Ok(durable)
    }
}

impl Sequencer {
    pub(super) fn new(shard: ShardState) -> Sequencer {
        let (pending, pending_by_lsn) = Default::default();
        let (closed, fenced, log_job) = (false, false, None);
        let visible_lsn = AtomicU64::new(shard.lsn);
        let sequence = Sequence { shard, pending, pending_by_lsn, closed, fenced, log_job, schema_version: 0 };
        Sequencer { visible_lsn, state: Mutex::new(sequence) }
    }

    pub(super) fn visible_lsn(&self) -> u64 {
        self.visible_lsn.load(Ordering::Acquire)
    }

    /// The queued value of a row, or its queued deletion; `None` if nothing is queued for it.
    pub(super) fn pending(&self, row: &Bytes) -> Option<Option<Bytes>> {
        self.state.lock().pending.get(row).map(|pending| pending.value.clone())
    }
}

impl Sequence {
    pub(super) fn admit(&mut self, schema: &Schema) -> Result<(), MaintenanceError> {
        self.check_open()?;
        self.check_schema(schema)?;
        self.schema_version = schema.version;
        Ok(())
    }

    fn check_open(&self) -> Result<(), MaintenanceError> {
        if self.closed {
            return Err(Error::from(Fact::OwnerMissing).into());
        }
        Ok(self.check_fence()?)
    }

    pub(super) fn check_fence(&self) -> Result<(), Outdated> {
        if self.fenced { Err(Outdated) } else { Ok(()) }
    }

    pub(super) fn check_schema(&self, schema: &Schema) -> Result<(), Outdated> {
        if schema.version < self.schema_version { Err(Outdated) } else { Ok(()) }
    }

    fn accept(&mut self, shard: ShardState, pending: Vec<(Bytes, Option<Bytes>)>) {
        self.pending_by_lsn.push_back((shard.lsn, pending.iter().map(|(row, _)| row.clone()).collect()));
        for (row, value) in pending {
            self.pending.insert(row, Pending { lsn: shard.lsn, value });
        }
        self.shard = shard;
    }
}

impl Publish for Sequencer {
    fn published(&self, lsn: u64) {
        let mut sequence = self.state.lock();
        while sequence.pending_by_lsn.front().is_some_and(|(pending_lsn, _)| *pending_lsn <= lsn) {
            let Some((brought, rows)) = sequence.pending_by_lsn.pop_front() else { break };
            for row in rows {
                // A later writer may have queued a newer value, which is not durable yet.
                if sequence.pending.get(&row).is_some_and(|pending| pending.lsn == brought) {
                    sequence.pending.remove(&row);
                }
            }
        }
        drop(sequence);
        self.visible_lsn.store(lsn, Ordering::Release);
    }
}

/// A transaction that has its LSN and becomes durable, whether or not a caller waits for it.
pub struct Queued<T = Written> {
    written: T,
    /// `None` if there is nothing to wait for.
    durable: Option<Durable>,
}

/// The committer's acknowledgment.
pub(super) type Durable = oneshot::Receiver<Result<()>>;

pub(super) async fn acknowledged(durable: Durable) -> Result<()> {
    durable.await.unwrap_or_else(|_| Err(Fact::Unacknowledged.into()))
}

impl<T> Queued<T> {
    /// The outcome of work that wrote nothing, or that is durable already.
    pub fn durable(written: T) -> Self {
        Queued { written, durable: None }
    }

    /// What will be durable.
    pub fn written(&self) -> &T {
        &self.written
    }

    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Queued<U> {
        Queued { written: map(self.written), durable: self.durable }
    }

    pub async fn wait(self) -> Result<T, Rejected> {
        if let Some(durable) = self.durable {
            acknowledged(durable).await.map_err(not_durable)?;
        }
        Ok(self.written)
    }
}

pub(super) fn not_durable(error: Error) -> Rejected {
    Rejected { error, charge_ru: 0.0 }
}
