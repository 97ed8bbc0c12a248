//! The index of a container after its policy has changed, brought to the new one in place.
//!
//! Promise: it goes on after a crash, gives way to whoever works with the container, and ends when another policy
//! comes: then that one's chore takes over. What happens to one item is `Partition::reindex`'s business, and why it is done in
//! place is told in `docs/decisions/0007-reindex-in-place.md`.

use std::sync::Arc;

use pleiad_model::{Kind, Result};
use pleiad_partition::commit::block_on;
use pleiad_storage::Store;
use pleiad_storage::keyspace::{self, Tag};

use crate::catalog::{Catalog, Container, IndexTransformation};

impl Catalog {
    /// Goes on where the last run of the program stopped. Nobody writes yet.
    pub(crate) async fn resume_reindexing(&self) -> Result<()> {
        let tree = self.tree();
        let containers = tree.databases.values().flat_map(|database| database.containers.values());
        let left: Vec<_> = containers.filter(|container| container.transition.is_some()).cloned().collect();
        for container in &left {
            self.clear_index(container).await?;
        }
        self.start_reindexing(left);
        Ok(())
    }

    /// On one thread, one after the other.
    pub(crate) fn start_reindexing(&self, containers: Vec<Arc<Container>>) {
        if containers.is_empty() {
            return;
        }
        let catalog = self.clone();
        let work = move || containers.iter().try_for_each(|container| block_on(catalog.reindex(container)));
        self.chores().run("reindex", work);
    }

    /// Rows of an older layout go before anyone can write new ones among them.
    async fn clear_index(&self, container: &Container) -> Result<()> {
        if !container.transition.as_ref().is_some_and(|transition| transition.anew) {
            return Ok(());
        }
        let (store, _) = self.hands();
        for range in container.map.ranges() {
            let (from, to) = keyspace::range(range.shard, Tag::Index);
            store.drop_range(&from, &to).await?;
        }
        Ok(())
    }

    async fn reindex(&self, container: &Container) -> Result<()> {
        let Some(transition) = &container.transition else { return Ok(()) };
        match walk(container, transition).await {
            Ok(()) => self.finish_transition(container.rid, container.schema.version).await,
            // Another policy has come, or the container is going away.
            Err(error) if matches!(error.kind, Kind::Outdated | Kind::OwnerNotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

async fn walk(container: &Container, transition: &IndexTransformation) -> Result<()> {
    transition.begin(container.items());
    for partition in &container.partitions {
        partition.reindex(&container.schema, |items| transition.saw(items)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
