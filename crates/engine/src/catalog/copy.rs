//! Database copies in the catalog: plans a copy under another name, and publishes it.
//!
//! Guarantees: the copy is a snapshot of the whole database: containers with their policies, partitions and
//! throughput, items with their etags and times, scripts, encryption keys, users and permissions. It becomes visible
//! atomically. Its `_rid`s are new.
//!
//! Invariant: the copy's row is written before the first byte is copied, and deleted in the batch that publishes the
//! database; so a crash leaves either a copy to start again or the database. `jobs::copy` moves the bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::partition_map::PartitionMap;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::{
    ClientEncryptionKeyRid, ContainerRid, DatabaseRid, ItemRid, OfferRid, ScriptRid, looks_like_database_rid,
};
use pleiad_model::{Fact, Result, percent};
use pleiad_partition::Schema;
use pleiad_storage::{AnySnapshot, Batch, Blocking, Store};

use super::change::check_database_name;
use super::job_error::{JobError, JobOutdated};
use super::publish::CatalogChange;
use super::script::Script;
use super::tree::{Container, Database, EncryptionKey, Offer, OfferOwner};
use super::users::{Permission, PermissionGrant, User};
use super::{Catalog, rows};

/// The durable record of a database copy in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseCopy {
    /// Unique among all jobs.
    pub id: u64,
    pub from: DatabaseRid,
    pub to: String,
    /// The shards that the items are copied to; dropped if the copy is aborted.
    pub shards: Vec<u64>,
    pub started_ms: u64,
}

/// A snapshot of the database, and the shards that its items are copied to.
pub(crate) struct CopyPlan {
    pub snapshot: AnySnapshot,
    pub containers: Vec<(Arc<Container>, PartitionMap)>,
    database: Arc<Database>,
    offers: Vec<Arc<Offer>>,
}

/// The `_rid`s of the copy's containers, by those of the original.
type NewRids = BTreeMap<ContainerRid, ContainerRid>;

impl Catalog {
    pub(crate) async fn begin_copy(&self, from: &str, to: &str) -> Result<u64> {
        check_database_name(to)?;
        let mut change = self.begin().await;
        let from = change.tree.database(from).ok_or(Fact::ResourceMissing)?.rid;
        if change.tree.is_name_taken(to) {
            return Err(Fact::ResourceExists.into());
        }
        let (id, started_ms) = (change.version.number, self.env.now_ms());
        let copy = Arc::new(DatabaseCopy { id, from, to: to.to_owned(), shards: Vec::new(), started_ms });
        change.put_copy(&copy);
        change.copy = Some(copy);
        self.publish(change).await?;
        Ok(id)
    }

    /// Takes the snapshot and decides what is copied. A copy that starts again after a crash takes a new snapshot.
    /// `None` while an index transformation is running.
    pub(crate) async fn plan_copy(&self, id: u64) -> Result<Option<CopyPlan>, JobError> {
        let mut change = self.begin().await;
        let copy = change.tree.copies.get(&id).cloned().ok_or(JobOutdated::CopyDropped)?;
        let database = change.tree.database_by_rid(copy.from).cloned().ok_or(JobOutdated::CopyDropped)?;
        if database.containers.values().any(|container| container.index_transformation.is_some()) {
            return Ok(None);
        }
        // The catalog lock is held, so the catalog does not change. The empty commit waits for all queued writes, so
        // that the snapshot has them.
        self.committer.commit(Batch::default()).await?;
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        let is_of = |offer: &&Arc<Offer>| match offer.owner {
            OfferOwner::Database(rid) => rid == copy.from,
            OfferOwner::Container(rid) => rid.database == copy.from,
        };
        let offers = change.tree.offers.values().filter(is_of).cloned().collect();
        copy.shards.iter().for_each(|shard| rows::put_dropped_shard(&mut change.batch, *shard));
        let mut shards = Vec::new();
        let mut containers = Vec::new();
        for container in database.containers.values() {
            let map = container.map.in_shards(|| {
                change.counters.shard += 1;
                shards.push(change.counters.shard);
                change.counters.shard
            });
            containers.push((container.clone(), map));
        }
        change.put_copy(&DatabaseCopy { shards, ..DatabaseCopy::clone(&copy) });
        self.publish(change).await?;
        self.shard_dropper().start(copy.shards.clone());
        Ok(Some(CopyPlan { snapshot, containers, database, offers }))
    }

    /// Publishes the copy.
    pub(crate) async fn finish_copy(&self, id: u64, plan: &CopyPlan) -> Result<(), JobError> {
        let mut change = self.begin().await;
        let copy = change.remove_copy(id).ok_or(JobOutdated::CopyDropped)?;
        change.counters.database += 1;
        let rid = DatabaseRid(change.counters.database);
        let mut database = Database::new(copy.to.clone(), rid, change.version);
        rows::put_database(&mut change.batch, &database);
        let containers = change.new_rids(rid, plan);
        for (old, map) in &plan.containers {
            let container = self.copy_container(&mut change, (old, map), plan, &database, &containers).await?;
            database.put_container(Arc::new(container));
        }
        for offer in &plan.offers {
            change.copy_offer(offer, rid, &containers);
        }
        change.copy_encryption_keys(&plan.database, &mut database);
        change.copy_users(&plan.database, &mut database);
        change.tree.put_database(database);
        // The original may have been waiting for splits, and jobs are not copied.
        change.split_candidates = containers.into_values().collect();
        Ok(self.publish(change).await?)
    }

    async fn copy_container(
        &self,
        change: &mut CatalogChange,
        (old, map): (&Container, &PartitionMap),
        plan: &CopyPlan,
        owner: &Database,
        rids: &NewRids,
    ) -> Result<Container, JobError> {
        let rid = rids.get(&old.rid).copied().ok_or(JobOutdated::CopyDropped)?;
        let partitions = rows::open_partitions(map, &self.store, &self.committer).await?;
        let version = change.version;
        let (definition, computed) = (definition_in_copy(&old.definition, rids), old.computed.clone());
        let schema =
            Arc::new(Schema::new(version.number, &definition, &computed.indexed, &[], self.limits.size_limits()));
        let mut scripts = super::Scripts::default();
        for script in old.scripts.iter() {
            let copied = Script::new(ScriptRid { container: rid, ..script.rid }, version, script.definition.clone());
            rows::put_script(&mut change.batch, &copied);
            scripts.put(copied);
        }
        // In the snapshot, an index has applied its source up to this progress.
        let progress = rows::progress_in(&plan.snapshot, old.rid).await?;
        if definition.global_index.is_some() {
            rows::put_progress(&mut change.batch, rid, &progress.cursors());
        }
        let (database, map, scripts) = (owner.id.clone(), map.clone(), Arc::new(scripts));
        let container = Container {
            database,
            rid,
            version,
            definition,
            computed,
            schema,
            index_transformation: None,
            scripts,
            progress,
            map,
            partitions,
        };
        rows::put_container(&mut change.batch, &container);
        Ok(container)
    }

    /// Removes the copy and drops its shards.
    pub(crate) async fn abort_copy(&self, id: u64) -> Result<()> {
        let mut change = self.begin().await;
        let Some(copy) = change.remove_copy(id) else { return Ok(()) };
        copy.shards.iter().for_each(|shard| rows::put_dropped_shard(&mut change.batch, *shard));
        self.publish(change).await?;
        self.shard_dropper().start(copy.shards.clone());
        Ok(())
    }
}

impl CatalogChange {
    fn put_copy(&mut self, copy: &DatabaseCopy) {
        rows::put_copy(&mut self.batch, copy);
        self.tree.copies.insert(copy.id, Arc::new(copy.clone()));
    }

    fn remove_copy(&mut self, id: u64) -> Option<Arc<DatabaseCopy>> {
        rows::delete_copy(&mut self.batch, id);
        self.tree.copies.remove(&id)
    }

    fn new_rids(&mut self, database: DatabaseRid, plan: &CopyPlan) -> NewRids {
        let mut rids = NewRids::new();
        for (old, _) in &plan.containers {
            self.counters.container += 1;
            rids.insert(old.rid, ContainerRid { database, number: self.counters.container });
        }
        rids
    }

    fn copy_offer(&mut self, old: &Offer, rid: DatabaseRid, containers: &NewRids) {
        let owner = match old.owner {
            OfferOwner::Database(_) => OfferOwner::Database(rid),
            OfferOwner::Container(container) => match containers.get(&container) {
                Some(rid) => OfferOwner::Container(*rid),
                None => return,
            },
        };
        self.counters.offer += 1;
        let offer = Offer { rid: OfferRid(self.counters.offer), owner, version: self.version, ..old.clone() };
        rows::put_offer(&mut self.batch, &offer);
        self.tree.offers.insert(offer.rid.0, Arc::new(offer));
    }

    fn copy_encryption_keys(&mut self, from: &Database, to: &mut Database) {
        for old in from.encryption_keys.values() {
            self.counters.encryption_key += 1;
            let rid = ClientEncryptionKeyRid { database: to.rid, number: self.counters.encryption_key };
            let key = EncryptionKey { rid, version: self.version, ..EncryptionKey::clone(old) };
            rows::put_encryption_key(&mut self.batch, &key);
            to.encryption_keys.insert(rid.number, Arc::new(key));
        }
    }

    fn copy_users(&mut self, from: &Database, to: &mut Database) {
        for old in from.users.values() {
            let rid = self.next_user(to.rid);
            let mut permissions = BTreeMap::new();
            for permission in old.permissions.values() {
                let (rid, grant) = (self.next_permission(rid), grant_in_copy(from, to, &permission.grant));
                let permission = Permission { id: permission.id.clone(), rid, version: self.version, grant };
                rows::put_permission(&mut self.batch, &permission);
                permissions.insert(rid.number, Arc::new(permission));
            }
            let user = User { id: old.id.clone(), rid, version: self.version, permissions };
            rows::put_user(&mut self.batch, &user);
            to.users.insert(rid.number, Arc::new(user));
        }
    }
}

/// The same definition in the copy, where an index and its source refer to each other by their new `_rid`s.
fn definition_in_copy(old: &ContainerDefinition, rids: &NewRids) -> ContainerDefinition {
    let mut definition = old.clone();
    if let Some(index) = &mut definition.global_index {
        index.source_rid = index.source_rid.and_then(|rid| rids.get(&rid).copied());
    }
    for index in &mut definition.indexed_by {
        index.rid = rids.get(&index.rid).copied().unwrap_or(index.rid);
    }
    definition
}

/// The same grant in the copy: by name, or by the `_rid`s there. Grants on other databases stay unchanged.
fn grant_in_copy(from: &Database, to: &Database, grant: &PermissionGrant) -> PermissionGrant {
    let resource = resource_in_copy(from, to, &grant.resource).unwrap_or_else(|| grant.resource.clone());
    PermissionGrant { resource, ..grant.clone() }
}

/// `None` for a resource that is not in the original.
fn resource_in_copy(from: &Database, to: &Database, resource: &str) -> Option<String> {
    let names: Vec<&str> = resource.split('/').filter(|name| !name.is_empty()).collect();
    let ["dbs", database, "colls", container, within @ ..] = names.as_slice() else { return None };
    let database = percent::decode_lenient(database);
    if looks_like_database_rid(&database) {
        let rid = ContainerRid::parse(&percent::decode_lenient(container))?;
        let old = from.containers.get(&rid.number).filter(|old| old.rid == rid)?;
        return resource_by_rid(to, old, within);
    }
    let copy = percent::escape(&to.id);
    (database == from.id.as_str()).then(|| [&["dbs", &copy, "colls", container], within].concat().join("/"))
}

/// Items and scripts keep their numbers in a copied container, so only the container's part of a `_rid` differs.
fn resource_by_rid(to: &Database, old: &Container, within: &[&str]) -> Option<String> {
    let container = to.container(&old.definition.id)?.rid;
    let resource = format!("dbs/{}/colls/{container}", to.rid);
    let [kind, rid] = within else { return within.is_empty().then_some(resource) };
    let rid = percent::decode_lenient(rid);
    let item = ItemRid::parse(&rid).map(|rid| ItemRid { container, ..rid }.to_string());
    let rid = item.or_else(|| ScriptRid::parse(&rid).map(|rid| ScriptRid { container, ..rid }.to_string()))?;
    Some(format!("{resource}/{kind}/{rid}"))
}
