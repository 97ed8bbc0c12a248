//! Distance functions between vectors.
//!
//! Guarantees: a distance is a pure function of the elements, summed in one fixed order in doubles. So a distance
//! computed from an item equals the one computed from its stored row, and rows sort by it. Two vectors have no distance
//! if their lengths differ or if, under `cosine`, one of them is zero.
//!
//! | function | range | nearest |
//! |---|---|---|
//! | cosine | -1 … 1 | 1 |
//! | dotproduct | -∞ … ∞ | ∞ |
//! | euclidean | 0 … ∞ | 0 |

use std::cmp::Ordering;

use pleiad_model::Value;
use pleiad_model::policy::{DistanceFunction, VectorDataType, VectorEmbedding};

use crate::element;

/// The type of a stored vector: equal types have the same byte encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorType {
    pub data_type: VectorDataType,
    pub dimensions: usize,
}

/// A distance function and the vectors that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistanceMetric {
    pub function: DistanceFunction,
    pub data_type: VectorDataType,
    /// Vectors of other lengths have no distance; `None` if the two lengths only have to be equal.
    pub dimensions: Option<usize>,
}

impl VectorType {
    pub fn of(embedding: &VectorEmbedding) -> VectorType {
        VectorType {
            data_type: embedding.data_type,
            dimensions: usize::try_from(embedding.dimensions).unwrap_or(usize::MAX),
        }
    }
}

impl DistanceMetric {
    pub fn of(embedding: &VectorEmbedding) -> DistanceMetric {
        let VectorType { data_type, dimensions } = VectorType::of(embedding);
        DistanceMetric { function: embedding.distance_function, data_type, dimensions: Some(dimensions) }
    }

    /// A value as an operand; `None` if it is not a vector of this metric.
    pub fn vector(&self, value: &Value) -> Option<Vec<f32>> {
        let vector = element::parse(value, self.data_type)?;
        self.dimensions.is_none_or(|dimensions| dimensions == vector.len()).then_some(vector)
    }

    /// Whether larger values are nearer.
    pub fn is_similarity(&self) -> bool {
        is_similarity(self.function)
    }

    pub fn between(&self, left: &[f32], right: &[f32]) -> Option<f64> {
        distance(self.function, left, right)
    }
}

pub fn is_similarity(function: DistanceFunction) -> bool {
    match function {
        DistanceFunction::Cosine | DistanceFunction::DotProduct => true,
        DistanceFunction::Euclidean => false,
    }
}

/// Sorts the nearer distance first.
pub fn compare_nearness(function: DistanceFunction, left: f64, right: f64) -> Ordering {
    if is_similarity(function) { right.total_cmp(&left) } else { left.total_cmp(&right) }
}

pub fn distance(function: DistanceFunction, left: &[f32], right: &[f32]) -> Option<f64> {
    if left.len() != right.len() {
        return None;
    }
    let distance = match function {
        DistanceFunction::DotProduct => sum(left, right, |a, b| a * b),
        DistanceFunction::Euclidean => sum(left, right, |a, b| (a - b) * (a - b)).sqrt(),
        DistanceFunction::Cosine => {
            let lengths = sum(left, left, |a, b| a * b) * sum(right, right, |a, b| a * b);
            (sum(left, right, |a, b| a * b) / lengths.sqrt()).clamp(-1.0, 1.0)
        }
    };
    // Turns -0.0 into 0.0: they would sort differently.
    distance.is_finite().then_some(distance + 0.0)
}

/// The number of partial sums, so that the compiler can use SIMD registers.
const LANES: usize = 8;

fn sum(left: &[f32], right: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (left_chunks, right_chunks) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = left_chunks.remainder().iter().zip(right_chunks.remainder());
    let rest: f64 = rest.map(|(a, b)| term(f64::from(*a), f64::from(*b))).sum();
    for (a, b) in left_chunks.zip(right_chunks) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += term(f64::from(*a), f64::from(*b));
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests;
