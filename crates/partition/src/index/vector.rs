//! The vectors of an item, as a vector index keeps them.
//!
//! Promise: every item that has a vector of the embedding's kind at the path has a row with exactly its elements, whatever the
//! index is called: so all of them can be found exactly, and a graph over them is only the quicker way. What is no such vector
//! has no distance to anything and no row.

use pleiad_model::Value;
use pleiad_model::policy::{DistanceFunction, PathStep, VectorEmbedding, VectorIndex, VectorIndexType};
use pleiad_vector::{DistanceMetric, VectorType, element};

use super::IndexTerm;
use super::path::vector_id;

/// One vector index of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorRule {
    pub steps: Vec<PathStep>,
    /// The number of its rows.
    pub id: u64,
    pub kind: VectorType,
    pub function: DistanceFunction,
    pub index: VectorIndexType,
    /// How many candidates are held while a graph is built.
    pub search_list_size: Option<u32>,
}

impl VectorRule {
    /// `None` without an embedding at its path, which no definition lacks.
    pub fn new(index: &VectorIndex, embeddings: &[VectorEmbedding]) -> Option<VectorRule> {
        let segments = index.path.segments();
        let embedding = embeddings.iter().find(|embedding| embedding.path.segments() == segments)?;
        let steps: Vec<PathStep> = segments.iter().cloned().map(PathStep::Property).collect();
        let kind = VectorType::of(embedding);
        Some(VectorRule {
            id: vector_id(&steps, kind),
            steps,
            kind,
            function: embedding.distance_function,
            index: index.kind,
            search_list_size: index.search_list_size,
        })
    }

    /// Whether the stored vectors are what is compared.
    pub fn fits(&self, measure: &DistanceMetric) -> bool {
        measure.data_type == self.kind.data_type && measure.dimensions == Some(self.kind.dimensions)
    }

    pub fn term(&self, item: &Value) -> Option<IndexTerm> {
        let value = self.steps.iter().try_fold(item, |value, step| match step {
            PathStep::Property(name) => value.get(name),
            PathStep::Element => None,
        })?;
        let vector = element::parse(value, self.kind.data_type)?;
        (vector.len() == self.kind.dimensions)
            .then(|| IndexTerm::vector(self.id, element::encode(&vector, self.kind.data_type)))
    }
}
