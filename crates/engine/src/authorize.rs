//! Authorization: makes the value that every call of the engine needs.
//!
//! Invariant: calls that read or change items, metadata or the server's state take an `Admitted`. Only this module makes
//! one, after the caller's `Authority` has allowed its actions at the place that the request names; and a call fails
//! unless the action that it performs is among them.
//!
//! ```text
//! Authority (protocol, caller) ── allows actions at a Place ──▶ Admitted<resource> ──▶ Engine::read_item, …
//! ```
//!
//! The authority is asked before a missing resource is reported: a caller without access learns nothing about names.

mod action; // what a caller can be allowed to do

pub use action::{Action, ActionSet};

use std::fmt;
use std::sync::Arc;

use pleiad_model::error::ContainerRecreated;
use pleiad_model::resource_id::{ContainerRid, DatabaseRid, PermissionRid};
use pleiad_model::{Consistency, Error, Fact, Result};
use pleiad_partition::governor::RequestClass;
use pleiad_partition::ttl::Expiry;

use crate::Engine;
use crate::catalog::{CatalogTree, Container, Database, Permission};

/// Decides for one request what its caller may do. Protocols implement it.
pub trait Authority {
    /// What the protocol answers to a caller without access.
    type Denied: From<Error>;

    /// Fails unless the caller may perform all of the actions at the place.
    fn check(&self, names: &Names<'_>, actions: ActionSet, place: Place<'_>) -> Result<(), Self::Denied>;

    /// The id that the client's and the server's logs share for this request.
    fn activity(&self) -> ActivityId;
}

/// The server itself: what the configuration declares, its own reports.
pub struct ServerAuthority;

impl Authority for ServerAuthority {
    type Denied = Error;

    fn check(&self, _: &Names<'_>, _: ActionSet, _: Place<'_>) -> Result<()> {
        Ok(())
    }

    fn activity(&self) -> ActivityId {
        ActivityId::default()
    }
}

/// The resource that a request is for, as the request names it.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    Account,
    Database(DatabaseName<'a>),
    Container(ContainerName<'a>),
}

/// How a request names a database.
#[derive(Clone, Copy, Debug)]
pub enum DatabaseName<'a> {
    Named(&'a str),
    Rid(DatabaseRid),
}

/// How a request names a container.
#[derive(Clone, Copy, Debug)]
pub enum ContainerName<'a> {
    Named { database: &'a str, container: &'a str },
    Rid(ContainerRid),
}

/// Whether a request is for the resource itself or for something in it: clients distinguish a missing resource from a
/// missing parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressed {
    Itself,
    Parent,
}

/// The names of the account's resources, for authorities.
pub struct Names<'e> {
    tree: &'e CatalogTree,
}

impl Names<'_> {
    pub fn database(&self, name: DatabaseName<'_>) -> Option<&Arc<Database>> {
        match name {
            DatabaseName::Named(name) => self.tree.database(name),
            DatabaseName::Rid(rid) => self.tree.database_by_rid(rid),
        }
    }

    pub fn container(&self, name: ContainerName<'_>) -> Option<&Arc<Container>> {
        match name {
            ContainerName::Named { database, container } => self.tree.database(database)?.container(container),
            ContainerName::Rid(rid) => self.tree.container_by_rid(rid),
        }
    }

    pub fn permission(&self, rid: PermissionRid) -> Option<&Arc<Permission>> {
        self.tree.permission(rid)
    }

    fn has_database_of(&self, name: ContainerName<'_>) -> bool {
        match name {
            ContainerName::Named { database, .. } => self.tree.database(database).is_some(),
            ContainerName::Rid(rid) => self.tree.database_by_rid(rid.database).is_some(),
        }
    }
}

/// The id of one request in the client's and the server's logs: a GUID, or the first 36 bytes of what the client sent.
/// Stored inline, since every request has one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ActivityId {
    bytes: [u8; ActivityId::BYTES_MAX],
    len: u8,
}

impl ActivityId {
    const BYTES_MAX: usize = 36;

    pub fn new(text: &str) -> ActivityId {
        let mut end = text.len().min(ActivityId::BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; ActivityId::BYTES_MAX];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        ActivityId { bytes, len: end as u8 }
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl Default for ActivityId {
    fn default() -> Self {
        ActivityId::new("")
    }
}

impl fmt::Debug for ActivityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The account as a resource.
#[derive(Clone, Copy, Debug)]
pub struct WholeAccount;

/// The time that a request may take. Clients wait about as long.
const REQUEST_TIMEOUT_MS: u64 = 60_000;

/// A request that may perform its actions on the resource, with all that accompanies it through the engine.
#[derive(Clone)]
pub struct Admitted<R = Arc<Container>> {
    resource: R,
    actions: ActionSet,
    /// How the request is treated when the throughput does not suffice for all requests.
    class: RequestClass,
    /// The consistency level of its reads.
    consistency: Consistency,
    /// When the request was admitted: items that had expired by then are not returned.
    admitted_ms: u64,
    activity: ActivityId,
}

impl<R> Admitted<R> {
    fn new(engine: &Engine, resource: R, actions: ActionSet, activity: ActivityId) -> Self {
        let (class, consistency, admitted_ms) = (RequestClass::default(), Consistency::Session, engine.now_ms());
        Admitted { resource, actions, class, consistency, admitted_ms, activity }
    }

    /// Fails unless the request was allowed to perform the action. A protocol that asked for the actions that it needs
    /// never sees this error.
    pub(crate) fn check(&self, action: Action) -> Result<()> {
        match self.actions.has(action) {
            true => Ok(()),
            false => Err(Fact::ActionNotAuthorized { action: action.name() }.into()),
        }
    }

    pub(crate) fn activity(&self) -> ActivityId {
        self.activity
    }

    /// When the client no longer waits for an answer.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.admitted_ms.saturating_add(REQUEST_TIMEOUT_MS)
    }
}

impl Admitted<Arc<Database>> {
    pub fn database(&self) -> &Arc<Database> {
        &self.resource
    }
}

impl Admitted {
    pub fn container(&self) -> &Arc<Container> {
        &self.resource
    }

    /// Decides which items of the container have expired.
    pub(crate) fn expiry(&self) -> Expiry {
        self.resource.schema.expiry(u32::try_from(self.admitted_ms / 1000).unwrap_or(u32::MAX))
    }

    /// The same request, with a newer version of its container.
    pub(crate) fn at(&self, container: Arc<Container>) -> Self {
        Admitted { resource: container, ..self.clone() }
    }

    pub(crate) fn class(&self) -> RequestClass {
        self.class
    }

    pub fn in_class(self, class: RequestClass) -> Self {
        Admitted { class, ..self }
    }

    /// Sets the consistency level of reads; the default is session.
    pub fn reading_at(self, consistency: Consistency) -> Self {
        Admitted { consistency, ..self }
    }

    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// The charge of a read at the consistency level, given its charge at one replica.
    pub fn read_ru(&self, charge_ru: f64) -> f64 {
        charge_ru * f64::from(self.consistency.replicas_read())
    }

    /// Fails if the container is not the one with the `_rid` that the client expects.
    pub fn expecting(self, rid: Option<&str>) -> Result<Self> {
        match rid {
            Some(rid) if !rid.is_empty() && ContainerRid::parse(rid) != Some(self.resource.rid) => {
                Err(recreated(rid, self.resource.rid))
            }
            _ => Ok(self),
        }
    }
}

impl Engine {
    pub fn authorize<A: Authority>(
        &self,
        authority: &A,
        actions: impl Into<ActionSet>,
    ) -> Result<Admitted<WholeAccount>, A::Denied> {
        self.admit(authority, actions.into(), Place::Account, |_| Ok(WholeAccount))
    }

    pub fn authorize_database<A: Authority>(
        &self,
        authority: &A,
        actions: impl Into<ActionSet>,
        name: DatabaseName<'_>,
        addressed: Addressed,
    ) -> Result<Admitted<Arc<Database>>, A::Denied> {
        self.admit(authority, actions.into(), Place::Database(name), |names| {
            names.database(name).cloned().ok_or(match addressed {
                Addressed::Itself => Fact::ResourceMissing,
                Addressed::Parent => Fact::OwnerMissing,
            })
        })
    }

    pub fn authorize_container<A: Authority>(
        &self,
        authority: &A,
        actions: impl Into<ActionSet>,
        name: ContainerName<'_>,
        addressed: Addressed,
    ) -> Result<Admitted, A::Denied> {
        self.admit(authority, actions.into(), Place::Container(name), |names| {
            names.container(name).cloned().ok_or_else(|| match addressed {
                Addressed::Itself if names.has_database_of(name) => Fact::ResourceMissing,
                Addressed::Itself | Addressed::Parent => Fact::OwnerMissing,
            })
        })
    }

    /// Asks the authority, then finds the resource in the same version of the catalog.
    fn admit<A: Authority, R>(
        &self,
        authority: &A,
        actions: ActionSet,
        place: Place<'_>,
        find: impl FnOnce(&Names<'_>) -> Result<R, Fact>,
    ) -> Result<Admitted<R>, A::Denied> {
        let resource = self.catalog.with_tree(|tree| {
            let names = Names { tree };
            authority.check(&names, actions, place)?;
            find(&names).map_err(|missing| A::Denied::from(missing.into()))
        })?;
        Ok(Admitted::new(self, resource, actions, authority.activity()))
    }

    /// The current version of the request's container.
    pub(crate) fn current_container(&self, at: &Admitted) -> Result<Arc<Container>> {
        let container = self.catalog.with_tree(|tree| tree.container_by_rid(at.resource.rid).cloned());
        Ok(container.ok_or(Fact::OwnerMissing)?)
    }
}

fn recreated(intended: &str, actual: ContainerRid) -> Error {
    Fact::ContainerRecreated(Box::new(ContainerRecreated { actual, intended: intended.to_owned() })).into()
}

#[cfg(test)]
mod tests;
