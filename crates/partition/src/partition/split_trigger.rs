//! Split trigger: a one-shot signal that a partition exceeds its size.
//!
//! Invariant: when a write exceeds the limit, exactly one caller of `take_split_request` gets true and can start a
//! split; a partition that cannot be split rejects writes that add bytes. `engine` performs the split. The check costs
//! a write one comparison.

use std::sync::atomic::{AtomicU8, Ordering};

use pleiad_model::{Fact, Result};

use super::Partition;
use crate::schema::Schema;
use crate::shard_state::ShardState;

#[derive(Debug, Default)]
pub(super) struct SplitTrigger(AtomicU8);

const IDLE: u8 = 0;
/// Too large, and no caller has taken the request yet.
const PENDING: u8 = 1;
const TAKEN: u8 = 2;
/// Too large, and all its items have one effective key.
const UNSPLITTABLE: u8 = 3;

impl SplitTrigger {
    /// Called after every write.
    pub fn update(&self, is_oversized: bool) {
        let (from, to) = match (is_oversized, self.0.load(Ordering::Relaxed)) {
            (true, IDLE) => (IDLE, PENDING),
            (false, UNSPLITTABLE) => (UNSPLITTABLE, IDLE),
            _ => return,
        };
        let _ = self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed); // or another writer did it
    }
}

impl Partition {
    /// Whether the partition has become too large; only the first caller gets true.
    pub fn take_split_request(&self) -> bool {
        self.split_trigger.0.load(Ordering::Relaxed) == PENDING
            && self.split_trigger.0.compare_exchange(PENDING, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The partition cannot be split: it is full until items are deleted.
    pub fn set_unsplittable(&self) {
        self.split_trigger.0.store(UNSPLITTABLE, Ordering::Relaxed);
    }

    pub fn is_unsplittable(&self) -> bool {
        self.split_trigger.0.load(Ordering::Relaxed) == UNSPLITTABLE
    }

    /// A split was aborted, or could not begin: the next write above the limit requests one again.
    pub fn reset_split_request(&self) {
        let _ = self.split_trigger.0.compare_exchange(TAKEN, IDLE, Ordering::Relaxed, Ordering::Relaxed); // or none was
    }

    /// Called only for writes that add bytes: a full partition can still be read, shrunk and emptied.
    pub(super) fn check_partition_size(&self, schema: &Schema, shard: &ShardState) -> Result<()> {
        let bytes_max = schema.size_limits.partition_bytes_max;
        if shard.item_bytes <= bytes_max || (schema.key.is_some() && !self.is_unsplittable()) {
            return Ok(());
        }
        Err(match schema.key {
            None => Fact::ContainerFull { bytes_max }.into(),
            Some(_) => Fact::PartitionFull { bytes_max, range: self.range.id }.into(),
        })
    }
}
