//! `VectorDistance`, as it is where nobody says anything about the vectors.
//!
//! What it measures depends on the container's policy and on the call's options, which a function does not see: `compile`
//! makes a node of its own of every call in a query.

use pleiad_model::Result;
use pleiad_model::policy::{DistanceFunction, VectorDataType};
use pleiad_vector::DistanceMetric;

use super::Function;
use super::arguments::{at, real};
use crate::expr::{Context, Datum};

pub const VECTOR_DISTANCE: &str = "VECTORDISTANCE";

/// What holds where neither policy nor call says anything.
pub const UNSAID: DistanceMetric =
    DistanceMetric { function: DistanceFunction::Cosine, data_type: VectorDataType::Float32, dimensions: None };

pub const FUNCTIONS: &[Function] = &[Function::between(VECTOR_DISTANCE, 2, 4, distance)];

fn distance<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let vector = |position| UNSAID.vector(at(args, position).as_deref()?);
    real(vector(0).zip(vector(1)).and_then(|(left, right)| UNSAID.between(&left, &right)))
}
