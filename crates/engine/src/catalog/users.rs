//! Users of a database and their permissions.
//!
//! Invariant: names are unique among a database's users and among a user's permissions, and a user has at most one
//! permission for a resource. The protocol layer decides which requests a permission allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::item::check_resource_name;
use pleiad_model::resource_id::{DatabaseRid, PermissionRid, UserRid};
use pleiad_model::{Error, Fact, Object, Result, Value};

use super::precondition::{ConditionalRid, PutMode, Versioned};
use super::publish::CatalogChange;
use super::tree::{CatalogTree, CatalogVersion, Database};
use super::{Catalog, rows};

#[derive(Clone)]
pub struct User {
    pub id: String,
    pub rid: UserRid,
    pub version: CatalogVersion,
    pub permissions: BTreeMap<u64, Arc<Permission>>,
}

#[derive(Clone, Debug)]
pub struct Permission {
    pub id: String,
    pub rid: PermissionRid,
    pub version: CatalogVersion,
    pub grant: PermissionGrant,
}

/// The granted access, as the client wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionGrant {
    pub mode: String,
    pub resource: String,
    /// `["a"]`: restricts the grant to items of this partition key.
    pub key: Option<Value>,
}

impl PermissionGrant {
    /// Adds the grant under the protocol's property names, for responses and for the stored row.
    pub fn add_to(&self, object: Object) -> Object {
        let object = object.with("permissionMode", self.mode.as_str()).with("resource", self.resource.as_str());
        match &self.key {
            Some(key) => object.with("resourcePartitionKey", key.clone()),
            None => object,
        }
    }
}

impl User {
    pub fn permission(&self, name: &str) -> Option<&Arc<Permission>> {
        self.permissions.values().find(|permission| permission.id == name)
    }
}

impl Database {
    pub fn user(&self, name: &str) -> Option<&Arc<User>> {
        self.users.values().find(|user| user.id == name)
    }
}

impl Versioned for User {
    type Rid = UserRid;

    fn rid(&self) -> UserRid {
        self.rid
    }

    fn version(&self) -> CatalogVersion {
        self.version
    }
}

impl Versioned for Permission {
    type Rid = PermissionRid;

    fn rid(&self) -> PermissionRid {
        self.rid
    }

    fn version(&self) -> CatalogVersion {
        self.version
    }
}

impl CatalogTree {
    pub fn permission(&self, rid: PermissionRid) -> Option<&Arc<Permission>> {
        let user = self.database_by_rid(rid.user.database)?.users.get(&rid.user.number)?;
        user.permissions.get(&rid.number)
    }
}

impl Database {
    fn user_if_match(&self, target: &ConditionalRid<UserRid>) -> Result<Arc<User>> {
        let user = self.users.get(&target.rid.number).cloned().ok_or_else(missing)?;
        target.check(user.version).map(|()| user)
    }
}

impl User {
    fn permission_if_match(&self, target: &ConditionalRid<PermissionRid>) -> Result<Arc<Permission>> {
        let permission = self.permissions.get(&target.rid.number).cloned().ok_or_else(missing)?;
        target.check(permission.version).map(|()| permission)
    }
}

impl Catalog {
    /// Creates a user, or renames the replaced one. Returns true if the user is new.
    pub async fn put_user(&self, database: DatabaseRid, id: &str, mode: PutMode<UserRid>) -> Result<(Arc<User>, bool)> {
        check_resource_name(id)?;
        let mut change = self.begin().await;
        let mut owner = change.owner(database)?;
        let old = mode.resource_to_replace(owner.user(id), |rid| owner.users.get(&rid.number).cloned())?;
        let rid = old.as_ref().map_or_else(|| change.next_user(database), |old| old.rid);
        let (is_new, permissions) = (old.is_none(), old.map(|old| old.permissions.clone()).unwrap_or_default());
        let user = Arc::new(User { id: id.to_owned(), rid, version: change.version, permissions });
        rows::put_user(&mut change.batch, &user);
        owner.users.insert(rid.number, user.clone());
        change.tree.put_database(owner);
        self.publish(change).await?;
        Ok((user, is_new))
    }

    /// Deletes a user and all its permissions.
    pub async fn delete_user(&self, target: impl Into<ConditionalRid<UserRid>>) -> Result<()> {
        let (target, mut change) = (target.into(), self.begin().await);
        let mut owner = change.owner(target.rid.database)?;
        let user = owner.user_if_match(&target)?;
        owner.users.remove(&user.rid.number);
        rows::delete_user(&mut change.batch, &user);
        change.tree.put_database(owner);
        self.publish(change).await
    }

    /// Creates a permission, or replaces one and thereby invalidates its resource tokens. Returns true if the
    /// permission is new.
    pub async fn put_permission(
        &self,
        user: UserRid,
        id: &str,
        grant: PermissionGrant,
        mode: PutMode<PermissionRid>,
    ) -> Result<(Arc<Permission>, bool)> {
        check_resource_name(id)?;
        let mut change = self.begin().await;
        let mut owner = change.user(user)?;
        let old = mode.resource_to_replace(owner.permission(id), |rid| owner.permissions.get(&rid.number).cloned())?;
        let old = old.map(|old| old.rid);
        let mut others = owner.permissions.values().filter(|other| Some(other.rid) != old);
        if others.any(|other| is_same_resource(&other.grant, &grant)) {
            return Err(Fact::ResourceExists.into());
        }
        let rid = old.unwrap_or_else(|| change.next_permission(user));
        let permission = Arc::new(Permission { id: id.to_owned(), rid, version: change.version, grant });
        rows::put_permission(&mut change.batch, &permission);
        owner.permissions.insert(rid.number, permission.clone());
        change.put_user(owner)?;
        self.publish(change).await?;
        Ok((permission, old.is_none()))
    }

    pub async fn delete_permission(&self, target: impl Into<ConditionalRid<PermissionRid>>) -> Result<()> {
        let (target, mut change) = (target.into(), self.begin().await);
        let mut owner = change.user(target.rid.user)?;
        let permission = owner.permission_if_match(&target)?;
        owner.permissions.remove(&permission.rid.number);
        rows::delete_permission(&mut change.batch, permission.rid);
        change.put_user(owner)?;
        self.publish(change).await
    }
}

impl CatalogChange {
    fn user(&self, rid: UserRid) -> Result<User> {
        let database = self.owner(rid.database)?;
        database.users.get(&rid.number).map(|user| User::clone(user)).ok_or_else(missing)
    }

    fn put_user(&mut self, user: User) -> Result<()> {
        let mut database = self.owner(user.rid.database)?;
        database.users.insert(user.rid.number, Arc::new(user));
        self.tree.put_database(database);
        Ok(())
    }

    pub(super) fn next_user(&mut self, database: DatabaseRid) -> UserRid {
        self.counters.user += 1;
        UserRid { database, number: self.counters.user }
    }

    pub(super) fn next_permission(&mut self, user: UserRid) -> PermissionRid {
        self.counters.permission += 1;
        PermissionRid { user, number: self.counters.permission }
    }
}

/// A container and one partition key in it are different resources.
fn is_same_resource(one: &PermissionGrant, other: &PermissionGrant) -> bool {
    let plain = |grant: &PermissionGrant| grant.resource.trim_matches('/').to_owned();
    plain(one) == plain(other) && one.key == other.key
}

fn missing() -> Error {
    Fact::ResourceMissing.into()
}

#[cfg(test)]
mod tests;
