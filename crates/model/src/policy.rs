//! Container definition and policies.
//!
//! Invariant: a `ContainerDefinition` from `create` or `replace` has passed all checks of this module, and
//! `create(to_object())` returns an equal definition, if its kind is nosql. `from_stored` skips the checks between parts: a
//! stored definition stays valid. JSON is parsed in these three; everything else uses types.
//!
//! Not decided here: whether a container may have no partition key (it depends on its throughput,
//! which the engine checks), which queries a computed property may have (`sql::computed`), and the
//! execution of the policies. `ContainerDefinition::unsupported_setting` names a setting that is
//! parsed here but not supported.

#[macro_use]
mod read; // access to JSON members

mod container; // the whole definition, and the checks between its parts
mod kind; // nosql, table, graph, mongo, cassandra
mod key; // partitionKey

mod index_path; // `/a/[]/b/?`
mod indexing; // indexingPolicy
mod matcher; // which values of an item are indexed

mod composite; // compositeIndexes
mod full_text; // fullTextPolicy, fullTextIndexes
mod spatial; // geospatialConfig, spatialIndexes
mod vector; // vectorEmbeddingPolicy, vectorIndexes

mod computed; // computedProperties
mod conflict; // conflictResolutionPolicy
mod encryption; // clientEncryptionPolicy
mod global_index; // materializedViewDefinition, globalSecondaryIndexDefinition
mod unique_key; // uniqueKeyPolicy

#[cfg(test)]
mod testing;

pub use composite::{COMPOSITE_PATHS_MAX, COMPOSITE_PATHS_PER_INDEX_MAX, CompositeIndex, CompositePath, SortOrder};
pub use computed::{COMPUTED_PROPERTIES_MAX, ComputedProperty};
pub use conflict::ConflictResolution;
pub use container::{ChangeFeedPolicy, ContainerDefinition};
pub use encryption::{ClientEncryptionPolicy, EncryptedPath, EncryptionType};
pub use full_text::{FullTextIndex, FullTextPath, FullTextPolicy, Language};
pub use global_index::{GlobalIndex, IndexedBy};
pub use index_path::{End, IndexPath, PathStep};
pub use indexing::{EXCLUDED_PATHS_MAX, INCLUDED_PATHS_MAX, IndexingMode, IndexingPolicy};
pub use key::{HASH_PATHS_MAX, MULTI_HASH_PATHS_MAX};
pub use kind::ContainerKind;
pub use matcher::{IndexMatcher, PolicyNode, is_generated_on_read};
pub use spatial::{BoundingBox, Geospatial, SpatialIndex, SpatialType};
pub use unique_key::{UNIQUE_KEYS_MAX, UNIQUE_PATHS_MAX, UniqueKey};
pub use vector::{DistanceFunction, Quantizer, VectorDataType, VectorEmbedding, VectorIndex, VectorIndexType};
