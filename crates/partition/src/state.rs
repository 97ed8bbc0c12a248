//! What a shard must remember between commits.
//!
//! Promise: the row is written in the same batch as the changes it counts, so that after a crash
//! the LSN, the next item number and the totals agree with the items.
//!
//! ```text
//! state   version u8 │ lsn u64 │ next item u64 │ versions from u64 │ merged lsn u64 │ items u64 │ item bytes u64
//! ```
//!
//! Rows of versions 1 and 2 have neither "versions from" nor "merged lsn".

use bytes::Bytes;
use pleiad_model::{Error, Result};

/// Of the row, and of the shard's other rows: version 1 had feed rows without item numbers.
const VERSION: u8 = 3;
const VERSION_WITHOUT_VERSIONS: u8 = 2;
const VERSION_FEED_WITHOUT_NUMBERS: u8 = 1;

/// Item numbers below one range prefix; the prefix is the upper 20 bits of a docnum.
pub const DOCNUM_COUNTER_BITS: u32 = 40;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardState {
    pub lsn: u64,
    pub next_item: u64,
    pub items: u64,
    pub item_bytes: u64,
    /// All versions behind this LSN are kept; `None` if nobody asked for them.
    pub versions_from: Option<u64>,
    /// Up to here, changes of several partitions lie side by side: their times do not grow with their LSNs.
    pub merged_lsn: u64,
}

/// How `None` is written.
const NO_LSN: u64 = u64::MAX;

impl ShardState {
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(49);
        out.push(VERSION);
        let versions_from = self.versions_from.unwrap_or(NO_LSN);
        for field in [self.lsn, self.next_item, versions_from, self.merged_lsn, self.items, self.item_bytes] {
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
        let fields: Vec<u64> = fields.iter().map(|field| u64::from_be_bytes(*field)).collect();
        let (lsn, next_item, versions_from, merged_lsn, items, item_bytes) = match (*version, fields.as_slice()) {
            (VERSION, &[lsn, next_item, versions_from, merged_lsn, items, item_bytes]) => {
                (lsn, next_item, versions_from, merged_lsn, items, item_bytes)
            }
            (VERSION_WITHOUT_VERSIONS | VERSION_FEED_WITHOUT_NUMBERS, &[lsn, next_item, items, item_bytes]) => {
                (lsn, next_item, NO_LSN, 0, items, item_bytes)
            }
            _ => return Err(corrupt()),
        };
        let versions_from = Some(versions_from).filter(|lsn| *lsn != NO_LSN);
        Ok(ShardState { lsn, next_item, items, item_bytes, versions_from, merged_lsn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_round_trips_and_refuses_other_bytes() {
        let state = ShardState { lsn: 812, next_item: 9, items: 4, item_bytes: 4096, ..ShardState::default() };
        let versioned = ShardState { versions_from: Some(7), merged_lsn: 3, ..state };
        for state in [state, versioned] {
            assert_eq!(ShardState::decode(&state.encode()).unwrap(), state);
        }
        let former = [&[2], &state.encode()[1..17], &state.encode()[33..]].concat();
        assert_eq!(ShardState::decode(&former).unwrap(), state, "a row of an earlier version");
        assert!(ShardState::decode(&[]).is_err());
        assert!(ShardState::decode(&state.encode()[..32]).is_err());
        assert!(ShardState::decode(&[3; 33]).is_err() && ShardState::decode(&[4; 49]).is_err());
        assert!(!ShardState::is_outdated(&state.encode()));
    }
}
