//! Shard state: the row with a shard's LSN, counters and watermarks.
//!
//! Invariant: the row is written in the same batch as the changes it counts, so that after a crash
//! the LSN, the last docnum and the totals agree with the items.
//!
//! ```text
//! state   version u8 │ lsn u64 │ last item u64 │ versions from u64 │ merged lsn u64 │ items u64 │ item bytes u64 │ later
//! ```
//!
//! `retention` documents the layout of `later`. Rows of version 3 do not have it; rows of versions 1 and 2 have neither
//! "versions from" nor "merged lsn" either.

mod retention; // the retention watermark of versions

use bytes::Bytes;
use pleiad_model::{Error, Result};

pub use retention::RetentionWatermark;

/// The version of this row and of the shard's other rows: version 1 had feed rows without docnums.
const VERSION: u8 = 4;
const VERSION_WITHOUT_LATER: u8 = 3;
const VERSION_WITHOUT_VERSIONS: u8 = 2;
const VERSION_FEED_WITHOUT_NUMBERS: u8 = 1;

/// The bits of a docnum that count the items of one range prefix; the prefix is the upper 20 bits.
pub const DOCNUM_COUNTER_BITS: u32 = 40;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardState {
    pub lsn: u64,
    /// The counter of the last docnum that was assigned; the prefix is not included.
    pub last_item: u64,
    pub items: u64,
    pub item_bytes: u64,
    /// All versions after this watermark are retained; `None` before the first write under a policy that retains them.
    pub versions_from: Option<RetentionWatermark>,
    /// Up to this LSN, changes come from several merged partitions: their times do not increase with their LSNs.
    pub merged_lsn: u64,
}

/// Encodes `None`.
const NO_LSN: u64 = u64::MAX;
/// An empty list of later ranges.
const NONE_LATER: &[u8] = &[0];

impl ShardState {
    /// Advances to the next LSN. `keeps_version`: whether the change at it leaves a version row.
    pub fn advance(&mut self, leaves_version: bool) {
        let before = self.lsn;
        self.lsn += 1;
        match (&mut self.versions_from, leaves_version) {
            (None, true) => self.versions_from = Some(RetentionWatermark::at(before)),
            // Earlier versions are useless now, but stay until they are trimmed.
            (Some(watermark), false) => watermark.raise(self.lsn),
            (Some(_), true) | (None, false) => {}
        }
    }

    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(50);
        out.push(VERSION);
        let versions_from = self.versions_from.as_ref().map_or(NO_LSN, RetentionWatermark::lsn);
        for field in [self.lsn, self.last_item, versions_from, self.merged_lsn, self.items, self.item_bytes] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        match &self.versions_from {
            Some(watermark) => watermark.encode_later(&mut out),
            None => out.extend_from_slice(NONE_LATER),
        }
        Bytes::from(out)
    }

    /// Whether the shard has the layout of an earlier version: `upgrade` must run first.
    pub fn is_outdated(bytes: &[u8]) -> bool {
        bytes.first() == Some(&VERSION_FEED_WITHOUT_NUMBERS)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        read(bytes).ok_or_else(|| Error::corrupt("shard state"))
    }
}

fn read(bytes: &[u8]) -> Option<ShardState> {
    let (version, rest) = bytes.split_first()?;
    let (fields, later) = match *version {
        VERSION => rest.split_at_checked(48)?,
        _ => (rest, NONE_LATER),
    };
    let (fields, []) = fields.as_chunks::<8>() else { return None };
    let fields: Vec<u64> = fields.iter().map(|field| u64::from_be_bytes(*field)).collect();
    let (lsn, last_item, versions_from, merged_lsn, items, item_bytes) = match (*version, fields.as_slice()) {
        (VERSION | VERSION_WITHOUT_LATER, &[lsn, next_item, versions_from, merged_lsn, items, item_bytes]) => {
            (lsn, next_item, versions_from, merged_lsn, items, item_bytes)
        }
        (VERSION_WITHOUT_VERSIONS | VERSION_FEED_WITHOUT_NUMBERS, &[lsn, next_item, items, item_bytes]) => {
            (lsn, next_item, NO_LSN, 0, items, item_bytes)
        }
        _ => return None,
    };
    let versions_from =
        Some(RetentionWatermark::decode(versions_from, later)?).filter(|watermark| watermark.lsn() != NO_LSN);
    Some(ShardState { lsn, last_item, items, item_bytes, versions_from, merged_lsn })
}

#[cfg(test)]
mod tests;
