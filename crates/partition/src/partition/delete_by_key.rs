//! Delete by partition key: deletes all items of one logical partition with one tombstone.
//!
//! Guarantees: when `delete_by_partition_key` returns, no reader or writer sees an item of the key that was written
//! before, and no reader ever sees a part of them. That holds during a copy as well, which follows tombstones.

use pleiad_model::Result;
use pleiad_storage::{Batch, Blocking, Limit, keyspace};

use super::{MaintenanceError, Partition, Queued, WriteError};
use crate::key::LogicalKey;
use crate::key_tombstones::KeyTombstone;
use crate::record::Record;
use crate::schema::Schema;
use crate::shard_state::ShardState;

/// Items removed in one transaction.
const ITEMS_PER_TRANSACTION: usize = 200;

impl Partition {
    /// Returns the LSN up to which the key's items are deleted.
    pub async fn delete_by_partition_key(
        &self,
        schema: &Schema,
        key: &LogicalKey,
        ts_s: u32,
    ) -> Result<u64, WriteError> {
        Ok(self.enqueue_delete_by_partition_key(schema, key, ts_s).await?.wait().await?)
    }

    /// The same up to the point at which the delete is certain; the result waits for the committer.
    pub async fn enqueue_delete_by_partition_key(
        &self,
        schema: &Schema,
        key: &LogicalKey,
        ts_s: u32,
    ) -> Result<Queued<u64>, WriteError> {
        let latch = self.latch(&key.clone().item("")).await;
        let queued = self.sequence(schema, ts_s, |shard, changes| {
            changes.batch.put(keyspace::key_tombstone(self.range.shard, key.epk.as_bytes()), shard.lsn.to_be_bytes());
            changes.key_tombstone = Some(KeyTombstone { epk: key.epk.clone(), lsn: shard.lsn });
            Ok(shard.lsn)
        })?;
        drop(latch);
        Ok(queued)
    }

    /// One step of purging the rows under tombstones; returns true if there is more to do.
    pub async fn purge_deleted_keys(&self, schema: &Schema, ts_s: u32) -> Result<bool, MaintenanceError> {
        let Some(tombstone) = self.key_tombstones.get().first().filter(|tombstone| tombstone.lsn <= self.lsn()) else {
            return Ok(false);
        };
        if self.purge_chunk(schema, &tombstone, ts_s).await? {
            return Ok(true);
        }
        let remove_tombstone = |_: &mut ShardState, batch: &mut Batch| {
            if self.key_tombstones.remove(&tombstone) {
                batch.delete(keyspace::key_tombstone(self.range.shard, tombstone.epk.as_bytes()));
            }
        };
        self.commit_state(remove_tombstone).await?;
        Ok(!self.key_tombstones.get().is_empty())
    }

    async fn purge_chunk(
        &self,
        schema: &Schema,
        tombstone: &KeyTombstone,
        ts_s: u32,
    ) -> Result<bool, MaintenanceError> {
        let found = self.find_deleted(tombstone).await?;
        let Some(first) = found.first() else { return Ok(false) };
        let logical = super::write::key_of(schema, first)?.logical;
        let mut tx = self.begin_latched(schema, logical, ts_s).await;
        for record in &found {
            tx.remove_if_unchanged(record).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    async fn find_deleted(&self, tombstone: &KeyTombstone) -> Result<Vec<Record>> {
        let (view, mut after) = (self.snapshot(Blocking::Suspend).await?, 0);
        loop {
            let (docnums, more) = view.members(&tombstone.epk, after, Limit::rows(ITEMS_PER_TRANSACTION)).await?;
            let records = view.get(&docnums).await?.into_iter().flatten();
            let found: Vec<Record> = records.filter(|record| record.lsn <= tombstone.lsn).collect();
            match docnums.last() {
                Some(last) if more && found.is_empty() => after = *last,
                _ => return Ok(found),
            }
        }
    }
}

#[cfg(test)]
mod tests;
