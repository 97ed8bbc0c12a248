//! Translates operations into engine calls and engine responses into replies: one module per resource type.

mod account; // the account's properties
mod batches; // many item operations in one
mod change_feed; // the change feed of items
mod containers;
mod databases;
mod encryption_keys;
mod items;
mod metadata; // shared by the feeds of databases, containers, offers …
mod offers;
mod procedures; // executing scripts
mod queries; // queries over items
mod ranges;
mod scripts;
mod users; // users and their permissions

use pleiad_model::Error;
use pleiad_model::resource_id::ScriptKind;

use super::RequestContext;
use super::address::ResourceType;
use super::operation::{Operation, OperationKind};
use super::permissions;
use super::reply::{ErrorReply, Handled, Reply};
use super::role_access::{self, TokenSubject};
use super::status::{ErrorStatus, Status};
use crate::account::{AuthError, Caller};

impl RequestContext<'_> {
    pub(super) async fn dispatch(&self, operation: &Operation<'_>, caller: &Caller) -> Handled {
        operation.consistency(self.account.consistency)?;
        self.check_caller(operation, caller)?;
        match operation.address.resource {
            ResourceType::Account => self.account(operation),
            ResourceType::Databases => self.databases(operation).await,
            ResourceType::Containers => self.containers(operation).await,
            ResourceType::Items => self.items(operation).await,
            ResourceType::Offers => self.offers(operation).await,
            ResourceType::Ranges => self.ranges(operation),
            ResourceType::ClientEncryptionKeys => self.encryption_keys(operation).await,
            ResourceType::Users => self.users(operation).await,
            ResourceType::Permissions => self.permissions(operation).await,
            ResourceType::Conflicts => self.conflicts(operation),
            ResourceType::Addresses => {
                Err(Error::unsupported("Direct mode (replica addresses; choose gateway mode in the client)").into())
            }
            ResourceType::StoredProcedures => self.scripts(operation, ScriptKind::StoredProcedure).await,
            ResourceType::Triggers => self.scripts(operation, ScriptKind::Trigger).await,
            ResourceType::UserDefinedFunctions => self.scripts(operation, ScriptKind::UserDefinedFunction).await,
            ResourceType::Attachments => Err(Error::unsupported("Attachments").into()),
            ResourceType::Operations => self.delete_by_partition_key(operation).await,
        }
    }

    fn check_caller(&self, operation: &Operation<'_>, caller: &Caller) -> Result<(), ErrorReply> {
        let check = |subject| {
            role_access::check(self.engine, &self.account.id, &self.access.bearer.roles(), subject, operation)
        };
        match caller {
            Caller::ReadWrite => Ok(()),
            Caller::Permitted(token) => permissions::check(self.engine, *token, operation),
            Caller::Data => check(TokenSubject::Contributor),
            Caller::Principal(principal) => check(TokenSubject::Principal(principal)),
            // Reading a permission returns a token with all the access that it grants.
            Caller::ReadOnly if operation.address.resource == ResourceType::Permissions => {
                Err(AuthError::ReadOnlyKey.into())
            }
            Caller::ReadOnly => Ok(()),
        }
    }

    /// There is one write region, so conflicts never occur and the feed is always empty.
    fn conflicts(&self, operation: &Operation<'_>) -> Handled {
        let admitted = self.engine.admit(operation.container_name()?, operation.options.intended_container)?;
        match operation.kind {
            OperationKind::List => {}
            OperationKind::Query => {
                let scoped = operation.partition_key()?.is_some() || operation.range_id()?.is_some();
                if !scoped && !operation.options.cross_partition {
                    return Err(Error::invalid("Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, or specify x-ms-documentdb-partitionkey.").into());
                }
            }
            OperationKind::Read | OperationKind::Delete => {
                return Err(Error::not_found("There is no such conflict.").into());
            }
            _ => return Err(not_allowed()),
        }
        let owner = admitted.container().rid.to_string();
        Ok(Reply::new(Status::Ok, super::encode::feed(&owner, "Conflicts", &[])))
    }
}

pub(crate) fn not_allowed() -> ErrorReply {
    ErrorStatus::new(Status::MethodNotAllowed, "This resource does not have that method.").into()
}
