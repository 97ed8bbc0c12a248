//! More partitions where there are too few.
//!
//! Promise: a partition that holds too much is split; a container whose throughput its partitions cannot give gets as many more
//! as it takes, and no more. Nobody asks for it, and nothing is ever merged by itself. What cannot be split is said once.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_model::partition_key::{EffectiveKey, midpoint};
use pleiad_model::resource_id::ContainerRid;
use pleiad_partition::Partition;
use pleiad_partition::commit::block_on;

use crate::catalog::{Catalog, CatalogTree, Container, OfferOwner, Reason, RepartitionRequest};
use crate::{PartitionLimits, throughput};

/// Jobs of one container at a time: the disk is shared with whoever waits for an answer.
const JOBS_AT_ONCE: usize = 4;
/// With fewer items than this a partition counts as nearly empty: where they lie says nothing about where the next will.
const ITEMS_FEW: u64 = 1000;

impl Catalog {
    /// Looks, on a thread of its own, whether a container needs more partitions.
    pub(crate) fn consider(&self, container: ContainerRid) {
        let wanted = self.with_tree(|tree| !splits(tree, container, self.limits()).is_empty());
        if wanted && !self.jobs().is_closing() {
            let catalog = self.clone();
            self.chores().run("grow", move || block_on(catalog.grow(container)));
        }
    }

    async fn grow(&self, rid: ContainerRid) -> Result<()> {
        let _alone = self.jobs().growth.lock().await;
        let tree = self.tree();
        let Some(container) = tree.container_by_rid(rid) else { return Ok(()) };
        for (partition, reason) in splits(&tree, rid, self.limits()) {
            match split_point(container, &partition, reason).await? {
                Some(at) => drop(self.begin_job(rid, RepartitionRequest::split(&partition.range, at, reason)?).await?),
                None => says_no(container, &partition, reason),
            }
        }
        Ok(())
    }
}

/// Which partitions to split now, and why: first those that hold too much, then the largest, as many as are missing.
fn splits(tree: &CatalogTree, rid: ContainerRid, limits: &PartitionLimits) -> Vec<(Arc<Partition>, Reason)> {
    let Some(container) = tree.container_by_rid(rid).filter(|at| at.definition.partition_key.is_some()) else {
        return Vec::new();
    };
    let (jobs, mut coming) = (tree.jobs_of(rid).count(), container.partitions.len());
    for job in tree.jobs_of(rid) {
        coming = (coming + job.children.len()).saturating_sub(job.parents.len());
    }
    let is_busy = |id: u32| tree.jobs_of(rid).any(|job| job.parents.contains(&id));
    let mut free: Vec<&Arc<Partition>> =
        container.partitions.iter().filter(|partition| !is_busy(partition.range.id) && !partition.is_stuck()).collect();
    free.sort_by_key(|partition| (std::cmp::Reverse(partition.usage().item_bytes), partition.range.parents.len()));
    let is_full = |partition: &Partition| partition.usage().item_bytes > limits.partition_bytes_max;
    let full = free.iter().filter(|partition| is_full(partition)).count();
    let needed = tree.offer(OfferOwner::Container(rid)).map_or(1, |offer| {
        usize::try_from(throughput::partitions_needed(offer.throughput.ceiling_ru(), limits.partition_ru_max))
            .unwrap_or(usize::MAX)
    });
    let wanted = full.max(needed.saturating_sub(coming)).min(JOBS_AT_ONCE.saturating_sub(jobs));
    let reason = |partition: &Partition| if is_full(partition) { Reason::Storage } else { Reason::Throughput };
    free.into_iter().take(wanted).map(|partition| (partition.clone(), reason(partition))).collect()
}

/// Where the bytes halve; in a nearly empty partition, where the range does.
pub(crate) async fn split_point(
    container: &Container,
    partition: &Partition,
    reason: Reason,
) -> Result<Option<EffectiveKey>> {
    let Some(definition) = &container.schema.key else { return Ok(None) };
    let halves_range = || midpoint(definition, &partition.range.keys);
    let inside = |at: &EffectiveKey| *at > partition.range.keys.min;
    match reason {
        Reason::Storage => Ok(partition.middle().await?.filter(inside)),
        _ if partition.usage().items < ITEMS_FEW => Ok(halves_range()),
        _ => Ok(partition.middle().await?.filter(inside).or_else(halves_range)),
    }
}

fn says_no(container: &Container, partition: &Partition, reason: Reason) {
    partition.set_stuck();
    tracing::warn!(
        database = container.database, container = container.definition.id, range = partition.range.id, %reason,
        "a partition cannot be split: all its items have one partition key value"
    );
}

#[cfg(test)]
mod tests;
