//! Key statistics: the number of logical partitions, the largest of them, and those that are nearly full.
//!
//! Invariant: memory is bounded, however many keys there are. Writers maintain the size of each key in its row; a scan
//! reads these rows once, from one snapshot, and a refresh scans only if something was written since the last one.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pleiad_model::Result;
use pleiad_storage::{Blocking, Direction, Limit, Snapshot, Store, keyspace};

use crate::Partition;
use crate::key::{ItemKey, KeyStats, LargeKey};
use crate::usage::KEYS_REPORTED;

const SCAN_ROWS: usize = 4096;
/// Nearly full keys that are held until they are taken; further ones are dropped.
const NEARLY_FULL_MAX: usize = 64;

/// What can be reported without a scan.
#[derive(Debug, Default)]
pub struct LargeKeyCache {
    largest: Mutex<Vec<LargeKey>>,
    /// Keys that exceeded seven tenths of the cap since they were last taken.
    nearly_full: Mutex<Vec<LargeKey>>,
    scanned_lsn: AtomicU64,
}

impl LargeKeyCache {
    pub fn largest(&self) -> Vec<LargeKey> {
        self.largest.lock().clone()
    }

    /// Each key is returned once.
    pub fn take_nearly_full(&self) -> Vec<LargeKey> {
        std::mem::take(&mut *self.nearly_full.lock())
    }

    /// A write changes the size of a key from `before` to `after`.
    pub(crate) fn record_growth(&self, key: &ItemKey, before: u64, after: &KeyStats, bytes_max: u64) {
        let threshold = bytes_max / 10 * 7;
        if before > threshold || after.bytes <= threshold {
            return;
        }
        let mut keys = self.nearly_full.lock();
        if keys.len() < NEARLY_FULL_MAX {
            keys.push(LargeKey { components: key.logical.components().to_vec(), stats: after.clone() });
        }
    }
}

/// The result of a scan over all keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStatistics {
    pub keys: u64,
    /// In descending order of size.
    pub largest: Vec<LargeKey>,
}

impl KeyStatistics {
    /// Counts a key, and retains it if it is among the `top` largest.
    fn add(&mut self, row: &[u8], top: usize) -> Result<()> {
        let (stats, components) = KeyStats::decode_with_key(row)?;
        self.keys += 1;
        let at = self.largest.partition_point(|large| large.stats.bytes >= stats.bytes);
        if at < top {
            self.largest.insert(at, LargeKey { components: components.to_vec(), stats });
            self.largest.truncate(top);
        }
        Ok(())
    }
}

impl Partition {
    /// Scans all keys; returns their number and the `top` largest.
    pub async fn key_statistics(&self, top: usize) -> Result<KeyStatistics> {
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        let (mut from, to) = keyspace::range(self.range.shard, keyspace::Tag::Key);
        let mut found = KeyStatistics::default();
        loop {
            let rows = snapshot.scan(&from, &to, Direction::Forward, Limit::rows(SCAN_ROWS)).await?;
            rows.pairs.iter().try_for_each(|(_, row)| found.add(row, top))?;
            match rows.pairs.last() {
                Some((last, _)) if rows.more => from = keyspace::after(last),
                _ => return Ok(found),
            }
        }
    }

    /// The number of logical partitions.
    pub async fn count_keys(&self) -> Result<u64> {
        Ok(self.key_statistics(0).await?.keys)
    }

    /// Refreshes the cached largest keys if something was written since the last scan.
    pub async fn refresh_key_statistics(&self) -> Result<()> {
        let lsn = self.lsn();
        if self.large_keys.scanned_lsn.swap(lsn, Ordering::Relaxed) != lsn {
            *self.large_keys.largest.lock() = self.key_statistics(KEYS_REPORTED).await?.largest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
