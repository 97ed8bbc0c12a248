//! Format upgrade: rewrites shards that an earlier version wrote to the current format.
//!
//! Invariant: the upgrade runs before any other access to the shard, in chunks, and is idempotent: after an
//! interruption it starts over, because the state row, which records the new version, is written last.
//!
//! ```text
//! version 1   feed   LSN u64 │ seq u32                  → docnum u64
//! version 2   feed   LSN u64 │ seq u32 │ docnum u64     → effective key
//! ```

use bytes::Bytes;
use pleiad_model::{Error, Result};
use pleiad_storage::keyspace::{self, Tag};
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, AnyStore, Batch, Blocking, Direction, Limit, Snapshot, Store};

use crate::commit::Committer;
use crate::record::Record;
use crate::row_changes::{docnum_from_value, feed_row};
use crate::shard_state::ShardState;

const CHUNK: Limit = Limit::rows(1024);

/// Rewrites every feed row with its item's docnum and effective key.
pub async fn feed_rows(store: &AnyStore, committer: &Committer, shard: u64) -> Result<()> {
    tracing::info!(shard, "rewriting the feed rows that an earlier version wrote");
    let snapshot = store.snapshot(Blocking::Suspend).await?;
    let (mut from, to) = keyspace::range(shard, Tag::Feed);
    loop {
        let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
        committer.commit(rewritten(&snapshot, shard, &chunk.pairs).await?).await?;
        match chunk.pairs.last() {
            Some((last, _)) if chunk.more => from = keyspace::after(last),
            _ => break,
        }
    }
    let mut batch = Batch::new();
    let state = snapshot.get_many(&[keyspace::state(shard)]).await?.pop().flatten();
    batch.put(keyspace::state(shard), ShardState::decode(&state.unwrap_or_default())?.encode());
    committer.commit(batch).await
}

/// Rows that were rewritten before an interruption are left as they are.
async fn rewritten(snapshot: &AnySnapshot, shard: u64, rows: &[Pair]) -> Result<Batch> {
    let former: Vec<&Pair> = rows.iter().filter(|(row, _)| keyspace::decode_feed_v1(row).is_ok()).collect();
    let docs: Vec<Bytes> = former.iter().map(|(_, value)| doc_row(shard, value)).collect::<Result<_>>()?;
    let mut batch = Batch::new();
    for ((row, _), found) in former.into_iter().zip(snapshot.get_many(&docs).await?) {
        let bytes = found.ok_or_else(|| Error::corrupt("a feed row of an item that is not there"))?;
        let record = Record::decode(bytes)?;
        batch.delete(row);
        batch.put(feed_row(shard, &record), record.epk.as_bytes());
    }
    Ok(batch)
}

fn doc_row(shard: u64, value: &[u8]) -> Result<Bytes> {
    Ok(keyspace::doc(shard, docnum_from_value(value)?))
}

#[cfg(test)]
mod tests;
