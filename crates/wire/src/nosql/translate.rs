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
mod query_body; // text, parameters and resume filter of a query
mod ranges;
mod scripts;
mod users; // users and their permissions

use std::sync::Arc;

use pleiad_engine::{ActionSet, Addressed, Admitted, Database, WholeAccount};
use pleiad_model::Error;
use pleiad_model::resource_id::ScriptKind;

use super::RequestContext;
use super::address::ResourceType;
use super::authority::NosqlAuthority;
use super::operation::{Operation, OperationKind};
use super::reply::{ErrorReply, Handled, Reply};
use super::required_actions::required_actions;
use super::status::{ErrorStatus, Status};
use crate::account::Caller;

impl RequestContext<'_> {
    pub(super) async fn dispatch(&self, operation: &Operation<'_>) -> Handled {
        // For every caller: there is nothing that a permission could allow.
        if operation.kind == OperationKind::NotAllowed {
            return Err(not_allowed());
        }
        operation.consistency(self.account.consistency)?;
        operation.options.session_token.get()?;
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
                self.admit(operation)?;
                Err(Error::unsupported("Direct mode (replica addresses; choose gateway mode in the client)").into())
            }
            ResourceType::StoredProcedures => self.scripts(operation, ScriptKind::StoredProcedure).await,
            ResourceType::Triggers => self.scripts(operation, ScriptKind::Trigger).await,
            ResourceType::UserDefinedFunctions => self.scripts(operation, ScriptKind::UserDefinedFunction).await,
            ResourceType::Attachments => {
                self.admit(operation)?;
                Err(Error::unsupported("Attachments").into())
            }
            ResourceType::Operations => self.delete_by_partition_key(operation).await,
        }
    }

    /// For operations on the account.
    fn admit(&self, operation: &Operation<'_>) -> Result<Admitted<WholeAccount>, ErrorReply> {
        self.engine.authorize(&self.authority(operation), self.required_actions(operation)?)
    }

    /// For operations on the database that the first segment of the path names, or on something in it.
    fn admit_database(
        &self,
        operation: &Operation<'_>,
        addressed: Addressed,
    ) -> Result<Admitted<Arc<Database>>, ErrorReply> {
        let (authority, actions) = (self.authority(operation), self.required_actions(operation)?);
        self.engine.authorize_database(&authority, actions, operation.database_name(), addressed)
    }

    /// For operations on the container that the second segment names, or on something in it.
    fn admit_container(&self, operation: &Operation<'_>, addressed: Addressed) -> Result<Admitted, ErrorReply> {
        let name = match operation.container_name() {
            Ok(name) => name,
            Err(error) => {
                self.admit(operation)?;
                return Err(error.into());
            }
        };
        let (authority, actions) = (self.authority(operation), self.required_actions(operation)?);
        let at = self.engine.authorize_container(&authority, actions, name, addressed)?;
        match addressed {
            Addressed::Itself => Ok(at),
            Addressed::Parent => Ok(at.expecting(operation.options.intended_container)?),
        }
    }

    fn authority<'o>(&'o self, operation: &'o Operation<'o>) -> NosqlAuthority<'o> {
        NosqlAuthority { caller: self.caller, operation, account: &self.account.id, access: self.access }
    }

    /// Roles distinguish the operations of a batch; nothing else does.
    fn required_actions(&self, operation: &Operation<'_>) -> pleiad_model::Result<ActionSet> {
        required_actions(operation, matches!(self.caller, Caller::Principal(_)))
    }

    /// There is one write region, so conflicts never occur and the feed is always empty.
    fn conflicts(&self, operation: &Operation<'_>) -> Handled {
        let admitted = self.admit_container(operation, Addressed::Parent)?;
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
