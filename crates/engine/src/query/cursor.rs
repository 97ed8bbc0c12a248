//! Query cursor: where the next page of a query starts.
//!
//! Invariant: a cursor names EPK ranges and row keys, never partitions, so that it keeps its meaning after the
//! partitions have changed. `wire` encodes and signs it.

use pleiad_model::partition_key::EpkRange;
use pleiad_sql::run::{self, ResumeKey};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryCursor {
    pub bound_to: CursorBinding,
    /// Rows of `OFFSET` that are still to be skipped, and of `TOP` or `LIMIT` that are still to be returned.
    pub skip: u64,
    pub take: Option<u64>,
    /// Rows that earlier pages returned or skipped.
    pub passed: u64,
    pub at: CursorPosition,
}

/// What a cursor is valid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorBinding {
    /// One query with its parameters, by their fingerprint, over this stretch of the hash space or a part of it.
    Query { fingerprint: u64, stretch: EpkRange },
    /// The same without a stretch, as older cursors have it: the fingerprint covers the partition key of the request.
    QueryAndKey(u64),
    /// An item, as cursors of other servers have it: any query whose rows are in the order of items, one of each.
    Item,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorPosition {
    /// Unordered rows: the unfinished ranges. The ranges after them are unread.
    Ranges(Vec<RangeCursor>),
    /// Sorted rows: the next page continues after this key.
    Key(ResumeKey),
    /// Rows without a key: the position is after this many rows.
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
pub fn remaining(requested: &[EpkRange], progress: &[RangeCursor]) -> Vec<RangeCursor> {
    let Some(last) = progress.last() else { return Vec::new() };
    let mut rest = Vec::with_capacity(progress.len() + requested.len());
    for cursor in progress {
        let parts = requested.iter().filter_map(|range| range.intersect(&cursor.keys));
        rest.extend(parts.map(|keys| RangeCursor { keys, ..cursor.clone() }));
    }
    let later = requested.iter().filter(|range| range.max > last.keys.max).map(|range| {
        let min = range.min.clone().max(last.keys.max.clone());
        RangeCursor::whole(EpkRange { min, max: range.max.clone() })
    });
    rest.extend(later);
    rest
}

/// The stretch of the hash space from the first of these ranges to the last.
pub fn stretch(ranges: &[EpkRange]) -> EpkRange {
    match (ranges.first(), ranges.last()) {
        (Some(first), Some(last)) => EpkRange { min: first.min.clone(), max: last.max.clone() },
        _ => EpkRange::FULL,
    }
}

/// Whether a range is part of a stretch. A range of one key has several spellings: it is inside if the key is.
pub fn is_within(range: &EpkRange, stretch: &EpkRange) -> bool {
    let is_point = *range == EpkRange::of_point(range.min.clone());
    stretch.min <= range.min && (range.max <= stretch.max || is_point && stretch.contains(&range.min))
}

/// Whether requested and unfinished ranges overlap, as they do when a client continues to read the items of one key.
pub fn overlaps(requested: &[EpkRange], progress: &[RangeCursor]) -> bool {
    requested.iter().any(|range| progress.iter().any(|cursor| range.intersect(&cursor.keys).is_some()))
}

/// The unfinished ranges when a page ends in a range: that range, and the ones after it that were begun before they
/// were split off.
pub fn unfinished(cursor: RangeCursor, later: impl IntoIterator<Item = RangeCursor>) -> Vec<RangeCursor> {
    let begun = later.into_iter().take_while(|cursor| cursor.docnum > 0);
    std::iter::once(cursor).chain(begun).collect()
}

impl QueryCursor {
    /// The same position, with a truncated key.
    pub fn shortened(&self, key_bytes: usize) -> QueryCursor {
        match &self.at {
            CursorPosition::Key(resume_key) => {
                QueryCursor { at: CursorPosition::Key(resume_key.truncated_to(key_bytes)), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    pub(super) fn start(&self) -> run::PageStart {
        let at = match &self.at {
            CursorPosition::Ranges(cursors) => match cursors.first() {
                Some(first) if first.docnum > 0 => run::ResumePoint::Item { docnum: first.docnum, rows: first.rows },
                _ => run::ResumePoint::Beginning,
            },
            CursorPosition::Key(resume_key) => run::ResumePoint::Key(resume_key.clone()),
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

    fn cursor(min: u8, max: u8, docnum: u64) -> RangeCursor {
        RangeCursor { keys: keys(min, max), docnum, rows: 0 }
    }

    #[test]
    fn a_key_is_within_its_range_however_that_is_spelled() {
        let key = EffectiveKey::from_bytes(&[1, 2]);
        let (point, prefix) = (EpkRange::of_point(key.clone()), EpkRange::of_prefix(key));
        assert!(is_within(&point, &prefix) && is_within(&prefix, &point));
        assert!(is_within(&keys(2, 3), &keys(1, 3)) && !is_within(&keys(1, 4), &keys(1, 3)));
        assert!(!is_within(&keys(3, 4), &keys(1, 3)), "the end of a range is not part of it");
        assert_eq!(stretch(&[keys(1, 2), keys(4, 5)]), keys(1, 5));
    }

    /// A client that learns of a split sends its token to each child.
    #[test]
    fn a_child_range_resumes_where_its_parent_stopped() {
        let progress = [cursor(2, 4, 7), cursor(4, 5, 9)];
        let rest = |min, max| remaining(&[keys(min, max)], &progress);
        assert_eq!(rest(0, 2), []);
        assert_eq!(rest(0, 3), [cursor(2, 3, 7)]);
        assert_eq!(rest(3, 8), [cursor(3, 4, 7), cursor(4, 5, 9), cursor(5, 8, 0)]);
        assert_eq!(rest(6, 8), [cursor(6, 8, 0)]);
    }
}
