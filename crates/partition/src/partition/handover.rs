//! A partition whose items go to other shards: it tells what changes, then lets nobody write any more.
//!
//! Promise: from the moment the log is on, every change that gets a place in the commit history has its row there; from the
//! moment the fence is up, none gets one. Both are set under the sequencer's lock, so there is no change in between.

use pleiad_model::Result;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_storage::keyspace::{self, Tag};
use pleiad_storage::{Batch, Direction, Limit, Snapshot, Store};
use tokio::sync::oneshot;

use super::Partition;
use crate::commit::CommitEntry;
use crate::key::KeyStats;

impl Partition {
    /// Begins an empty log for a job. What was enqueued before is in no log: whoever wants to see it waits for the committer.
    pub fn begin_log(&self, job: u64) -> Result<()> {
        let mut sequence = self.sequencer.state.lock();
        self.drop_log()?;
        sequence.logged_for = Some(job);
        Ok(())
    }

    /// Goes on with the log that is there; before anybody writes.
    pub fn resume_log(&self, job: u64) {
        self.sequencer.state.lock().logged_for = Some(job);
    }

    /// That job copies no more. If another has begun since, the log is that one's.
    pub fn end_log(&self, job: u64) -> Result<()> {
        let mut sequence = self.sequencer.state.lock();
        if sequence.logged_for == Some(job) {
            self.drop_log()?;
            sequence.logged_for = None;
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

    /// Writers hear "outdated" from now on. Readers go on.
    pub fn fence(&self) {
        self.sequencer.state.lock().fenced = true;
    }

    /// The items stay after all.
    pub fn lift_fence(&self) {
        self.sequencer.state.lock().fenced = false;
    }

    /// The effective key at which two halves of about equal bytes meet. `None` if all items have one effective key, or
    /// there are none.
    pub async fn middle(&self) -> Result<Option<EffectiveKey>> {
        const CHUNK: Limit = Limit::rows(4096);
        let half = self.usage().item_bytes / 2;
        let snapshot = self.store.snapshot().await?;
        let (mut from, to) = keyspace::range(self.range.shard, Tag::Key);
        let mut search = SplitPoint { half, below: 0, last: Vec::new(), best: None };
        loop {
            let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
            for (row, value) in &chunk.pairs {
                search.see(keyspace::decode_key_stats(row)?.0, KeyStats::decode(value)?.bytes);
            }
            match chunk.pairs.last() {
                Some((last, _)) if chunk.more && search.below <= half => from = keyspace::after(last),
                _ => return Ok(search.best.map(|(epk, _)| EffectiveKey::from_bytes(&epk))),
            }
        }
    }
}

/// The boundary whose lower side comes nearest to half of the bytes.
struct SplitPoint {
    half: u64,
    /// Bytes of all keys seen so far.
    below: u64,
    last: Vec<u8>,
    best: Option<(Vec<u8>, u64)>,
}

impl SplitPoint {
    fn see(&mut self, epk: Vec<u8>, bytes: u64) {
        let off = self.below.abs_diff(self.half);
        // Nothing lies below the first key, and keys that share an effective key stay together.
        let is_boundary = self.below > 0 && epk != self.last;
        if is_boundary && self.best.as_ref().is_none_or(|(_, best)| off < *best) {
            self.best = Some((epk.clone(), off));
        }
        self.last = epk;
        self.below += bytes;
    }
}
