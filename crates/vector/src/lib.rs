//! vector: embeddings, how near they are to each other, and how the nearest are found.
//!
//! Promise: no JSON and no stored bytes make this crate panic; a vector that exists has finite elements which its data
//! type can hold; one pair of vectors has one distance, whoever computes it. Where vectors are stored, which items
//! have them and how a query asks is decided elsewhere.
//!
//! Read in this order.
//!
//! ```text
//! [0.1, 0.2, 0.3]
//!    element   Value → vector → bytes → vector        float32, float16, int8, uint8
//!    measure   two vectors → cosine, dot product, euclidean; which of two is nearer
//!    near      items and their distances, the nearest first
//!    code      a vector in a byte per element, for estimates
//!    graph     from anywhere a short walk leads near anything
//!    sketch    codes and graph of many items' vectors, in memory
//! ```

pub mod element; // numbers of a data type, and their bytes
pub mod distance; // how near two vectors are
mod neighbor; // what was found, the nearest first
mod quantize; // vectors in a byte per element
mod graph; // neighbours
mod ann_index; // an approximate picture of many vectors

pub use ann_index::{AnnConfig, AnnIndex, Changed};
pub use distance::{DistanceMetric, VectorType};
pub use neighbor::{Neighbor, NeighborList};
