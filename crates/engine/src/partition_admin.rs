//! Partition administration: reports the size of each partition, starts splits and merges, and controls their jobs.
//!
//! Guarantees: a job that has started continues by itself, also after a restart. The NoSQL protocol offers none of
//! this; it is for operators of the server, and for tests.

use std::sync::Arc;

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Partition;

use crate::Engine;
use crate::authorize::{Action, Admitted, WholeAccount};
use crate::catalog::{Container, Database, Reason, RepartitionRequest};
use crate::jobs::{JobReport, JobStep, split_point};

/// The current state of one partition.
#[derive(Clone, Debug)]
pub struct PartitionReport {
    pub range: PartitionKeyRange,
    pub lsn: u64,
    pub items: u64,
    pub item_bytes: u64,
    pub item_bytes_max: u64,
    /// It exceeds its size limit and cannot be split.
    pub is_unsplittable: bool,
    /// The RU/s that it may provide.
    pub share_ru: f64,
    /// The RUs of the busiest second of this minute and the one before, as a fraction of `share_ru`.
    pub normalized_use: f64,
    /// The split or merge that will replace it.
    pub job: Option<JobReport>,
}

impl Engine {
    /// In the order of the hash space.
    pub fn partitions(&self, at: &Admitted) -> Result<Vec<PartitionReport>> {
        at.check(Action::Monitor)?;
        let container = at.container();
        let item_bytes_max = self.catalog.limits().partition_bytes_max;
        let (minute, jobs) = (self.now_ms() / 60_000, self.catalog.jobs().reports());
        let replaces = |job: &&JobReport, id: u32| {
            let work = job.task.repartition().filter(|_| job.outcome.is_none());
            work.is_some_and(|work| work.container == container.rid && work.parents.contains(&id))
        };
        let report = |partition: &Arc<Partition>| {
            let (state, usage) = (partition.shard_state(), partition.governor.usage());
            PartitionReport {
                range: partition.range.clone(),
                lsn: partition.lsn(),
                items: state.items,
                item_bytes: state.item_bytes,
                item_bytes_max,
                is_unsplittable: partition.is_unsplittable(),
                share_ru: partition.governor.share_ru(),
                normalized_use: usage.normalized(minute).max(usage.normalized(minute.saturating_sub(1))),
                job: jobs.iter().find(|job| replaces(job, partition.range.id)).cloned(),
            }
        };
        Ok(container.partitions.iter().map(report).collect())
    }

    /// Starts the split of a partition; without `range`, of the largest one. Without `split_at`, the split point is the key
    /// that halves its bytes. Returns the job's id.
    ///
    /// Takes the request by value: a job waits for the readers of the partitions that it replaces, and the caller may
    /// wait for the job.
    pub async fn split(&self, at: Admitted, range: Option<u32>, split_at: Option<EffectiveKey>) -> Result<u64> {
        at.check(Action::Administer)?;
        let container = at.container();
        if container.definition.partition_key.is_none() {
            return Err(Error::invalid("A container without a partition key is one partition for good."));
        }
        let partition = partition_to_split(container, range)?;
        let split_at = match split_at {
            Some(split_at) => split_at,
            None => split_point(container, partition, Reason::Request).await?.ok_or_else(no_split_point)?,
        };
        self.begin_job(container.rid, RepartitionRequest::split(&partition.range, split_at, Reason::Request)?).await
    }

    /// Starts the merge of adjacent partitions. Returns the job's id.
    ///
    /// Takes the request by value, as `split` does.
    pub async fn merge(&self, at: Admitted, ranges: &[u32]) -> Result<u64> {
        at.check(Action::Administer)?;
        let container = at.container();
        self.begin_job(container.rid, RepartitionRequest::merge(&container.map.neighbors(ranges)?)?).await
    }

    async fn begin_job(&self, container: ContainerRid, request: RepartitionRequest) -> Result<u64> {
        Ok(self.catalog.begin_job(container, request).await?.id)
    }

    /// Begins to copy a database. Returns the job's id.
    pub async fn copy_database(&self, from: &Admitted<Arc<Database>>, to: &str) -> Result<u64> {
        from.check(Action::Administer)?;
        self.catalog.begin_copy(&from.database().id, to).await
    }

    /// Running splits, merges and copies, and those that ended recently.
    pub fn jobs(&self, at: &Admitted<WholeAccount>) -> Result<Vec<JobReport>> {
        at.check(Action::Monitor)?;
        Ok(self.catalog.jobs().reports())
    }

    /// Pauses a job at its next chunk.
    pub fn pause_job(&self, at: &Admitted<WholeAccount>, id: u64) -> Result<()> {
        at.check(Action::Administer)?;
        self.catalog.jobs().pause(id, true)
    }

    pub fn resume_job(&self, at: &Admitted<WholeAccount>, id: u64) -> Result<()> {
        at.check(Action::Administer)?;
        self.catalog.jobs().pause(id, false)
    }

    /// Cancels a job that is not done yet, and waits for its end; what it has built so far is discarded.
    pub async fn cancel_job(&self, at: &Admitted<WholeAccount>, id: u64) -> Result<JobReport> {
        at.check(Action::Administer)?;
        self.catalog.jobs().cancel(id).await
    }

    /// Waits for the end of a job.
    pub async fn wait_for_job(&self, at: &Admitted<WholeAccount>, id: u64) -> Result<JobReport> {
        at.check(Action::Monitor)?;
        self.catalog.jobs().wait_ended(id).await
    }

    /// From now on every job pauses when it reaches this step. For tests of what happens meanwhile.
    pub fn hold_jobs_at(&self, at: &Admitted<WholeAccount>, step: JobStep) -> Result<()> {
        at.check(Action::Administer)?;
        self.catalog.jobs().hold(step);
        Ok(())
    }

    pub fn release_jobs_at(&self, at: &Admitted<WholeAccount>, step: JobStep) -> Result<()> {
        at.check(Action::Administer)?;
        self.catalog.jobs().release(step);
        Ok(())
    }

    pub fn held_steps(&self, at: &Admitted<WholeAccount>) -> Result<Vec<JobStep>> {
        at.check(Action::Monitor)?;
        Ok(self.catalog.jobs().held_steps())
    }

    /// Waits until a job is held at this step.
    pub async fn wait_until_job_held_at(&self, step: JobStep) {
        self.catalog.jobs().wait_held_at(step).await;
    }
}

fn partition_to_split(container: &Container, range: Option<u32>) -> Result<&Arc<Partition>> {
    let found = match range {
        Some(id) => container.partitions.iter().find(|partition| partition.range.id == id),
        None => container.partitions.iter().max_by_key(|partition| {
            (partition.shard_state().item_bytes, std::cmp::Reverse(partition.range.parents.len()))
        }),
    };
    let epoch = container.map.epoch;
    found.ok_or_else(|| Error::new(Kind::Moved { epoch }, "There is no such partition key range (any more)."))
}

fn no_split_point() -> Error {
    Error::invalid("The partition cannot be split: there is no place between two partition key values in it.")
}

#[cfg(test)]
mod tests;
