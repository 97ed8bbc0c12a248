//! The resource tree of an account in memory: an immutable, shared, complete snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pleiad_model::etag::Etag;
use pleiad_model::partition_map::PartitionMap;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::{ClientEncryptionKeyRid, ContainerRid, DatabaseRid, OfferRid};
use pleiad_model::{Error, Object, Result};
use pleiad_partition::governor::Caps;
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{Partition, Schema};

use super::copy::DatabaseCopy;
use super::index_transformation::IndexTransformation;
use super::job::RepartitionJob;
use super::progress::IndexProgress;
use super::script::Scripts;
use super::users::User;
use crate::PartitionLimits;
use crate::computed::ComputedProperties;
use crate::throughput::{self, ProvisionedThroughput, Redistribution, SharedThroughput};

#[derive(Clone, Default)]
pub struct CatalogTree {
    pub databases: BTreeMap<u32, Arc<Database>>,
    pub offers: BTreeMap<u32, Arc<Offer>>,
    /// Splits and merges in progress.
    pub jobs: BTreeMap<u64, Arc<RepartitionJob>>,
    /// Database copies in progress.
    pub copies: BTreeMap<u64, Arc<DatabaseCopy>>,
    by_name: HashMap<String, u32>,
}

#[derive(Clone)]
pub struct Database {
    pub id: String,
    pub rid: DatabaseRid,
    pub version: CatalogVersion,
    pub containers: BTreeMap<u32, Arc<Container>>,
    pub encryption_keys: BTreeMap<u64, Arc<EncryptionKey>>,
    pub users: BTreeMap<u32, Arc<User>>,
    /// The highest LSN of the containers that were deleted from it. Clients may still hold their session tokens, by the
    /// names of containers that were created again.
    pub(super) deleted_lsn: u64,
    /// The throughput that its containers share, if the database has an offer.
    pub(crate) pool: Arc<SharedThroughput>,
    by_name: HashMap<String, u32>,
}

/// The catalog change that wrote this version of a resource, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogVersion {
    pub number: u64,
    pub ts_s: u32,
}

impl CatalogVersion {
    pub fn etag(self) -> Etag {
        Etag { lsn: self.number, seq: 0, ts_s: self.ts_s, space: 0 }
    }
}

#[derive(Clone)]
pub struct Container {
    pub database: String,
    pub rid: ContainerRid,
    pub version: CatalogVersion,
    pub definition: ContainerDefinition,
    pub(crate) computed: ComputedProperties,
    pub(crate) schema: Arc<Schema>,
    /// Set while the index is being rebuilt for the current policy.
    pub index_transformation: Option<Arc<IndexTransformation>>,
    pub scripts: Arc<Scripts>,
    /// Of a global secondary index: its position in the source's change feed.
    pub(crate) progress: Arc<IndexProgress>,
    pub map: PartitionMap,
    /// In the order of the map's ranges.
    pub(crate) partitions: Vec<Arc<Partition>>,
}

#[derive(Clone)]
pub struct EncryptionKey {
    pub id: String,
    pub rid: ClientEncryptionKeyRid,
    pub version: CatalogVersion,
    /// All properties that the client sent, returned unchanged.
    pub properties: Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OfferOwner {
    Database(DatabaseRid),
    Container(ContainerRid),
}

#[derive(Clone)]
pub struct Offer {
    pub rid: OfferRid,
    pub owner: OfferOwner,
    pub version: CatalogVersion,
    pub throughput: ProvisionedThroughput,
    /// The highest throughput that was ever provisioned. It bounds the minimum of the offer.
    pub highest_ru: u32,
    pub redistribution: Redistribution,
    /// The limits of the throughput buckets.
    pub caps: Caps,
}

impl CatalogTree {
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(self.by_name.get(name)?)
    }

    pub fn database_by_rid(&self, rid: DatabaseRid) -> Option<&Arc<Database>> {
        self.databases.get(&rid.0)
    }

    pub fn container_by_rid(&self, rid: ContainerRid) -> Option<&Arc<Container>> {
        self.database_by_rid(rid.database)?.containers.get(&rid.number)
    }

    pub fn offer(&self, owner: OfferOwner) -> Option<&Arc<Offer>> {
        self.offers.values().find(|offer| offer.owner == owner)
    }

    /// Whether partitions are still being split to provide the offer's throughput.
    pub fn is_scaling(&self, offer: &Offer, limits: &PartitionLimits) -> bool {
        let OfferOwner::Container(rid) = offer.owner else { return false };
        let needed = throughput::partitions_needed(offer.throughput.ceiling_ru(), limits.partition_ru_max);
        self.container_by_rid(rid).is_some_and(|container| {
            let can_split = container.definition.partition_key.is_some();
            let partitions = &container.partitions;
            can_split
                && partitions.len() < needed as usize
                && !partitions.iter().all(|partition| partition.is_unsplittable())
        })
    }

    /// Whether a database has the name, or a copy in progress will have it.
    pub fn is_name_taken(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || self.copies.values().any(|copy| copy.to == name)
    }

    pub fn jobs_of(&self, container: ContainerRid) -> impl Iterator<Item = &Arc<RepartitionJob>> {
        self.jobs.values().filter(move |job| job.container == container)
    }

    pub(super) fn put_database(&mut self, database: Database) {
        self.by_name.insert(database.id.clone(), database.rid.0);
        self.databases.insert(database.rid.0, Arc::new(database));
    }

    pub(super) fn remove_database(&mut self, database: &Database) {
        self.by_name.remove(&database.id);
        self.databases.remove(&database.rid.0);
    }
}

impl Database {
    pub(super) fn new(id: String, rid: DatabaseRid, version: CatalogVersion) -> Self {
        let (containers, encryption_keys, users, deleted_lsn, pool, by_name) = Default::default();
        Database { id, rid, version, containers, encryption_keys, users, deleted_lsn, pool, by_name }
    }

    pub fn container(&self, name: &str) -> Option<&Arc<Container>> {
        self.containers.get(self.by_name.get(name)?)
    }

    pub fn encryption_key(&self, name: &str) -> Option<&Arc<EncryptionKey>> {
        self.encryption_keys.values().find(|key| key.id == name)
    }

    pub(super) fn put_container(&mut self, container: Arc<Container>) {
        self.by_name.insert(container.definition.id.clone(), container.rid.number);
        self.containers.insert(container.rid.number, container);
    }

    pub(super) fn remove_container(&mut self, container: &Container) {
        self.by_name.remove(&container.definition.id);
        self.containers.remove(&container.rid.number);
    }
}

impl Container {
    /// The progress of the index transformation; 100 if there is none.
    pub fn index_percent(&self) -> u64 {
        self.index_transformation.as_ref().map_or(100, |transformation| transformation.percent())
    }

    /// The partition of the range at this position in the map.
    pub(crate) fn partition(&self, at: usize) -> Result<&Arc<Partition>> {
        let found = self.partitions.get(at);
        found.ok_or_else(|| Error::internal("the partition map has more ranges than partitions"))
    }

    /// The partition that owns the key.
    pub(crate) fn owning_partition(&self, key: &LogicalKey) -> Result<&Arc<Partition>> {
        self.partition(self.map.locate(&key.epk))
    }

    /// The LSN of the partition of the range at this position in the map.
    pub fn range_lsn(&self, at: usize) -> Option<u64> {
        self.partitions.get(at).map(|partition| partition.lsn())
    }

    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    pub fn items(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.shard_state().items).sum()
    }

    pub fn item_bytes(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.shard_state().item_bytes).sum()
    }
}
