//! Repartitioning in the catalog: begins a split or merge, records its copy, hands over to the children, or aborts it.
//!
//! Invariant: a range is in one job at most; ids, prefixes and shards are assigned once. The new map, the children's
//! states and the end of the job become durable in one batch, and the writers that wait at the fence continue with
//! the new map.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_model::partition_map::ancestry;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Fact, Kind, Result};
use pleiad_partition::Partition;
use pleiad_partition::copy::{Copy, CopyFigures};
use pleiad_partition::shard_state::ShardState;
use pleiad_storage::{Batch, keyspace};

use super::job::{JobKind, Reason, RepartitionJob};
use super::job_error::{JobError, JobOutdated};
use super::publish::CatalogChange;
use super::tree::{CatalogTree, Container};
use super::{Catalog, rows};

/// A range prefix has 20 bits of a docnum.
const PREFIX_MAX: u32 = (1 << 20) - 1;

/// A requested split or merge: the parents, and the EPK ranges of the children.
pub(crate) struct RepartitionRequest {
    pub kind: JobKind,
    pub parents: Vec<u32>,
    /// The EPK ranges of the children, in order.
    pub keys: Vec<EpkRange>,
    pub reason: Reason,
}

impl RepartitionRequest {
    pub fn split(parent: &PartitionKeyRange, at: EffectiveKey, reason: Reason) -> Result<RepartitionRequest> {
        if at <= parent.keys.min || at >= parent.keys.max {
            return Err(Error::invalid(format!("{at} does not lie inside partition key range {}.", parent.id)));
        }
        let EpkRange { min, max } = parent.keys.clone();
        let keys = vec![EpkRange { min, max: at.clone() }, EpkRange { min: at, max }];
        Ok(RepartitionRequest { kind: JobKind::Split, parents: vec![parent.id], keys, reason })
    }

    pub fn merge(parents: &[&PartitionKeyRange]) -> Result<RepartitionRequest> {
        let ([first, .., last], ids) = (parents, parents.iter().map(|range| range.id).collect()) else {
            return Err(Error::invalid("A merge takes two partition key ranges or more."));
        };
        let keys = vec![EpkRange { min: first.keys.min.clone(), max: last.keys.max.clone() }];
        Ok(RepartitionRequest { kind: JobKind::Merge, parents: ids, keys, reason: Reason::Request })
    }
}

/// The result of a handover.
pub(crate) struct HandoverResult {
    /// How long writers waited at the fence.
    pub pause: Duration,
}

impl Catalog {
    pub(crate) async fn begin_job(
        &self,
        container: ContainerRid,
        request: RepartitionRequest,
    ) -> Result<Arc<RepartitionJob>> {
        let mut change = self.begin().await;
        let job = change.new_job(container, request, self.env.now_ms())?;
        rows::put_job(&mut change.batch, &job);
        change.tree.jobs.insert(job.id, job.clone());
        change.job = Some(job.clone());
        self.publish(change).await?;
        Ok(job)
    }

    /// Records that the children hold a copy; `states` has their state rows.
    pub(crate) async fn mark_job_copied(
        &self,
        job: &RepartitionJob,
        schema_version: u64,
        mut states: Batch,
    ) -> Result<(), JobError> {
        let mut change = self.begin().await;
        if !change.tree.jobs.contains_key(&job.id) {
            return Err(JobOutdated::ContainerChanged.into());
        }
        let job = RepartitionJob { copied_under: Some(schema_version), ..job.clone() };
        change.batch.append(&mut states);
        rows::put_job(&mut change.batch, &job);
        change.tree.jobs.insert(job.id, Arc::new(job));
        Ok(self.publish(change).await?)
    }

    /// Fences the writers, applies the last changes and publishes the new map. `at_stage` is called after the fence
    /// is raised, and again before the publication; it may block.
    pub(crate) async fn hand_over(
        &self,
        job: &RepartitionJob,
        parents: &[Arc<Partition>],
        copy: &mut Copy,
        at_stage: impl AsyncFn(HandoverStage) -> Result<(), JobError>,
        check_container: impl Fn(&Container) -> Result<(), JobError>,
    ) -> Result<HandoverResult, JobError> {
        // The catalog lock is taken first, so that writers at the fence never wait for another catalog change.
        let mut change = self.begin().await;
        let container = change.tree.container_by_rid(job.container).cloned().ok_or(JobOutdated::ContainerChanged)?;
        check_container(&container)?;
        if !change.tree.jobs.contains_key(&job.id) {
            return Err(JobOutdated::ContainerChanged.into());
        }
        let since = Instant::now();
        parents.iter().for_each(|parent| parent.fence());
        let result = match self.hand_over_fenced(job, &mut change, &container, copy, at_stage).await {
            Ok(()) => self.publish(change).await.map_err(JobError::from),
            Err(error) => Err(error),
        };
        // If the catalog lock is still held, the fence is lifted before the lock is released: the next change finds no
        // fence.
        if result.is_err() {
            parents.iter().for_each(|parent| parent.lift_fence());
        }
        result.map(|()| HandoverResult { pause: since.elapsed() })
    }

    async fn hand_over_fenced(
        &self,
        job: &RepartitionJob,
        change: &mut CatalogChange,
        container: &Container,
        copy: &mut Copy,
        at_stage: impl AsyncFn(HandoverStage) -> Result<(), JobError>,
    ) -> Result<(), JobError> {
        at_stage(HandoverStage::Fenced).await?;
        self.committer.commit(Batch::default()).await?;
        let mut last = copy.catch_up(&mut async |_: &CopyFigures| Ok::<_, Error>(())).await?;
        at_stage(HandoverStage::Ready).await?;
        change.batch.append(&mut last.batch);
        let states = copy.initial_states();
        for (child, state) in job.children.iter().zip(&states) {
            change.batch.put(keyspace::state(child.shard), state.encode());
        }
        let next = self.repartitioned(container, job, &states)?;
        rows::put_container(&mut change.batch, &next);
        for range in container.map.ranges().iter().filter(|range| job.parents.contains(&range.id)) {
            rows::put_dropped_shard(&mut change.batch, range.shard);
        }
        change.remove_job(job.id);
        let mut owner = change.owner(job.container.database)?;
        owner.put_container(Arc::new(next));
        change.tree.put_database(owner);
        Ok(())
    }

    /// The container with the new map. Clients see the same container as before, etag included.
    fn repartitioned(&self, old: &Container, job: &RepartitionJob, states: &[ShardState]) -> Result<Container> {
        let map = old.map.replaced(&job.parents, &job.children)?;
        let partition = |range: &PartitionKeyRange| {
            let new = job.children.iter().position(|child| child.id == range.id).and_then(|at| states.get(at));
            match new {
                Some(state) => {
                    let (store, committer) = (self.store.clone(), self.committer.clone());
                    let child = Partition::with_state(range.clone(), store, committer, state.clone());
                    child.inherit_tombstones(old.partitions.iter().map(|parent| &**parent));
                    Some(Arc::new(child))
                }
                None => old.partitions.iter().find(|partition| partition.range.id == range.id).cloned(),
            }
        };
        let partitions: Option<Vec<_>> = map.ranges().iter().map(partition).collect();
        let partitions = partitions.ok_or_else(|| Error::internal("a range of the new map has no partition"))?;
        Ok(Container { map, partitions, ..old.clone() })
    }

    /// The parents stay. The children's shards are to be dropped.
    pub(crate) async fn abort_job(&self, id: u64) -> Result<()> {
        let mut change = self.begin().await;
        let Some(job) = change.remove_job(id) else { return Ok(()) };
        job.children.iter().for_each(|child| rows::put_dropped_shard(&mut change.batch, child.shard));
        self.publish(change).await
    }
}

/// Where a handover can be paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandoverStage {
    Fenced,
    Ready,
}

impl CatalogChange {
    fn new_job(
        &mut self,
        container: ContainerRid,
        request: RepartitionRequest,
        started_ms: u64,
    ) -> Result<Arc<RepartitionJob>> {
        let current = self.tree.container_by_rid(container).cloned();
        let at = current.ok_or(Fact::OwnerMissing)?;
        let (parents, first) = {
            let parents = at.map.neighbors(&request.parents)?;
            check_not_in_a_job(&self.tree, container, &request.parents)?;
            (ancestry(&parents), next_range_id(&self.tree, &at))
        };
        if first > PREFIX_MAX - 1 {
            return Err(Error::new(Kind::QuotaExceeded, "The container has used up its partition key range ids."));
        }
        let mut children = Vec::with_capacity(request.keys.len());
        for (id, keys) in (first..).zip(request.keys) {
            self.counters.shard += 1;
            let (shard, parents) = (self.counters.shard, parents.clone());
            children.push(PartitionKeyRange { id, shard, prefix: id, keys, parents, since: 0 });
        }
        let (id, kind, reason, parents) = (self.version.number, request.kind, request.reason, request.parents);
        Ok(Arc::new(RepartitionJob { id, kind, container, parents, children, copied_under: None, reason, started_ms }))
    }

    pub(super) fn remove_job(&mut self, id: u64) -> Option<Arc<RepartitionJob>> {
        rows::delete_job(&mut self.batch, id);
        self.tree.jobs.remove(&id)
    }

    /// Deletes the jobs of a container that is deleted.
    pub(super) fn remove_jobs_of(&mut self, container: ContainerRid) {
        let jobs: Vec<u64> = self.tree.jobs_of(container).map(|job| job.id).collect();
        for id in jobs {
            let children = self.remove_job(id).map(|job| job.children.clone()).unwrap_or_default();
            children.iter().for_each(|child| rows::put_dropped_shard(&mut self.batch, child.shard));
        }
    }
}

/// The next unused range id; the children of running jobs count as used.
fn next_range_id(tree: &CatalogTree, container: &Container) -> u32 {
    let planned = tree.jobs_of(container.rid).flat_map(|job| &job.children).map(|child| child.id + 1);
    planned.max().unwrap_or(0).max(container.map.next_id())
}

fn check_not_in_a_job(tree: &CatalogTree, container: ContainerRid, ranges: &[u32]) -> Result<()> {
    let busy = tree.jobs_of(container).find(|job| job.parents.iter().any(|id| ranges.contains(id)));
    match busy {
        None => Ok(()),
        Some(job) => Err(Error::new(
            Kind::Locked,
            format!(
                "Job {} is at work on partition key range {:?} already. Wait until it has ended.",
                job.id, job.parents
            ),
        )),
    }
}
