//! Authorization by bearer token and roles.
//!
//! Invariant: a request that no role of the principal allows gets 403, and the error message names the principal, the
//! action and the resource. Management requests are never allowed, whatever the roles: `403/5300`. Metadata that the
//! principal may not read is `403/5301`, data `403/5302`, as the service's gateway and replicas respond.

use pleiad_engine::Engine;
use pleiad_model::Result;

use super::operation::{Operation, OperationKind};
use super::reply::ErrorReply;
use super::required_access::{RequiredAccess, required_access};
use super::status::{ErrorStatus, Status};
use crate::account::Principal;
use crate::account::roles::{DataAction, RoleScope, Roles};

const MANAGEMENT: u32 = 5300;
const METADATA: u32 = 5301;
const DATA: u32 = 5302;
const LEARN_MORE: &str = "Learn more: https://aka.ms/cosmos-native-rbac.";

/// The subject of a bearer token.
#[derive(Clone, Copy, Debug)]
pub enum TokenSubject<'a> {
    /// The subject of an emulator token, which proves possession of the account's key: access to all data.
    Contributor,
    Principal(&'a Principal),
}

/// Fails unless the roles, in the account of this name, allow the operation.
pub(super) fn check(
    engine: &Engine,
    account: &str,
    roles: &Roles,
    subject: TokenSubject<'_>,
    operation: &Operation<'_>,
) -> Result<(), ErrorReply> {
    let need = required_access(engine, operation)?;
    let blocked = |failure| Err(ErrorReply::from(blocked(account, failure)));
    match (subject, need) {
        (_, RequiredAccess::Management) => blocked(management(verb(operation), operation.address.path())),
        (TokenSubject::Contributor, _) => Ok(()),
        (TokenSubject::Principal(principal), need) => match first_missing_action(roles, principal, &need) {
            None => Ok(()),
            Some((action, scope)) => blocked(insufficient(principal, action, scope)),
        },
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
