//! Handover: the change log and the write fence of a partition whose items move to other shards, and the search for the
//! split point.
//!
//! Invariant: while the log is on, every change of an item that gets an LSN has a row in the log; while the fence is up,
//! no change gets an LSN. Both are switched under the sequencer's lock, so no change falls in between. Key tombstones are
//! not logged: a copy compares them.

use pleiad_model::Result;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_storage::keyspace::{self, Tag};
use pleiad_storage::{Batch, Blocking, Direction, Limit, Snapshot, Store};
use tokio::sync::oneshot;

use super::Partition;
use crate::commit::CommitEntry;
use crate::key::KeyStats;

impl Partition {
    /// Begins an empty log for a job. Writes that were enqueued before are in no log: a copy waits for the committer
    /// before it takes its snapshot.
    pub fn begin_log(&self, job: u64) -> Result<()> {
        let mut sequence = self.sequencer.state.lock();
        self.drop_log()?;
        sequence.log_job = Some(job);
        Ok(())
    }

    /// Continues the existing log after a restart; called before the first write.
    pub fn resume_log(&self, job: u64) {
        self.sequencer.state.lock().log_job = Some(job);
    }

    /// Ends the log of that job. If another job has begun a log since, that log stays.
    pub fn end_log(&self, job: u64) -> Result<()> {
        let mut sequence = self.sequencer.state.lock();
        if sequence.log_job == Some(job) {
            self.drop_log()?;
            sequence.log_job = None;
        }
        Ok(())
    }

    fn drop_log(&self) -> Result<()> {
        let mut batch = Batch::new();
        let (from, to) = keyspace::range(self.range.shard, Tag::Log);
        batch.delete_range(from, to);
        let (done, _) = oneshot::channel();
        self.committer.enqueue(CommitEntry { batch, state: None, owner: None, done })
    }

    /// Writers are outdated from now on. Reads continue.
    pub fn fence(&self) {
        self.sequencer.state.lock().fenced = true;
    }

    /// The handover was aborted; the items stay here.
    pub fn lift_fence(&self) {
        self.sequencer.state.lock().fenced = false;
    }

    /// The effective key that divides the items into two halves of about equal bytes. `None` if there are no items, or
    /// all have one effective key.
    pub async fn split_point(&self) -> Result<Option<EffectiveKey>> {
        const CHUNK: Limit = Limit::rows(4096);
        let half = self.shard_state().item_bytes / 2;
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        let (mut from, to) = keyspace::range(self.range.shard, Tag::Key);
        let mut search = SplitPoint { half, below: 0, last: Vec::new(), best: None };
        loop {
            let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
            for (row, value) in &chunk.pairs {
                search.add_key(keyspace::decode_key_stats(row)?.0, KeyStats::decode(value)?.bytes);
            }
            match chunk.pairs.last() {
                Some((last, _)) if chunk.more && search.below <= half => from = keyspace::after(last),
                _ => return Ok(search.best.map(|(epk, _)| EffectiveKey::from_bytes(&epk))),
            }
        }
    }
}

/// Search for the boundary whose lower side is closest to half of the bytes.
struct SplitPoint {
    half: u64,
    /// Bytes of all keys added so far.
    below: u64,
    last: Vec<u8>,
    best: Option<(Vec<u8>, u64)>,
}

impl SplitPoint {
    fn add_key(&mut self, epk: Vec<u8>, bytes: u64) {
        let distance = self.below.abs_diff(self.half);
        // The first key has nothing below it, and keys that share an effective key stay together.
        let is_boundary = self.below > 0 && epk != self.last;
        if is_boundary && self.best.as_ref().is_none_or(|(_, best)| distance < *best) {
            self.best = Some((epk.clone(), distance));
        }
        self.last = epk;
        self.below += bytes;
    }
}
