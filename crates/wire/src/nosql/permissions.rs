//! Authorization by resource token: the requests that a permission allows.
//!
//! Invariant: a request that no row of this table allows gets 403. A permission is for a container, or for one resource
//! in it (an item, a script, a conflict), and may be narrowed to one partition key. Items of several keys may have the
//! same id: a permission for an item by its id opens no item unless it also has the item's key. Mode `Read` allows reads, mode
//! `All` allows writes as well. In mode `All`, a permission for a whole container may replace and delete the container
//! itself, as in the service; no permission allows any other management.
//!
//! | request | container | item | script, conflict | partition key |
//! |---|---|---|---|---|
//! | the account; the container itself, its ranges, query plans | read | read | read | read |
//! | replace or delete the container | All | no | no | no |
//! | one item | by mode | that one under its id and key, by mode | no | under that key, by mode |
//! | create, upsert | All | no | no | under that key, All |
//! | feeds, queries, change feed | read | no | no | under that key |
//! | delete by partition key | All | no | no | that key, All |
//! | execute a stored procedure | All | no | that one, All | under that key, All |
//! | conflicts, scripts | by mode | no | that one, by mode | no |
//! | anything else | no | no | no | no |
//!
//! SDKs read the account, and the container for its partition key definition, before any other operation.

use std::sync::Arc;

use pleiad_engine::{Container, ContainerName, Names, PermissionGrant, Place};
use pleiad_model::partition_key::{EpkRange, PartitionKey, PartitionKeyDefinition};
use pleiad_model::resource_id::{ContainerRid, ItemRid};
use pleiad_model::{Error, Result, Value, json};

use super::address::{self, Address, ResourceType};
use super::operation::{Operation, OperationKind};
use super::reply::ErrorReply;
use super::status::{ErrorStatus, Status};
use crate::account::resource_token::ResourceToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    None,
    Read,
    All,
}

impl Mode {
    pub fn parse(text: &str) -> Option<Mode> {
        let known = [("none", Mode::None), ("read", Mode::Read), ("all", Mode::All)];
        known.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, mode)| mode)
    }
}

/// A parsed permission grant.
struct PermissionScope {
    mode: Mode,
    /// The container, or one resource in it.
    resource: Address,
    key: Option<PartitionKey>,
}

impl PermissionScope {
    fn parse(grant: &PermissionGrant) -> Result<PermissionScope> {
        let mode = Mode::parse(&grant.mode)
            .ok_or_else(|| Error::invalid("The permissionMode is neither 'Read' nor 'All'."))?;
        let resource = address::parse_link(&grant.resource).map_err(|_| invalid_resource(&grant.resource))?;
        let key = grant.key.as_ref().map(|key| PartitionKey::parse(&json::to_string(key))).transpose()?;
        Ok(PermissionScope { mode, resource, key })
    }

    /// The resource within the container that the permission is for; `None` if it is for the whole container.
    fn granted_resource(&self) -> Option<(ResourceType, &str)> {
        self.resource.segment(2).map(|name| (self.resource.resource, name))
    }
}

/// Validates a grant before a permission is stored.
pub fn check_grant(grant: &PermissionGrant) -> Result<()> {
    let scope = PermissionScope::parse(grant)?;
    if scope.key.as_ref().is_some_and(|key| key.components().is_empty()) {
        return Err(Error::invalid("A resourcePartitionKey has at least one value. Leave it out to permit all keys."));
    }
    match (scope.resource.resource, scope.resource.is_feed) {
        (ResourceType::Attachments, _) => Err(Error::unsupported("A permission for an attachment")),
        (
            ResourceType::Containers
            | ResourceType::Items
            | ResourceType::StoredProcedures
            | ResourceType::Triggers
            | ResourceType::UserDefinedFunctions
            | ResourceType::Conflicts,
            false,
        ) => Ok(()),
        _ => Err(invalid_resource(&grant.resource)),
    }
}

fn invalid_resource(resource: &str) -> Error {
    let message = "it is for a container, an item, a script or a conflict";
    Error::invalid(format!("A permission cannot be for {resource:?}: {message}."))
}

/// Checks whether a resource token allows this operation.
pub fn check(
    names: &Names<'_>,
    token: ResourceToken,
    operation: &Operation<'_>,
    place: Place<'_>,
) -> Result<(), ErrorReply> {
    let permission = names.permission(token.permission).filter(|permission| permission.version.number == token.version);
    let permission = permission.ok_or_else(|| {
        let message = "The authorization token is not valid: its permission was replaced or deleted. Read the permission again for another.";
        ErrorStatus::new(Status::Unauthorized, message)
    })?;
    let scope = PermissionScope::parse(&permission.grant)?;
    let allowed = match same_container(names, &scope, place) {
        Some(container) => allows(&scope, operation, container.definition.partition_key.as_ref())?,
        None => is_account(operation),
    };
    if allowed && scope.mode != Mode::None { Ok(()) } else { Err(insufficient().into()) }
}

fn insufficient() -> ErrorStatus {
    ErrorStatus::new(
        Status::Forbidden,
        "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another authorization header.",
    )
}

fn is_account(operation: &Operation<'_>) -> bool {
    operation.address.resource == ResourceType::Account && operation.kind == OperationKind::Read
}

/// For requests to the permission's container; `key` is the container's partition key definition.
fn allows(scope: &PermissionScope, operation: &Operation<'_>, key: Option<&PartitionKeyDefinition>) -> Result<bool> {
    let by_mode = scope.mode == Mode::All || operation.kind.is_read();
    Ok(match operation.address.resource {
        ResourceType::Containers => {
            matches!(operation.kind, OperationKind::Read | OperationKind::List)
                || covers_whole_container(scope) && replaces_or_deletes(operation)
        }
        ResourceType::Ranges => by_mode,
        ResourceType::Items if operation.kind == OperationKind::QueryPlan => true,
        ResourceType::Items => {
            by_mode
                && is_granted_resource(scope, operation)
                && identifies_one_item(scope, operation, key)?
                && keeps_id(scope, operation)
                && is_within_key(scope, operation, key)?
        }
        ResourceType::Operations => {
            by_mode && scope.granted_resource().is_none() && is_within_key(scope, operation, key)?
        }
        ResourceType::StoredProcedures if scope.key.is_some() => {
            operation.kind == OperationKind::Execute
                && by_mode
                && is_granted_resource(scope, operation)
                && is_within_key(scope, operation, key)?
        }
        ResourceType::StoredProcedures
        | ResourceType::Triggers
        | ResourceType::UserDefinedFunctions
        | ResourceType::Conflicts => {
            by_mode && is_granted_resource(scope, operation) && keeps_id(scope, operation) && scope.key.is_none()
        }
        _ => false,
    })
}

/// The permission covers the whole container, and therefore the container resource itself.
fn covers_whole_container(scope: &PermissionScope) -> bool {
    scope.mode == Mode::All && scope.granted_resource().is_none() && scope.key.is_none()
}

fn replaces_or_deletes(operation: &Operation<'_>) -> bool {
    matches!(operation.kind, OperationKind::Replace | OperationKind::Delete)
}

/// The permission's container, if the request is for the same one.
fn same_container<'n>(names: &'n Names<'_>, scope: &PermissionScope, place: Place<'_>) -> Option<&'n Arc<Container>> {
    let Place::Container(requested) = place else { return None };
    let granted = names.container(container_name(&scope.resource)?)?;
    let requested = names.container(requested)?;
    (granted.rid == requested.rid).then_some(granted)
}

fn container_name(address: &Address) -> Option<ContainerName<'_>> {
    let (database, container) = (address.segment(0)?, address.segment(1)?);
    match address.by_rid {
        true => ContainerRid::parse(container).map(ContainerName::Rid),
        false => Some(ContainerName::Named { database, container }),
    }
}

/// A permission for one resource allows requests that address it in the same form: both by name or both by resource id.
fn is_granted_resource(scope: &PermissionScope, operation: &Operation<'_>) -> bool {
    let Some((kind, granted)) = scope.granted_resource() else { return true };
    let named = operation.address.resource == kind && !operation.address.is_feed;
    let Some(requested) = operation.address.segment(2).filter(|_| named) else { return false };
    match (scope.resource.by_rid, operation.address.by_rid) {
        (false, false) => granted == requested,
        (true, true) => is_same_rid(kind, granted, requested),
        _ => false,
    }
}

/// An id identifies one item only within a partition key; without one in the permission, a holder could read the items
/// of all other keys that have the same id. A container without keys, and the missing key of a migrated one, have one
/// item of an id. A resource id is unique in the container.
fn identifies_one_item(
    scope: &PermissionScope,
    operation: &Operation<'_>,
    definition: Option<&PartitionKeyDefinition>,
) -> Result<bool> {
    let by_id_alone = scope.granted_resource().is_some() && !scope.resource.by_rid && scope.key.is_none();
    let Some(definition) = definition.filter(|_| by_id_alone) else { return Ok(true) };
    let requested = operation.partition_key()?;
    Ok(definition.system_key && requested.is_none_or(|key| key.components().is_empty()))
}

/// A resource that was granted by its id must keep that id: a replace with another id would take a name outside the
/// permission. A body without an id is rejected later, when the item is decoded.
fn keeps_id(scope: &PermissionScope, operation: &Operation<'_>) -> bool {
    let granted =
        scope.granted_resource().filter(|_| !scope.resource.by_rid && operation.kind == OperationKind::Replace);
    let Some((_, granted)) = granted else { return true };
    let body = operation.json().unwrap_or(Value::Null);
    body.get("id").and_then(Value::as_str).is_none_or(|id| id == granted)
}

/// The resource id of an item has several spellings.
fn is_same_rid(kind: ResourceType, granted: &str, requested: &str) -> bool {
    match kind {
        ResourceType::Items => ItemRid::parse(granted).is_some_and(|rid| ItemRid::parse(requested) == Some(rid)),
        _ => granted == requested,
    }
}

/// A permission for one partition key allows requests with that key. For a hierarchical key it may be a prefix.
fn is_within_key(
    scope: &PermissionScope,
    operation: &Operation<'_>,
    definition: Option<&PartitionKeyDefinition>,
) -> Result<bool> {
    let Some(granted) = &scope.key else { return Ok(true) };
    // Without a partition key in the container, or without a value in the grant, the permission has nothing to be
    // narrowed to.
    let Some(definition) = definition.filter(|_| !granted.components().is_empty()) else { return Ok(false) };
    match operation.partition_key()? {
        Some(requested) => Ok(requested.components().starts_with(granted.components())),
        None => is_range_within_key(granted, operation, definition),
    }
}

/// SDKs also identify a key by its EPK range: in change feeds, and for a prefix of a hierarchical key.
fn is_range_within_key(
    granted: &PartitionKey,
    operation: &Operation<'_>,
    definition: &PartitionKeyDefinition,
) -> Result<bool> {
    let reads_a_feed = operation.address.is_feed && operation.kind.is_read();
    let Some(requested) = operation.options.epk_range.get()?.filter(|_| reads_a_feed) else { return Ok(false) };
    let epk = granted.effective(definition);
    let keys = match granted.matches_shape(definition) {
        true => EpkRange::of_point(epk),
        false => EpkRange::of_prefix(epk),
    };
    Ok(keys.min <= requested.min && requested.max <= keys.max)
}

#[cfg(test)]
mod tests;
