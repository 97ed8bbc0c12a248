//! Routing: from the scope and the pruned keys of a query to partitions, and to the EPK range to read in each.

use std::collections::VecDeque;
use std::sync::Arc;

use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Fact, Result};
use pleiad_partition::Partition;
use pleiad_sql::compile::BindContext;
use pleiad_sql::parse::ast::Select;
use pleiad_sql::pruning::{self, PrunedKeys};
use pleiad_sql::query_plan;

use super::cursor::RangeCursor;
use super::page::CrossPartition;
use crate::feed::{self, FeedRange};
use crate::{Admitted, Container};

/// The EPK ranges that a query reads, in order.
pub struct RoutedRanges {
    pub ranges: Vec<EpkRange>,
    /// Those of the ranges that are one logical partition each, by their key, in order. A range that a client gives is
    /// none: it may have the form of one and hold many keys, as `05C1` to `05C2` does with keys of version 1.
    pub points: Vec<EffectiveKey>,
    /// The ranges are one logical partition, or empty because no key can match.
    pub is_one_key: bool,
}

/// The part of a range that one partition owns.
pub struct PartitionSlice {
    pub partition: Arc<Partition>,
    pub keys: EpkRange,
    /// Set if the slice is one logical partition.
    pub point: Option<EffectiveKey>,
}

/// A query without a partition key is routed by its filter; if that leaves more than one key, the client must have
/// allowed cross-partition queries. A client that merges has to merge whatever the filter says, as in the service.
pub fn routed_ranges(
    at: &Admitted,
    scope: &FeedRange,
    select: &Select,
    bind: BindContext<'_>,
    cross_partition: CrossPartition,
) -> Result<RoutedRanges> {
    if *scope != FeedRange::Container {
        let resolved = feed::resolve(at, scope)?;
        let is_one_key = resolved.point.is_some();
        let points = resolved.point.into_iter().collect();
        return Ok(RoutedRanges { ranges: vec![resolved.keys], points, is_one_key });
    }
    let Some(definition) = &at.container().schema.key else { return Ok(RoutedRanges::all()) };
    check_merge(select, cross_partition)?;
    let keys = match pruning::prune(select, bind, definition) {
        PrunedKeys::None => return Ok(RoutedRanges { ranges: Vec::new(), points: Vec::new(), is_one_key: true }),
        PrunedKeys::Keys(keys) => keys,
        PrunedKeys::All => {
            check_enabled(cross_partition)?;
            return Ok(RoutedRanges::all());
        }
    };
    let is_one_key = keys.len() == 1 && keys.iter().all(|key| key.matches_shape(definition));
    if !is_one_key {
        check_enabled(cross_partition)?;
    }
    let (mut ranges, mut points) = (Vec::new(), Vec::new());
    for key in &keys {
        let resolved = feed::resolve_key(at, key)?;
        ranges.push(resolved.keys);
        points.extend(resolved.point);
    }
    ranges.sort_unstable_by(|a, b| a.min.cmp(&b.min));
    ranges.dedup();
    points.sort_unstable();
    Ok(RoutedRanges { ranges, points, is_one_key })
}

impl RoutedRanges {
    fn all() -> RoutedRanges {
        RoutedRanges { ranges: vec![EpkRange::FULL], points: Vec::new(), is_one_key: false }
    }
}

fn check_enabled(cross_partition: CrossPartition) -> Result<()> {
    match cross_partition {
        CrossPartition::Forbidden => Err(Fact::CrossPartitionDisabled.into()),
        CrossPartition::ByClient(_) | CrossPartition::ByServer => Ok(()),
    }
}

fn check_merge(select: &Select, cross_partition: CrossPartition) -> Result<()> {
    match cross_partition {
        CrossPartition::ByClient(_) if query_plan::needs_merge(select) => Err(Fact::MergeLeftToClient.into()),
        _ => Ok(()),
    }
}

/// Removes the next slice from the front; the rest of its range stays in front. `points` are the keys that are ranges
/// of their own, in order.
pub fn next_slice(
    container: &Container,
    points: &[EffectiveKey],
    cursors: &mut VecDeque<RangeCursor>,
) -> Option<(PartitionSlice, RangeCursor)> {
    while let Some(cursor) = cursors.pop_front() {
        let touched = container.map.overlapping(&cursor.keys);
        let Some(partition) = container.partitions.get(touched).and_then(|touched| touched.first()) else { continue };
        let Some(keys) = partition.range.keys.intersect(&cursor.keys) else { continue };
        if keys.max < cursor.keys.max {
            let rest = EpkRange { min: keys.max.clone(), max: cursor.keys.max.clone() };
            cursors.push_front(RangeCursor { keys: rest, ..cursor.clone() });
        }
        let is_point = points.binary_search(&keys.min).is_ok() && keys == EpkRange::of_point(keys.min.clone());
        let point = is_point.then(|| keys.min.clone());
        let slice = PartitionSlice { partition: partition.clone(), keys: keys.clone(), point };
        return Some((slice, RangeCursor { keys, ..cursor }));
    }
    None
}

pub fn slices(container: &Container, points: &[EffectiveKey], cursors: Vec<RangeCursor>) -> Vec<PartitionSlice> {
    let mut remaining = VecDeque::from(cursors);
    std::iter::from_fn(|| next_slice(container, points, &mut remaining).map(|(slice, _)| slice)).collect()
}
