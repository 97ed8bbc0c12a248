//! Splits and merges: how far each has come.

use pleiad_engine::{JobOutcome, JobReport};
use pleiad_model::{Error, Object, Result, Value};

use super::{Desk, ids, list, ok};
use crate::nosql::reply::Handled;

impl Desk {
    pub(super) fn jobs(&self) -> Handled {
        list("jobs", self.engine.jobs().iter().map(|report| self.job_shown(report)).collect())
    }

    pub(super) fn job(&self, id: u64) -> Handled {
        ok(self.job_shown(&self.find_job(id)?))
    }

    pub(super) fn pause_job(&self, id: u64, paused: bool) -> Handled {
        match paused {
            true => self.engine.pause_job(id)?,
            false => self.engine.resume_job(id)?,
        }
        self.job(id)
    }

    pub(super) fn find_job(&self, id: u64) -> Result<JobReport> {
        let found = self.engine.jobs().into_iter().find(|report| report.job.id == id);
        found.ok_or_else(|| {
            Error::not_found(format!("There is no job {id} among those under way or ended lately: see GET jobs."))
        })
    }

    /// Times are milliseconds since 1970.
    pub(super) fn job_shown(&self, report: &JobReport) -> Value {
        let job = &report.job;
        let tree = self.engine.catalog.tree();
        let container = tree.container_by_rid(job.container);
        let children = job.children.iter().map(|child| &child.id);
        let mut shown = Object::new().with("id", job.id.to_string()).with("kind", job.kind.to_string());
        if let Some(container) = container {
            shown.set("database", container.database.as_str());
            shown.set("container", container.definition.id.as_str());
        }
        shown = shown
            .with("parents", ids(&job.parents))
            .with("children", ids(children))
            .with("reason", job.reason.to_string())
            .with("startedMs", job.started_ms)
            .with("step", report.step.to_string())
            .with("percent", report.percent())
            .with("items", report.figures.items)
            .with("bytes", report.figures.bytes)
            .with("paused", report.paused)
            .with("held", report.held);
        if let Some(ms) = report.fence_ms {
            shown.set("fenceMs", ms);
        }
        with_outcome(shown, report.outcome.as_ref()).into()
    }
}

fn with_outcome(shown: Object, outcome: Option<&JobOutcome>) -> Object {
    match outcome {
        None => shown.with("status", "running"),
        Some(JobOutcome::Done) => shown.with("status", "done"),
        Some(JobOutcome::Failed(why)) => shown.with("status", "failed").with("error", why.as_str()),
    }
}
