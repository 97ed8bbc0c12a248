//! Required access: the data actions that a request needs, and their scope.
//!
//! Invariant: every data operation needs exactly one action, a batch the actions of its operations; everything else is
//! management, which no role allows.
//!
//! | request | action |
//! |---|---|
//! | read the account, databases, containers, ranges, addresses, encryption keys | `readMetadata` |
//! | one item: create, read, replace or patch, upsert, delete | `items/…` |
//! | delete by partition key | `items/delete` |
//! | a batch | the action of each operation in it |
//! | a query or its plan | `executeQuery` |
//! | the change feed, the feed of items | `readChangeFeed` |
//! | execute a stored procedure | `executeStoredProcedure` |
//! | conflicts | `manageConflicts` |

use pleiad_engine::{BatchAction, ContainerName, Engine};
use pleiad_model::Result;
use pleiad_model::resource_id::{ContainerRid, DatabaseRid};

use super::address::{Address, ResourceType};
use super::batch::{self, BatchFormat};
use super::operation::{Operation, OperationKind};
use crate::account::roles::{DataAction, RoleScope};

#[derive(Debug, PartialEq, Eq)]
pub enum RequiredAccess {
    /// The action in any scope is sufficient.
    AnyScope(DataAction),
    /// All of these actions in the scope.
    Actions(Vec<DataAction>, RoleScope),
    /// No role allows it.
    Management,
}

pub fn required_access(engine: &Engine, operation: &Operation<'_>) -> Result<RequiredAccess> {
    let reads = operation.kind.is_read();
    let (resource, is_feed) = (operation.address.resource, operation.address.is_feed);
    let at_container = |action| RequiredAccess::Actions(vec![action], scope_of(engine, operation.address, 2));
    Ok(match resource {
        ResourceType::Account | ResourceType::Addresses if reads => RequiredAccess::AnyScope(DataAction::ReadMetadata),
        ResourceType::Databases if reads => read_metadata(engine, operation, 1),
        ResourceType::Containers if reads && is_feed => read_metadata(engine, operation, 1),
        ResourceType::ClientEncryptionKeys if reads => read_metadata(engine, operation, 1),
        ResourceType::Containers | ResourceType::Ranges if reads => read_metadata(engine, operation, 2),
        ResourceType::Items => match item_actions(operation)? {
            Some(actions) => RequiredAccess::Actions(actions, scope_of(engine, operation.address, 2)),
            None => RequiredAccess::Management,
        },
        ResourceType::Operations => at_container(DataAction::DeleteItem),
        ResourceType::StoredProcedures if operation.kind == OperationKind::Execute => {
            at_container(DataAction::ExecuteStoredProcedure)
        }
        ResourceType::Conflicts => at_container(DataAction::ManageConflicts),
        _ => RequiredAccess::Management,
    })
}

fn read_metadata(engine: &Engine, operation: &Operation<'_>, levels: usize) -> RequiredAccess {
    RequiredAccess::Actions(vec![DataAction::ReadMetadata], scope_of(engine, operation.address, levels))
}

/// `None` if items do not have this verb.
fn item_actions(operation: &Operation<'_>) -> Result<Option<Vec<DataAction>>> {
    Ok(Some(match operation.kind {
        OperationKind::Read => vec![DataAction::ReadItem],
        OperationKind::Replace | OperationKind::Patch => vec![DataAction::ReplaceItem],
        OperationKind::Delete => vec![DataAction::DeleteItem],
        OperationKind::List | OperationKind::ChangeFeed => vec![DataAction::ReadChangeFeed],
        OperationKind::Create => vec![DataAction::CreateItem],
        OperationKind::Upsert => vec![DataAction::UpsertItem],
        OperationKind::Query | OperationKind::QueryPlan => vec![DataAction::ExecuteQuery],
        OperationKind::Batch => batch_actions(&operation.body)?,
        OperationKind::DeleteByPartitionKey | OperationKind::Execute | OperationKind::NotAllowed => return Ok(None),
    }))
}

fn batch_actions(body: &[u8]) -> Result<Vec<DataAction>> {
    let (operations, _) = batch::parse(BatchFormat::of(body), body)?;
    let mut actions = Vec::new();
    for action in operations.iter().filter_map(|operation| operation.action.as_ref().ok()).map(action_of) {
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    // A batch that does nothing still reveals whether the container exists.
    if actions.is_empty() {
        actions.push(DataAction::ReadItem);
    }
    Ok(actions)
}

fn action_of(operation: &BatchAction) -> DataAction {
    match operation {
        BatchAction::Create(_) => DataAction::CreateItem,
        BatchAction::Upsert(_) => DataAction::UpsertItem,
        BatchAction::Replace(_) | BatchAction::Patch(_) => DataAction::ReplaceItem,
        BatchAction::Read => DataAction::ReadItem,
        BatchAction::Delete => DataAction::DeleteItem,
    }
}

/// The account, or the first `levels` names of the address. A resource id that does not exist gets the account's scope:
/// a principal that may perform the action there may learn that the resource does not exist.
fn scope_of(engine: &Engine, address: &Address, levels: usize) -> RoleScope {
    let name = |level| address.segment(level).filter(|_| level < levels);
    match (name(0), name(1), address.by_rid) {
        (None, _, _) => RoleScope::account(),
        (Some(database), Some(container), false) => RoleScope::container(database, container),
        (Some(database), None, false) => RoleScope::database(database),
        (Some(database), container, true) => by_rid(engine, database, container).unwrap_or_default(),
    }
}

fn by_rid(engine: &Engine, database: &str, container: Option<&str>) -> Option<RoleScope> {
    let Some(container) = container else {
        let found = engine.find_database_by_rid(DatabaseRid::parse(database)?).ok()?;
        return Some(RoleScope::database(&found.id));
    };
    let found = engine.find_container(ContainerName::Rid(ContainerRid::parse(container)?)).ok()?;
    Some(RoleScope::container(&found.database, &found.definition.id))
}
