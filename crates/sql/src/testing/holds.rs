//! Evaluation of an index predicate on a document, without an index.

use std::ops::Bound;

use pleiad_model::Value;
use pleiad_model::policy::PathStep;
use pleiad_spatial::Geometry;
use pleiad_text::Analyzer;

use crate::expr::Context;
use crate::expr::compare::{same, total_order};
use crate::index_predicate::{
    IndexPredicate, PathPredicate, SpatialPredicate, TermPredicate, ValuePredicate, ValueType,
};

/// The tolerance for distances: an index search covers a little more.
const TOLERANCE_METRES: f64 = 1.0;

/// Whether the document satisfies the predicate.
pub fn holds(predicate: &IndexPredicate<'_>, document: &Value, cx: &Context<'_>) -> bool {
    match predicate {
        IndexPredicate::Never => false,
        IndexPredicate::And(all) => all.iter().all(|one| holds(one, document, cx)),
        IndexPredicate::Or(any) => any.iter().any(|one| holds(one, document, cx)),
        IndexPredicate::Path(PathPredicate { path, value: expected }) => {
            values_at(document, path).into_iter().any(|value| satisfies(value, expected, cx))
        }
        IndexPredicate::Spatial(near) => {
            values_at(document, &near.path).into_iter().any(|value| is_near(value, near, cx))
        }
        IndexPredicate::Term(word) => values_at(document, &word.path).into_iter().any(|value| has_term(value, word)),
    }
}

/// All values at a path, which may traverse arrays.
fn values_at<'v>(document: &'v Value, path: &[PathStep]) -> Vec<&'v Value> {
    path.iter().fold(vec![document], |values, step| match step {
        PathStep::Property(name) => values.into_iter().filter_map(|value| value.get(name)).collect(),
        PathStep::Element => values.into_iter().filter_map(Value::as_array).flatten().collect(),
    })
}

fn satisfies(value: &Value, expected: &ValuePredicate<'_>, cx: &Context<'_>) -> bool {
    match expected {
        ValuePredicate::Equal(wanted) => same(value, wanted),
        ValuePredicate::Range(low, high) => is_within_bound(value, low, true) && is_within_bound(value, high, false),
        ValuePredicate::Prefix(text) => value.as_str().is_some_and(|own| own.starts_with(text.as_str())),
        ValuePredicate::Strings(test) => value.as_str().is_some_and(|own| test.passes(own, cx)),
        ValuePredicate::Type(wanted) => type_of(value) == Some(*wanted),
        ValuePredicate::Defined => true,
    }
}

/// Whether the value has the bound's type and is on the right side of it.
fn is_within_bound(value: &Value, bound: &Bound<Value>, above: bool) -> bool {
    let (limit, included) = match bound {
        Bound::Unbounded => return true,
        Bound::Included(limit) => (limit, true),
        Bound::Excluded(limit) => (limit, false),
    };
    let order = total_order(value, limit);
    let order = if above { order } else { order.reverse() };
    std::mem::discriminant(value) == std::mem::discriminant(limit) && (order.is_gt() || included && order.is_eq())
}

fn type_of(value: &Value) -> Option<ValueType> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => ValueType::Bool,
        Value::Number(_) => ValueType::Number,
        Value::String(_) => ValueType::String,
        Value::Array(_) => ValueType::Array,
        Value::Object(_) => ValueType::Object,
    })
}

fn has_term(value: &Value, wanted: &TermPredicate<'_>) -> bool {
    let words = value.as_str().map(|text| Analyzer::new(wanted.language).analyze(text)).unwrap_or_default();
    words.iter().any(|(_, word)| word == wanted.word)
}

fn is_near(value: &Value, near: &SpatialPredicate<'_>, cx: &Context<'_>) -> bool {
    match (Geometry::parse(value, cx.geospatial), Geometry::parse(near.region, cx.geospatial)) {
        (Ok(own), Ok(region)) => own.distance(&region) <= near.distance + TOLERANCE_METRES,
        _ => false,
    }
}
