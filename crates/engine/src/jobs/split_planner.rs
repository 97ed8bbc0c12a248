//! Split planning: decides which partitions of a container to split, and where.
//!
//! Guarantees: a partition that exceeds its size is split. A container whose partitions cannot provide its throughput
//! gets as many more as it needs, and no more. Splits start automatically, merges never. A partition that cannot be
//! split is logged once.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_model::partition_key::{EffectiveKey, midpoint};
use pleiad_model::resource_id::ContainerRid;
use pleiad_partition::Partition;
use pleiad_partition::commit::block_on;

use crate::catalog::{Catalog, CatalogTree, Container, OfferOwner, Reason, RepartitionRequest};
use crate::{PartitionLimits, throughput};

/// Concurrent jobs of one container: they share the disk with requests.
const JOBS_MAX: usize = 4;
/// A partition with fewer items is nearly empty: their keys do not predict the keys of later items.
const NEARLY_EMPTY_ITEMS: u64 = 1000;

impl Catalog {
    /// Starts splits, on a thread of its own, if a container needs more partitions.
    pub(crate) fn split_if_needed(&self, container: ContainerRid) {
        let wanted = self.with_tree(|tree| !partitions_to_split(tree, container, self.limits()).is_empty());
        if wanted && !self.jobs().is_closing() {
            let catalog = self.clone();
            self.tasks().run("grow", move || block_on(catalog.start_splits(container)));
        }
    }

    async fn start_splits(&self, rid: ContainerRid) -> Result<()> {
        let _lock = self.jobs().split_planning.lock().await;
        let tree = self.tree();
        let Some(container) = tree.container_by_rid(rid) else { return Ok(()) };
        for (partition, reason) in partitions_to_split(&tree, rid, self.limits()) {
            if let Err(error) = self.start_split(container, &partition, reason).await {
                partition.reset_split_request();
                return Err(error);
            }
        }
        Ok(())
    }

    async fn start_split(&self, container: &Container, partition: &Partition, reason: Reason) -> Result<()> {
        match split_point(container, partition, reason).await? {
            Some(at) => {
                drop(self.begin_job(container.rid, RepartitionRequest::split(&partition.range, at, reason)?).await?);
            }
            None => report_unsplittable(container, partition, reason),
        }
        Ok(())
    }
}

/// Which partitions to split now, and why: first those that exceed their size, then the largest, as many as are
/// missing.
fn partitions_to_split(
    tree: &CatalogTree,
    rid: ContainerRid,
    limits: &PartitionLimits,
) -> Vec<(Arc<Partition>, Reason)> {
    let Some(container) = tree.container_by_rid(rid).filter(|at| at.definition.partition_key.is_some()) else {
        return Vec::new();
    };
    let (jobs, mut planned) = (tree.jobs_of(rid).count(), container.partitions.len());
    for job in tree.jobs_of(rid) {
        planned = (planned + job.children.len()).saturating_sub(job.parents.len());
    }
    let is_busy = |id: u32| tree.jobs_of(rid).any(|job| job.parents.contains(&id));
    let mut free: Vec<&Arc<Partition>> = container
        .partitions
        .iter()
        .filter(|partition| !is_busy(partition.range.id) && !partition.is_unsplittable())
        .collect();
    free.sort_by_key(|partition| {
        (std::cmp::Reverse(partition.shard_state().item_bytes), partition.range.parents.len())
    });
    let is_full = |partition: &Partition| partition.shard_state().item_bytes > limits.partition_bytes_max;
    let full = free.iter().filter(|partition| is_full(partition)).count();
    let needed = tree.offer(OfferOwner::Container(rid)).map_or(1, |offer| {
        usize::try_from(throughput::partitions_needed(offer.throughput.ceiling_ru(), limits.partition_ru_max))
            .unwrap_or(usize::MAX)
    });
    let wanted = full.max(needed.saturating_sub(planned)).min(JOBS_MAX.saturating_sub(jobs));
    let reason = |partition: &Partition| if is_full(partition) { Reason::Storage } else { Reason::Throughput };
    free.into_iter().take(wanted).map(|partition| (partition.clone(), reason(partition))).collect()
}

/// The key that halves the bytes; in a nearly empty partition, the midpoint of the range.
pub(crate) async fn split_point(
    container: &Container,
    partition: &Partition,
    reason: Reason,
) -> Result<Option<EffectiveKey>> {
    let Some(definition) = &container.schema.key else { return Ok(None) };
    let range_midpoint = || midpoint(definition, &partition.range.keys);
    let inside = |at: &EffectiveKey| *at > partition.range.keys.min;
    match reason {
        Reason::Storage => Ok(partition.split_point().await?.filter(inside)),
        _ if partition.shard_state().items < NEARLY_EMPTY_ITEMS => Ok(range_midpoint()),
        _ => Ok(partition.split_point().await?.filter(inside).or_else(range_midpoint)),
    }
}

fn report_unsplittable(container: &Container, partition: &Partition, reason: Reason) {
    partition.set_unsplittable();
    tracing::warn!(
        database = container.database, container = container.definition.id, range = partition.range.id, %reason,
        "a partition cannot be split: all its items have one partition key value"
    );
}

#[cfg(test)]
mod tests;
