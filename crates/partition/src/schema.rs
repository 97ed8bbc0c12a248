//! What of a container's definition decides how its items are stored.
//!
//! Promise: made in one place from the definition, and numbered. A partition accepts no write under an older schema
//! than the newest it has seen: who wrote under a newer one relies on it.

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
    /// Grows with every change of the schema.
    pub version: u64,
    /// `None` for a fixed container without a key.
    pub key: Option<PartitionKeyDefinition>,
    pub index: PolicyVersions,
    /// Whether an item is indexed when its write does not say.
    pub automatic: bool,
    pub room: SizeLimits,
    /// Whether every change leaves a version behind.
    pub keeps_versions: bool,
    /// Seconds; -1 lets only items with a time of their own be over, `None` none at all.
    pub default_ttl: Option<i32>,
    pub unique: UniqueKeys,
}

/// How much may be stored, in bytes of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// In one logical partition.
    pub key_bytes_max: u64,
    /// In one physical partition, before it splits; or if it cannot, at all.
    pub partition_bytes_max: u64,
}

impl SizeLimits {
    pub const UNLIMITED: SizeLimits = SizeLimits { key_bytes_max: u64::MAX, partition_bytes_max: u64::MAX };
}

/// What of a definition decides which terms an item has.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexingConfig {
    pub policy: IndexingPolicy,
    pub geospatial: Geospatial,
    pub embeddings: Vec<VectorEmbedding>,
    pub full_text: Option<FullTextPolicy>,
    pub computed: ComputedDefinitions,
}

impl IndexingConfig {
    /// `computed` are the definition's computed properties.
    pub fn of(definition: &ContainerDefinition, computed: ComputedDefinitions) -> IndexingConfig {
        let (policy, embeddings) = (definition.indexing.clone(), definition.vector_embeddings.clone());
        let full_text = definition.full_text.clone();
        IndexingConfig { policy, geospatial: definition.geospatial, embeddings, full_text, computed }
    }

    /// Equal rules give equal terms.
    pub fn rules(&self) -> IndexRules {
        IndexRules::new(self)
    }
}

impl Schema {
    /// `former` are the policies whose terms may still be in the index.
    pub fn new(
        version: u64,
        definition: &ContainerDefinition,
        computed: &ComputedDefinitions,
        former: &[IndexingConfig],
        room: SizeLimits,
    ) -> Schema {
        let former = former.iter().map(IndexingConfig::rules).collect();
        let (policy, current) = (&definition.indexing, IndexingConfig::of(definition, computed.clone()).rules());
        Schema {
            version,
            key: definition.partition_key.clone(),
            index: PolicyVersions::new(current, former),
            // Without an index nobody wants to be left out of it, should there be one later.
            automatic: policy.automatic || policy.mode == IndexingMode::None,
            room,
            keeps_versions: definition.records_versions(),
            default_ttl: definition.default_ttl,
            unique: UniqueKeys::new(&definition.unique_keys),
        }
    }

    /// Which items are over at this moment.
    pub fn expiry(&self, now_s: u32) -> Expiry {
        Expiry::new(self.default_ttl, now_s)
    }

    pub fn usable_index(&self) -> UsableIndex<'_> {
        self.index.usable()
    }

    /// What an item that is written now gets.
    pub fn terms(&self, body: &Value, ts_s: u32, indexed: bool) -> Vec<IndexTerm> {
        if indexed { self.index.terms(body, ts_s) } else { index::unindexed() }
    }

    /// What an item that was written some time has.
    pub fn stored_terms(&self, record: &Record, body: &Value) -> StoredTerms {
        if !record.indexed {
            return StoredTerms { possible: index::unindexed(), certain: None };
        }
        let possible = self.index.possible_terms(body, record.ts_s);
        let certain = (!self.index.is_settled()).then(|| self.index.certain_terms(body, record.ts_s));
        StoredTerms { possible, certain }
    }
}

/// The terms of an item that may have been written under a former policy.
pub struct StoredTerms {
    /// It has no others.
    pub possible: Vec<IndexTerm>,
    /// It has at least these; `None` if it has all that are possible.
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
