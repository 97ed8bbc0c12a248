//! Metadata operations: databases, containers, offers, users, permissions, encryption keys and scripts.
//!
//! Invariant: this is the only way from outside the crate to the catalog. Each call takes the `Admitted` of the resource
//! that owns what it changes, and rejects what another resource owns.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::{
    ClientEncryptionKeyRid, ContainerRid, DatabaseRid, OfferRid, PermissionRid, ScriptKind, ScriptRid, UserRid,
};
use pleiad_model::{Error, Object, Result};
use pleiad_partition::governor::Caps;
use pleiad_partition::key_statistics::KeyStatistics;
use pleiad_partition::usage::KEYS_REPORTED;

use crate::authorize::{Action, Admitted, WholeAccount};
use crate::catalog::{
    CatalogTree, ConditionalRid, Container, Database, EncryptionKey, NewContainer, Offer, OfferOwner, Permission,
    PermissionGrant, PutMode, Script, ScriptDefinition, User,
};
use crate::throughput::{OfferChange, ThroughputRequest};
use crate::{Engine, PartitionLimits};

/// An offer, and what follows from its owner's current state.
#[derive(Clone)]
pub struct OfferReport {
    pub offer: Arc<Offer>,
    /// The least throughput that the offer can be replaced with.
    pub minimum_ru: u32,
    /// Whether partitions are still being split to provide the throughput.
    pub is_scaling: bool,
    /// The size of the container's items; 0 for a database.
    pub stored_bytes: u64,
}

/// The size of one partition and of its largest keys.
#[derive(Clone, Debug)]
pub struct PartitionKeyReport {
    pub range: u32,
    pub items: u64,
    pub item_bytes: u64,
    pub keys: KeyStatistics,
}

impl Engine {
    /// The limits that the server was started with.
    pub fn limits(&self) -> &PartitionLimits {
        self.catalog.limits()
    }

    /// The account's secret, which signs continuations and tokens that clients hold.
    pub async fn secret(&self, at: &Admitted<WholeAccount>) -> Result<[u8; 32]> {
        at.check(Action::Administer)?;
        Ok(self.catalog.secret().await)
    }

    /// In the order of their numbers.
    pub fn databases(&self, at: &Admitted<WholeAccount>) -> Result<Vec<Arc<Database>>> {
        at.check(Action::ReadMetadata)?;
        Ok(self.catalog.tree().databases.values().cloned().collect())
    }

    pub async fn create_database(
        &self,
        at: &Admitted<WholeAccount>,
        id: &str,
        throughput: ThroughputRequest,
    ) -> Result<Arc<Database>> {
        at.check(Action::WriteSettings)?;
        self.catalog.create_database(id, throughput).await
    }

    pub async fn delete_database(&self, at: &Admitted<Arc<Database>>) -> Result<()> {
        at.check(Action::WriteSettings)?;
        self.catalog.delete_database(at.database().rid).await
    }

    pub async fn create_container(&self, at: &Admitted<Arc<Database>>, new: NewContainer) -> Result<Arc<Container>> {
        at.check(Action::WriteSettings)?;
        self.catalog.create_container(at.database().rid, new).await
    }

    /// `replace` maps the current definition to the new one.
    pub async fn replace_container(
        &self,
        at: &Admitted,
        replace: impl FnOnce(&ContainerDefinition) -> Result<ContainerDefinition>,
    ) -> Result<Arc<Container>> {
        at.check(Action::WriteSettings)?;
        self.catalog.replace_container(at.container().rid, replace).await
    }

    pub async fn delete_container(&self, at: &Admitted) -> Result<()> {
        at.check(Action::WriteSettings)?;
        self.catalog.delete_container(at.container().rid).await
    }

    /// One report per partition, in the order of the hash space.
    pub async fn largest_keys(&self, at: &Admitted) -> Result<Vec<PartitionKeyReport>> {
        at.check(Action::ReadMetadata)?;
        let mut reports = Vec::with_capacity(at.container().partitions.len());
        for partition in &at.container().partitions {
            let keys = partition.key_statistics(KEYS_REPORTED).await?;
            let state = partition.shard_state();
            reports.push(PartitionKeyReport {
                range: partition.range.id,
                items: state.items,
                item_bytes: state.item_bytes,
                keys,
            });
        }
        Ok(reports)
    }

    /// In the order of their numbers.
    pub fn offers(&self, at: &Admitted<WholeAccount>) -> Result<Vec<OfferReport>> {
        at.check(Action::ReadSettings)?;
        let tree = self.catalog.tree();
        Ok(tree.offers.values().map(|offer| self.offer_report(&tree, offer)).collect())
    }

    pub fn offer(&self, at: &Admitted<WholeAccount>, rid: OfferRid) -> Result<Option<OfferReport>> {
        at.check(Action::ReadSettings)?;
        let tree = self.catalog.tree();
        Ok(tree.offers.get(&rid.0).map(|offer| self.offer_report(&tree, offer)))
    }

    /// The throughput that is provisioned for the database itself.
    pub fn database_offer(&self, at: &Admitted<Arc<Database>>) -> Result<Option<OfferReport>> {
        at.check(Action::ReadSettings)?;
        Ok(self.offer_of(OfferOwner::Database(at.database().rid)))
    }

    /// The throughput that is provisioned for the container itself.
    pub fn container_offer(&self, at: &Admitted) -> Result<Option<OfferReport>> {
        at.check(Action::ReadSettings)?;
        Ok(self.offer_of(OfferOwner::Container(at.container().rid)))
    }

    pub async fn replace_offer(
        &self,
        at: &Admitted<WholeAccount>,
        rid: OfferRid,
        change: OfferChange,
        caps: Option<Caps>,
    ) -> Result<OfferReport> {
        at.check(Action::WriteSettings)?;
        let offer = self.catalog.replace_offer(rid, change, caps).await?;
        Ok(self.offer_report(&self.catalog.tree(), &offer))
    }

    /// Moves throughput between the partitions of a container: `targets` maps range ids to RU/s.
    pub async fn redistribute(&self, at: &Admitted, targets: &BTreeMap<u32, u32>) -> Result<OfferReport> {
        at.check(Action::Administer)?;
        let offer = self.catalog.redistribute(at.container().rid, targets).await?;
        Ok(self.offer_report(&self.catalog.tree(), &offer))
    }

    fn offer_of(&self, owner: OfferOwner) -> Option<OfferReport> {
        let tree = self.catalog.tree();
        tree.offer(owner).map(|offer| self.offer_report(&tree, offer))
    }

    fn offer_report(&self, tree: &CatalogTree, offer: &Arc<Offer>) -> OfferReport {
        let stored_bytes = match offer.owner {
            OfferOwner::Container(rid) => tree.container_by_rid(rid).map_or(0, |container| container.item_bytes()),
            OfferOwner::Database(_) => 0,
        };
        OfferReport {
            offer: offer.clone(),
            minimum_ru: self.catalog.minimum_ru(tree, offer),
            is_scaling: tree.is_scaling(offer, self.catalog.limits()),
            stored_bytes,
        }
    }

    /// Returns whether the user is new, too.
    pub async fn put_user(
        &self,
        at: &Admitted<Arc<Database>>,
        id: &str,
        mode: PutMode<UserRid>,
    ) -> Result<(Arc<User>, bool)> {
        at.check(Action::WriteSettings)?;
        self.catalog.put_user(at.database().rid, id, mode).await
    }

    pub async fn delete_user(&self, at: &Admitted<Arc<Database>>, target: ConditionalRid<UserRid>) -> Result<()> {
        at.check(Action::WriteSettings)?;
        check_owner(at.database().rid == target.rid.database)?;
        self.catalog.delete_user(target).await
    }

    /// Returns whether the permission is new, too.
    pub async fn put_permission(
        &self,
        at: &Admitted<Arc<Database>>,
        user: UserRid,
        id: &str,
        grant: PermissionGrant,
        mode: PutMode<PermissionRid>,
    ) -> Result<(Arc<Permission>, bool)> {
        at.check(Action::WriteSettings)?;
        check_owner(at.database().rid == user.database)?;
        self.catalog.put_permission(user, id, grant, mode).await
    }

    pub async fn delete_permission(
        &self,
        at: &Admitted<Arc<Database>>,
        target: ConditionalRid<PermissionRid>,
    ) -> Result<()> {
        at.check(Action::WriteSettings)?;
        check_owner(at.database().rid == target.rid.user.database)?;
        self.catalog.delete_permission(target).await
    }

    /// Creates a client encryption key, or replaces `replaced`.
    pub async fn put_encryption_key(
        &self,
        at: &Admitted<Arc<Database>>,
        id: &str,
        properties: Object,
        replaced: Option<ConditionalRid<ClientEncryptionKeyRid>>,
    ) -> Result<Arc<EncryptionKey>> {
        at.check(Action::WriteSettings)?;
        self.catalog.put_encryption_key(at.database().rid, id, properties, replaced).await
    }

    /// Returns whether the script is new, too.
    pub async fn put_script(
        &self,
        at: &Admitted,
        kind: ScriptKind,
        definition: ScriptDefinition,
        mode: PutMode<ScriptRid>,
    ) -> Result<(Arc<Script>, bool)> {
        at.check(Action::WriteSettings)?;
        self.catalog.put_script(at.container().rid, kind, definition, mode).await
    }

    pub async fn delete_script(&self, at: &Admitted, target: ConditionalRid<ScriptRid>) -> Result<()> {
        at.check(Action::WriteSettings)?;
        check_owner(at.container().rid == target.rid.container)?;
        self.catalog.delete_script(target).await
    }

    /// The names of a container and its database, for reports about it.
    pub fn container_names(&self, at: &Admitted<WholeAccount>, rid: ContainerRid) -> Result<Option<(String, String)>> {
        at.check(Action::Monitor)?;
        let tree = self.catalog.tree();
        let container = tree.container_by_rid(rid);
        Ok(container.map(|container| (container.database.clone(), container.definition.id.clone())))
    }

    /// The name of a database, for reports about it.
    pub fn database_id(&self, at: &Admitted<WholeAccount>, rid: DatabaseRid) -> Result<Option<String>> {
        at.check(Action::Monitor)?;
        Ok(self.catalog.tree().database_by_rid(rid).map(|database| database.id.clone()))
    }
}

fn check_owner(owns: bool) -> Result<()> {
    if owns { Ok(()) } else { Err(Error::internal("the resource belongs to another owner than the one admitted")) }
}
