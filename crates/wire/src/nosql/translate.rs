//! Translates requests into engine calls and engine responses into replies: one module per resource type.

mod account; // the account's properties
mod batches; // many operations in one request
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

use http::{Method, StatusCode};
use pleiad_model::Error;
use pleiad_model::resource_id::ScriptKind;

use super::RequestContext;
use super::address::ResourceType;
use super::auth::{AuthError, Caller};
use super::permissions;
use super::reply::{ErrorReply, Handled, Reply};
use super::request::{PostKind, Request};
use super::role_access::TokenSubject;
use super::status::ErrorStatus;

impl RequestContext<'_> {
    pub(super) async fn dispatch(&self, request: &Request<'_>, caller: &Caller) -> Handled {
        request.consistency(self.account.consistency)?;
        self.check_caller(request, caller)?;
        match request.address.resource {
            ResourceType::Account => self.account(request),
            ResourceType::Databases => self.databases(request).await,
            ResourceType::Containers => self.containers(request).await,
            ResourceType::Items => self.items(request).await,
            ResourceType::Offers => self.offers(request).await,
            ResourceType::Ranges => self.ranges(request),
            ResourceType::ClientEncryptionKeys => self.encryption_keys(request).await,
            ResourceType::Users => self.users(request).await,
            ResourceType::Permissions => self.permissions(request).await,
            ResourceType::Conflicts => self.conflicts(request),
            ResourceType::Addresses => {
                Err(Error::unsupported("Direct mode (replica addresses; choose gateway mode in the client)").into())
            }
            ResourceType::StoredProcedures => self.scripts(request, ScriptKind::StoredProcedure).await,
            ResourceType::Triggers => self.scripts(request, ScriptKind::Trigger).await,
            ResourceType::UserDefinedFunctions => self.scripts(request, ScriptKind::UserDefinedFunction).await,
            ResourceType::Attachments => Err(Error::unsupported("Attachments").into()),
            ResourceType::Operations => self.operations(request).await,
        }
    }

    fn check_caller(&self, request: &Request<'_>, caller: &Caller) -> Result<(), ErrorReply> {
        let carries = |subject| self.access.check(self.engine, &self.account.id, subject, request);
        match caller {
            Caller::ReadWrite => Ok(()),
            Caller::Permitted(ticket) => permissions::check(self.engine, *ticket, request),
            Caller::Data => carries(TokenSubject::Contributor),
            Caller::Principal(principal) => carries(TokenSubject::Principal(principal)),
            // Reading a permission returns a token with all the access that it grants.
            Caller::ReadOnly if request.address.resource == ResourceType::Permissions => {
                Err(AuthError::ReadOnlyKey.into())
            }
            Caller::ReadOnly => Ok(()),
        }
    }

    /// There is one write region, so conflicts never occur and the feed is always empty.
    fn conflicts(&self, request: &Request<'_>) -> Handled {
        let admitted = self.engine.admit(request.container_name()?, request.intended_rid())?;
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => {}
            (&Method::POST, true) if request.post_kind() == PostKind::Query => {
                let scoped = request.partition_key()?.is_some() || request.range_id()?.is_some();
                if !scoped && !request.flag("x-ms-documentdb-query-enablecrosspartition") {
                    return Err(Error::invalid("Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, or specify x-ms-documentdb-partitionkey.").into());
                }
            }
            (&Method::GET | &Method::DELETE, false) => {
                return Err(Error::not_found("There is no such conflict.").into());
            }
            _ => return Err(not_allowed()),
        }
        let owner = admitted.container().rid.to_string();
        Ok(Reply::new(StatusCode::OK, super::encode::feed(&owner, "Conflicts", &[])))
    }
}

/// A POST that creates or upserts a resource. A query or a query plan must not: a read-only key may send those.
fn creates(request: &Request<'_>) -> bool {
    matches!(request.post_kind(), PostKind::Create | PostKind::Upsert)
}

pub(crate) fn not_allowed() -> ErrorReply {
    ErrorStatus::new(StatusCode::METHOD_NOT_ALLOWED, "This resource does not have that method.").into()
}
