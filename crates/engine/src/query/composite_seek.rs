//! Composite index seek: predicates on several paths, from one range of a composite index.
//!
//! Invariant: every item that matches the covered predicates is in the range.
//!
//! ```text
//! WHERE c.a = 3 AND c.b > 5 AND c.s = 'x'      (/a asc, /b desc, /s asc)
//!    3 │ down to 5                             covers the first two
//! ```

use pleiad_model::policy::{CompositeIndex, PathStep};
use pleiad_partition::index::encoding::{TermRange, encode_component};
use pleiad_partition::index::{UsableIndex, directions};
use pleiad_sql::index_predicate::{IndexPredicate, PathPredicate, ValuePredicate};

use super::index_lookup::component_range;

pub struct CompositeSeek<'i> {
    pub index: &'i CompositeIndex,
    pub range: TermRange,
    /// Positions of the predicates that the range covers.
    pub covers: Vec<usize>,
}

/// The seeks for a conjunction, at most one per composite index. A seek that a single-path index could serve as well is
/// left out.
pub fn seeks<'i>(all: &[IndexPredicate<'_>], index: UsableIndex<'i>) -> Vec<CompositeSeek<'i>> {
    let few = index.composites().iter().filter_map(|composite| seek(all, composite));
    few.filter(|(seek, paths)| *paths > 1 || !is_first_indexed(seek, index)).map(|(seek, _)| seek).collect()
}

fn is_first_indexed(seek: &CompositeSeek<'_>, index: UsableIndex<'_>) -> bool {
    seek.index.paths.first().is_some_and(|first| index.indexes(&first.path.steps))
}

/// Equal values for the leading paths, then a range of the next path; and how many paths these are.
fn seek<'i>(all: &[IndexPredicate<'_>], index: &'i CompositeIndex) -> Option<(CompositeSeek<'i>, usize)> {
    let (mut known, mut covers, mut paths) = (Vec::new(), Vec::new(), 0);
    for (path, descending) in index.paths.iter().zip(directions(index)) {
        let here = || lookups(all, &path.path.steps);
        let equal = here().find_map(|(at, lookup)| match &lookup.value {
            ValuePredicate::Equal(value) => Some((at, value)),
            _ => None,
        });
        if let Some((at, value)) = equal {
            encode_component(Some(value), descending, &mut known);
            covers.push(at);
            paths += 1;
            continue;
        }
        let mut range: Option<TermRange> = None;
        for (at, lookup) in here() {
            if let Some(span) = component_range(&lookup.value, descending) {
                covers.push(at);
                range = Some(range.map_or(span.clone(), |range| range.intersect(span)));
            }
        }
        if let Some(range) = range {
            return Some((CompositeSeek { index, range: range.prefixed_by(&known), covers }, paths + 1));
        }
        break;
    }
    (paths > 0).then(|| (CompositeSeek { index, range: TermRange::starting_with(known), covers }, paths))
}

fn lookups<'c, 'b>(
    all: &'c [IndexPredicate<'b>],
    steps: &'c [PathStep],
) -> impl Iterator<Item = (usize, &'c PathPredicate<'b>)> + use<'c, 'b> {
    all.iter().enumerate().filter_map(move |(at, condition)| match condition {
        IndexPredicate::Path(lookup) if lookup.path == steps => Some((at, lookup)),
        _ => None,
    })
}
