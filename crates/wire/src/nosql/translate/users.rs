//! Users, their permissions, and the resource tokens that reading a permission returns.

use std::sync::Arc;

use http::{Method, StatusCode};
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{ConditionalRid, Database, Permission, PermissionGrant, PutMode, User};
use pleiad_model::resource_id::{PermissionRid, UserRid};
use pleiad_model::{Error, Kind, Result, Value};

use super::metadata::{MetadataRows, id_of, one};
use super::{creates, not_allowed};
use crate::nosql::address::ResourceType;
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::request::{PostKind, Request};
use crate::nosql::resource_token::ResourceToken;
use crate::nosql::{RequestContext, encode, permissions};

/// The lifetime of a token: the default and its bounds.
const EXPIRY_S: u64 = 3600;
const EXPIRY_S_MIN: u64 = 10;
const EXPIRY_S_MAX: u64 = 24 * 3600;

impl RequestContext<'_> {
    pub(super) async fn users(&self, request: &Request<'_>) -> Handled {
        let database = self.owner_of(request)?;
        let owner = database.rid.to_string();
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => self.list(request, user_rows(&database, &owner)),
            (&Method::POST, true) if request.post_kind() == PostKind::Query => {
                self.query(request, user_rows(&database, &owner))
            }
            (&Method::POST, true) if creates(request) => self.put_user(request, &database, posted(request)).await,
            (&Method::GET, false) => Ok(one(request, StatusCode::OK, &encode::user(&*find_user(&database, request)?))),
            (&Method::PUT, false) => {
                let user = find_user(&database, request)?;
                let meant = ConditionalRid::new(user.rid, request.version_condition());
                self.put_user(request, &database, PutMode::Replace(meant)).await
            }
            (&Method::DELETE, false) => {
                let meant = ConditionalRid::new(find_user(&database, request)?.rid, request.version_condition());
                self.engine.catalog.delete_user(meant).await?;
                Ok(Reply::empty(StatusCode::NO_CONTENT).charged(METADATA_WRITE_RU))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_user(&self, request: &Request<'_>, database: &Database, how: PutMode<UserRid>) -> Handled {
        let (user, is_new) = self.engine.catalog.put_user(database.rid, id_of(&request.json()?)?, how).await?;
        Ok(one(request, put_status(is_new), &encode::user(&user)).charged(METADATA_WRITE_RU))
    }

    pub(super) async fn permissions(&self, request: &Request<'_>) -> Handled {
        let user = find_user(&*self.owner_of(request)?, request)?;
        let owner = user.rid.to_string();
        let expires_s = self.expires_s(request)?;
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => self.list(request, self.permission_rows(&user, &owner, expires_s)),
            (&Method::POST, true) if request.post_kind() == PostKind::Query => {
                self.query(request, self.permission_rows(&user, &owner, expires_s))
            }
            (&Method::POST, true) if creates(request) => {
                self.put_permission(request, &user, posted(request), expires_s).await
            }
            (&Method::GET, false) => {
                let permission = find_permission(&user, request)?;
                Ok(one(request, StatusCode::OK, &self.permission(&permission, expires_s)))
            }
            (&Method::PUT, false) => {
                let permission = find_permission(&user, request)?;
                let meant = ConditionalRid::new(permission.rid, request.version_condition());
                self.put_permission(request, &user, PutMode::Replace(meant), expires_s).await
            }
            (&Method::DELETE, false) => {
                let meant = ConditionalRid::new(find_permission(&user, request)?.rid, request.version_condition());
                self.engine.catalog.delete_permission(meant).await?;
                Ok(Reply::empty(StatusCode::NO_CONTENT).charged(METADATA_WRITE_RU))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_permission(
        &self,
        request: &Request<'_>,
        user: &User,
        how: PutMode<PermissionRid>,
        expires_s: u64,
    ) -> Handled {
        let body = request.json()?;
        let put = self.engine.catalog.put_permission(user.rid, id_of(&body)?, grant(&body)?, how);
        let (permission, is_new) = put.await?;
        let shown = self.permission(&permission, expires_s);
        Ok(one(request, put_status(is_new), &shown).charged(METADATA_WRITE_RU))
    }

    fn permission_rows<'a>(&self, user: &User, owner: &'a str, expires_s: u64) -> MetadataRows<'a> {
        let shown = |(&number, permission): (&u64, &Arc<Permission>)| (number, self.permission(permission, expires_s));
        MetadataRows { owner, array: "Permissions", numbered: user.permissions.iter().map(shown).collect() }
    }

    /// Includes a new token each time it is read.
    fn permission(&self, permission: &Permission, expires_s: u64) -> Value {
        encode::permission(permission, &ResourceToken::new(permission, expires_s).issue(self.tokens))
    }

    fn expires_s(&self, request: &Request<'_>) -> Result<u64> {
        let asked = request.header("x-ms-documentdb-expiry-seconds").filter(|seconds| !seconds.is_empty());
        let seconds = asked.map_or(Ok(EXPIRY_S), |seconds| seconds.trim().parse());
        let seconds = seconds.ok().filter(|seconds| (EXPIRY_S_MIN..=EXPIRY_S_MAX).contains(seconds));
        let seconds = seconds.ok_or_else(|| {
            Error::invalid(format!(
                "The header x-ms-documentdb-expiry-seconds must be a number from {EXPIRY_S_MIN} to {EXPIRY_S_MAX}."
            ))
        })?;
        Ok(self.engine.now_ms() / 1000 + seconds)
    }
}

fn put_status(is_new: bool) -> StatusCode {
    if is_new { StatusCode::CREATED } else { StatusCode::OK }
}

fn posted<R>(request: &Request<'_>) -> PutMode<R> {
    match request.post_kind() {
        PostKind::Upsert => PutMode::Upsert(request.version_condition()),
        _ => PutMode::Create,
    }
}

fn user_rows<'a>(database: &Database, owner: &'a str) -> MetadataRows<'a> {
    let numbered = database.users.iter().map(|(&number, user)| (u64::from(number), encode::user(user)));
    MetadataRows { owner, array: "Users", numbered: numbered.collect() }
}

fn find_user(database: &Database, request: &Request<'_>) -> Result<Arc<User>> {
    let name = request.address.segment(1).unwrap_or_default();
    let rid = UserRid::parse(name).filter(|rid| request.address.by_rid && rid.database == database.rid);
    let found = match rid {
        Some(rid) => database.users.get(&rid.number),
        None => database.user(name),
    };
    // For its permissions, the user is the owner.
    let kind = match request.address.resource {
        ResourceType::Permissions => Kind::OwnerNotFound,
        _ => Kind::NotFound,
    };
    found.cloned().ok_or_else(|| Error::new(kind, "There is no such user."))
}

fn find_permission(user: &User, request: &Request<'_>) -> Result<Arc<Permission>> {
    let name = request.address.segment(2).unwrap_or_default();
    let found = match PermissionRid::parse(name).filter(|rid| request.address.by_rid && rid.user == user.rid) {
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
