//! Key tombstones: each marks a partition key whose items were all deleted.
//!
//! Invariant: every item of the key with an LSN up to the tombstone's is dead for all readers and writers, although its
//! rows still exist; later writes have a larger LSN and are not affected. A reader applies the tombstones that are
//! durable in its snapshot, a writer applies all. A purge removes the rows, then the tombstone.
//!
//! ```text
//! key_tombstone   EPK  →  LSN u64          00…00 03 2c: up to 812
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, Blocking, Direction, Limit, Snapshot, Store, keyspace};

use crate::record::RecordView;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTombstone {
    pub epk: EffectiveKey,
    pub lsn: u64,
}

/// Decides which items are deleted.
pub(crate) trait Tombstones {
    /// Whether an item is deleted for a reader at this LSN.
    fn covers(&self, record: &RecordView<'_>, seen_lsn: u64) -> bool;
}

/// The tombstones of a partition: usually none, never many.
#[derive(Clone, Debug, Default)]
pub struct KeyTombstones(Vec<KeyTombstone>);

impl KeyTombstones {
    pub async fn load(store: &AnyStore, shard: u64) -> Result<KeyTombstones> {
        let (from, to) = keyspace::range(shard, keyspace::Tag::KeyTombstone);
        let rows = store.snapshot(Blocking::Suspend).await?.scan(&from, &to, Direction::Forward, Limit::NONE).await?;
        let decode = |(row, value): &(Bytes, Bytes)| {
            let lsn = value[..].try_into().map_err(|_| Error::corrupt("the LSN of an erased key"))?;
            let epk = EffectiveKey::from_bytes(&keyspace::decode_key_tombstone(row)?);
            Ok(KeyTombstone { epk, lsn: u64::from_be_bytes(lsn) })
        };
        rows.pairs.iter().map(decode).collect::<Result<_>>().map(KeyTombstones)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn first(&self) -> Option<KeyTombstone> {
        self.0.first().cloned()
    }
}

impl Tombstones for KeyTombstones {
    fn covers(&self, record: &RecordView<'_>, seen_lsn: u64) -> bool {
        // A version without an LSN belongs to an open transaction.
        let covers = |tombstone: &KeyTombstone| {
            tombstone.lsn <= seen_lsn && record.lsn <= tombstone.lsn && tombstone.epk.as_bytes() == record.epk
        };
        record.lsn > 0 && self.0.iter().any(covers)
    }
}

impl Tombstones for TombstoneCell {
    fn covers(&self, record: &RecordView<'_>, seen_lsn: u64) -> bool {
        self.has_any.load(Ordering::Acquire) && self.tombstones.read().covers(record, seen_lsn)
    }
}

/// The current tombstones. Every item read checks them, so having none must cost only one atomic load.
#[derive(Debug, Default)]
pub(crate) struct TombstoneCell {
    has_any: AtomicBool,
    tombstones: RwLock<Arc<KeyTombstones>>,
}

impl TombstoneCell {
    pub fn new(tombstones: KeyTombstones) -> TombstoneCell {
        TombstoneCell {
            has_any: AtomicBool::new(!tombstones.is_empty()),
            tombstones: RwLock::new(Arc::new(tombstones)),
        }
    }

    pub fn get(&self) -> Arc<KeyTombstones> {
        self.tombstones.read().clone()
    }

    /// A newer tombstone of a key replaces the older one. Returns the tombstones before, for `restore`.
    pub fn add(&self, tombstone: KeyTombstone) -> Arc<KeyTombstones> {
        let mut current = self.tombstones.write();
        let mut tombstones: Vec<KeyTombstone> =
            current.0.iter().filter(|other| other.epk != tombstone.epk).cloned().collect();
        tombstones.push(tombstone);
        let before = std::mem::replace(&mut *current, Arc::new(KeyTombstones(tombstones)));
        self.has_any.store(true, Ordering::Release);
        before
    }

    /// Undoes `add`. The caller holds the sequencer's lock since then.
    pub fn restore(&self, before: Arc<KeyTombstones>) {
        let mut current = self.tombstones.write();
        self.has_any.store(!before.is_empty(), Ordering::Release);
        *current = before;
    }

    pub fn add_all(&self, others: &KeyTombstones, within: &EpkRange) {
        others
            .0
            .iter()
            .filter(|tombstone| within.contains(&tombstone.epk))
            .cloned()
            .for_each(|tombstone| drop(self.add(tombstone)));
    }

    /// Returns whether it was present: a newer one may have replaced it.
    pub fn remove(&self, tombstone: &KeyTombstone) -> bool {
        let mut current = self.tombstones.write();
        let was_present = current.0.contains(tombstone);
        let tombstones: Vec<KeyTombstone> = current.0.iter().filter(|other| *other != tombstone).cloned().collect();
        self.has_any.store(!tombstones.is_empty(), Ordering::Release);
        *current = Arc::new(KeyTombstones(tombstones));
        was_present
    }
}
