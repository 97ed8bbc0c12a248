//! Keys whose items were all deleted at once.
//!
//! Promise: everything under the key that was written at the mark's LSN or before is gone for everybody, although its rows
//! are still there; what is written later has a larger LSN and is not concerned. A reader goes by the marks that are
//! durable in what it sees, a writer by all. A sweep removes the rows, then the mark.
//!
//! ```text
//! erased   EPK  →  LSN u64          00…00 03 2c: up to 812
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, Direction, Limit, Snapshot, Store, keyspace};

use crate::record::RecordView;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTombstone {
    pub epk: EffectiveKey,
    pub lsn: u64,
}

/// The marks of a partition: seldom any, never many.
#[derive(Clone, Debug, Default)]
pub struct KeyTombstones(Vec<KeyTombstone>);

impl KeyTombstones {
    pub async fn load(store: &AnyStore, shard: u64) -> Result<KeyTombstones> {
        let (from, to) = keyspace::range(shard, keyspace::Tag::Erased);
        let rows = store.snapshot().await?.scan(&from, &to, Direction::Forward, Limit::NONE).await?;
        let mark = |(row, value): &(Bytes, Bytes)| {
            let lsn = value[..].try_into().map_err(|_| Error::corrupt("the LSN of an erased key"))?;
            let epk = EffectiveKey::from_bytes(&keyspace::decode_erased(row)?);
            Ok(KeyTombstone { epk, lsn: u64::from_be_bytes(lsn) })
        };
        rows.pairs.iter().map(mark).collect::<Result<_>>().map(KeyTombstones)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn first(&self) -> Option<KeyTombstone> {
        self.0.first().cloned()
    }

    /// Whether an item is gone for whoever has seen this LSN.
    pub fn covers(&self, record: &RecordView<'_>, seen: u64) -> bool {
        // A version without an LSN belongs to a transaction under way.
        let covers =
            |mark: &KeyTombstone| mark.lsn <= seen && record.lsn <= mark.lsn && mark.epk.as_bytes() == record.epk;
        record.lsn > 0 && self.0.iter().any(covers)
    }
}

/// The marks as they are now. Whoever reads an item asks, so that not having any costs nothing.
#[derive(Debug, Default)]
pub(crate) struct TombstoneCell {
    any: AtomicBool,
    erased: RwLock<Arc<KeyTombstones>>,
}

impl TombstoneCell {
    pub fn new(erased: KeyTombstones) -> TombstoneCell {
        TombstoneCell { any: AtomicBool::new(!erased.is_empty()), erased: RwLock::new(Arc::new(erased)) }
    }

    pub fn get(&self) -> Arc<KeyTombstones> {
        self.erased.read().clone()
    }

    pub fn cover(&self, record: &RecordView<'_>, seen: u64) -> bool {
        self.any.load(Ordering::Acquire) && self.erased.read().covers(record, seen)
    }

    /// A newer mark takes the place of an older one.
    pub fn add(&self, mark: KeyTombstone) {
        let mut erased = self.erased.write();
        let mut marks: Vec<KeyTombstone> = erased.0.iter().filter(|other| other.epk != mark.epk).cloned().collect();
        marks.push(mark);
        *erased = Arc::new(KeyTombstones(marks));
        self.any.store(true, Ordering::Release);
    }

    pub fn add_all(&self, others: &KeyTombstones, within: &EpkRange) {
        others.0.iter().filter(|mark| within.contains(&mark.epk)).cloned().for_each(|mark| self.add(mark));
    }

    /// Tells whether it was there: a newer one may have taken its place.
    pub fn remove(&self, mark: &KeyTombstone) -> bool {
        let mut erased = self.erased.write();
        let was_there = erased.0.contains(mark);
        let marks: Vec<KeyTombstone> = erased.0.iter().filter(|other| *other != mark).cloned().collect();
        self.any.store(!marks.is_empty(), Ordering::Release);
        *erased = Arc::new(KeyTombstones(marks));
        was_there
    }
}
