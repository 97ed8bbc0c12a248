//! vector: embeddings, distances between them, and nearest neighbor search.
//!
//! Guarantees: no JSON and no stored bytes make this crate panic; every vector has finite elements that its data type
//! can represent; a pair of vectors has one distance, wherever it is computed. Partitions store vectors and maintain
//! their ANN indexes; the engine plans vector queries.
//!
//! Read in this order.
//!
//! ```text
//! [0.1, 0.2, 0.3]
//!    element   Value → vector → bytes → vector        float32, float16, int8, uint8
//!    distance  two vectors → cosine, dot product, euclidean; which of two is nearer
//!    neighbor  items and their distances, the nearest first
//!    quantize  a vector in a byte per element, for estimates
//!    graph     Vamana: a short greedy search leads from any node near any vector
//!    ann_index quantized vectors and graph of many items, in memory
//! ```

pub mod element; // elements of a data type, and their bytes
pub mod distance; // distance functions and metrics
mod neighbor; // search results, the nearest first
mod quantize; // int8 quantization
mod graph; // the Vamana graph
mod ann_index; // the in-memory ANN index

pub use ann_index::{AnnConfig, AnnIndex, NeighborChange};
pub use distance::{DistanceMetric, VectorType};
pub use neighbor::{Neighbor, NeighborList};
