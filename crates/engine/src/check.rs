//! Consistency check of the whole account: every partition of every container, and no orphan shards.
//!
//! Guarantees: reports what disagrees and changes nothing. `partition::check` decides what a shard must look like;
//! this module adds which shards there should be, according to the catalog.

use std::collections::BTreeSet;
use std::sync::Arc;

use pleiad_model::Result;
use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_model::policy::ContainerKind;
pub use pleiad_partition::check::{CheckReport, Problems};
use pleiad_storage::{Blocking, Direction, Limit, Snapshot, Store, keyspace};

use crate::catalog::{CatalogTree, Container, load_dropped_shards};
use crate::{Action, Admitted, Engine, WholeAccount};

#[derive(Debug, Default)]
pub struct AccountReport {
    pub databases: Vec<DatabaseReport>,
    /// Problems that concern no particular partition.
    pub problems: Problems,
}

#[derive(Debug)]
pub struct DatabaseReport {
    pub id: String,
    pub containers: Vec<ContainerReport>,
}

#[derive(Debug)]
pub struct ContainerReport {
    pub id: String,
    pub kind: ContainerKind,
    /// In the order of the hash space.
    pub partitions: Vec<(PartitionKeyRange, CheckReport)>,
}

impl ContainerReport {
    pub fn items(&self) -> u64 {
        self.partitions.iter().map(|(_, report)| report.items).sum()
    }

    pub fn item_bytes(&self) -> u64 {
        self.partitions.iter().map(|(_, report)| report.item_bytes).sum()
    }
}

impl AccountReport {
    /// The number of problems, including those that are not listed.
    pub fn problem_count(&self) -> u64 {
        let containers = self.databases.iter().flat_map(|database| &database.containers);
        let partitions = containers.flat_map(|container| &container.partitions);
        self.problems.count + partitions.map(|(_, report)| report.problems.count).sum::<u64>()
    }
}

impl Engine {
    /// Checks all stored rows against each other. Fails only when the store cannot be read.
    pub async fn check(&self, at: &Admitted<WholeAccount>) -> Result<AccountReport> {
        at.check(Action::Monitor)?;
        let tree = self.catalog.tree();
        let mut report = AccountReport::default();
        self.check_shards(&tree, &mut report.problems).await?;
        for database in tree.databases.values() {
            let mut containers = Vec::new();
            for container in database.containers.values() {
                containers.push(check_container(container).await?);
            }
            report.databases.push(DatabaseReport { id: database.id.clone(), containers });
        }
        Ok(report)
    }

    /// Every shard with rows is in one partition map, belongs to a child of a split or merge or to a database copy in
    /// progress, or waits to be dropped. A container that is created or dropped during the check may be reported as a
    /// problem, and so may a copy that begins; the next check has the current catalog.
    async fn check_shards(&self, tree: &CatalogTree, problems: &mut Problems) -> Result<()> {
        let (store, _) = self.catalog.store_and_committer();
        let mut known = BTreeSet::from([keyspace::CATALOG_SHARD]);
        for shard in containers(tree).flat_map(|container| container.map.ranges()).map(|range| range.shard) {
            if !known.insert(shard) {
                problems.add(format_args!("shard {shard} belongs to two ranges"));
            }
        }
        known.extend(tree.jobs.values().flat_map(|job| &job.children).map(|child| child.shard));
        known.extend(tree.copies.values().flat_map(|copy| &copy.shards));
        // Before the snapshot: a shard whose removal finishes in between has no rows in the snapshot.
        known.extend(load_dropped_shards(&store).await?);
        let snapshot = store.snapshot(Blocking::Suspend).await?;
        let (mut from, _) = keyspace::shard_range(0);
        let (_, to) = keyspace::shard_range(u64::MAX);
        while let Some((row, _)) = snapshot.scan(&from, &to, Direction::Forward, Limit::rows(1)).await?.pairs.first() {
            let shard = keyspace::shard_of(row)?;
            if !known.contains(&shard) {
                problems.add(format_args!("shard {shard} has rows and belongs to no container"));
            }
            from = keyspace::shard_range(shard).1;
        }
        Ok(())
    }
}

fn containers(tree: &CatalogTree) -> impl Iterator<Item = &Arc<Container>> {
    tree.databases.values().flat_map(|database| database.containers.values())
}

async fn check_container(container: &Container) -> Result<ContainerReport> {
    let mut partitions = Vec::with_capacity(container.partitions.len());
    for partition in &container.partitions {
        partitions.push((partition.range.clone(), partition.check(&container.schema).await?));
    }
    let definition = &container.definition;
    Ok(ContainerReport { id: definition.id.clone(), kind: definition.kind, partitions })
}

#[cfg(test)]
mod tests;
