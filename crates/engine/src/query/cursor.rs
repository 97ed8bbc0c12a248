//! Query cursor: where the next page of a query starts.
//!
//! Invariant: a cursor names EPK ranges and row keys, never partitions, so that it keeps its meaning after the
//! partitions have changed. `wire` encodes and signs it.

use pleiad_model::partition_key::EpkRange;
use pleiad_sql::run::{self, ResumeKey};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryCursor {
    /// Fingerprint of the text and its parameters: a cursor fits one query only.
    pub query: u64,
    /// Rows of `OFFSET` that are still to be skipped, and of `TOP` or `LIMIT` that are still to be returned.
    pub skip: u64,
    pub take: Option<u64>,
    /// Rows that earlier pages returned or skipped.
    pub passed: u64,
    pub at: CursorPosition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorPosition {
    /// Unordered rows: the unfinished ranges. The ranges after them are unread.
    Stretches(Vec<RangeCursor>),
    /// Sorted rows: the next page continues after this key.
    Key(ResumeKey),
    /// Rows without a key: their number.
    Row(u64),
}

/// An EPK range and a position in it: after some rows of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCursor {
    pub keys: EpkRange,
    /// 0 at the beginning.
    pub docnum: u64,
    /// The position is after this many rows of the item; `WHOLE_ITEM`: after all of them.
    pub rows: u64,
}

pub const WHOLE_ITEM: u64 = u64::MAX;

impl RangeCursor {
    pub fn whole(keys: EpkRange) -> Self {
        RangeCursor { keys, docnum: 0, rows: 0 }
    }

    /// Docnum of the last finished item.
    pub fn after(&self) -> u64 {
        if self.rows == WHOLE_ITEM { self.docnum } else { self.docnum.saturating_sub(1) }
    }
}

/// What remains to be read: the unfinished ranges as far as they are requested, then the requested ranges after them.
/// What lies before them is finished. A client that reads a child partition continues where its parent stopped.
pub fn left(asked: &[EpkRange], progress: &[RangeCursor]) -> Vec<RangeCursor> {
    let Some(last) = progress.last() else { return Vec::new() };
    let mut left = Vec::with_capacity(progress.len() + asked.len());
    for stretch in progress {
        let parts = asked.iter().filter_map(|range| range.intersect(&stretch.keys));
        left.extend(parts.map(|keys| RangeCursor { keys, ..stretch.clone() }));
    }
    let behind = asked.iter().filter(|range| range.max > last.keys.max).map(|range| {
        let min = range.min.clone().max(last.keys.max.clone());
        RangeCursor::whole(EpkRange { min, max: range.max.clone() })
    });
    left.extend(behind);
    left
}

/// Whether requested and unfinished ranges overlap, as they do when a client continues to read the items of one key.
pub fn is_begun(asked: &[EpkRange], progress: &[RangeCursor]) -> bool {
    asked.iter().any(|range| progress.iter().any(|stretch| range.intersect(&stretch.keys).is_some()))
}

/// The unfinished ranges when a page ends in a range: that range, and the ones after it that were begun before they
/// were split off.
pub fn in_progress(stretch: RangeCursor, behind: impl IntoIterator<Item = RangeCursor>) -> Vec<RangeCursor> {
    let begun = behind.into_iter().take_while(|stretch| stretch.docnum > 0);
    std::iter::once(stretch).chain(begun).collect()
}

impl QueryCursor {
    /// The same position, with a truncated key.
    pub fn shortened(&self, key_bytes: usize) -> QueryCursor {
        match &self.at {
            CursorPosition::Key(mark) => {
                QueryCursor { at: CursorPosition::Key(mark.shortened(key_bytes)), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    pub(super) fn start(&self) -> run::PageStart {
        let at = match &self.at {
            CursorPosition::Stretches(stretches) => match stretches.first() {
                Some(first) if first.docnum > 0 => run::ResumePoint::Item { docnum: first.docnum, rows: first.rows },
                _ => run::ResumePoint::Beginning,
            },
            CursorPosition::Key(mark) => run::ResumePoint::Key(mark.clone()),
            CursorPosition::Row(0) => run::ResumePoint::Beginning,
            CursorPosition::Row(rows) => run::ResumePoint::Row(*rows),
        };
        run::PageStart { skip: self.skip, take: self.take, at }
    }
}

#[cfg(test)]
mod tests {
    use pleiad_model::partition_key::EffectiveKey;

    use super::*;

    fn keys(min: u8, max: u8) -> EpkRange {
        EpkRange { min: EffectiveKey::from_bytes(&[min]), max: EffectiveKey::from_bytes(&[max]) }
    }

    fn stretch(min: u8, max: u8, docnum: u64) -> RangeCursor {
        RangeCursor { keys: keys(min, max), docnum, rows: 0 }
    }

    /// A client that learns of a split sends its token to each child.
    #[test]
    fn a_part_goes_on_where_the_whole_was() {
        let progress = [stretch(2, 4, 7), stretch(4, 5, 9)];
        let left = |min, max| left(&[keys(min, max)], &progress);
        assert_eq!(left(0, 2), []);
        assert_eq!(left(0, 3), [stretch(2, 3, 7)]);
        assert_eq!(left(3, 8), [stretch(3, 4, 7), stretch(4, 5, 9), stretch(5, 8, 0)]);
        assert_eq!(left(6, 8), [stretch(6, 8, 0)]);
    }
}
