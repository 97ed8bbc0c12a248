//! Container resolution: finds the container that a request addresses by name or `_rid`.
//!
//! Invariant: item operations take an `Admitted`, and only this module makes one.

use std::sync::Arc;

use pleiad_model::resource_id::{ContainerRid, DatabaseRid};
use pleiad_model::{Consistency, Error, Kind, Result};
use pleiad_partition::governor::RequestClass;
use pleiad_partition::partition::RESOURCE_NOT_FOUND;
use pleiad_partition::ttl::Expiry;

use crate::Engine;
use crate::catalog::{CatalogTree, Container, Database};

/// How a request names a container.
#[derive(Clone, Copy, Debug)]
pub enum ContainerName<'a> {
    Named { database: &'a str, container: &'a str },
    Rid(ContainerRid),
}

/// The existing container that a request addresses, with the request's class, time and consistency level.
#[derive(Clone)]
pub struct Admitted {
    pub(crate) container: Arc<Container>,
    /// How the request is treated when the throughput does not suffice for all requests.
    pub(crate) class: RequestClass,
    /// When the request was admitted: items that had expired by then are not returned.
    now_s: u32,
    /// The consistency level of its reads.
    consistency: Consistency,
}

impl Admitted {
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Decides which items of the container have expired.
    pub(crate) fn expiry(&self) -> Expiry {
        self.container.schema.expiry(self.now_s)
    }

    /// The same request, with a newer version of its container.
    pub(crate) fn at(&self, container: Arc<Container>) -> Self {
        Admitted { container, ..self.clone() }
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
}

impl Engine {
    /// `intended` is the `_rid` that the client expects the container to have.
    pub fn admit(&self, name: ContainerName<'_>, intended: Option<&str>) -> Result<Admitted> {
        let container = self.catalog.with_tree(|tree| find(tree, name).cloned());
        let container = container.ok_or_else(owner_missing)?;
        match intended {
            Some(rid) if !rid.is_empty() && ContainerRid::parse(rid) != Some(container.rid) => {
                Err(changed(rid, container.rid))
            }
            _ => {
                let (class, now_s, consistency) = (RequestClass::default(), self.now_s(), Consistency::Session);
                Ok(Admitted { container, class, now_s, consistency })
            }
        }
    }

    /// For requests on the container itself: the only owner that can be missing is its database.
    pub fn find_container(&self, name: ContainerName<'_>) -> Result<Arc<Container>> {
        self.catalog.with_tree(|tree| match find(tree, name) {
            Some(container) => Ok(container.clone()),
            None if has_database(tree, name) => Err(Error::not_found(RESOURCE_NOT_FOUND)),
            None => Err(owner_missing()),
        })
    }

    pub fn find_database(&self, name: &str) -> Result<Arc<Database>> {
        let database = self.catalog.with_tree(|tree| tree.database(name).cloned());
        database.ok_or_else(|| Error::not_found(RESOURCE_NOT_FOUND))
    }

    pub fn find_database_by_rid(&self, rid: DatabaseRid) -> Result<Arc<Database>> {
        let database = self.catalog.with_tree(|tree| tree.database_by_rid(rid).cloned());
        database.ok_or_else(|| Error::not_found(RESOURCE_NOT_FOUND))
    }
}

fn find<'a>(tree: &'a CatalogTree, name: ContainerName<'_>) -> Option<&'a Arc<Container>> {
    match name {
        ContainerName::Named { database, container } => tree.database(database)?.container(container),
        ContainerName::Rid(rid) => tree.container_by_rid(rid),
    }
}

fn has_database(tree: &CatalogTree, name: ContainerName<'_>) -> bool {
    match name {
        ContainerName::Named { database, .. } => tree.database(database).is_some(),
        ContainerName::Rid(rid) => tree.database_by_rid(rid.database).is_some(),
    }
}

fn owner_missing() -> Error {
    Error::new(Kind::OwnerNotFound, "Owner resource does not exist")
}

fn changed(intended: &str, actual: ContainerRid) -> Error {
    Error::new(
        Kind::ContainerChanged,
        format!(
            "The container's resource id is {actual}, not {intended}: it was created anew. Read the container again and retry."
        ),
    )
}

#[cfg(test)]
mod tests;
