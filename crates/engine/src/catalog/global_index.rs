//! Global secondary indexes in the catalog: the references between an index and its source.
//!
//! Invariant: a source lists its indexes. As long as it has one, it retains versions of its changes and cannot be
//! deleted, except together with its database. `jobs::global_index` fills and maintains the index.

use std::sync::Arc;

use pleiad_model::policy::{ContainerDefinition, IndexedBy};
use pleiad_model::{Error, Result};
use pleiad_sql::index_projection::Projection;

use super::Catalog;
use super::publish::CatalogChange;
use super::tree::{Container, Database};
use crate::throughput::ProvisionedThroughput;

/// The most indexes of one source.
const INDEXES_MAX: usize = 5;
/// The default autoscale maximum of an index.
const AUTOSCALE_RU: u32 = 1000;

impl Container {
    /// The build status, as the service spells it.
    pub fn index_status(&self) -> &'static str {
        if self.progress.is_built() { "Active" } else { "InitialBuildAfterCreate" }
    }
}

/// Finds the source of an index to be created and stores its `_rid` in the definition.
pub(super) fn bind_source(owner: &Database, definition: &mut ContainerDefinition) -> Result<Option<Arc<Container>>> {
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

/// An index needs autoscale throughput, so that it can keep up with its source.
pub(super) fn throughput(requested: Option<ProvisionedThroughput>) -> Result<ProvisionedThroughput> {
    match requested {
        Some(ProvisionedThroughput::Manual(_)) => {
            Err(Error::invalid("A global secondary index needs autoscale throughput."))
        }
        Some(autoscale) => Ok(autoscale),
        None => Ok(ProvisionedThroughput::Autoscale { max: AUTOSCALE_RU, increment_percent: None }),
    }
}

/// Items leave an index when they leave its source, and no sooner. The check is here and not where definitions are
/// parsed, so that an account that already has such an index still opens.
pub(super) fn check_no_ttl(definition: &ContainerDefinition) -> Result<()> {
    match (&definition.global_index, definition.default_ttl) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "A global secondary index has no defaultTtl: its items go when those of its source do. Set it there.",
        )),
        _ => Ok(()),
    }
}

/// Deleting a source would leave its indexes with stale items for ever.
pub(super) fn check_not_a_source(container: &Container) -> Result<()> {
    match container.definition.indexed_by.first() {
        None => Ok(()),
        Some(index) => Err(Error::invalid(format!(
            "The container is the source of the global secondary index '{}'. Delete that first.",
            index.id
        ))),
    }
}

impl Catalog {
    /// Adds an index to its source's list.
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

    /// Removes an index from its source's list.
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
