//! Retention watermark: the LSN after which a shard has all versions, per EPK range.
//!
//! Invariant: no version of a key after the key's watermark is missing, so a reader's position is compared only with
//! the watermarks of the keys that it reads. A merge joins histories with independent LSNs: the versions that one parent
//! has removed do not limit readers of the other parent's keys. Later trimming removes versions of all keys up to one
//! LSN; then there is a single watermark again.
//!
//! ```text
//! p1 [00 ── 80) from 22      p2 [80 ── FF) from 116
//! p3 [00 ───────────── FF)   from 22, for [80 ── FF) from 116        trimmed up to 130: from 130
//! ```
//!
//! ```text
//! later   count u8 │ lsn u64  │ min len u8 │ min │ max len u8 │ max │ …
//!         01       │ 00…00 74 │ 01         │ 80  │ 01         │ FF
//! ```

use std::sync::Arc;

use pleiad_model::partition_key::{EffectiveKey, EpkRange};

use crate::feed::KeyScope;

/// The row with these ranges is written with every change, so their number is limited. A merge that would need more
/// applies the latest watermark to all keys.
const LATER_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionWatermark {
    lsn: u64,
    /// The EPK ranges with a later watermark.
    later: Arc<[LaterRange]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LaterRange {
    keys: EpkRange,
    lsn: u64,
}

impl RetentionWatermark {
    pub fn at(lsn: u64) -> RetentionWatermark {
        RetentionWatermark { lsn, later: Arc::default() }
    }

    /// The watermark of a shard that was merged from several.
    pub fn merged<'p>(parts: impl Iterator<Item = (&'p EpkRange, RetentionWatermark)>) -> RetentionWatermark {
        let mut all = Vec::new();
        for (keys, part) in parts {
            all.push(LaterRange { keys: keys.clone(), lsn: part.lsn });
            all.extend(part.later.iter().cloned());
        }
        RetentionWatermark::new(all.iter().map(|part| part.lsn).min().unwrap_or(0), all)
    }

    fn new(lsn: u64, later: Vec<LaterRange>) -> RetentionWatermark {
        let later: Vec<LaterRange> = later.into_iter().filter(|later| later.lsn > lsn).collect();
        match later.iter().map(|later| later.lsn).max() {
            Some(latest) if later.len() > LATER_MAX => RetentionWatermark::at(latest),
            _ => RetentionWatermark { lsn, later: later.into() },
        }
    }

    /// The watermark of a child with these keys.
    pub fn within(&self, keys: &EpkRange) -> RetentionWatermark {
        let part = |later: &LaterRange| Some(LaterRange { keys: later.keys.intersect(keys)?, lsn: later.lsn });
        RetentionWatermark { lsn: self.lsn, later: self.later.iter().filter_map(part).collect() }
    }

    /// The LSN after which no version of these keys is missing.
    pub fn lsn_of(&self, scope: &KeyScope) -> u64 {
        let overlapping = self.later.iter().filter(|later| scope.overlaps(&later.keys));
        overlapping.map(|later| later.lsn).fold(self.lsn, u64::max)
    }

    /// The LSN after which no version of any key is missing.
    pub fn latest(&self) -> u64 {
        self.later.iter().map(|later| later.lsn).fold(self.lsn, u64::max)
    }

    /// Versions up to this LSN were removed.
    pub fn raise(&mut self, lsn: u64) {
        *self = RetentionWatermark::new(self.lsn.max(lsn), self.later.to_vec());
    }

    pub(super) fn lsn(&self) -> u64 {
        self.lsn
    }

    pub(super) fn encode_later(&self, out: &mut Vec<u8>) {
        out.push(self.later.len() as u8); // at most LATER_MAX
        for later in self.later.iter() {
            out.extend_from_slice(&later.lsn.to_be_bytes());
            for key in [&later.keys.min, &later.keys.max] {
                out.push(key.as_bytes().len() as u8); // effective keys are at most 115 bytes long
                out.extend_from_slice(key.as_bytes());
            }
        }
    }

    pub(super) fn decode(lsn: u64, later: &[u8]) -> Option<RetentionWatermark> {
        let (&count, mut rest) = later.split_first()?;
        let mut later = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let (lsn, keys) = rest.split_first_chunk::<8>()?;
            let (min, keys) = split_key(keys)?;
            let (max, remaining) = split_key(keys)?;
            later.push(LaterRange { keys: EpkRange { min, max }, lsn: u64::from_be_bytes(*lsn) });
            rest = remaining;
        }
        rest.is_empty().then(|| RetentionWatermark { lsn, later: later.into() })
    }
}

fn split_key(bytes: &[u8]) -> Option<(EffectiveKey, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_at_checked(usize::from(len))?;
    Some((EffectiveKey::from_bytes(key), rest))
}

#[cfg(test)]
mod tests;
