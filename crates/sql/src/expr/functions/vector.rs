//! `VectorDistance` with the default metric.
//!
//! The metric depends on the container's policy and on the options of the call, which a built-in function does not
//! have: `compile` turns every call in a query into a node of its own.

use pleiad_model::Result;
use pleiad_model::policy::{DistanceFunction, VectorDataType};
use pleiad_vector::DistanceMetric;

use super::Function;
use super::arguments::{at, float_value};
use crate::expr::{Context, Datum};

pub const VECTOR_DISTANCE: &str = "VECTORDISTANCE";

/// The metric if neither the policy nor the call specifies one.
pub const DEFAULT_METRIC: DistanceMetric =
    DistanceMetric { function: DistanceFunction::Cosine, data_type: VectorDataType::Float32, dimensions: None };

pub const FUNCTIONS: &[Function] = &[Function::between(VECTOR_DISTANCE, 2, 4, distance)];

fn distance<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let vector = |position| DEFAULT_METRIC.vector(at(args, position).as_deref()?);
    float_value(vector(0).zip(vector(1)).and_then(|(left, right)| DEFAULT_METRIC.between(&left, &right)))
}
