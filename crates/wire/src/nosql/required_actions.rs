//! Required actions: what a caller must be allowed to do for an operation.
//!
//! Invariant: every data operation needs exactly one data action, a batch the actions of its operations; everything else
//! needs an action that no role allows.
//!
//! | operation | action |
//! |---|---|
//! | read the account, databases, containers, ranges, addresses, encryption keys | `ReadMetadata` |
//! | one item: create, read, replace or patch, upsert, delete | `CreateItem` … |
//! | delete by partition key | `DeleteItem` |
//! | a batch | the action of each operation in it |
//! | a query or its plan | `ExecuteQuery` |
//! | the change feed, with or without a query; the feed of items | `ReadChangeFeed` |
//! | execute a stored procedure | `ExecuteStoredProcedure` |
//! | conflicts | `ManageConflicts` |
//! | read offers, users, permissions, scripts | `ReadSettings` |
//! | anything else | `WriteSettings` |

use pleiad_engine::{Action, ActionSet};
use pleiad_model::Result;

use super::address::ResourceType;
use super::batch::{self, BatchFormat};
use super::operation::{Operation, OperationKind};

/// With `exact`, a batch is parsed for the actions of its operations. Without it, which is cheaper, it needs all that a
/// batch can contain.
pub fn required_actions(operation: &Operation<'_>, exact: bool) -> Result<ActionSet> {
    let reads = operation.kind.is_read();
    Ok(ActionSet::from(match operation.address.resource {
        ResourceType::Account
        | ResourceType::Addresses
        | ResourceType::Databases
        | ResourceType::Containers
        | ResourceType::Ranges
        | ResourceType::ClientEncryptionKeys
            if reads =>
        {
            Action::ReadMetadata
        }
        ResourceType::Items if operation.kind == OperationKind::Batch && exact => {
            return batch_actions(&operation.body);
        }
        ResourceType::Items if operation.kind == OperationKind::Batch => return Ok(ActionSet::ITEM_WRITES_AND_READS),
        ResourceType::Items => item_action(operation.kind),
        ResourceType::Operations => Action::DeleteItem,
        ResourceType::StoredProcedures if operation.kind == OperationKind::Execute => Action::ExecuteStoredProcedure,
        ResourceType::Conflicts => Action::ManageConflicts,
        _ if reads => Action::ReadSettings,
        _ => Action::WriteSettings,
    }))
}

fn item_action(kind: OperationKind) -> Action {
    match kind {
        OperationKind::Read => Action::ReadItem,
        OperationKind::Replace | OperationKind::Patch => Action::ReplaceItem,
        OperationKind::Delete => Action::DeleteItem,
        OperationKind::List | OperationKind::ChangeFeed | OperationKind::ChangeFeedQuery => Action::ReadChangeFeed,
        OperationKind::Create => Action::CreateItem,
        OperationKind::Upsert => Action::UpsertItem,
        OperationKind::Query | OperationKind::QueryPlan => Action::ExecuteQuery,
        // Items do not have these.
        OperationKind::Batch
        | OperationKind::DeleteByPartitionKey
        | OperationKind::Execute
        | OperationKind::NotAllowed => Action::WriteSettings,
    }
}

fn batch_actions(body: &[u8]) -> Result<ActionSet> {
    let (operations, _) = batch::parse(BatchFormat::of(body), body)?;
    let parsed = operations.iter().filter_map(|operation| operation.action.as_ref().ok());
    let actions = parsed.fold(ActionSet::default(), |all, action| all.with(action.required_action().into()));
    // A batch that does nothing still reveals whether the container exists.
    Ok(if actions.is_empty() { Action::ReadItem.into() } else { actions })
}
