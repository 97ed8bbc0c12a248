//! Where the next page of a query starts.
//!
//! Promise: it names stretches of the hash space and keys of rows, never partitions, so that it means the same
//! after the partitions have changed. Signing and spelling it is `wire`'s job.

use pleiad_model::partition_key::KeyRange;
use pleiad_query::run;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryCursor {
    /// Of the text and its parameters: a cursor fits one query only.
    pub query: u64,
    /// Rows of `OFFSET` that are still to be passed over, and of `TOP` or `LIMIT` that are still wanted.
    pub skip: u64,
    pub take: Option<u64>,
    /// Rows that earlier pages gave or passed over.
    pub passed: u64,
    pub at: At,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Rows in order of arrival: these stretches are left.
    Stretches(Vec<Stretch>),
    /// Rows in the order of their keys.
    Key(Vec<u8>),
    /// Rows that can only be counted.
    Row(u64),
}

/// A part of the hash space, behind some rows of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub keys: KeyRange,
    /// 0 at the beginning.
    pub docnum: u64,
    /// `WHOLE_ITEM`: behind all of its rows.
    pub rows: u64,
}

pub const WHOLE_ITEM: u64 = u64::MAX;

impl Stretch {
    pub fn whole(keys: KeyRange) -> Self {
        Stretch { keys, docnum: 0, rows: 0 }
    }

    /// The last item that is done with.
    pub fn after(&self) -> u64 {
        if self.rows == WHOLE_ITEM { self.docnum } else { self.docnum.saturating_sub(1) }
    }
}

/// What is left to read: the stretches in progress as far as they are asked for, then whatever is asked for behind them.
/// `None` if nothing that is asked for was in progress. Whoever reads a child goes on with what its parent had begun.
pub fn left(asked: &[KeyRange], progress: &[Stretch]) -> Option<Vec<Stretch>> {
    let Some(last) = progress.last() else { return Some(Vec::new()) };
    let mut left = Vec::with_capacity(progress.len() + asked.len());
    for stretch in progress {
        let parts = asked.iter().filter_map(|range| range.intersect(&stretch.keys));
        left.extend(parts.map(|keys| Stretch { keys, ..stretch.clone() }));
    }
    if left.is_empty() {
        return None;
    }
    let behind = asked.iter().filter(|range| range.max > last.keys.max).map(|range| {
        let min = range.min.clone().max(last.keys.max.clone());
        Stretch::whole(KeyRange { min, max: range.max.clone() })
    });
    left.extend(behind);
    Some(left)
}

/// What is in progress when a page ends in a stretch: that one, and those behind it that were begun before they were cut off.
pub fn in_progress(stretch: Stretch, behind: impl IntoIterator<Item = Stretch>) -> Vec<Stretch> {
    let begun = behind.into_iter().take_while(|stretch| stretch.docnum > 0);
    std::iter::once(stretch).chain(begun).collect()
}

impl QueryCursor {
    /// The same place, found by counting: for keys too long to be carried around.
    pub fn counted(&self) -> QueryCursor {
        match &self.at {
            At::Key(_) => QueryCursor { skip: self.skip + self.passed, passed: 0, at: At::Row(0), ..self.clone() },
            _ => self.clone(),
        }
    }

    pub(super) fn start(&self) -> run::Start {
        let at = match &self.at {
            At::Stretches(stretches) => match stretches.first() {
                Some(first) if first.docnum > 0 => run::At::Item { docnum: first.docnum, rows: first.rows },
                _ => run::At::Beginning,
            },
            At::Key(key) => run::At::Key(key.clone()),
            At::Row(0) => run::At::Beginning,
            At::Row(rows) => run::At::Row(*rows),
        };
        run::Start { skip: self.skip, take: self.take, at }
    }
}
