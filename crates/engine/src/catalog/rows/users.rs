//! Rows of users and permissions. The permissions of one user are adjacent.

use super::*;
use crate::catalog::users::{Permission, PermissionGrant, User};

const USER: u8 = b'u';
const PERMISSION: u8 = b'p';

pub fn put_user(batch: &mut Batch, user: &User) {
    put(batch, USER, &user_key(user.rid), versioned(user.version).with("id", user.id.as_str()));
}

pub fn delete_user(batch: &mut Batch, user: &User) {
    batch.delete(keyspace::catalog(USER, &user_key(user.rid)));
    user.permissions.values().for_each(|permission| delete_permission(batch, permission.rid));
}

pub fn put_permission(batch: &mut Batch, permission: &Permission) {
    let row = versioned(permission.version).with("id", permission.id.as_str());
    put(batch, PERMISSION, &permission_key(permission.rid), permission.grant.add_to(row));
}

pub fn delete_permission(batch: &mut Batch, rid: PermissionRid) {
    batch.delete(keyspace::catalog(PERMISSION, &permission_key(rid)));
}

pub async fn load_users(store: &AnyStore, database: &mut Database) -> Result<()> {
    for (key, row) in scan_prefix(store, USER, &database.rid.0.to_be_bytes()).await? {
        let rid = UserRid { database: database.rid, number: u32::from_be_bytes(*tail(&key)?) };
        let row = json::parse(&row)?;
        let permissions = load_permissions(store, rid).await?;
        let user = User { id: text(&row, "id")?.to_owned(), rid, version: version(&row)?, permissions };
        database.users.insert(rid.number, Arc::new(user));
    }
    Ok(())
}

async fn load_permissions(store: &AnyStore, user: UserRid) -> Result<BTreeMap<u64, Arc<Permission>>> {
    let mut permissions = BTreeMap::new();
    for (key, row) in scan_prefix(store, PERMISSION, &user_key(user)).await? {
        let rid = PermissionRid { user, number: u64::from_be_bytes(*tail(&key)?) };
        let permission = load_permission(rid, &json::parse(&row)?)?;
        permissions.insert(rid.number, Arc::new(permission));
    }
    Ok(permissions)
}

fn load_permission(rid: PermissionRid, row: &Value) -> Result<Permission> {
    let grant = PermissionGrant {
        mode: text(row, "permissionMode")?.to_owned(),
        resource: text(row, "resource")?.to_owned(),
        key: row.get("resourcePartitionKey").cloned(),
    };
    Ok(Permission { id: text(row, "id")?.to_owned(), rid, version: version(row)?, grant })
}

fn user_key(rid: UserRid) -> [u8; 8] {
    pair(rid.database.0, rid.number)
}

fn permission_key(rid: PermissionRid) -> Vec<u8> {
    [&user_key(rid.user)[..], &rid.number.to_be_bytes()].concat()
}
