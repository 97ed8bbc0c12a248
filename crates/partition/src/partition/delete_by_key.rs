//! Delete by partition key: deletes all items of one logical partition with one tombstone.
//!
//! Guarantees: when `delete_by_partition_key` returns, no reader or writer sees an item of the key that was written
//! before. While the partition is being copied, the items themselves are removed before it returns, because the copy
//! does not follow tombstones.

use pleiad_model::{Error, Kind, Result};
use pleiad_storage::{Batch, Limit, keyspace};

use super::{Partition, Rejected};
use crate::key::LogicalKey;
use crate::key_tombstones::KeyTombstone;
use crate::record::Record;
use crate::schema::Schema;
use crate::shard_state::ShardState;

/// Items removed in one transaction.
const ITEMS_AT_ONCE: usize = 200;

impl Partition {
    /// Returns the LSN up to which the key's items are deleted.
    pub async fn erase_key(&self, schema: &Schema, key: &LogicalKey, ts_s: u32) -> Result<u64, Rejected> {
        if self.sequencer.state.lock().logged_for.is_some() {
            let mark = KeyTombstone { epk: key.epk.clone(), lsn: self.usage().lsn };
            self.stand_by().await?;
            while self.erase_some(schema, &mark, ts_s).await? {}
            return Ok(self.lsn());
        }
        let latch = self.latch(&key.clone().item("")).await;
        let queued = self.sequence(schema, ts_s, |shard, changes| {
            if changes.log_lsn.is_some() {
                return Err(Error::new(Kind::Outdated, "a copy of the partition has begun; ask again"));
            }
            changes.batch.put(keyspace::key_tombstone(self.range.shard, key.epk.as_bytes()), shard.lsn.to_be_bytes());
            // Under the sequencer's lock, so that a purge that finishes the previous tombstone does not delete this
            // one's row.
            self.marks.add(KeyTombstone { epk: key.epk.clone(), lsn: shard.lsn });
            Ok(shard.lsn)
        })?;
        drop(latch);
        queued.wait().await
    }

    /// One step of purging the rows under tombstones; returns true if there is more to do.
    pub async fn sweep_erased(&self, schema: &Schema, ts_s: u32) -> Result<bool> {
        let Some(mark) = self.marks.get().first().filter(|mark| mark.lsn <= self.lsn()) else { return Ok(false) };
        if self.erase_some(schema, &mark, ts_s).await? {
            return Ok(true);
        }
        let forget = |_: &mut ShardState, batch: &mut Batch| {
            if self.marks.remove(&mark) {
                batch.delete(keyspace::key_tombstone(self.range.shard, mark.epk.as_bytes()));
            }
        };
        self.commit_state(forget).await?;
        Ok(!self.marks.get().is_empty())
    }

    async fn erase_some(&self, schema: &Schema, mark: &KeyTombstone, ts_s: u32) -> Result<bool> {
        let found = self.find_erased(mark).await?;
        let Some(first) = found.first() else { return Ok(false) };
        let logical = super::write::key_of(schema, first)?.logical;
        let mut tx = self.begin_latched(schema, logical, ts_s).await;
        for record in &found {
            tx.erase(record).await?;
        }
        tx.commit().await.map_err(|rejected| rejected.error)?;
        Ok(true)
    }

    async fn find_erased(&self, mark: &KeyTombstone) -> Result<Vec<Record>> {
        let (view, mut after) = (self.view().await?, 0);
        loop {
            let (docnums, more) = view.members(&mark.epk, after, Limit::rows(ITEMS_AT_ONCE)).await?;
            let records = view.get(&docnums).await?.into_iter().flatten();
            let found: Vec<Record> = records.filter(|record| record.lsn <= mark.lsn).collect();
            match docnums.last() {
                Some(last) if more && found.is_empty() => after = *last,
                _ => return Ok(found),
            }
        }
    }
}

#[cfg(test)]
mod tests;
