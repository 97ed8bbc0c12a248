//! Changes of the catalog: create, replace, delete. The catalog lock serialises them.
//!
//! Each change is checked against the newest tree, committed as one batch with the counters it
//! used, and only then shown to readers.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::item::check_resource_name;
use pleiad_model::partition_key::{EpkRange, initial_ranges};
use pleiad_model::partition_map::{PartitionKeyRange, PartitionMap};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::{ContainerRid, DatabaseRid, OfferRid, looks_like_database_rid};
use pleiad_model::{Error, Fact, Kind, Result};
use pleiad_partition::governor::Caps;
use pleiad_partition::shard_state::{RetentionWatermark, ShardState};
use pleiad_partition::{IndexingConfig, Schema};

use super::Catalog;
use super::encryption_keys::check_encryption_keys;
use super::global_index;
use super::index_transformation::IndexTransformation;
use super::publish::CatalogChange;
use super::rows::{self, HighWaterMark};
use super::tree::{CatalogTree, Container, Database, Offer, OfferOwner};
use crate::computed::{self, ComputedProperties};
use crate::throughput::{
    self, MANUAL_RU_MIN, OfferChange, OfferFloor, ProvisionedThroughput, SHARED_CONTAINERS_MAX, ThroughputRequest,
    partitions_needed,
};

/// Clients and the server decide by the form of a database's name in a path whether it is an id or a `_rid`. A database
/// whose id has the form of a `_rid` could only be reached by its own `_rid`, and requests and permissions that name it
/// would address another database.
pub(super) fn check_database_name(id: &str) -> Result<()> {
    check_resource_name(id)?;
    if looks_like_database_rid(id) {
        return Err(Error::invalid(format!(
            "The input name '{id}' is invalid: it has the form of a resource id, and requests for it would address another database."
        )));
    }
    Ok(())
}

/// A container to be created.
pub struct NewContainer {
    pub definition: ContainerDefinition,
    pub throughput: ThroughputRequest,
}

impl Catalog {
    pub async fn create_database(&self, id: &str, throughput: ThroughputRequest) -> Result<Arc<Database>> {
        check_database_name(id)?;
        let throughput = throughput.check(&self.limits.governance)?;
        let mut change = self.begin().await;
        if change.tree.is_name_taken(id) {
            return Err(Fact::ResourceExists.into());
        }
        change.counters.database += 1;
        let database = Database::new(id.to_owned(), DatabaseRid(change.counters.database), change.version);
        rows::put_database(&mut change.batch, &database);
        let rid = database.rid;
        change.tree.put_database(database);
        if let Some(throughput) = throughput {
            change.put_offer(OfferOwner::Database(rid), throughput);
        }
        self.publish(change).await?;
        self.tree().database_by_rid(rid).cloned().ok_or_else(|| Error::internal("a created database is missing"))
    }

    pub async fn delete_database(&self, rid: DatabaseRid) -> Result<()> {
        let mut change = self.begin().await;
        let database = change.tree.database_by_rid(rid).cloned().ok_or(Fact::ResourceMissing)?;
        rows::delete_database(&mut change.batch, &database);
        change.remove_offer(OfferOwner::Database(rid));
        for container in database.containers.values() {
            change.note_deleted(container);
            rows::delete_container(&mut change.batch, container);
            change.remove_offer(OfferOwner::Container(container.rid));
            change.remove_jobs_of(container.rid);
        }
        for key in database.encryption_keys.values() {
            rows::delete_encryption_key(&mut change.batch, key);
        }
        database.users.values().for_each(|user| rows::delete_user(&mut change.batch, user));
        change.tree.remove_database(&database);
        change.dropped = database.containers.values().cloned().collect();
        self.publish(change).await
    }

    pub async fn create_container(&self, database: DatabaseRid, mut new: NewContainer) -> Result<Arc<Container>> {
        check_resource_name(&new.definition.id)?;
        check_supported(&new.definition)?;
        let computed = ComputedProperties::of(&new.definition)?;
        let requested = new.throughput.check(&self.limits.governance)?;
        let mut change = self.begin().await;
        let mut owner = change.owner(database)?;
        if owner.container(&new.definition.id).is_some() {
            return Err(Fact::ResourceExists.into());
        }
        check_encryption_keys(&owner, &new.definition)?;
        new.definition.indexed_by.clear();
        let source = global_index::bind_source(&owner, &mut new.definition)?;
        let asked = match &source {
            Some(_) if !self.limits.governance.serverless => Some(global_index::throughput(requested)?),
            _ => requested,
        };
        let pool = change.tree.offer(OfferOwner::Database(database)).map(|offer| offer.throughput);
        let throughput = match (asked, pool) {
            (None, Some(_)) => None,
            (None, None) if self.limits.governance.serverless => None,
            (asked, _) => {
                Some(asked.unwrap_or(ProvisionedThroughput::Manual(self.container_minimum_ru(&new.definition))))
            }
        };
        check_throughput_without_key(&new.definition, throughput, pool.is_some())?;
        check_container_minimum(throughput, self.container_minimum_ru(&new.definition))?;
        if throughput.is_none() && pool.is_some() {
            check_sharing(&change.tree, &owner)?;
        }
        change.counters.container += 1;
        let rid = ContainerRid { database, number: change.counters.container };
        let partitions = match (throughput, pool) {
            (Some(throughput), _) => throughput.partitions(&self.limits),
            (None, Some(pool)) => partitions_needed(pool.ceiling_ru(), self.limits.partition_ru_max),
            (None, None) => 1,
        };
        let map = change.new_map(&new.definition, partitions.max(self.limits.ranges_initial))?;
        let (database, version, definition) = (owner.id.clone(), change.version, new.definition);
        let size_limits = self.limits.size_limits();
        let schema = Arc::new(Schema::new(version.number, &definition, &computed.indexed, &[], size_limits));
        let state = initial_state(&owner, &schema);
        let partitions = rows::create_partitions(&mut change.batch, &map, &state, &self.store, &self.committer);
        let (index_transformation, scripts, progress) = Default::default();
        let container = Container {
            database,
            rid,
            version,
            definition,
            computed,
            schema,
            index_transformation,
            scripts,
            progress,
            map,
            partitions,
        };
        let container = Arc::new(container);
        rows::put_container(&mut change.batch, &container);
        owner.put_container(container.clone());
        if let Some(source) = source {
            self.add_index(&mut change, &mut owner, &source, &container)?;
        }
        change.tree.put_database(owner);
        if let Some(throughput) = throughput {
            change.put_offer(OfferOwner::Container(rid), throughput);
        }
        self.publish(change).await?;
        Ok(container)
    }

    /// `replace` maps the current definition to the new one.
    pub async fn replace_container(
        &self,
        rid: ContainerRid,
        replace: impl FnOnce(&ContainerDefinition) -> Result<ContainerDefinition>,
    ) -> Result<Arc<Container>> {
        let mut change = self.begin().await;
        let mut owner = change.owner(rid.database)?;
        let old = owner.containers.get(&rid.number).cloned().ok_or(Fact::ResourceMissing)?;
        let definition = replace(&old.definition)?;
        check_supported(&definition)?;
        let container = self.put_definition(&mut change, &mut owner, &old, definition)?;
        change.tree.put_database(owner);
        self.publish(change).await?;
        Ok(container)
    }

    /// Gives a container another definition. The caller must publish the change without waiting for anything else: see
    /// `next_schema`.
    pub(super) fn put_definition(
        &self,
        change: &mut CatalogChange,
        owner: &mut Database,
        old: &Container,
        definition: ContainerDefinition,
    ) -> Result<Arc<Container>> {
        let computed = ComputedProperties::of(&definition)?;
        let next = self.next_schema(old, &definition, &computed, change.version.number)?;
        let container = Container { version: change.version, definition, computed, ..Container::clone(old) };
        let container = Arc::new(Container { schema: next.0, index_transformation: next.1, ..container });
        // Only a new index transformation has no job yet.
        change.reindex = Some(container.clone())
            .filter(|new| new.index_transformation.is_some() && new.schema.version == change.version.number);
        rows::put_container(&mut change.batch, &container);
        owner.put_container(container.clone());
        Ok(container)
    }

    /// The schema for another definition. If it differs, writes under the old schema stop immediately, and writers wait
    /// until the change is published; so the caller must publish it without waiting for anything else.
    fn next_schema(
        &self,
        old: &Container,
        definition: &ContainerDefinition,
        computed: &ComputedProperties,
        version: u64,
    ) -> Result<(Arc<Schema>, Option<Arc<IndexTransformation>>)> {
        let current = IndexingConfig::of(&old.definition, old.computed.indexed.clone());
        let next = IndexingConfig::of(definition, computed.indexed.clone());
        let same_index = current.rules() == next.rules() && current.policy.automatic == next.policy.automatic;
        if same_index && old.schema.retains_versions == definition.records_versions() {
            return Ok((self.same_schema(old, definition, computed), old.index_transformation.clone()));
        }
        let index_transformation = match same_index {
            true => old.index_transformation.clone(),
            false => IndexTransformation::next(old.index_transformation.as_deref(), current, &next)?.map(Arc::new),
        };
        old.partitions.iter().for_each(|partition| partition.require_schema(version));
        let index_transformation = index_transformation.filter(|_| old.items() > 0);
        let former = index_transformation.as_ref().map_or(&[][..], |index_transformation| &index_transformation.from);
        let schema = Schema::new(version, definition, &computed.indexed, former, self.limits.size_limits());
        Ok((Arc::new(schema), index_transformation))
    }

    /// The schema for a definition that needs the same rows. Only expiry may differ, and readers evaluate that per
    /// item.
    fn same_schema(
        &self,
        old: &Container,
        definition: &ContainerDefinition,
        computed: &ComputedProperties,
    ) -> Arc<Schema> {
        if old.schema.default_ttl == definition.default_ttl && old.computed.indexed == computed.indexed {
            return old.schema.clone();
        }
        let former =
            old.index_transformation.as_ref().map_or(&[][..], |index_transformation| &index_transformation.from);
        let schema = Schema::new(old.schema.version, definition, &computed.indexed, former, self.limits.size_limits());
        Arc::new(schema)
    }

    /// Ends the index transformation of that schema version: every item has the rows that the policy asks for.
    pub(crate) async fn finish_index_transformation(&self, rid: ContainerRid, schema_version: u64) -> Result<()> {
        let mut change = self.begin().await;
        let Some(old) = change.tree.container_by_rid(rid).cloned() else { return Ok(()) };
        if old.schema.version != schema_version {
            return Ok(());
        }
        let mut owner = change.owner(rid.database)?;
        let computed = &old.computed.indexed;
        let schema = Schema::new(schema_version, &old.definition, computed, &[], self.limits.size_limits());
        // Clients see the same container as before, etag included.
        let container = Container { schema: Arc::new(schema), index_transformation: None, ..Container::clone(&old) };
        rows::put_container(&mut change.batch, &container);
        owner.put_container(Arc::new(container));
        change.tree.put_database(owner);
        self.publish(change).await
    }

    pub async fn delete_container(&self, rid: ContainerRid) -> Result<()> {
        let mut change = self.begin().await;
        let mut owner = change.owner(rid.database)?;
        let container = owner.containers.get(&rid.number).cloned().ok_or(Fact::ResourceMissing)?;
        global_index::check_not_a_source(&container)?;
        rows::delete_container(&mut change.batch, &container);
        change.remove_offer(OfferOwner::Container(rid));
        change.remove_jobs_of(rid);
        owner.remove_container(&container);
        self.remove_index(&mut change, &mut owner, &container)?;
        owner.deleted_lsn = owner.deleted_lsn.max(change.note_deleted(&container).lsn);
        rows::put_database(&mut change.batch, &owner);
        change.tree.put_database(owner);
        change.dropped.push(container);
        self.publish(change).await
    }

    /// `caps` are the new limits of the throughput buckets; `None` leaves them as they are.
    pub async fn replace_offer(&self, rid: OfferRid, requested: OfferChange, caps: Option<Caps>) -> Result<Arc<Offer>> {
        let change = self.begin().await;
        let old = change.tree.offers.get(&rid.0).cloned().ok_or(Fact::ResourceMissing)?;
        let throughput = self.new_throughput(&change.tree, &old, requested)?;
        check_fixed(&change.tree, old.owner, throughput)?;
        if throughput != old.throughput && change.tree.is_scaling(&old, &self.limits) {
            return Err(Error::new(Kind::Locked, SCALING));
        }
        let caps = caps.unwrap_or(old.caps);
        throughput::check_caps(&caps, old.owner)?;
        let highest_ru = old.highest_ru.max(throughput.ceiling_ru());
        let offer = Offer { version: change.version, throughput, highest_ru, caps, ..Offer::clone(&old) };
        self.publish_offer(change, offer).await
    }

    /// Redistributes a container's throughput: the given partition key ranges get these RU/s, the others keep what they
    /// have, and the sum becomes the provisioned throughput. Without targets, it is divided evenly again.
    pub async fn redistribute(&self, rid: ContainerRid, targets: &BTreeMap<u32, u32>) -> Result<Arc<Offer>> {
        let change = self.begin().await;
        let container = change.tree.container_by_rid(rid).cloned().ok_or(Fact::ResourceMissing)?;
        let old = change.tree.offer(OfferOwner::Container(rid)).cloned();
        let old = old.ok_or_else(|| Error::invalid("The container has no throughput of its own to redistribute."))?;
        let (redistribution, throughput) =
            throughput::redistributed(&old, container.map.ranges(), targets, self.limits.partition_ru_max)?;
        check_same_kind(old.throughput, throughput)?;
        check_minimum(throughput, self.minimum_ru(&change.tree, &old))?;
        let highest_ru = old.highest_ru.max(throughput.ceiling_ru());
        let version = change.version;
        self.publish_offer(change, Offer { version, throughput, highest_ru, redistribution, ..Offer::clone(&old) })
            .await
    }

    async fn publish_offer(&self, mut change: CatalogChange, offer: Offer) -> Result<Arc<Offer>> {
        let offer = Arc::new(offer);
        rows::put_offer(&mut change.batch, &offer);
        change.tree.offers.insert(offer.rid.0, offer.clone());
        if let OfferOwner::Container(container) = offer.owner {
            change.split_candidates.push(container);
        }
        self.publish(change).await?;
        Ok(offer)
    }

    /// The offer's new throughput, if the change is allowed.
    fn new_throughput(&self, tree: &CatalogTree, old: &Offer, requested: OfferChange) -> Result<ProvisionedThroughput> {
        let floor = self.offer_floor(tree, old);
        let new = match requested {
            OfferChange::ToAutoscale => return Ok(old.throughput.to_autoscale(&floor)),
            OfferChange::ToManual => return Ok(old.throughput.to_manual()),
            OfferChange::To(request) | OfferChange::ToEither(request) => request.check(&self.limits.governance)?,
        };
        let new = new.ok_or_else(|| Error::invalid("The offer names no throughput."))?;
        if matches!(requested, OfferChange::To(_)) {
            check_same_kind(old.throughput, new)?;
        }
        check_minimum(new, new.minimum_ru(&floor))?;
        Ok(new)
    }

    /// The least throughput that an offer can be replaced with.
    pub fn minimum_ru(&self, tree: &CatalogTree, offer: &Offer) -> u32 {
        offer.throughput.minimum_ru(&self.offer_floor(tree, offer))
    }

    fn offer_floor(&self, tree: &CatalogTree, offer: &Offer) -> OfferFloor {
        let highest_ru = offer.highest_ru;
        match offer.owner {
            OfferOwner::Container(rid) => {
                tree.container_by_rid(rid).map_or(OfferFloor::default(), |container| OfferFloor {
                    highest_ru,
                    stored_bytes: container.item_bytes(),
                    container_ru_min: self.container_minimum_ru(&container.definition),
                    sharing: 0,
                })
            }
            OfferOwner::Database(rid) => {
                let containers =
                    tree.database_by_rid(rid).into_iter().flat_map(|database| database.containers.values());
                let sharing = containers.filter(|container| is_sharing(tree, container));
                let (count, stored_bytes) = sharing.fold((0, 0), |(count, bytes), container| {
                    (count + 1, container.item_bytes().saturating_add(bytes))
                });
                OfferFloor { highest_ru, stored_bytes, sharing: count, container_ru_min: 0 }
            }
        }
    }

    /// The minimum throughput of a container: in early versions of the service it depended on whether the container
    /// has a partition key.
    fn container_minimum_ru(&self, definition: &ContainerDefinition) -> u32 {
        match definition.partition_key {
            Some(_) => self.limits.governance.container_ru_min,
            None => MANUAL_RU_MIN,
        }
    }
}

impl CatalogChange {
    pub(super) fn owner(&self, rid: DatabaseRid) -> Result<Database> {
        let database = self.tree.database_by_rid(rid);
        database.map(|database| Database::clone(database)).ok_or_else(owner_missing)
    }

    fn put_offer(&mut self, owner: OfferOwner, throughput: ProvisionedThroughput) {
        self.counters.offer += 1;
        let rid = OfferRid(self.counters.offer);
        let (version, highest_ru) = (self.version, throughput.ceiling_ru());
        let (redistribution, caps) = Default::default();
        let offer = Offer { rid, owner, version, throughput, highest_ru, redistribution, caps };
        rows::put_offer(&mut self.batch, &offer);
        self.tree.offers.insert(rid.0, Arc::new(offer));
    }

    fn remove_offer(&mut self, owner: OfferOwner) {
        let Some(offer) = self.tree.offer(owner).cloned() else { return };
        rows::delete_offer(&mut self.batch, &offer);
        self.tree.offers.remove(&offer.rid.0);
    }

    /// Before a container is deleted: clients may still hold its LSNs, `_rid`s and range ids. Writes to it stop
    /// immediately, so that no LSN above the mark is acknowledged, and writers wait until the change is published; so the
    /// caller must publish it without waiting for anything else.
    fn note_deleted(&mut self, container: &Container) -> HighWaterMark {
        container.partitions.iter().for_each(|partition| partition.require_schema(self.version.number));
        let mark = HighWaterMark::of(container);
        self.counters.deleted = self.counters.deleted.raised_to(mark);
        mark
    }

    /// A new container's partition map: equal parts of the hash space, each with a shard of its own.
    fn new_map(&mut self, definition: &ContainerDefinition, count: u32) -> Result<PartitionMap> {
        let keys = match &definition.partition_key {
            Some(key) => initial_ranges(key, count),
            None => vec![EpkRange::FULL],
        };
        let mut ranges = Vec::with_capacity(keys.len());
        for (id, keys) in (0..).zip(keys) {
            self.counters.shard += 1;
            ranges.push(PartitionKeyRange {
                id,
                shard: self.counters.shard,
                prefix: id,
                keys,
                parents: Vec::new(),
                since: 1,
            });
        }
        PartitionMap::new(1, ranges)
    }
}

/// The state of a new container's partitions. The container itself has the first LSN, its first item the next. Clients
/// may hold session tokens of containers that were deleted from the database, so the LSNs continue after theirs.
fn initial_state(owner: &Database, schema: &Schema) -> ShardState {
    let versions_from = schema.retains_versions.then(|| RetentionWatermark::at(0));
    ShardState { lsn: owner.deleted_lsn + 1, versions_from, ..ShardState::default() }
}

fn owner_missing() -> Error {
    Fact::OwnerMissing.into()
}

fn check_supported(definition: &ContainerDefinition) -> Result<()> {
    computed::check(definition)?;
    global_index::check_no_ttl(definition)?;
    match definition.unsupported_setting() {
        Some(setting) => Err(Error::unsupported(format_args!("The container setting {setting}"))),
        None => Ok(()),
    }
}

fn check_throughput_without_key(
    definition: &ContainerDefinition,
    throughput: Option<ProvisionedThroughput>,
    shared: bool,
) -> Result<()> {
    match (definition.partition_key.is_some(), throughput) {
        (true, _) => Ok(()),
        (false, Some(throughput)) => throughput::check_fixed(throughput),
        (false, None) if shared => {
            Err(Error::invalid("A container that shares its database's throughput needs a partition key."))
        }
        (false, None) => Ok(()),
    }
}

/// Checks the minimum of a container with dedicated throughput.
fn check_container_minimum(throughput: Option<ProvisionedThroughput>, least_ru: u32) -> Result<()> {
    match throughput {
        Some(ProvisionedThroughput::Manual(ru)) if ru < least_ru => Err(Error::invalid(format!(
            "Requested throughput {ru} is less than required minimum throughput {least_ru}"
        ))),
        _ => Ok(()),
    }
}

fn check_sharing(tree: &CatalogTree, database: &Database) -> Result<()> {
    let sharing = database.containers.values().filter(|container| is_sharing(tree, container));
    if sharing.count() < SHARED_CONTAINERS_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "At most {SHARED_CONTAINERS_MAX} containers share the throughput of one database. Give this container throughput of its own."
    )))
}

fn is_sharing(tree: &CatalogTree, container: &Container) -> bool {
    tree.offer(OfferOwner::Container(container.rid)).is_none()
}

fn check_same_kind(old: ProvisionedThroughput, new: ProvisionedThroughput) -> Result<()> {
    if std::mem::discriminant(&old) == std::mem::discriminant(&new) {
        return Ok(());
    }
    Err(Fact::ThroughputKindChange.into())
}

fn check_minimum(new: ProvisionedThroughput, minimum_ru: u32) -> Result<()> {
    if new.ceiling_ru() >= minimum_ru {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "The offer's throughput must be at least {minimum_ru} RU/s, given the highest throughput this resource once had and what it stores."
    )))
}

const SCALING: &str = "The throughput of this resource is still being changed: its partitions are being split. Try again when that is done.";

/// Checks throughput against the limits of a container without a partition key and of a global secondary index. In
/// other containers throughput beyond what the partitions provide is allowed: they are split.
fn check_fixed(tree: &CatalogTree, owner: OfferOwner, throughput: ProvisionedThroughput) -> Result<()> {
    let OfferOwner::Container(rid) = owner else { return Ok(()) };
    let Some(container) = tree.container_by_rid(rid) else { return Err(owner_missing()) };
    if container.definition.global_index.is_some() {
        global_index::throughput(Some(throughput))?;
    }
    match container.definition.partition_key {
        None => throughput::check_fixed(throughput),
        Some(_) => Ok(()),
    }
}
