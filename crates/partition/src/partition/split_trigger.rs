//! When there is too much in a partition.
//!
//! Promise: whoever writes the byte too many is told once, so that somebody can start a split; and a partition that cannot be
//! split takes nothing more in. Splitting is `engine`'s business. On the way of a write this costs one comparison.

use std::sync::atomic::{AtomicU8, Ordering};

use pleiad_model::{Error, Kind, Result};

use super::Partition;
use crate::schema::Schema;
use crate::shard_state::ShardState;

#[derive(Debug, Default)]
pub(super) struct SplitTrigger(AtomicU8);

const CALM: u8 = 0;
/// Nobody has heard yet.
const CRIES: u8 = 1;
const HEARD: u8 = 2;
/// All its items have one effective key.
const STUCK: u8 = 3;

impl SplitTrigger {
    /// After every write: whether there is too much.
    pub fn note(&self, over: bool) {
        let (from, to) = match (over, self.0.load(Ordering::Relaxed)) {
            (true, CALM) => (CALM, CRIES),
            (false, STUCK) => (STUCK, CALM),
            _ => return,
        };
        let _ = self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed); // else somebody was faster
    }
}

impl Partition {
    /// Whether it has become too large; the first to ask hears it.
    pub fn hear_growth(&self) -> bool {
        self.growth.0.load(Ordering::Relaxed) == CRIES
            && self.growth.0.compare_exchange(CRIES, HEARD, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// It cannot be split; until something is deleted it is full.
    pub fn set_stuck(&self) {
        self.growth.0.store(STUCK, Ordering::Relaxed);
    }

    pub fn is_stuck(&self) -> bool {
        self.growth.0.load(Ordering::Relaxed) == STUCK
    }

    /// A split came to nothing: the next write too many is told again.
    pub fn forget_growth(&self) {
        self.growth.0.store(CALM, Ordering::Relaxed);
    }

    /// Only what grows is refused: a full partition can still be read, trimmed and emptied.
    pub(super) fn check_room(&self, schema: &Schema, shard: &ShardState) -> Result<()> {
        let limit = schema.room.partition_bytes_max;
        if shard.item_bytes <= limit || (schema.key.is_some() && !self.is_stuck()) {
            return Ok(());
        }
        let message = match &schema.key {
            None => format!(
                "The container has no partition key and has reached its maximum size of {limit} bytes. Delete items, or move them to a container with a partition key."
            ),
            Some(_) => format!(
                "The partition has reached its maximum size of {limit} bytes, and all its items have one partition key value, so that it cannot be split. Delete items, or choose a key with more values."
            ),
        };
        Err(Error::new(Kind::QuotaExceeded, message))
    }
}
