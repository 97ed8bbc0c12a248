//! Commit: validates what the transaction depends on, then writes its net changes as one batch.
//!
//! Invariant: either all changes are sequenced at one LSN, or none is. Each item has one net change, from its old
//! version to its new one. Intermediate states are visible only in the version rows of containers that retain all
//! versions.

use pleiad_model::{Fact, Result};

use super::super::checks::check_key_size;
use super::{BaseState, ItemChange, KeyDelta, PreparedVersion, Queued, Rejected, Transaction, VersionId, WriteError};
use crate::key::KeyStats;
use crate::row_changes::{NewVersion, OldVersion, RowChanges};
use crate::shard_state::ShardState;

impl Transaction<'_> {
    /// Makes all changes durable and visible atomically. Returns their LSN, or the snapshot's if nothing was written.
    /// `Fact::ConflictingWrite`: a conflicting write committed first. `WriteError::Outdated`: the items have moved to
    /// another partition, begin again there.
    pub async fn commit(self) -> Result<u64, WriteError> {
        Ok(self.enqueue().await?.wait().await?)
    }

    /// Decides the commit: when this returns `Queued`, the committer has the changes and completes them, whether or not
    /// the caller waits.
    ///
    /// Cancel safety: dropped before it returns, nothing is written.
    pub async fn enqueue(self) -> Result<Queued<u64>, WriteError> {
        let (partition, seen) = (self.partition, self.lsn());
        if self.version_log.is_empty() && self.changes.values().all(ItemChange::has_no_effect) {
            drop(self);
            partition.wait_for_queued().await?;
            return Ok(Queued::durable(seen));
        }
        let latch = match &self.base {
            BaseState::Latched { .. } => None,
            BaseState::Snapshot(_) => Some(partition.latch(&self.scope).await),
        };
        self.validate().await?;
        let stats = partition.key_stats(&self.scope).await?;
        let after = self.key_delta.applied_to(&stats);
        if self.key_delta.bytes > 0 {
            check_key_size(self.schema, &after)?;
            partition.large_keys.record_growth(&self.scope, stats.bytes, &after, self.schema.size_limits.key_bytes_max);
        }
        let queued = partition.sequence(self.schema, self.ts_s, |shard, rows| self.build_rows(shard, rows, &after))?;
        drop((latch, self));
        Ok(queued)
    }

    /// Rolls back. A latched transaction's rejection waits for the queued writes it depends on: a client gets neither
    /// "already exists" because of a write that is lost, nor "not found" from a partition whose items have moved.
    pub async fn abort(self, rejected: Rejected) -> WriteError {
        let (partition, is_latched) = (self.partition, matches!(self.base, BaseState::Latched { .. }));
        drop(self);
        if !is_latched {
            return rejected.into();
        }
        match partition.wait_for_queued().await {
            Ok(()) => rejected.into(),
            Err(other) => other,
        }
    }

    /// First committer wins: fails if an item or a unique value that this transaction wrote has changed since its
    /// snapshot.
    async fn validate(&self) -> Result<()> {
        for (key, seen) in &self.expected_versions {
            let now = self.partition.current(key).await?;
            let now =
                now.filter(|now| !self.partition.is_dead(self.schema, self.ts_s, now)).as_ref().map(VersionId::of);
            if now != *seen {
                return Err(Fact::ConflictingWrite.into());
            }
        }
        for (claim, seen) in &self.expected_holders {
            if self.partition.holder(claim, &self.scope).await? != *seen {
                return Err(Fact::ConflictingWrite.into());
            }
        }
        Ok(())
    }

    /// Removals come first, because another item may have taken the id of a removed one.
    fn build_rows(&self, shard: &mut ShardState, rows: &mut RowChanges, stats: &KeyStats) -> Result<u64, WriteError> {
        let shard_id = self.partition.range.shard;
        let mut delta = KeyDelta::default();
        let versions = rows.versions.take(); // written below, one per operation instead of one per net change
        self.changes.values().for_each(|change| change.write_removal(shard_id, rows, &mut delta));
        let remaining = self.changes.values().filter(|change| change.new.is_some());
        for (seq, change) in (0..).zip(remaining) {
            change.write_version(shard_id, shard.lsn, seq, rows, &mut delta);
        }
        for (docnum, now) in self.changes.iter().filter_map(|(docnum, change)| Some((*docnum, change.renamed()?))) {
            rows.claim_id(shard_id, &now.key, docnum);
        }
        for now in self.changes.values().filter_map(|change| change.new.as_ref()) {
            rows.claim(shard_id, &now.claims, &now.record);
        }
        rows.versions = versions;
        self.version_log.write_rows(shard_id, shard.lsn, rows);
        rows.put_key_stats(self.partition.key_row(&self.scope), stats, &self.scope);
        shard.items = shard.items.saturating_add_signed(delta.items);
        shard.item_bytes = shard.item_bytes.saturating_add_signed(delta.bytes);
        if delta.bytes > 0 {
            self.partition.check_partition_size(self.schema, shard)?;
        }
        Ok(shard.lsn)
    }
}

impl ItemChange {
    fn has_no_effect(&self) -> bool {
        self.old.is_none() && self.new.is_none()
    }

    fn renamed(&self) -> Option<&PreparedVersion> {
        let (was, now) = (self.old.as_ref()?, self.new.as_ref()?);
        (was.key.hash != now.key.hash).then_some(now)
    }

    fn write_removal(&self, shard: u64, rows: &mut RowChanges, delta: &mut KeyDelta) {
        let (Some(was), None) = (&self.old, &self.new) else { return };
        let old = was.as_old();
        match self.is_expired {
            true => rows.expire(shard, &old),
            false => rows.remove(shard, &old),
        }
        delta.add(-1, -(was.record.body().len() as i64));
    }

    fn write_version(&self, shard: u64, lsn: u64, seq: u16, rows: &mut RowChanges, delta: &mut KeyDelta) {
        let Some(now) = &self.new else { return };
        let record = now.record.with_lsn(lsn, seq);
        let new = NewVersion { key: &now.key, record: &record, terms: &now.terms.possible, claims: &now.claims };
        delta.add(1, record.body().len() as i64);
        let Some(was) = &self.old else { return rows.insert(shard, &new) };
        delta.add(-1, -(was.record.body().len() as i64));
        rows.update(shard, &was.as_old(), &new);
    }
}

impl PreparedVersion {
    fn as_old(&self) -> OldVersion<'_> {
        OldVersion { key: &self.key, record: &self.record, terms: &self.terms, claims: &self.claims }
    }
}
