//! Authorization by bearer token and roles.
//!
//! Invariant: a request that no role of the principal allows gets 403, and the error message names the principal, the
//! action and the resource. Management requests are never allowed, whatever the roles: `403/5300`. Metadata that the
//! principal may not read is `403/5301`, data `403/5302`, as the service's gateway and replicas respond.

use std::path::PathBuf;
use std::sync::Arc;

use pleiad_engine::Engine;
use pleiad_model::Result;

use super::auth::Principal;
use super::auth::bearer::Issuer;
use super::auth::bearer::jwks_cache::{JwksCache, JwksLocation};
use super::operation::{Operation, OperationKind};
use super::reply::ErrorReply;
use super::roles::store::RoleStore;
use super::roles::{DataAction, RequiredAccess, RoleScope, Roles, required_access};
use super::status::{ErrorStatus, Status};

const MANAGEMENT: u32 = 5300;
const METADATA: u32 = 5301;
const DATA: u32 = 5302;
const LEARN_MORE: &str = "Learn more: https://aka.ms/cosmos-native-rbac.";

/// The accepted issuer and the roles of its principals. Without an issuer only emulator tokens are accepted; without
/// roles the issuer's principals may do nothing.
#[derive(Default)]
pub struct BearerAccess {
    pub(super) jwks_cache: Option<JwksCache>,
    role_store: Option<RoleStore>,
}

/// The subject of a bearer token.
#[derive(Clone, Copy, Debug)]
pub enum TokenSubject<'a> {
    /// The subject of an emulator token, which proves possession of the account's key: access to all data.
    Contributor,
    Principal(&'a Principal),
}

impl BearerAccess {
    /// From the location of the issuer's keys and the roles file. Without roles a token identifies a principal that may
    /// do nothing.
    pub async fn open(issuer: Issuer, keys: &JwksLocation, roles: Option<PathBuf>) -> Result<BearerAccess> {
        let jwks_cache = JwksCache::open(issuer, keys).await?;
        Ok(BearerAccess { jwks_cache: Some(jwks_cache), role_store: roles.map(RoleStore::open).transpose()? })
    }

    /// Reloads keys and roles that have changed.
    pub async fn refresh(&self) {
        if let Some(role_store) = &self.role_store {
            role_store.refresh();
        }
        if let Some(jwks_cache) = &self.jwks_cache {
            jwks_cache.refresh().await;
        }
    }

    pub(super) fn check(
        &self,
        engine: &Engine,
        account: &str,
        subject: TokenSubject<'_>,
        operation: &Operation<'_>,
    ) -> Result<(), ErrorReply> {
        let need = required_access(engine, operation)?;
        let blocked = |failure| Err(ErrorReply::from(blocked(account, failure)));
        match (subject, need) {
            (_, RequiredAccess::Management) => blocked(management(verb(operation), operation.address.path())),
            (TokenSubject::Contributor, _) => Ok(()),
            (TokenSubject::Principal(principal), need) => match first_missing_action(&self.roles(), principal, &need) {
                None => Ok(()),
                Some((action, scope)) => blocked(insufficient(principal, action, scope)),
            },
        }
    }

    fn roles(&self) -> Arc<Roles> {
        self.role_store.as_ref().map(RoleStore::roles).unwrap_or_default()
    }
}

/// The first action that the principal may not perform, and its scope; no scope if the action would be sufficient in
/// any scope.
fn first_missing_action<'a>(
    roles: &Roles,
    principal: &Principal,
    required: &'a RequiredAccess,
) -> Option<(DataAction, Option<&'a RoleScope>)> {
    match required {
        RequiredAccess::AnyScope(action) => (!roles.allow_in_any_scope(principal, *action)).then_some((*action, None)),
        RequiredAccess::Actions(actions, scope) => {
            let denied = actions.iter().find(|action| !roles.allow(principal, **action, scope));
            denied.map(|action| (*action, Some(scope)))
        }
        RequiredAccess::Management => None,
    }
}

/// The error for requests that no bearer token allows; also used outside the protocol.
pub fn account_key_required(account: &str, verb: &str, path: &str) -> ErrorReply {
    blocked(account, management(verb, path)).into()
}

/// The message names operations by the verbs that clients know.
fn verb(operation: &Operation<'_>) -> &'static str {
    match operation.kind {
        OperationKind::Read | OperationKind::List | OperationKind::ChangeFeed => "GET",
        OperationKind::Replace => "PUT",
        OperationKind::Patch => "PATCH",
        OperationKind::Delete => "DELETE",
        _ => "POST",
    }
}

fn management(verb: &str, path: &str) -> ErrorStatus {
    let message =
        format!("The given request [{verb} /{path}] cannot be authorized by AAD token in data plane. {LEARN_MORE}");
    ErrorStatus { substatus: Some(MANAGEMENT), ..ErrorStatus::new(Status::Forbidden, message) }
}

fn insufficient(principal: &Principal, action: DataAction, place: Option<&RoleScope>) -> ErrorStatus {
    let place = place.map_or("on any scope".to_owned(), |place| format!("on resource [{place}]"));
    let (id, name) = (&principal.id, action.name());
    let message = format!(
        "Request is blocked because principal [{id}] does not have required RBAC permissions to perform action [{name}] {place}. {LEARN_MORE}"
    );
    let substatus = if action == DataAction::ReadMetadata { METADATA } else { DATA };
    ErrorStatus { substatus: Some(substatus), ..ErrorStatus::new(Status::Forbidden, message) }
}

fn blocked(account: &str, failure: ErrorStatus) -> ErrorStatus {
    ErrorStatus { message: format!("Request blocked by Auth {account} : {}", failure.message), ..failure }
}
