//! The authority of a NoSQL request: what its caller may do, by key, resource token, or bearer token and roles.
//!
//! Invariant: a request that no role of the principal allows gets 403, and the error message names the principal, the
//! action and the resource. Management requests are never allowed, whatever the roles: `403/5300`. Metadata that the
//! principal may not read is `403/5301`, data `403/5302`, as the service's gateway and replicas respond.

use pleiad_engine::{Action, ActionSet, ActivityId, Authority, ContainerName, DatabaseName, Names, Place};

use super::address::ResourceType;
use super::operation::{Operation, OperationKind};
use super::permissions;
use super::reply::ErrorReply;
use super::status::{ErrorStatus, Status};
use crate::account::roles::{DATA_ACTIONS, RoleScope, Roles, action_name};
use crate::account::{AccountAccess, AuthError, Caller, Principal};

const MANAGEMENT: u32 = 5300;
const METADATA: u32 = 5301;
const DATA: u32 = 5302;
const LEARN_MORE: &str = "Learn more: https://aka.ms/cosmos-native-rbac.";

/// The caller of one operation.
pub struct NosqlAuthority<'a> {
    pub caller: &'a Caller,
    pub operation: &'a Operation<'a>,
    /// The name of the account, for error messages.
    pub account: &'a str,
    pub access: &'a AccountAccess,
}

impl Authority for NosqlAuthority<'_> {
    type Denied = ErrorReply;

    fn check(&self, names: &Names<'_>, actions: ActionSet, place: Place<'_>) -> Result<(), ErrorReply> {
        match self.caller {
            Caller::ReadWrite => Ok(()),
            // Reading a permission returns a token with all the access that it grants.
            Caller::ReadOnly if self.operation.address.resource == ResourceType::Permissions => {
                Err(AuthError::ReadOnlyKey.into())
            }
            Caller::ReadOnly if self.operation.kind.is_read() => Ok(()),
            Caller::ReadOnly => Err(AuthError::ReadOnlyKey.into()),
            Caller::Permitted(token) => permissions::check(names, *token, self.operation, place),
            Caller::Data => self.check_is_data_plane(actions),
            Caller::Principal(principal) => {
                self.check_is_data_plane(actions)?;
                self.check_roles(&self.access.bearer.roles(), principal, names, actions, place)
            }
        }
    }

    fn activity(&self) -> ActivityId {
        self.operation.options.activity
    }
}

impl NosqlAuthority<'_> {
    fn check_is_data_plane(&self, actions: ActionSet) -> Result<(), ErrorReply> {
        match actions.without(ActionSet::of(&DATA_ACTIONS)).is_empty() {
            true => Ok(()),
            false => Err(account_key_required(self.account, verb(self.operation), self.operation.address.path())),
        }
    }

    fn check_roles(
        &self,
        roles: &Roles,
        principal: &Principal,
        names: &Names<'_>,
        actions: ActionSet,
        place: Place<'_>,
    ) -> Result<(), ErrorReply> {
        let needed = DATA_ACTIONS.into_iter().filter(|action| actions.has(*action));
        let scope = match self.operation.address.resource {
            // Every client reads these first: any role is sufficient.
            ResourceType::Account | ResourceType::Addresses => None,
            _ => Some(scope_of(names, place)),
        };
        let is_denied = |action: &Action| match &scope {
            Some(scope) => !roles.allow(principal, *action, scope),
            None => !roles.allow_in_any_scope(principal, *action),
        };
        match needed.into_iter().find(is_denied) {
            None => Ok(()),
            Some(action) => Err(blocked(self.account, insufficient(principal, action, scope.as_ref())).into()),
        }
    }
}

/// A resource id that does not exist gets the account's scope: a principal that may perform the action there may learn
/// that the resource does not exist.
fn scope_of(names: &Names<'_>, place: Place<'_>) -> RoleScope {
    match place {
        Place::Account => RoleScope::account(),
        Place::Database(DatabaseName::Named(database)) => RoleScope::database(database),
        Place::Container(ContainerName::Named { database, container }) => RoleScope::container(database, container),
        Place::Database(name @ DatabaseName::Rid(_)) => {
            names.database(name).map(|found| RoleScope::database(&found.id)).unwrap_or_default()
        }
        Place::Container(name @ ContainerName::Rid(_)) => {
            let found = names.container(name);
            found.map(|found| RoleScope::container(&found.database, &found.definition.id)).unwrap_or_default()
        }
    }
}

/// The error for requests that no bearer token allows; also used outside the protocol.
pub fn account_key_required(account: &str, verb: &str, path: &str) -> ErrorReply {
    let message =
        format!("The given request [{verb} /{path}] cannot be authorized by AAD token in data plane. {LEARN_MORE}");
    let failure = ErrorStatus { substatus: Some(MANAGEMENT), ..ErrorStatus::new(Status::Forbidden, message) };
    blocked(account, failure).into()
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

fn insufficient(principal: &Principal, action: Action, place: Option<&RoleScope>) -> ErrorStatus {
    let place = place.map_or("on any scope".to_owned(), |place| format!("on resource [{place}]"));
    let (id, name) = (&principal.id, action_name(action).unwrap_or_default());
    let message = format!(
        "Request is blocked because principal [{id}] does not have required RBAC permissions to perform action [{name}] {place}. {LEARN_MORE}"
    );
    let substatus = if action == Action::ReadMetadata { METADATA } else { DATA };
    ErrorStatus { substatus: Some(substatus), ..ErrorStatus::new(Status::Forbidden, message) }
}

fn blocked(account: &str, failure: ErrorStatus) -> ErrorStatus {
    ErrorStatus { message: format!("Request blocked by Auth {account} : {}", failure.message), ..failure }
}
