//! Vector terms: the vectors of an item, stored as rows of the vector keyspace.
//!
//! Invariant: every item with a vector of the embedding's type at the path has a row with exactly its elements,
//! whatever the index type. So an exact search over the rows is always possible, and a graph over them is only faster.
//! A value that is no such vector has no distance to anything, and no row.

use pleiad_model::Value;
use pleiad_model::policy::{DistanceFunction, PathStep, VectorEmbedding, VectorIndex, VectorIndexType};
use pleiad_vector::{DistanceMetric, VectorType, element};

use super::IndexTerm;
use super::path::vector_id;

/// One vector index of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorRule {
    pub steps: Vec<PathStep>,
    /// The path hash of its rows.
    pub id: u64,
    pub kind: VectorType,
    pub function: DistanceFunction,
    pub index: VectorIndexType,
    /// The size of the search list while a graph is built.
    pub search_list_size: Option<u32>,
}

impl VectorRule {
    /// `None` without an embedding at its path; every valid definition has one.
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

    /// Whether a query with this metric compares vectors of the stored type.
    pub fn fits(&self, metric: &DistanceMetric) -> bool {
        metric.data_type == self.kind.data_type && metric.dimensions == Some(self.kind.dimensions)
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
