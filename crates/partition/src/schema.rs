//! Schema: the part of a container's definition that decides how its items are stored.
//!
//! Invariant: a schema is built in one place from the definition, and versioned. A partition rejects writes under an
//! older schema than the newest it has seen: items written under the newer one depend on it.

use pleiad_model::Value;
use pleiad_model::partition_key::PartitionKeyDefinition;
use pleiad_model::policy::{
    ContainerDefinition, FullTextPolicy, Geospatial, IndexingMode, IndexingPolicy, VectorEmbedding,
};

use crate::index::{self, ComputedDefinitions, IndexRules, IndexTerm, PolicyVersions, UsableIndex};
use crate::record::Record;
use crate::ttl::Expiry;
use crate::unique::UniqueKeys;

pub struct Schema {
    /// Increases with every change of the schema.
    pub version: u64,
    /// `None` for a fixed container without a key.
    pub key: Option<PartitionKeyDefinition>,
    pub index: PolicyVersions,
    /// Whether an item is indexed if its write has no indexing directive.
    pub automatic: bool,
    pub size_limits: SizeLimits,
    /// Whether every change leaves a version row.
    pub retains_versions: bool,
    /// Seconds; with -1 only items with a `ttl` of their own expire, with `None` none at all.
    pub default_ttl: Option<i32>,
    pub unique: UniqueKeys,
    /// Path hashes of rows that no current policy explains, because an earlier version of Pleiad computed other terms.
    /// They are dropped before the first write.
    pub obsolete_paths: Vec<u64>,
}

/// Storage limits, in bytes of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// Per logical partition.
    pub key_bytes_max: u64,
    /// Per physical partition: above it the partition splits; if it cannot split, this is the maximum.
    pub partition_bytes_max: u64,
}

impl SizeLimits {
    pub const UNLIMITED: SizeLimits = SizeLimits { key_bytes_max: u64::MAX, partition_bytes_max: u64::MAX };
}

/// The part of a definition that decides which terms an item has.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexingConfig {
    pub policy: IndexingPolicy,
    pub geospatial: Geospatial,
    pub embeddings: Vec<VectorEmbedding>,
    pub full_text: Option<FullTextPolicy>,
    pub computed: ComputedDefinitions,
}

impl IndexingConfig {
    /// `computed`: the definition's computed properties.
    pub fn of(definition: &ContainerDefinition, computed: ComputedDefinitions) -> IndexingConfig {
        let (policy, embeddings) = (definition.indexing.clone(), definition.vector_embeddings.clone());
        let full_text = definition.full_text.clone();
        IndexingConfig { policy, geospatial: definition.geospatial, embeddings, full_text, computed }
    }

    /// Equal rules produce equal terms.
    pub fn rules(&self) -> IndexRules {
        IndexRules::new(self)
    }
}

impl Schema {
    /// `former`: the policies whose terms may still be in the index.
    pub fn new(
        version: u64,
        definition: &ContainerDefinition,
        computed: &ComputedDefinitions,
        former: &[IndexingConfig],
        size_limits: SizeLimits,
    ) -> Schema {
        let former = former.iter().map(IndexingConfig::rules).collect();
        let (policy, current) = (&definition.indexing, IndexingConfig::of(definition, computed.clone()).rules());
        Schema {
            version,
            key: definition.partition_key.clone(),
            index: PolicyVersions::new(current, former),
            // Without an index, items count as indexed: a later policy must not leave them out.
            automatic: policy.automatic || policy.mode == IndexingMode::None,
            size_limits,
            retains_versions: definition.records_versions(),
            default_ttl: definition.default_ttl,
            unique: UniqueKeys::new(&definition.unique_keys),
            obsolete_paths: Vec::new(),
        }
    }

    /// Decides which items are expired at this time.
    pub fn expiry(&self, now_s: u32) -> Expiry {
        Expiry::new(self.default_ttl, now_s)
    }

    pub fn usable_index(&self) -> UsableIndex<'_> {
        self.index.usable()
    }

    /// The terms of an item that is written now.
    pub fn terms(&self, body: &Value, ts_s: u32, indexed: bool) -> Vec<IndexTerm> {
        if indexed { self.index.terms(body, ts_s) } else { index::unindexed() }
    }

    /// The terms of a stored item, whenever it was written.
    pub fn stored_terms(&self, record: &Record, body: &Value) -> StoredTerms {
        if !record.indexed {
            return StoredTerms { possible: index::unindexed(), certain: None };
        }
        let possible = self.index.possible_terms(body, record.ts_s);
        let certain = (!self.index.has_one_version()).then(|| self.index.certain_terms(body, record.ts_s));
        StoredTerms { possible, certain }
    }
}

/// The terms of an item that may have been written under a former policy.
pub struct StoredTerms {
    /// All terms that the item can have.
    pub possible: Vec<IndexTerm>,
    /// The terms that it certainly has; `None` if it has all possible ones.
    certain: Option<Vec<IndexTerm>>,
}

impl StoredTerms {
    pub fn certain(&self) -> &[IndexTerm] {
        self.certain.as_deref().unwrap_or(&self.possible)
    }

    pub fn is_exact(&self) -> bool {
        self.certain.is_none()
    }
}

impl From<Vec<IndexTerm>> for StoredTerms {
    fn from(terms: Vec<IndexTerm>) -> StoredTerms {
        StoredTerms { possible: terms, certain: None }
    }
}
