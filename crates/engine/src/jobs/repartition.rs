//! Splits and merges: runs a job from its preparation to the drop of the old partitions.
//!
//! Guarantees: no item is lost or duplicated, whenever the process ends; writers wait once, for milliseconds; a job
//! that cannot be finished leaves the partitions as they were. `partition::copy` copies and catches up,
//! `catalog::repartition` publishes the new map. `docs/decisions/0009-partitions-move-by-copying.md` gives the
//! reasons.
//!
//! ```text
//! prepare   waits for index transformations          a new indexing policy restarts the job here
//! copy      rows of a snapshot, ingested             after a crash: the children are dropped and copied again
//! catch-up  rounds, each shorter than the last       after a crash: repeated from the start of the change log
//! fence     writers wait; the last round             after a crash: as in catch-up; on failure: the fence is lifted
//! publish   one batch: map, states, end of the job   from here on the children own the keys
//! drop      waits for readers of the parents, then reclaims their space
//! ```

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use pleiad_model::{Error, Fact, Result};
use pleiad_partition::Partition;
use pleiad_partition::commit::block_on;
use pleiad_partition::copy::{Copy, CopyFigures};

use super::registry::{JobOutcome, JobStep, JobTask};
use crate::catalog::{Catalog, Container, HandoverStage, JobError, JobOutdated, RepartitionJob};
use crate::timer::sleep;

/// After a round with at most this many changes, the next round is the last one, behind the fence.
const LAST_ROUND_CHANGES: u64 = 256;
/// A partition whose writers are faster than the catch-up is fenced after this many rounds.
const ROUNDS_MAX: usize = 64;
/// How often a job polls for a condition that has no notification.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);

impl Catalog {
    /// Resumes all jobs after a restart. Called before any write.
    pub(crate) fn resume_jobs(&self) {
        let tree = self.tree();
        for job in tree.jobs.values() {
            if job.copied_under.is_some()
                && let Some(container) = tree.container_by_rid(job.container)
            {
                parents(container, job).iter().for_each(|parent| parent.resume_log(job.id));
            }
            self.start_job(job.clone());
        }
        tree.copies.values().for_each(|copy| self.start_copy(copy.clone()));
        let containers = tree.databases.values().flat_map(|database| database.containers.values());
        containers.for_each(|container| self.split_if_needed(container.rid));
    }

    /// Runs the job on a thread of its own.
    pub(crate) fn start_job(&self, job: Arc<RepartitionJob>) {
        self.jobs().register(JobTask::Repartition(job.clone()));
        let catalog = self.clone();
        self.tasks().run("repartition", move || block_on(catalog.run_job(&job)));
    }

    async fn run_job(&self, job: &RepartitionJob) -> Result<()> {
        tracing::info!(job = job.id, kind = %job.kind, reason = %job.reason, ranges = ?job.parents, "repartitioning begins");
        let mut result = self.attempt(job.id).await;
        while matches!(result, Err(JobError::Outdated(_))) && self.tree().jobs.contains_key(&job.id) {
            // The indexing policy has changed; reindexed rows are not in the change log, so the copy starts again.
            result = self.attempt(job.id).await;
        }
        match &result {
            Ok(()) => tracing::info!(job = job.id, "repartitioning is done"),
            // It resumes at the next start.
            Err(_) if self.jobs().is_closing() || self.store_and_committer().1.write_error().is_some() => {
                self.jobs().postpone(job.id);
                return result.map_err(Error::from);
            }
            Err(error) => {
                tracing::warn!(job = job.id, %error, "repartitioning is aborted; the partitions stay as they were");
                self.abort_repartition(job).await?;
            }
        }
        let is_done = result.is_ok();
        self.jobs().end(job.id, JobOutcome::of(result));
        if is_done {
            self.split_if_needed(job.container);
        }
        Ok(())
    }

    async fn attempt(&self, id: u64) -> Result<(), JobError> {
        let job = self.tree().jobs.get(&id).cloned().ok_or(JobOutdated::ContainerDeleted)?;
        self.jobs().begin_step(id, JobStep::Prepare).await?;
        let container = self.wait_for_index_transformation(&job).await?;
        let parents = parents(&container, &job);
        let (store, committer) = self.store_and_committer();
        let mut copy = Copy::new(id, parents.clone(), job.children.clone(), container.schema.clone(), store, committer);
        let mut limiter = RateLimiter::new(self.limits().copy_bytes_per_s);
        let mut on_progress = async |figures: &CopyFigures| -> Result<(), JobError> {
            self.check_still_valid(&job, container.schema.version)?;
            self.jobs().report_progress(id, figures).await?;
            limiter.wait_until_due(figures.bytes).await;
            Ok(())
        };
        if job.copied_under == Some(container.schema.version) {
            copy.resume().await?;
        } else {
            self.jobs().begin_step(id, JobStep::Copy).await?;
            let states = copy.run(&mut on_progress).await?;
            self.mark_job_copied(&job, container.schema.version, states).await?;
        }
        self.jobs().begin_step(id, JobStep::CatchUp).await?;
        self.catch_up(&mut copy, &mut on_progress).await?;
        self.hand_over_to_children(&job, &parents, &container, &mut copy).await?;
        let old_parents: Vec<Weak<Partition>> = parents.iter().map(Arc::downgrade).collect();
        let shards: Vec<u64> = parents.iter().map(|parent| parent.range.shard).collect();
        drop((parents, container, copy));
        // The children own the keys now: a failure from here on only delays the drop until the next start.
        if let Err(error) = self.drop_parents(id, &old_parents, &shards).await {
            tracing::warn!(job = id, %error, "the space of former partitions is reclaimed at the next start");
        }
        Ok(())
    }

    /// Repeats catch-up rounds until few changes are left.
    async fn catch_up(
        &self,
        copy: &mut Copy,
        on_progress: &mut impl AsyncFnMut(&CopyFigures) -> Result<(), JobError>,
    ) -> Result<(), JobError> {
        for _ in 0..ROUNDS_MAX {
            let round = copy.catch_up(on_progress).await?;
            self.store_and_committer().1.commit(round.batch).await?;
            if round.changes <= LAST_ROUND_CHANGES {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn hand_over_to_children(
        &self,
        job: &RepartitionJob,
        parents: &[Arc<Partition>],
        container: &Container,
        copy: &mut Copy,
    ) -> Result<(), JobError> {
        let at_stage = async |stage| match stage {
            HandoverStage::Fenced => self.jobs().begin_step(job.id, JobStep::Fence).await,
            HandoverStage::Ready => self.jobs().begin_step(job.id, JobStep::Publish).await,
        };
        let handover = self
            .hand_over(job, parents, copy, at_stage, |now| check_same_schema(now, container.schema.version))
            .await?;
        let ms = u64::try_from(handover.pause.as_millis()).unwrap_or(u64::MAX);
        self.jobs().set_fence_ms(job.id, ms);
        tracing::info!(job = job.id, pause_ms = ms, "the new partitions serve requests");
        Ok(())
    }

    /// Waits for readers that still hold an old tree, then drops the parents' shards.
    async fn drop_parents(&self, id: u64, parents: &[Weak<Partition>], shards: &[u64]) -> Result<(), JobError> {
        self.jobs().begin_step(id, JobStep::Drop).await?;
        while parents.iter().any(|parent| parent.strong_count() > 0) {
            if self.jobs().is_closing() {
                return Err(Fact::Stopping.into());
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(self.shard_dropper().drop_shards(shards).await?)
    }

    /// Waits until the index transformation is finished.
    async fn wait_for_index_transformation(&self, job: &RepartitionJob) -> Result<Arc<Container>, JobError> {
        loop {
            let container =
                self.tree().container_by_rid(job.container).cloned().ok_or(JobOutdated::ContainerDeleted)?;
            if container.index_transformation.is_none() {
                return Ok(container);
            }
            if self.jobs().is_closing() {
                return Err(Fact::Stopping.into());
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn check_still_valid(&self, job: &RepartitionJob, schema_version: u64) -> Result<(), JobError> {
        self.with_tree(|tree| match (tree.container_by_rid(job.container), tree.jobs.contains_key(&job.id)) {
            (Some(container), true) => check_same_schema(container, schema_version),
            _ => Err(JobOutdated::ContainerDeleted.into()),
        })
    }

    /// Also for a deleted container, whose deletion has removed the job's row.
    async fn abort_repartition(&self, job: &RepartitionJob) -> Result<()> {
        // The change log ends after the job's row is deleted: a job that resumes after a crash needs the log.
        self.abort_job(job.id).await?;
        if let Some(container) = self.tree().container_by_rid(job.container) {
            let parents = parents(container, job);
            parents.iter().try_for_each(|parent| parent.end_log(job.id))?;
            parents.iter().for_each(|parent| parent.reset_split_request());
        }
        let shards: Vec<u64> = job.children.iter().map(|child| child.shard).collect();
        self.shard_dropper().drop_shards(&shards).await
    }
}

fn parents(container: &Container, job: &RepartitionJob) -> Vec<Arc<Partition>> {
    container.partitions.iter().filter(|partition| job.parents.contains(&partition.range.id)).cloned().collect()
}

fn check_same_schema(container: &Container, version: u64) -> Result<(), JobError> {
    match container.index_transformation.is_none() && container.schema.version == version {
        true => Ok(()),
        false => Err(JobOutdated::PolicyReplaced.into()),
    }
}

/// Limits the copy to the configured rate.
pub(super) struct RateLimiter {
    bytes_per_s: f64,
    began: Instant,
}

impl RateLimiter {
    pub fn new(bytes_per_s: u64) -> RateLimiter {
        RateLimiter { bytes_per_s: bytes_per_s.max(1) as f64, began: Instant::now() }
    }

    /// Waits until this many bytes are due, a second at most, so that a job reacts to pause and cancel.
    pub async fn wait_until_due(&mut self, bytes: u64) {
        let due = Duration::from_secs_f64((bytes as f64 / self.bytes_per_s).min(1e9));
        match due.checked_sub(self.began.elapsed()) {
            Some(early) => sleep(early.min(Duration::from_secs(1))).await,
            None => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests;
