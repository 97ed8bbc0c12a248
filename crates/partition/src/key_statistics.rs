//! Which logical partitions are large: how many there are, the largest of them, and those that are nearly full.
//!
//! Promise: bounded memory, however many keys there are. The rows were counted when they were written; looking reads
//! them once, from one snapshot, and only where something was written since the last look.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pleiad_model::Result;
use pleiad_storage::{Direction, Limit, Snapshot, Store, keyspace};

use crate::Partition;
use crate::key::{ItemKey, KeyStats, LargeKey};
use crate::usage::KEYS_TOLD;

const ROWS: usize = 4096;
/// Of those that nobody has asked about yet.
const NEARLY_FULL_MAX: usize = 64;

/// What is known without looking.
#[derive(Debug, Default)]
pub struct KnownKeys {
    largest: Mutex<Vec<LargeKey>>,
    /// Passed seven tenths of the cap since somebody last asked.
    nearly_full: Mutex<Vec<LargeKey>>,
    looked_at_lsn: AtomicU64,
}

impl KnownKeys {
    pub fn largest(&self) -> Vec<LargeKey> {
        self.largest.lock().clone()
    }

    /// Each is told once.
    pub fn take_nearly_full(&self) -> Vec<LargeKey> {
        std::mem::take(&mut *self.nearly_full.lock())
    }

    /// A write brings a key from `before` to `after`.
    pub(crate) fn grows(&self, key: &ItemKey, before: u64, after: &KeyStats, bytes_max: u64) {
        let line = bytes_max / 10 * 7;
        if before > line || after.bytes <= line {
            return;
        }
        let mut keys = self.nearly_full.lock();
        if keys.len() < NEARLY_FULL_MAX {
            keys.push(LargeKey { components: key.logical.components().to_vec(), stats: after.clone() });
        }
    }
}

/// What a look at all keys finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStatistics {
    pub keys: u64,
    /// The largest first.
    pub largest: Vec<LargeKey>,
}

impl KeyStatistics {
    /// Keeps the `top` largest.
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
    /// A look at all keys, which tells the `top` largest.
    pub async fn key_statistics(&self, top: usize) -> Result<KeyStatistics> {
        let snapshot = self.store.snapshot().await?;
        let (mut from, to) = keyspace::range(self.range.shard, keyspace::Tag::Key);
        let mut found = KeyStatistics::default();
        loop {
            let rows = snapshot.scan(&from, &to, Direction::Forward, Limit::rows(ROWS)).await?;
            rows.pairs.iter().try_for_each(|(_, row)| found.add(row, top))?;
            match rows.pairs.last() {
                Some((last, _)) if rows.more => from = keyspace::after(last),
                _ => return Ok(found),
            }
        }
    }

    /// How many logical partitions there are.
    pub async fn count_keys(&self) -> Result<u64> {
        Ok(self.key_statistics(0).await?.keys)
    }

    /// Brings `keys` up to date, if something was written since the last look.
    pub async fn look_at_keys(&self) -> Result<()> {
        let lsn = self.lsn();
        if self.keys.looked_at_lsn.swap(lsn, Ordering::Relaxed) != lsn {
            *self.keys.largest.lock() = self.key_statistics(KEYS_TOLD).await?.largest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
