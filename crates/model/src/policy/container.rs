//! Container definition: all policies of a container.
//!
//! Invariant: after `create` and `replace` the parts agree with each other (vector and full-text indexes
//! have their policy, time to live has an index, spatial indexes fit the geometry), and `replace` does not
//! change immutable parts.
//!
//! A replace carries the whole definition: an omitted part is reset, and omitting an immutable part is
//! an attempt to change it. The one exception is the conflict resolution policy, which the service
//! itself fills in and most clients never send. The kind is not part of the JSON: `create` makes a nosql
//! container whatever the body says, `replace` keeps the kind, and `from_stored` gets it from the row.

use super::computed::ComputedProperty;
use super::conflict::ConflictResolution;
use super::encryption::ClientEncryptionPolicy;
use super::full_text::{self, FullTextPolicy};
use super::global_index::{GlobalIndex, IndexedBy};
use super::indexing::{IndexingMode, IndexingPolicy};
use super::kind::ContainerKind;
use super::spatial::{self, Geospatial};
use super::unique_key::{self, UniqueKey};
use super::vector::{self, VectorEmbedding};
use super::{key, read};
use crate::item;
use crate::partition_key::{KeyVersion, PartitionKeyDefinition};
use crate::{Error, Kind, Object, Result, Value};

/// The member that lists the global secondary indexes of a source container.
const INDEXED_BY: &str = "materializedViews";
const TTL_PATH: &str = "ttlPropertyPath";

#[derive(Clone, Debug, PartialEq)]
pub struct ContainerDefinition {
    pub id: String,
    /// Fixed at creation.
    pub kind: ContainerKind,
    /// None for a fixed container, which has no key.
    pub partition_key: Option<PartitionKeyDefinition>,
    pub indexing: IndexingPolicy,
    /// In seconds; -1 means that only items with their own time to live expire.
    pub default_ttl: Option<i32>,
    /// The property from which an item's time to live would be counted. Stored as sent; not supported.
    pub ttl_path: Option<String>,
    pub unique_keys: Vec<UniqueKey>,
    pub conflict_resolution: ConflictResolution,
    pub geospatial: Geospatial,
    pub computed_properties: Vec<ComputedProperty>,
    pub vector_embeddings: Vec<VectorEmbedding>,
    pub full_text: Option<FullTextPolicy>,
    pub client_encryption: Option<ClientEncryptionPolicy>,
    pub change_feed: Option<ChangeFeedPolicy>,
    /// In seconds; -1 retains forever, 0 is off.
    pub analytical_storage_ttl: Option<i32>,
    /// Set if this container is a global secondary index, maintained from a source container.
    pub global_index: Option<GlobalIndex>,
    /// The global secondary indexes of this container. Maintained by the engine; clients cannot change it.
    pub indexed_by: Vec<IndexedBy>,
    /// Stored as sent; not supported.
    pub data_masking: Option<Object>,
}

/// The retention of the all-versions change feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFeedPolicy {
    pub retention_minutes: u32,
}

impl ContainerDefinition {
    pub fn create(body: &Value) -> Result<Self> {
        Self::parse(ContainerKind::Nosql, body, KeyVersion::V1)?.check()
    }

    /// Parses a stored definition. It stays valid even if the current version would reject it.
    pub fn from_stored(kind: ContainerKind, body: &Value) -> Result<Self> {
        Self::parse(kind, body, KeyVersion::V1)
    }

    /// The definition that replaces this one.
    pub fn replace(&self, body: &Value) -> Result<Self> {
        let version = self.partition_key.as_ref().map_or(KeyVersion::V1, |key| key.version);
        let mut next = Self::parse(self.kind, body, version)?;
        if body.get("conflictResolutionPolicy").is_none_or(|policy| *policy == Value::Null) {
            next.conflict_resolution = self.conflict_resolution.clone();
        }
        let mut next = next.check()?;
        self.check_immutable(&next)?;
        // The keys and the index name the same properties as before: keep their spelling at creation.
        next.partition_key = self.partition_key.clone();
        next.unique_keys = self.unique_keys.clone();
        next.global_index = self.global_index.clone();
        next.indexed_by = self.indexed_by.clone();
        Ok(next)
    }

    /// Everything but the kind and the system properties, in Cosmos's order.
    pub fn to_object(&self) -> Object {
        let mut object = Object::new().with("id", self.id.as_str()).with("indexingPolicy", self.indexing.to_value());
        set(&mut object, "partitionKey", self.partition_key.as_ref().map(key::to_object));
        set(&mut object, "defaultTtl", self.default_ttl.map(i64::from));
        set(&mut object, TTL_PATH, self.ttl_path.as_deref());
        set(&mut object, "uniqueKeyPolicy", non_empty(&self.unique_keys).map(UniqueKey::policy_to_object));
        object.set("conflictResolutionPolicy", self.conflict_resolution.to_object());
        object.set("geospatialConfig", self.geospatial.to_object());
        let computed = non_empty(&self.computed_properties);
        set(&mut object, "computedProperties", computed.map(ComputedProperty::to_value));
        let vectors = non_empty(&self.vector_embeddings);
        set(&mut object, "vectorEmbeddingPolicy", vectors.map(VectorEmbedding::policy_to_object));
        set(&mut object, "fullTextPolicy", self.full_text.as_ref().map(FullTextPolicy::to_object));
        let encryption = self.client_encryption.as_ref();
        set(&mut object, "clientEncryptionPolicy", encryption.map(ClientEncryptionPolicy::to_object));
        set(&mut object, "changeFeedPolicy", self.change_feed.map(ChangeFeedPolicy::to_object));
        set(&mut object, "analyticalStorageTtl", self.analytical_storage_ttl.map(i64::from));
        if let Some(index) = &self.global_index {
            index.write_member(&mut object);
        }
        let indexed_by: Vec<Value> = self.indexed_by.iter().map(IndexedBy::to_value).collect();
        set(&mut object, INDEXED_BY, non_empty(&indexed_by).map(<[Value]>::to_vec));
        set(&mut object, "dataMaskingPolicy", self.data_masking.clone());
        object
    }

    /// Whether clients may read the all-versions change feed.
    pub fn has_all_versions_feed(&self) -> bool {
        self.change_feed.is_some_and(|feed| feed.retention_minutes > 0)
    }

    /// Whether changes record versions: for clients, or for the global secondary indexes built from them.
    pub fn records_versions(&self) -> bool {
        self.has_all_versions_feed() || !self.indexed_by.is_empty()
    }

    /// The first setting whose feature is not supported. Settings that only speed up queries are not
    /// among them: without their feature a result is slower, not different.
    pub fn unsupported_setting(&self) -> Option<&'static str> {
        let settings = [
            (self.ttl_path.is_some(), TTL_PATH),
            (self.data_masking.as_ref().is_some_and(has_masked_paths), "dataMaskingPolicy"),
            (self.analytical_storage_ttl.is_some_and(|ttl| ttl != 0), "analyticalStorageTtl"),
            (self.indexing.mode == IndexingMode::Lazy, "indexingMode lazy"),
            (self.vector_embeddings.iter().any(|vector| vector.source.is_some()), "embeddingSource"),
        ];
        settings.into_iter().find(|(is_set, _)| *is_set).map(|(_, name)| name)
    }

    /// `default_version` applies to a partition key without a version.
    fn parse(kind: ContainerKind, value: &Value, default_version: KeyVersion) -> Result<Self> {
        let body = read::object(value)?;
        let id = item::item_id(value)?;
        item::check_resource_name(id)?;
        Ok(ContainerDefinition {
            id: id.to_owned(),
            kind,
            partition_key: read::optional(body, "partitionKey", |key| key::parse(key, default_version))?,
            vector_embeddings: read::optional(body, "vectorEmbeddingPolicy", VectorEmbedding::parse_policy)?
                .unwrap_or_default(),
            full_text: read::optional(body, "fullTextPolicy", FullTextPolicy::parse)?,
            indexing: IndexingPolicy::parse(read::member(body, "indexingPolicy"))?,
            default_ttl: read::optional(body, "defaultTtl", default_ttl)?,
            ttl_path: read::optional(body, TTL_PATH, read::text)?.filter(|path| !path.is_empty()).map(str::to_owned),
            unique_keys: read::optional(body, "uniqueKeyPolicy", UniqueKey::parse_policy)?.unwrap_or_default(),
            conflict_resolution: ConflictResolution::parse(read::member(body, "conflictResolutionPolicy"))?,
            geospatial: read::optional(body, "geospatialConfig", Geospatial::from_policy)?
                .unwrap_or(Geospatial::Geography),
            computed_properties: read::optional(body, "computedProperties", ComputedProperty::parse_all)?
                .unwrap_or_default(),
            client_encryption: read::optional(body, "clientEncryptionPolicy", ClientEncryptionPolicy::parse)?,
            change_feed: read::optional(body, "changeFeedPolicy", ChangeFeedPolicy::parse)?,
            analytical_storage_ttl: read::optional(body, "analyticalStorageTtl", analytical_storage_ttl)?,
            global_index: GlobalIndex::parse(body)?,
            indexed_by: read::each(body, INDEXED_BY, IndexedBy::parse)?,
            data_masking: read::optional(body, "dataMaskingPolicy", read::object)?.cloned(),
        })
    }

    /// Checks that the parts agree with each other.
    fn check(self) -> Result<Self> {
        vector::check(&self.indexing.vector, &self.vector_embeddings)?;
        full_text::check(&self.indexing.full_text, self.full_text.as_ref())?;
        spatial::check(&self.indexing.spatial, self.geospatial)?;
        unique_key::check_no_system_properties(&self.unique_keys)?;
        self.conflict_resolution.check()?;
        if let Some(policy) = &self.client_encryption {
            policy.check(self.partition_key.as_ref())?;
        }
        if let Some(index) = &self.global_index
            && (self.partition_key.is_none() || !self.unique_keys.is_empty())
        {
            return Err(Error::invalid(format!(
                "A container with {} has a partition key and no unique keys.",
                index.member()
            )));
        }
        if self.ttl_path.is_some() && self.default_ttl.is_none() {
            return Err(Error::invalid(format!("{TTL_PATH} needs a defaultTtl: without one no item has an end.")));
        }
        if self.default_ttl.is_some() && self.indexing.mode == IndexingMode::None {
            return Err(Error::invalid(
                "Time to live needs the indexing mode consistent. Leave defaultTtl out, or index the container.",
            ));
        }
        Ok(self)
    }

    /// Checks that a replacement does not change immutable parts.
    fn check_immutable(&self, next: &Self) -> Result<()> {
        if self.id != next.id {
            return Err(Error::invalid(format!("The container '{}' cannot be renamed to '{}'.", self.id, next.id)));
        }
        if !same_option(self.partition_key.as_ref(), next.partition_key.as_ref(), key::same) {
            return Err(Error::invalid("Document collection partition key cannot be changed."));
        }
        if !same_list(&self.unique_keys, &next.unique_keys, UniqueKey::same) {
            return Err(Error::new(
                Kind::Forbidden,
                "The unique index cannot be modified. To change the unique index, remove the collection and re-create a new one.",
            ));
        }
        self.check_immutable_policies(next)?;
        vector::check_embeddings_unmodified(&self.vector_embeddings, &next.vector_embeddings)?;
        vector::check_indexes_unmodified(&self.indexing.vector, &next.indexing.vector)
    }

    fn check_immutable_policies(&self, next: &Self) -> Result<()> {
        if self.conflict_resolution != next.conflict_resolution {
            return Err(Error::invalid("Updating conflict resolution policy is currently not supported"));
        }
        if self.client_encryption != next.client_encryption {
            return Err(unchangeable("clientEncryptionPolicy"));
        }
        let (was, is) = (self.global_index.as_ref(), next.global_index.as_ref());
        match was.or(is) {
            Some(index) if !same_option(was, is, GlobalIndex::same) => Err(unchangeable(index.member())),
            _ => Ok(()),
        }
    }
}

fn unchangeable(member: &str) -> Error {
    Error::invalid(format!("'{member}' cannot be changed as part of collection replace operation."))
}

impl ChangeFeedPolicy {
    fn parse(body: &Value) -> Result<Self> {
        let minutes = read::optional(read::object(body)?, "retentionDuration", read::integer)?.unwrap_or(0);
        let retention_minutes = u32::try_from(minutes).map_err(|_| {
            Error::invalid(format!("The change feed's retentionDuration {minutes} is not a number of minutes."))
        })?;
        Ok(ChangeFeedPolicy { retention_minutes })
    }

    fn to_object(self) -> Object {
        Object::new().with("retentionDuration", i64::from(self.retention_minutes))
    }
}

fn default_ttl(value: &Value) -> Result<i32> {
    let given = read::integer(value)?;
    seconds(given).filter(|ttl| *ttl != 0).ok_or_else(|| {
        Error::invalid(format!("The defaultTtl {given} is not -1 and not between 1 and {} seconds.", i32::MAX))
    })
}

fn analytical_storage_ttl(value: &Value) -> Result<i32> {
    let given = read::integer(value)?;
    seconds(given).ok_or_else(|| {
        Error::invalid(format!(
            "The analyticalStorageTtl {given} is not -1 and not between 0 and {} seconds.",
            i32::MAX
        ))
    })
}

fn seconds(given: i64) -> Option<i32> {
    i32::try_from(given).ok().filter(|ttl| *ttl >= -1)
}

/// A masking policy without paths masks nothing.
fn has_masked_paths(policy: &Object) -> bool {
    let empty = |paths: &Value| paths.as_array().is_some_and(<[Value]>::is_empty);
    read::member(policy, "includedPaths").is_some_and(|paths| !empty(paths))
}

fn set(object: &mut Object, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.set(name, value);
    }
}

fn non_empty<T>(all: &[T]) -> Option<&[T]> {
    Some(all).filter(|all| !all.is_empty())
}

fn same_option<T>(one: Option<&T>, other: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => same(one, other),
        (None, None) => true,
        _ => false,
    }
}

fn same_list<T>(one: &[T], other: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
}

#[cfg(test)]
mod tests;
