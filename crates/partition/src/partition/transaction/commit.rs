//! Commit: validates what the transaction depends on, then writes its net changes as one batch.
//!
//! Invariant: either all changes are sequenced at one LSN, or none is. Each item has one net change, from its old
//! version to its new one. Intermediate states are visible only in the version rows of containers that retain all
//! versions.

use pleiad_model::{Error, Kind, Result};

use super::super::checks::check_key_room;
use super::{BaseState, ItemChange, KeyDelta, PreparedVersion, Rejected, Transaction, VersionId};
use crate::key::KeyStats;
use crate::row_changes::{NewVersion, OldVersion, RowChanges};
use crate::shard_state::ShardState;

impl Transaction<'_> {
    /// Makes all changes durable and visible atomically. Returns their LSN, or the snapshot's if nothing was written.
    /// `Kind::RetryWith`: a conflicting write committed first. `Kind::Outdated`: the items have moved to another
    /// partition, begin again there.
    pub async fn commit(self) -> Result<u64, Rejected> {
        let (partition, seen) = (self.partition, self.lsn());
        if self.history.is_empty() && self.changes.values().all(ItemChange::is_nothing) {
            drop(self);
            partition.stand_by().await?;
            return Ok(seen);
        }
        let latch = match &self.ground {
            BaseState::Latched { .. } => None,
            BaseState::Snapshot(_) => Some(partition.latch(&self.scope).await),
        };
        self.check_foundations().await?;
        let stats = partition.key_stats(&self.scope).await?;
        let after = self.growth.of(&stats);
        if self.growth.bytes > 0 {
            check_key_room(self.schema, &after)?;
            partition.keys.grows(&self.scope, stats.bytes, &after, self.schema.room.key_bytes_max);
        }
        let queued = partition.sequence(self.schema, self.ts_s, |shard, rows| self.lay_out(shard, rows, &after))?;
        drop((latch, self));
        queued.wait().await
    }

    /// Rolls back. A latched transaction's rejection waits for the queued writes it depends on: a client gets neither
    /// "already exists" because of a write that is lost, nor "not found" from a partition whose items have moved.
    pub async fn give_up(self, refusal: Rejected) -> Rejected {
        let (partition, is_latched) = (self.partition, matches!(self.ground, BaseState::Latched { .. }));
        drop(self);
        if !is_latched {
            return refusal;
        }
        match partition.stand_by().await {
            Ok(()) => refusal,
            Err(other) => other,
        }
    }

    /// First committer wins: fails if an item or a unique value that this transaction wrote has changed since its
    /// snapshot.
    async fn check_foundations(&self) -> Result<()> {
        for (key, seen) in &self.rests_on {
            let now = self.partition.current(key).await?;
            let now =
                now.filter(|now| !self.partition.is_gone(self.schema, self.ts_s, now)).as_ref().map(VersionId::of);
            if now != *seen {
                return Err(Error::new(Kind::RetryWith, FASTER));
            }
        }
        for (claim, seen) in &self.rests_on_claims {
            if self.partition.holder(claim, &self.scope).await? != *seen {
                return Err(Error::new(Kind::RetryWith, FASTER));
            }
        }
        Ok(())
    }

    /// Removals come first, because another item may have taken the id of a removed one.
    fn lay_out(&self, shard: &mut ShardState, rows: &mut RowChanges, stats: &KeyStats) -> Result<u64> {
        let at = self.partition.range.shard;
        let mut growth = KeyDelta::default();
        let versions = rows.versions.take(); // written below, one per operation instead of one per net change
        self.changes.values().for_each(|change| change.go(at, rows, &mut growth));
        let stays = self.changes.values().filter(|change| change.now.is_some());
        for (seq, change) in (0..).zip(stays) {
            change.come(at, shard.lsn, seq, rows, &mut growth);
        }
        for (docnum, now) in self.changes.iter().filter_map(|(docnum, change)| Some((*docnum, change.renamed()?))) {
            rows.claim_id(at, &now.key, docnum);
        }
        for now in self.changes.values().filter_map(|change| change.now.as_ref()) {
            rows.claim(at, &now.claims, &now.record);
        }
        rows.versions = versions;
        self.history.tell(at, shard.lsn, rows);
        rows.count_key(self.partition.key_row(&self.scope), stats, &self.scope);
        shard.items = shard.items.saturating_add_signed(growth.items);
        shard.item_bytes = shard.item_bytes.saturating_add_signed(growth.bytes);
        if growth.bytes > 0 {
            self.partition.check_room(self.schema, shard)?;
        }
        Ok(shard.lsn)
    }
}

const FASTER: &str = "Another request has changed an item that this transaction has written. Try again.";

impl ItemChange {
    fn is_nothing(&self) -> bool {
        self.was.is_none() && self.now.is_none()
    }

    fn renamed(&self) -> Option<&PreparedVersion> {
        let (was, now) = (self.was.as_ref()?, self.now.as_ref()?);
        (was.key.hash != now.key.hash).then_some(now)
    }

    fn go(&self, at: u64, rows: &mut RowChanges, growth: &mut KeyDelta) {
        let (Some(was), None) = (&self.was, &self.now) else { return };
        let old = was.as_old();
        match self.is_over {
            true => rows.expire(at, &old),
            false => rows.remove(at, &old),
        }
        growth.add(-1, -(was.record.body().len() as i64));
    }

    fn come(&self, at: u64, lsn: u64, seq: u16, rows: &mut RowChanges, growth: &mut KeyDelta) {
        let Some(now) = &self.now else { return };
        let record = now.record.placed(lsn, seq);
        let new = NewVersion { key: &now.key, record: &record, terms: &now.terms.possible, claims: &now.claims };
        growth.add(1, record.body().len() as i64);
        let Some(was) = &self.was else { return rows.insert(at, &new) };
        growth.add(-1, -(was.record.body().len() as i64));
        rows.update(at, &was.as_old(), &new);
    }
}

impl PreparedVersion {
    fn as_old(&self) -> OldVersion<'_> {
        OldVersion { key: &self.key, record: &self.record, terms: &self.terms, claims: &self.claims }
    }
}
