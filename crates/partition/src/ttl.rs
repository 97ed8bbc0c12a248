//! Time to live: which items are expired, and how their rows are purged.
//!
//! Invariant: expiry is decided at read time from the item's own `ttl`, its container's default and the clock; it is
//! not stored. So a new default takes effect immediately, and an expired item becomes invisible to all readers and
//! writers at the same time, although its rows still exist. A purge removes those rows later.
//!
//! | container | item without `ttl` | item with -1 | item with n |
//! |---|---|---|---|
//! | no default | never expires | never expires | never expires |
//! | -1 | never expires | never expires | after n seconds |
//! | N | after N seconds | never expires | after n seconds |
//!
//! Seconds are counted from the last write, `_ts`. An item is live through the whole of its last second: it never
//! expires early.

use pleiad_model::Result;
use pleiad_storage::{Blocking, Direction, Limit, Snapshot, Store, keyspace};

use crate::partition::{MaintenanceError, Partition};
use crate::record::{Record, RecordView, name_hash};
use crate::schema::Schema;

/// A container's default, and the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    default_s: Option<i32>,
    now_s: u32,
}

/// A `ttl` with which an item never expires.
const NEVER_EXPIRES: i32 = -1;

impl Expiry {
    pub fn new(default_s: Option<i32>, now_s: u32) -> Expiry {
        Expiry { default_s, now_s }
    }

    /// No item ever expires.
    pub const NEVER: Expiry = Expiry { default_s: None, now_s: 0 };

    /// Whether items can expire at all.
    pub fn is_enabled(&self) -> bool {
        self.default_s.is_some()
    }

    pub(crate) fn is_expired(&self, record: &RecordView<'_>) -> bool {
        self.last_second(record).is_some_and(|last_s| u64::from(self.now_s) > last_s)
    }

    /// The last second in which the item is live.
    fn last_second(&self, record: &RecordView<'_>) -> Option<u64> {
        let default_s = self.default_s?;
        let ttl_s = own_ttl(record).unwrap_or(default_s);
        (ttl_s != NEVER_EXPIRES).then(|| u64::from(record.ts_s) + u64::from(ttl_s.unsigned_abs()))
    }
}

/// The item's own `ttl`. It was validated when the item was written.
fn own_ttl(record: &RecordView<'_>) -> Option<i32> {
    let text = record.property("ttl", name_hash("ttl"))?;
    let value = pleiad_model::json::parse(text).ok()?;
    value.as_i64().and_then(|ttl_s| i32::try_from(ttl_s).ok())
}

/// Progress of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// All items up to this docnum have been scanned.
    pub after: u64,
    /// The earliest last second of the scanned items that are not expired yet; `None` if none of them can expire.
    pub due_s: Option<u64>,
    /// How many items were removed.
    pub removed: u64,
}

/// Items that one step scans, removes, and fetches at a time.
const SCANNED_MAX: usize = 50_000;
const REMOVED_MAX: usize = 256;
const FETCH_CHUNK: usize = 32;

impl Partition {
    /// Scans the next items in docnum order and removes the expired ones; returns true if there are more to scan. For
    /// blocking threads.
    pub async fn purge(&self, schema: &Schema, now_s: u32, purge: &mut Purge) -> Result<bool, MaintenanceError> {
        let expiry = schema.expiry(now_s);
        let (expired, more) = self.find_expired(expiry, purge).await?;
        purge.removed += expired.len() as u64;
        self.expire(schema, now_s, &expired).await?;
        Ok(more)
    }

    /// The time of the latest change to an item that still exists.
    pub async fn newest_ts_s(&self) -> Result<Option<u32>> {
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        let (from, to) = keyspace::range(self.range.shard, keyspace::Tag::Feed);
        let newest = snapshot.scan(&from, &to, Direction::Backward, Limit::rows(1)).await?;
        let Some((row, _)) = newest.pairs.first() else { return Ok(None) };
        let (_, _, docnum) = keyspace::decode_feed(row)?;
        let record = snapshot.get_many(&[keyspace::doc(self.range.shard, docnum)]).await?.pop().flatten();
        record.map(|bytes| Ok(Record::decode(bytes)?.ts_s)).transpose()
    }

    async fn find_expired(&self, expiry: Expiry, purge: &mut Purge) -> Result<(Vec<u64>, bool)> {
        let view = self.snapshot(Blocking::Suspend).await?;
        let (from, mut expired, mut seen, mut failed) = (purge.after, Vec::new(), 0, None);
        let mut scan_record = |record: RecordView<'_>| {
            seen += 1;
            purge.after = record.docnum;
            match expiry.is_expired(&record) {
                true => expired.push(record.docnum),
                false => purge.due_s = purge.due_s.into_iter().chain(expiry.last_second(&record)).min(),
            }
            seen < SCANNED_MAX && expired.len() < REMOVED_MAX
        };
        let stopped = view
            .visit(from, u64::MAX, &mut |record| match record {
                Ok(record) => scan_record(record),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            })
            .await?;
        failed.map_or(Ok((expired, stopped)), Err)
    }

    /// Removes the items with these docnums, if they are still expired under their latch.
    async fn expire(&self, schema: &Schema, now_s: u32, docnums: &[u64]) -> Result<(), MaintenanceError> {
        let view = self.snapshot(Blocking::Suspend).await?;
        let mut last = None;
        for chunk in docnums.chunks(FETCH_CHUNK) {
            for record in view.get(chunk).await?.into_iter().flatten() {
                last = self.expire_item(schema, &record, now_s).await?.or(last);
            }
        }
        // Transactions become durable in order, so it is enough to wait for the last one.
        match last {
            Some(queued) => Ok(queued.wait().await.map(drop)?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
