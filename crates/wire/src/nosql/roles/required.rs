//! Which data action a request takes, and where.
//!
//! Promise: every operation on data takes exactly one action; everything else is management, which no role allows.
//!
//! | request | action |
//! |---|---|
//! | the account, databases and containers, to read; ranges, addresses, encryption keys to read | `readMetadata` |
//! | one item: create, read, replace or patch, upsert, delete | `items/…` |
//! | all items of a key, deleted | `items/delete` |
//! | a batch | the action of each operation in it |
//! | a query or its plan | `executeQuery` |
//! | the change feed, the feed of items | `readChangeFeed` |
//! | a stored procedure, run | `executeStoredProcedure` |
//! | conflicts | `manageConflicts` |

use http::Method;
use pleiad_engine::{BatchAction, ContainerName, Engine};
use pleiad_model::Result;
use pleiad_model::resource_id::{ContainerRid, DatabaseRid};

use super::{DataAction, RoleScope};
use crate::nosql::address::{Address, ResourceType};
use crate::nosql::batch::{self, BatchFormat};
use crate::nosql::request::{PostKind, Request, is_read};

#[derive(Debug, PartialEq, Eq)]
pub enum RequiredAccess {
    /// Allowed to whoever may do this anywhere.
    Somewhere(DataAction),
    /// All of these, there.
    Actions(Vec<DataAction>, RoleScope),
    /// Not for roles to allow.
    Management,
}

pub fn needs(engine: &Engine, request: &Request<'_>) -> Result<RequiredAccess> {
    let reads = is_read(request.method, request.headers, request.address);
    let (resource, is_feed) = (request.address.resource, request.address.is_feed);
    let at_container = |action| RequiredAccess::Actions(vec![action], place(engine, request.address, 2));
    Ok(match resource {
        ResourceType::Account | ResourceType::Addresses if reads => RequiredAccess::Somewhere(DataAction::ReadMetadata),
        ResourceType::Databases if reads => metadata(engine, request, 1),
        ResourceType::Containers if reads && is_feed => metadata(engine, request, 1),
        ResourceType::ClientEncryptionKeys if reads => metadata(engine, request, 1),
        ResourceType::Containers | ResourceType::Ranges if reads => metadata(engine, request, 2),
        ResourceType::Items => match items(request)? {
            Some(actions) => RequiredAccess::Actions(actions, place(engine, request.address, 2)),
            None => RequiredAccess::Management,
        },
        ResourceType::Operations => at_container(DataAction::DeleteItem),
        ResourceType::StoredProcedures if *request.method == Method::POST && !is_feed => {
            at_container(DataAction::ExecuteStoredProcedure)
        }
        ResourceType::Conflicts => at_container(DataAction::ManageConflicts),
        _ => RequiredAccess::Management,
    })
}

fn metadata(engine: &Engine, request: &Request<'_>, levels: usize) -> RequiredAccess {
    RequiredAccess::Actions(vec![DataAction::ReadMetadata], place(engine, request.address, levels))
}

/// `None` for what items do not have.
fn items(request: &Request<'_>) -> Result<Option<Vec<DataAction>>> {
    Ok(Some(match (request.method, request.address.is_feed) {
        (&Method::GET, false) => vec![DataAction::ReadItem],
        (&Method::PUT | &Method::PATCH, false) => vec![DataAction::ReplaceItem],
        (&Method::DELETE, false) => vec![DataAction::DeleteItem],
        (&Method::GET, true) => vec![DataAction::ReadChangeFeed],
        (&Method::POST, true) => match request.post_kind() {
            PostKind::Create => vec![DataAction::CreateItem],
            PostKind::Upsert => vec![DataAction::UpsertItem],
            PostKind::Query | PostKind::QueryPlan => vec![DataAction::ExecuteQuery],
            PostKind::Batch => batched(&request.body)?,
        },
        _ => return Ok(None),
    }))
}

fn batched(body: &[u8]) -> Result<Vec<DataAction>> {
    let (operations, _) = batch::parse(BatchFormat::of(body), body)?;
    let mut actions = Vec::new();
    for action in operations.iter().filter_map(|operation| operation.action.as_ref().ok()).map(action_of) {
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    // One that would do nothing still tells whether the container is there.
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

/// The account, or as many of the names as asked for. What a resource id does not find is the account's: whoever may do it there may
/// learn that it is missing.
fn place(engine: &Engine, address: &Address, levels: usize) -> RoleScope {
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
