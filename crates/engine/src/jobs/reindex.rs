//! Reindexing: runs a container's index transformation in place after its policy has changed.
//!
//! Guarantees: it resumes after a crash, yields to requests, and ends when the policy changes again: the job of the
//! new policy takes over. `Partition::reindex` rewrites the items. `docs/decisions/0007-reindex-in-place.md` explains
//! why it is done in place.

use std::sync::Arc;

use pleiad_model::{Fact, Result};
use pleiad_partition::commit::block_on;
use pleiad_partition::{MaintenanceError, WriteError};
use pleiad_storage::Store;
use pleiad_storage::keyspace::{self, Tag};

use crate::catalog::{Catalog, Container, IndexTransformation};

impl Catalog {
    /// Resumes after a restart. Called before any write.
    pub(crate) async fn resume_reindexing(&self) -> Result<()> {
        let tree = self.tree();
        let containers = tree.databases.values().flat_map(|database| database.containers.values());
        let unfinished: Vec<_> =
            containers.filter(|container| container.index_transformation.is_some()).cloned().collect();
        for container in &unfinished {
            self.clear_index(container).await?;
        }
        self.start_reindexing(unfinished);
        Ok(())
    }

    /// Runs the transformations on one thread, one after the other.
    pub(crate) fn start_reindexing(&self, containers: Vec<Arc<Container>>) {
        if containers.is_empty() {
            return;
        }
        let catalog = self.clone();
        let work = move || containers.iter().try_for_each(|container| block_on(catalog.reindex(container)));
        self.tasks().run("reindex", work);
    }

    /// Drops obsolete rows before a write can add new ones among them: all of them if their layout is obsolete, and
    /// those of paths whose terms are now computed differently.
    async fn clear_index(&self, container: &Container) -> Result<()> {
        let rebuild = container.index_transformation.as_ref().is_some_and(|transformation| transformation.rebuild);
        let (store, _) = self.store_and_committer();
        for range in container.map.ranges() {
            if rebuild {
                let (from, to) = keyspace::range(range.shard, Tag::Index);
                store.drop_range(&from, &to).await?;
            }
            for path in &container.schema.obsolete_paths {
                let (from, to) = keyspace::index_range(range.shard, *path, &[]);
                store.drop_range(&from, &to).await?;
            }
        }
        Ok(())
    }

    async fn reindex(&self, container: &Container) -> Result<()> {
        let Some(transformation) = &container.index_transformation else { return Ok(()) };
        match reindex_partitions(container, transformation).await {
            Ok(()) => self.finish_index_transformation(container.rid, container.schema.version).await,
            // The policy has changed again, or the container is being deleted.
            Err(WriteError::Outdated) => Ok(()),
            Err(WriteError::Failed(error)) if error.fact() == Some(&Fact::OwnerMissing) => Ok(()),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }
}

async fn reindex_partitions(
    container: &Container,
    transformation: &IndexTransformation,
) -> Result<(), MaintenanceError> {
    transformation.begin(container.items());
    for partition in &container.partitions {
        partition.reindex(&container.schema, |items| transformation.add_seen(items)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
