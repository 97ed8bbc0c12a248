//! What a shard must remember between commits.
//!
//! Promise: the row is written in the same batch as the changes it counts, so that after a crash
//! the LSN, the next item number and the totals agree with the items.
//!
//! ```text
//! state   version u8 │ lsn u64 │ next item u64 │ items u64 │ item bytes u64
//! ```

use bytes::Bytes;
use pleiad_model::{Error, Result};

/// Of the row, and of the shard's other rows: version 1 had feed rows without item numbers.
const VERSION: u8 = 2;
const VERSION_FEED_WITHOUT_NUMBERS: u8 = 1;

/// Item numbers below one range prefix; the prefix is the upper 20 bits of a docnum.
pub const DOCNUM_COUNTER_BITS: u32 = 40;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardState {
    pub lsn: u64,
    pub next_item: u64,
    pub items: u64,
    pub item_bytes: u64,
}

impl ShardState {
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(33);
        out.push(VERSION);
        for field in [self.lsn, self.next_item, self.items, self.item_bytes] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        Bytes::from(out)
    }

    /// Whether a row was written by a version whose shards look otherwise: `upgrade` comes first.
    pub fn is_outdated(bytes: &[u8]) -> bool {
        bytes.first() == Some(&VERSION_FEED_WITHOUT_NUMBERS)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let corrupt = || Error::corrupt("shard state");
        let (version, rest) = bytes.split_first().ok_or_else(corrupt)?;
        let (fields, []) = rest.as_chunks::<8>() else { return Err(corrupt()) };
        match (*version, fields) {
            (VERSION | VERSION_FEED_WITHOUT_NUMBERS, [lsn, next_item, items, item_bytes]) => Ok(ShardState {
                lsn: u64::from_be_bytes(*lsn),
                next_item: u64::from_be_bytes(*next_item),
                items: u64::from_be_bytes(*items),
                item_bytes: u64::from_be_bytes(*item_bytes),
            }),
            _ => Err(corrupt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_round_trips_and_refuses_other_bytes() {
        let state = ShardState { lsn: 812, next_item: 9, items: 4, item_bytes: 4096 };
        assert_eq!(ShardState::decode(&state.encode()).unwrap(), state);
        assert!(ShardState::decode(&[]).is_err());
        assert!(ShardState::decode(&state.encode()[..32]).is_err());
        assert!(ShardState::decode(&[3; 33]).is_err());
        assert!(!ShardState::is_outdated(&state.encode()));
    }
}
