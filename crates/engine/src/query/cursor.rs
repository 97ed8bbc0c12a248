//! Where the next page of a query starts.
//!
//! Promise: it names stretches of the hash space and keys of rows, never partitions, so that it means the same
//! after the partitions have changed. Signing and spelling it is `wire`'s job.

use pleiad_model::partition_key::EpkRange;
use pleiad_sql::run::{self, ResumeKey};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryCursor {
    /// Of the text and its parameters: a cursor fits one query only.
    pub query: u64,
    /// Rows of `OFFSET` that are still to be passed over, and of `TOP` or `LIMIT` that are still wanted.
    pub skip: u64,
    pub take: Option<u64>,
    /// Rows that earlier pages gave or passed over.
    pub passed: u64,
    pub at: CursorPosition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorPosition {
    /// Rows in order of arrival: these stretches are left.
    Stretches(Vec<RangeCursor>),
    /// Rows in the order of their keys.
    Key(ResumeKey),
    /// Rows that can only be counted.
    Row(u64),
}

/// A part of the hash space, behind some rows of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCursor {
    pub keys: EpkRange,
    /// 0 at the beginning.
    pub docnum: u64,
    /// `WHOLE_ITEM`: behind all of its rows.
    pub rows: u64,
}

pub const WHOLE_ITEM: u64 = u64::MAX;

impl RangeCursor {
    pub fn whole(keys: EpkRange) -> Self {
        RangeCursor { keys, docnum: 0, rows: 0 }
    }

    /// The last item that is done with.
    pub fn after(&self) -> u64 {
        if self.rows == WHOLE_ITEM { self.docnum } else { self.docnum.saturating_sub(1) }
    }
}

/// What is left to read: the stretches in progress as far as they are asked for, then whatever is asked for behind them. What
/// lies before them is done with. Whoever reads a child goes on with what its parent had begun.
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

/// Whether some of what is asked for is in progress, which it is when one key's items are read on.
pub fn is_begun(asked: &[EpkRange], progress: &[RangeCursor]) -> bool {
    asked.iter().any(|range| progress.iter().any(|stretch| range.intersect(&stretch.keys).is_some()))
}

/// What is in progress when a page ends in a stretch: that one, and those behind it that were begun before they were cut off.
pub fn in_progress(stretch: RangeCursor, behind: impl IntoIterator<Item = RangeCursor>) -> Vec<RangeCursor> {
    let begun = behind.into_iter().take_while(|stretch| stretch.docnum > 0);
    std::iter::once(stretch).chain(begun).collect()
}

impl QueryCursor {
    /// The same place, with less of the key that it lies behind.
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

    /// A client that learns of a split gives its token to each child.
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
