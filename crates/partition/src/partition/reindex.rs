//! Index transformation: gives items that were written under an earlier indexing policy the index rows of the current
//! one.
//!
//! Invariant: items, etags, LSNs and the change feed stay as they are. Only index rows are added and removed, and an
//! item's are changed under its latch, if no writer has replaced the item meanwhile. The job is idempotent: after an
//! interruption it starts over and reaches the same result.
//!
//! ```text
//! no more writes under the old schema → all of those are in the store → items, oldest first:
//!   snapshot → terms of both policies → latch → still this version? → enqueue the difference
//! ```
//!
//! An item that has a newer version by then was rewritten under the new schema, together with its index rows.

use bytes::Bytes;
use pleiad_model::item::item_id;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Result, json};
use pleiad_storage::keyspace::{self, Tag};
use pleiad_storage::{Batch, Blocking, Direction, Limit, Snapshot, Store};
use tokio::sync::oneshot;

use super::sequencer::{Durable, acknowledged};
use super::{MaintenanceError, Partition};
use crate::commit::CommitEntry;
use crate::key::ItemKey;
use crate::record::Record;
use crate::row_changes::RowChanges;
use crate::schema::Schema;
use crate::shard_state::DOCNUM_COUNTER_BITS;

/// Enqueued together, then awaited, so that queued writes of clients are committed in between.
const CHUNK: Limit = Limit { rows: 256, bytes: 1 << 20 };

impl Partition {
    /// Gives every item exactly the index rows that the schema defines. Calls `on_progress` with the number of items
    /// processed since the last call. Blocks its thread from time to time, so it needs a thread of its own.
    pub async fn reindex(&self, schema: &Schema, mut on_progress: impl FnMut(u64)) -> Result<(), MaintenanceError> {
        self.require_schema(schema.version);
        self.committer.commit(Batch::default()).await?;
        let (mut from, to) = (keyspace::range(self.range.shard, Tag::Doc).0, self.next_doc_row());
        loop {
            let chunk =
                self.store.snapshot(Blocking::Suspend).await?.scan(&from, &to, Direction::Forward, CHUNK).await?;
            self.reindex_items(schema, &chunk.pairs).await?;
            on_progress(chunk.pairs.len() as u64);
            match chunk.pairs.last() {
                Some((last, _)) if chunk.more => from = keyspace::after(last),
                _ => return Ok(()),
            }
        }
    }

    /// The end of the scan: items with larger docnums are created under the new schema.
    fn next_doc_row(&self) -> Bytes {
        let next = self.shard_state().last_item + 1;
        keyspace::doc(self.range.shard, u64::from(self.range.prefix) << DOCNUM_COUNTER_BITS | next)
    }

    async fn reindex_items(&self, schema: &Schema, items: &[(Bytes, Bytes)]) -> Result<(), MaintenanceError> {
        let mut last = None;
        for (row, bytes) in items {
            last = self.reindex_item(schema, row, bytes).await?.or(last);
            std::thread::yield_now();
        }
        match last {
            // Batches become durable in order, so it is enough to wait for the last one.
            Some(durable) => Ok(acknowledged(durable).await?),
            None => Ok(()),
        }
    }

    async fn reindex_item(
        &self,
        schema: &Schema,
        row: &Bytes,
        bytes: &Bytes,
    ) -> Result<Option<Durable>, MaintenanceError> {
        let (key, changes) = difference(schema, self.range.shard, bytes)?;
        if changes.batch.is_empty() {
            return Ok(None);
        }
        let _latch = self.latch(&key).await;
        if self.newest(row).await?.as_ref() != Some(bytes) {
            return Ok(None);
        }
        self.enqueue_rows(schema, changes.batch).map(Some)
    }

    /// Commits rows that belong to no version.
    pub(crate) async fn write_rows(&self, schema: &Schema, batch: Batch) -> Result<(), MaintenanceError> {
        Ok(acknowledged(self.enqueue_rows(schema, batch)?).await?)
    }

    /// Enqueues rows without an LSN: no item's version changes.
    fn enqueue_rows(&self, schema: &Schema, batch: Batch) -> Result<Durable, MaintenanceError> {
        let mut sequence = self.sequencer.state.lock();
        sequence.admit(schema)?;
        let (done, durable) = oneshot::channel();
        self.committer.enqueue(CommitEntry { batch, state: None, owner: None, done })?;
        Ok(durable)
    }
}

/// The index rows that an item may be missing, and those that it may have in excess.
fn difference(schema: &Schema, shard: u64, bytes: &Bytes) -> Result<(ItemKey, RowChanges)> {
    let record = Record::decode(bytes.clone())?;
    let body = json::parse(record.body())?;
    let key = schema.key.as_ref().map(|definition| PartitionKey::extract(definition, &body)).unwrap_or_default();
    let key = ItemKey::new(schema.key.as_ref(), &key, item_id(&body)?);
    let mut changes = RowChanges::default();
    let wanted = schema.terms(&body, record.ts_s, record.indexed);
    changes.change_terms(shard, record.docnum, &schema.stored_terms(&record, &body), &wanted);
    Ok((key, changes))
}
