//! Users, their permissions, and the resource tokens that reading a permission returns.

use std::sync::Arc;

use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Addressed, Admitted, ConditionalRid, Database, Permission, PermissionGrant, PutMode, User};
use pleiad_model::resource_id::{PermissionRid, UserRid};
use pleiad_model::{Error, Kind, Result, Value};

use super::metadata::{MetadataRows, id_of, one};
use super::not_allowed;
use crate::account::resource_token::ResourceToken;
use crate::nosql::address::ResourceType;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;
use crate::nosql::{RequestContext, encode, permissions};

/// The lifetime of a token: the default and its bounds.
const EXPIRY_S: u64 = 3600;
const EXPIRY_S_MIN: u64 = 10;
const EXPIRY_S_MAX: u64 = 24 * 3600;

impl RequestContext<'_> {
    pub(super) async fn users(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_database(operation, Addressed::Parent)?;
        let database = at.database();
        let owner = database.rid.to_string();
        let versioned = || {
            let user = find_user(database, operation)?;
            Ok::<_, Error>(ConditionalRid::new(user.rid, operation.version_condition()))
        };
        match operation.kind {
            OperationKind::List => self.list(operation, user_rows(database, &owner)),
            OperationKind::Query => self.query(operation, user_rows(database, &owner)),
            OperationKind::Create | OperationKind::Upsert => self.put_user(operation, &at, put_mode(operation)).await,
            OperationKind::Read => Ok(one(operation, Status::Ok, &encode::user(&*find_user(database, operation)?))),
            OperationKind::Replace => self.put_user(operation, &at, PutMode::Replace(versioned()?)).await,
            OperationKind::Delete => {
                self.engine.delete_user(&at, versioned()?).await?;
                Ok(Reply::empty(Status::NoContent).charged(METADATA_WRITE_RU))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_user(
        &self,
        operation: &Operation<'_>,
        at: &Admitted<Arc<Database>>,
        how: PutMode<UserRid>,
    ) -> Handled {
        let (user, is_new) = self.engine.put_user(at, id_of(&operation.json()?)?, how).await?;
        Ok(one(operation, put_status(is_new), &encode::user(&user)).charged(METADATA_WRITE_RU))
    }

    pub(super) async fn permissions(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_database(operation, Addressed::Parent)?;
        let user = find_user(at.database(), operation)?;
        let owner = user.rid.to_string();
        let expires_s = self.expires_s(operation)?;
        let versioned = || {
            let permission = find_permission(&user, operation)?;
            Ok::<_, Error>(ConditionalRid::new(permission.rid, operation.version_condition()))
        };
        match operation.kind {
            OperationKind::List => self.list(operation, self.permission_rows(&user, &owner, expires_s)),
            OperationKind::Query => self.query(operation, self.permission_rows(&user, &owner, expires_s)),
            OperationKind::Create | OperationKind::Upsert => {
                self.put_permission(operation, &at, &user, put_mode(operation), expires_s).await
            }
            OperationKind::Read => {
                let permission = find_permission(&user, operation)?;
                Ok(one(operation, Status::Ok, &self.permission(&permission, expires_s)))
            }
            OperationKind::Replace => {
                self.put_permission(operation, &at, &user, PutMode::Replace(versioned()?), expires_s).await
            }
            OperationKind::Delete => {
                self.engine.delete_permission(&at, versioned()?).await?;
                Ok(Reply::empty(Status::NoContent).charged(METADATA_WRITE_RU))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_permission(
        &self,
        operation: &Operation<'_>,
        at: &Admitted<Arc<Database>>,
        user: &User,
        how: PutMode<PermissionRid>,
        expires_s: u64,
    ) -> Handled {
        let body = operation.json()?;
        let put = self.engine.put_permission(at, user.rid, id_of(&body)?, grant(&body)?, how);
        let (permission, is_new) = put.await?;
        let shown = self.permission(&permission, expires_s);
        Ok(one(operation, put_status(is_new), &shown).charged(METADATA_WRITE_RU))
    }

    fn permission_rows<'a>(&self, user: &User, owner: &'a str, expires_s: u64) -> MetadataRows<'a> {
        let shown = |(&number, permission): (&u64, &Arc<Permission>)| (number, self.permission(permission, expires_s));
        MetadataRows { owner, array: "Permissions", numbered: user.permissions.iter().map(shown).collect() }
    }

    /// Includes a new token each time it is read.
    fn permission(&self, permission: &Permission, expires_s: u64) -> Value {
        encode::permission(permission, &ResourceToken::new(permission, expires_s).issue(self.tokens))
    }

    fn expires_s(&self, operation: &Operation<'_>) -> Result<u64> {
        let seconds = operation.options.expiry_s.get()?.copied().unwrap_or(EXPIRY_S);
        if !(EXPIRY_S_MIN..=EXPIRY_S_MAX).contains(&seconds) {
            return Err(Error::invalid(format!(
                "The header x-ms-documentdb-expiry-seconds must be a number from {EXPIRY_S_MIN} to {EXPIRY_S_MAX}."
            )));
        }
        Ok(self.engine.now_ms() / 1000 + seconds)
    }
}

fn put_status(is_new: bool) -> Status {
    if is_new { Status::Created } else { Status::Ok }
}

fn put_mode<R>(operation: &Operation<'_>) -> PutMode<R> {
    match operation.kind {
        OperationKind::Upsert => PutMode::Upsert(operation.version_condition()),
        _ => PutMode::Create,
    }
}

fn user_rows<'a>(database: &Database, owner: &'a str) -> MetadataRows<'a> {
    let numbered = database.users.iter().map(|(&number, user)| (u64::from(number), encode::user(user)));
    MetadataRows { owner, array: "Users", numbered: numbered.collect() }
}

fn find_user(database: &Database, operation: &Operation<'_>) -> Result<Arc<User>> {
    let name = operation.address.segment(1).unwrap_or_default();
    let rid = UserRid::parse(name).filter(|rid| operation.address.by_rid && rid.database == database.rid);
    let found = match rid {
        Some(rid) => database.users.get(&rid.number),
        None => database.user(name),
    };
    // For its permissions, the user is the owner.
    let kind = match operation.address.resource {
        ResourceType::Permissions => Kind::OwnerNotFound,
        _ => Kind::NotFound,
    };
    found.cloned().ok_or_else(|| Error::new(kind, "There is no such user."))
}

fn find_permission(user: &User, operation: &Operation<'_>) -> Result<Arc<Permission>> {
    let name = operation.address.segment(2).unwrap_or_default();
    let found = match PermissionRid::parse(name).filter(|rid| operation.address.by_rid && rid.user == user.rid) {
        Some(rid) => user.permissions.get(&rid.number),
        None => user.permission(name),
    };
    found.cloned().ok_or_else(|| Error::not_found("There is no such permission."))
}

/// The grant as it was sent: clients compare it with the response.
fn grant(body: &Value) -> Result<PermissionGrant> {
    let text = |name: &str| {
        let value = body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        value.map(str::to_owned).ok_or_else(|| Error::invalid(format!("A permission needs '{name}', a string.")))
    };
    let key = body.get("resourcePartitionKey").filter(|key| **key != Value::Null).cloned();
    let grant = PermissionGrant { mode: text("permissionMode")?, resource: text("resource")?, key };
    permissions::check_grant(&grant)?;
    Ok(grant)
}
