//! The features that a plan requires of a client, by their names in `x-ms-cosmos-supported-query-features`.
//!
//! The lists of clients differ: Python's has no `GroupBy`, Rust's no aggregates. The error for a missing feature uses
//! the service's message, which clients compare.

use pleiad_model::{Error, Result};

use super::shape::MergeShape;
use super::{ComponentFormat, Hybrid, SdkPlan};
use crate::check::Counts;
use crate::expr::aggregate::AggregateKind;

/// `supported` is the header's value, with or without spaces after the commas.
pub(super) fn check(plan: &SdkPlan<'_>, supported: &str) -> Result<()> {
    check_all(required_features(plan), supported)
}

pub(super) fn check_hybrid(hybrid: &Hybrid, counts: Counts, supported: &str) -> Result<()> {
    let table = [
        ("HybridSearch", true),
        ("NonStreamingOrderBy", true),
        ("WeightedRankFusion", hybrid.is_weighted()),
        ("OffsetAndLimit", counts.offset_limit.is_some()),
        ("Top", counts.top.is_some()),
    ];
    check_all(table.into_iter().filter(|(_, needed)| *needed).map(|(feature, _)| feature).collect(), supported)
}

/// The format in which the client reads the components of `ORDER BY RANK`.
pub(super) fn component_format(supported: &str) -> ComponentFormat {
    match is_listed(supported, "HybridSearchSkipOrderByRewrite") {
        true => ComponentFormat::Unsorted,
        false => ComponentFormat::Sorted,
    }
}

fn is_listed(supported: &str, feature: &str) -> bool {
    supported.split(',').any(|listed| listed.trim().eq_ignore_ascii_case(feature))
}

fn check_all(needed: Vec<&'static str>, supported: &str) -> Result<()> {
    let missing: Vec<&str> = needed.into_iter().filter(|feature| !is_listed(supported, feature)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut message = String::from(
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested \
         features:",
    );
    for feature in missing {
        message.push_str(&format!("\nQuery contained {feature}, which the calling client does not support."));
    }
    Err(Error::invalid(message))
}

fn required_features(plan: &SdkPlan<'_>) -> Vec<&'static str> {
    let shape = &plan.shape;
    let aggregates = shape.aggregates();
    let has = |kinds: &[AggregateKind]| aggregates.iter().any(|kind| kinds.contains(kind));
    let distinct_count = matches!(shape, MergeShape::DistinctCount { .. });
    let table = [
        ("Aggregate", shape.value_aggregate().is_some()),
        ("NonValueAggregate", shape.columns().iter().any(|column| column.aggregate.is_some())),
        ("MultipleAggregates", aggregates.len() > 1),
        ("CountIf", has(&[AggregateKind::CountIf])),
        ("ListAndSetAggregate", has(&[AggregateKind::MakeList, AggregateKind::MakeSet])),
        ("GroupBy", !shape.group_by().is_empty()),
        ("DCount", distinct_count),
        ("Distinct", plan.select.distinct || distinct_count),
        ("OrderBy", !shape.order_by().is_empty()),
        ("NonStreamingOrderBy", plan.vector_direction.is_some()),
        ("MultipleOrderBy", shape.order_by().len() > 1),
        ("OffsetAndLimit", plan.counts.offset_limit.is_some()),
        ("Top", plan.counts.top.is_some()),
    ];
    table.into_iter().filter(|(_, needed)| *needed).map(|(feature, _)| feature).collect()
}
