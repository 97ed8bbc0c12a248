//! Global secondary indexes in the catalog: an index and its source know each other.
//!
//! Promise: a source says which indexes it has, keeps versions of its changes while it has any, and stays for as long. Filling an index is
//! `chores::global_index`' job.

use std::sync::Arc;

use pleiad_model::policy::{ContainerDefinition, IndexedBy};
use pleiad_model::{Error, Result};
use pleiad_sql::index_projection::Projection;

use super::Catalog;
use super::publish::CatalogChange;
use super::tree::{Container, Database};
use crate::throughput::ProvisionedThroughput;

/// At most this many of one source.
const INDEXES_MAX: usize = 5;
/// What an index reserves unless told otherwise.
const AUTOSCALE_RU: u32 = 1000;

impl Container {
    /// In the service's words.
    pub fn index_status(&self) -> &'static str {
        if self.progress.is_built() { "Active" } else { "InitialBuildAfterCreate" }
    }
}

/// The source of an index to be created, written down in its definition.
pub(super) fn bind(owner: &Database, definition: &mut ContainerDefinition) -> Result<Option<Arc<Container>>> {
    let Some(index) = &mut definition.global_index else { return Ok(None) };
    Projection::parse(&index.definition)?;
    let source = owner.container(&index.source).cloned().ok_or_else(|| {
        Error::invalid(format!("The source container '{}' of the global secondary index does not exist.", index.source))
    })?;
    if source.definition.global_index.is_some() {
        return Err(Error::invalid("A global secondary index cannot be the source of another."));
    }
    if source.definition.indexed_by.len() >= INDEXES_MAX {
        let message = format!("A container is the source of at most {INDEXES_MAX} global secondary indexes.");
        return Err(Error::invalid(message));
    }
    index.source_rid = Some(source.rid);
    Ok(Some(source))
}

/// Autoscale is what an index has, so that it can follow its source.
pub(super) fn throughput(asked: Option<ProvisionedThroughput>) -> Result<ProvisionedThroughput> {
    match asked {
        Some(ProvisionedThroughput::Manual(_)) => {
            Err(Error::invalid("A global secondary index needs autoscale throughput."))
        }
        Some(autoscale) => Ok(autoscale),
        None => Ok(ProvisionedThroughput::Autoscale { max: AUTOSCALE_RU, increment_percent: None }),
    }
}

/// Items leave an index when they leave its source, and no sooner. Refused here and not where definitions are read, so that an account
/// that has such an index still opens.
pub(super) fn check_lasting(definition: &ContainerDefinition) -> Result<()> {
    match (&definition.global_index, definition.default_ttl) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "A global secondary index has no defaultTtl: its items go when those of its source do. Set it there.",
        )),
        _ => Ok(()),
    }
}

/// Deleting it would leave its indexes with what they have for ever.
pub(super) fn check_no_source(container: &Container) -> Result<()> {
    match container.definition.indexed_by.first() {
        None => Ok(()),
        Some(index) => Err(Error::invalid(format!(
            "The container is the source of the global secondary index '{}'. Delete that first.",
            index.id
        ))),
    }
}

impl Catalog {
    /// The source has one index more.
    pub(super) fn add_index(
        &self,
        change: &mut CatalogChange,
        owner: &mut Database,
        source: &Container,
        index: &Container,
    ) -> Result<()> {
        let mut definition = source.definition.clone();
        definition.indexed_by.push(IndexedBy { id: index.definition.id.clone(), rid: index.rid });
        self.put_definition(change, owner, source, definition).map(drop)
    }

    /// The source has one index less.
    pub(super) fn remove_index(
        &self,
        change: &mut CatalogChange,
        owner: &mut Database,
        index: &Container,
    ) -> Result<()> {
        let source = index.definition.global_index.as_ref().and_then(|index| index.source_rid);
        let Some(source) = source.and_then(|rid| owner.containers.get(&rid.number).cloned()) else { return Ok(()) };
        let mut definition = source.definition.clone();
        definition.indexed_by.retain(|known| known.rid != index.rid);
        self.put_definition(change, owner, &source, definition).map(drop)
    }
}
