//! The job registry: running splits, merges and database copies, their progress, and the steps they are held at.
//!
//! Guarantees: every job stops at a held step until the step is released. A paused job stops at its next chunk, and a
//! cancelled job ends there. Shutdown does not wait for jobs to finish. Nothing here outlives the process: what a job
//! needs to resume is in the catalog.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use pleiad_model::{Error, Fact, Result};
use pleiad_partition::copy::CopyFigures;
use tokio::sync::watch;

use crate::catalog::{DatabaseCopy, JobError, RepartitionJob};

/// Ended jobs that are still reported.
const ENDED_MAX: usize = 100;

/// The steps of a job, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobStep {
    /// Waits until the container's index transformation is finished.
    Prepare,
    Copy,
    CatchUp,
    /// Writers wait.
    Fence,
    /// Everything is ready for the new map; writers still wait.
    Publish,
    /// Waits for the readers of the old partitions, then drops their shards.
    Drop,
}

const STEPS: [(JobStep, &str); 6] = [
    (JobStep::Prepare, "prepare"),
    (JobStep::Copy, "copy"),
    (JobStep::CatchUp, "catch-up"),
    (JobStep::Fence, "fence"),
    (JobStep::Publish, "publish"),
    (JobStep::Drop, "drop"),
];

impl JobStep {
    pub fn parse(name: &str) -> Option<JobStep> {
        STEPS.iter().find(|(_, known)| *known == name).map(|(step, _)| *step)
    }
}

impl fmt::Display for JobStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STEPS.iter().find(|(step, _)| step == self).map_or("", |(_, name)| name))
    }
}

/// The task of a job.
#[derive(Clone, Debug)]
pub enum JobTask {
    /// A split or merge.
    Repartition(Arc<RepartitionJob>),
    Copy(Arc<DatabaseCopy>),
}

impl JobTask {
    pub fn id(&self) -> u64 {
        match self {
            JobTask::Repartition(job) => job.id,
            JobTask::Copy(copy) => copy.id,
        }
    }

    pub fn repartition(&self) -> Option<&RepartitionJob> {
        match self {
            JobTask::Repartition(job) => Some(job),
            JobTask::Copy(_) => None,
        }
    }
}

/// The state of a job, as operators see it.
#[derive(Clone, Debug)]
pub struct JobReport {
    pub task: JobTask,
    pub step: JobStep,
    pub figures: CopyFigures,
    pub paused: bool,
    /// It ends at its next check.
    pub cancelled: bool,
    /// It waits: its step is held, or the job is paused.
    pub held: bool,
    /// It has stopped, and resumes at the next start.
    pub postponed: bool,
    /// How long writers waited at the fence, once they have.
    pub fence_ms: Option<u64>,
    pub outcome: Option<JobOutcome>,
}

impl JobReport {
    pub fn percent(&self) -> u64 {
        match self.outcome {
            Some(JobOutcome::Done) => 100,
            _ => self.figures.percent(),
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum JobOutcome {
    Done,
    Failed(Error),
    /// An operator cancelled it.
    Cancelled,
}

impl JobOutcome {
    pub(super) fn of(ended: Result<(), JobError>) -> JobOutcome {
        match ended {
            Ok(()) => JobOutcome::Done,
            Err(JobError::Cancelled) => JobOutcome::Cancelled,
            Err(error) => JobOutcome::Failed(error.into()),
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct JobRegistry {
    state: Arc<watch::Sender<RegistryState>>,
    /// Serialises split planning.
    pub(super) split_planning: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct RegistryState {
    running: BTreeMap<u64, JobReport>,
    ended: VecDeque<JobReport>,
    held_steps: BTreeSet<JobStep>,
    closing: bool,
}

impl JobRegistry {
    pub fn reports(&self) -> Vec<JobReport> {
        let state = self.state.borrow();
        state.ended.iter().chain(state.running.values()).cloned().collect()
    }

    pub fn hold(&self, step: JobStep) {
        self.state.send_modify(|state| {
            state.held_steps.insert(step);
        });
    }

    pub fn release(&self, step: JobStep) {
        self.state.send_modify(|state| {
            state.held_steps.remove(&step);
        });
    }

    /// The steps that jobs are held at.
    pub fn held_steps(&self) -> Vec<JobStep> {
        self.state.borrow().held_steps.iter().copied().collect()
    }

    /// Waits until a job is held at that step. Also returns at shutdown.
    pub async fn wait_held_at(&self, step: JobStep) {
        let is_held = |state: &RegistryState| {
            state.closing || state.running.values().any(|report| report.held && report.step == step)
        };
        let _ = self.state.subscribe().wait_for(is_held).await; // cannot fail: self holds the sender
    }

    /// Waits for the end of a job and returns its report. A job that this process will not finish is unavailable.
    pub async fn wait_ended(&self, id: u64) -> Result<JobReport> {
        let has_stopped =
            |state: &RegistryState| state.closing || state.running.get(&id).is_none_or(|report| report.postponed);
        let _ = self.state.subscribe().wait_for(has_stopped).await;
        let state = self.state.borrow();
        let ended = state.ended.iter().find(|report| report.task.id() == id).cloned();
        ended.ok_or_else(|| if state.running.contains_key(&id) { Fact::Stopping.into() } else { unknown(id) })
    }

    pub fn pause(&self, id: u64, paused: bool) -> Result<()> {
        self.update_running(id, |report| report.paused = paused)
    }

    /// Cancels a job and waits until it has ended, cancelled or not.
    pub async fn cancel(&self, id: u64) -> Result<JobReport> {
        self.update_running(id, |report| report.cancelled = true)?;
        self.wait_ended(id).await
    }

    fn update_running(&self, id: u64, change: impl FnOnce(&mut JobReport)) -> Result<()> {
        let is_known = self.state.borrow().running.contains_key(&id);
        if !is_known {
            return Err(unknown(id));
        }
        self.update(id, change);
        Ok(())
    }

    /// Shutdown: releases all jobs, which then stop.
    pub fn close(&self) {
        self.state.send_modify(|state| state.closing = true);
    }

    pub(super) fn register(&self, task: JobTask) {
        let (paused, cancelled, held, postponed) = Default::default();
        let (step, figures, fence_ms, outcome) = (JobStep::Prepare, CopyFigures::default(), None, None);
        let report = JobReport { task, step, figures, paused, cancelled, held, postponed, fence_ms, outcome };
        self.state.send_modify(|state| drop(state.running.insert(report.task.id(), report)));
    }

    /// Begins a step, and waits while it is held.
    pub(super) async fn begin_step(&self, id: u64, step: JobStep) -> Result<(), JobError> {
        self.update(id, |report| report.step = step);
        self.wait_while(id, |state, _| state.held_steps.contains(&step)).await
    }

    /// Records the progress of a job, and waits while it is paused.
    pub(super) async fn report_progress(&self, id: u64, figures: &CopyFigures) -> Result<(), JobError> {
        // Figures alone wake no waiter.
        self.state.send_if_modified(|state| {
            state.running.entry(id).and_modify(|report| report.figures = *figures);
            false
        });
        self.wait_while(id, |_, report| report.paused).await
    }

    pub(super) fn set_fence_ms(&self, id: u64, ms: u64) {
        self.update(id, |report| report.fence_ms = Some(ms));
    }

    pub(super) fn end(&self, id: u64, outcome: JobOutcome) {
        self.state.send_modify(|state| {
            let Some(report) = state.running.remove(&id) else { return };
            state.ended.push_back(JobReport { outcome: Some(outcome), ..report });
            state.ended.drain(..state.ended.len().saturating_sub(ENDED_MAX));
        });
    }

    /// The job resumes at the next start; waiters return now.
    pub(super) fn postpone(&self, id: u64) {
        self.update(id, |report| report.postponed = true);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.borrow().closing
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut JobReport)) {
        self.state.send_modify(|state| {
            if let Some(report) = state.running.get_mut(&id) {
                change(report);
            }
        });
    }

    async fn wait_while(
        &self,
        id: u64,
        must_wait: impl Fn(&RegistryState, &JobReport) -> bool,
    ) -> Result<(), JobError> {
        let is_cancelled = |state: &RegistryState| state.running.get(&id).is_some_and(|report| report.cancelled);
        let still_waits = |state: &RegistryState| {
            !is_cancelled(state) && state.running.get(&id).is_some_and(|report| must_wait(state, report))
        };
        if still_waits(&self.state.borrow()) {
            self.update(id, |report| report.held = true);
            let _ = self.state.subscribe().wait_for(|state| state.closing || !still_waits(state)).await;
            self.update(id, |report| report.held = false);
        }
        match self.is_closing() {
            true => Err(Fact::Stopping.into()),
            false if is_cancelled(&self.state.borrow()) => Err(JobError::Cancelled),
            false => Ok(()),
        }
    }
}

fn unknown(id: u64) -> Error {
    Error::not_found(format!("There is no job {id}."))
}
