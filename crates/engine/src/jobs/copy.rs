//! Database copies: runs a copy job from its snapshot to its publication.
//!
//! Guarantees: a copy is one snapshot of the whole database, whenever the process ends: after a crash it starts again
//! with a new snapshot. A copy that cannot be finished, or that is cancelled, leaves nothing behind.
//!
//! ```text
//! prepare   waits for index transformations; one snapshot of all containers     after a crash: again from here
//! copy      rows, partition by partition, ingested
//! publish   one batch: the complete database
//! ```

use std::sync::Arc;

use pleiad_model::{Error, Result};
use pleiad_partition::commit::block_on;
use pleiad_partition::copy::{Copy, CopyFigures};

use super::registry::{JobOutcome, JobStep, JobTask};
use super::repartition::{POLL_INTERVAL, RateLimiter};
use crate::catalog::{Catalog, CopyPlan, DatabaseCopy, JobError, JobOutdated};
use crate::timer::sleep;

impl Catalog {
    /// Runs the copy on a thread of its own.
    pub(crate) fn start_copy(&self, copy: Arc<DatabaseCopy>) {
        self.jobs().register(JobTask::Copy(copy.clone()));
        let catalog = self.clone();
        self.tasks().run("copy", move || block_on(catalog.run_copy(&copy)));
    }

    async fn run_copy(&self, copy: &DatabaseCopy) -> Result<()> {
        tracing::info!(job = copy.id, to = copy.to, "a database is being copied");
        let result = self.copy_all(copy.id).await;
        match &result {
            Ok(()) => tracing::info!(job = copy.id, to = copy.to, "the database is copied"),
            // It starts again with the next start of the server.
            Err(_) if self.jobs().is_closing() || self.store_and_committer().1.write_error().is_some() => {
                self.jobs().postpone(copy.id);
                return result.map_err(Error::from);
            }
            Err(error) => {
                tracing::warn!(job = copy.id, to = copy.to, %error, "the database could not be copied");
                self.abort_copy(copy.id).await?;
            }
        }
        self.jobs().end(copy.id, JobOutcome::of(result));
        Ok(())
    }

    async fn copy_all(&self, id: u64) -> Result<(), JobError> {
        self.jobs().begin_step(id, JobStep::Prepare).await?;
        let plan = self.wait_for_plan(id).await?;
        self.jobs().begin_step(id, JobStep::Copy).await?;
        self.copy_items(id, &plan).await?;
        self.jobs().begin_step(id, JobStep::Publish).await?;
        self.finish_copy(id, &plan).await
    }

    /// Waits until all index transformations are finished.
    async fn wait_for_plan(&self, id: u64) -> Result<CopyPlan, JobError> {
        loop {
            if let Some(plan) = self.plan_copy(id).await? {
                return Ok(plan);
            }
            self.jobs().report_progress(id, &CopyFigures::default()).await?;
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn copy_items(&self, id: u64, plan: &CopyPlan) -> Result<(), JobError> {
        let mut all = CopyFigures::default();
        plan.containers.iter().for_each(|(container, _)| all += CopyFigures::of(&container.partitions));
        let mut limiter = RateLimiter::new(self.limits().copy_bytes_per_s);
        let mut done = CopyFigures::default();
        for (container, map) in &plan.containers {
            for (parent, child) in container.partitions.iter().zip(map.ranges()) {
                let (store, committer) = self.store_and_committer();
                let (parents, children) = (vec![parent.clone()], vec![child.clone()]);
                let mut copy = Copy::new(id, parents, children, container.schema.clone(), store, committer);
                let mut on_progress = async |figures: &CopyFigures| -> Result<(), JobError> {
                    let mut sum = done;
                    sum += *figures;
                    (sum.items_total, sum.item_bytes_total) = (all.items_total, all.item_bytes_total);
                    // If the shards were dropped meanwhile, the rows just read are incomplete.
                    self.check_still_exists(container.rid)?;
                    self.jobs().report_progress(id, &sum).await?;
                    limiter.wait_until_due(sum.bytes).await;
                    Ok(())
                };
                copy.duplicate(&plan.snapshot, &mut on_progress).await?;
                done += copy.figures();
            }
            self.check_still_exists(container.rid)?;
        }
        Ok(())
    }

    fn check_still_exists(&self, container: pleiad_model::resource_id::ContainerRid) -> Result<(), JobError> {
        match self.with_tree(|tree| tree.container_by_rid(container).is_some()) {
            true => Ok(()),
            false => Err(JobOutdated::SourceDeleted.into()),
        }
    }
}

#[cfg(test)]
mod tests;
