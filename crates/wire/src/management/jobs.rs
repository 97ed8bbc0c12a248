//! Jobs: progress of splits, merges and database copies.

use pleiad_engine::{DatabaseCopy, JobOutcome, JobReport, JobTask, RepartitionJob};
use pleiad_model::{Error, Object, Result, Value};

use super::request::{ManagementRequest, reject_unknown_members};
use super::{ManagementApi, ids, list, ok};
use crate::nosql::reply::Handled;

impl ManagementApi {
    pub(super) fn jobs(&self) -> Handled {
        list("jobs", self.engine.jobs().iter().map(|report| self.job_json(report)).collect())
    }

    pub(super) fn job(&self, id: u64) -> Handled {
        ok(self.job_json(&self.find_job(id)?))
    }

    pub(super) fn pause_job(&self, id: u64, paused: bool) -> Handled {
        match paused {
            true => self.engine.pause_job(id)?,
            false => self.engine.resume_job(id)?,
        }
        self.job(id)
    }

    /// Responds when the job has ended. A job that had already ended stays unchanged.
    pub(super) async fn cancel_job(&self, id: u64) -> Handled {
        let report = match self.find_job(id)? {
            ended if ended.outcome.is_some() => ended,
            _ => self.engine.cancel_job(id).await?,
        };
        ok(self.job_json(&report))
    }

    /// `POST databases/shop/copy {"to": "shop-test"}`
    pub(super) async fn copy_database(&self, from: &str, request: &ManagementRequest<'_>) -> Handled {
        let body = request.object()?;
        reject_unknown_members(&body, &["to"])?;
        let to = body.get("to").and_then(Value::as_str);
        let to = to.ok_or_else(|| Error::invalid("'to' says what the copy is called: {\"to\": \"name\"}."))?;
        let waits = request.waits()?;
        self.engine.find_database(from)?;
        let id = self.engine.copy_database(from, to).await?;
        self.job_reply(id, waits).await
    }

    pub(super) fn find_job(&self, id: u64) -> Result<JobReport> {
        let found = self.engine.jobs().into_iter().find(|report| report.task.id() == id);
        found.ok_or_else(|| {
            Error::not_found(format!("There is no job {id} among those under way or ended lately: see GET jobs."))
        })
    }

    /// Times are milliseconds since 1970-01-01.
    pub(super) fn job_json(&self, report: &JobReport) -> Value {
        let shown = match &report.task {
            JobTask::Repartition(job) => self.repartition_json(job),
            JobTask::Copy(copy) => self.copy_json(copy),
        };
        let mut shown = shown
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

    fn repartition_json(&self, job: &RepartitionJob) -> Object {
        let tree = self.engine.catalog.tree();
        let mut shown = Object::new().with("id", job.id.to_string()).with("kind", job.kind.to_string());
        if let Some(container) = tree.container_by_rid(job.container) {
            shown.set("database", container.database.as_str());
            shown.set("container", container.definition.id.as_str());
        }
        shown
            .with("parents", ids(&job.parents))
            .with("children", ids(job.children.iter().map(|child| &child.id)))
            .with("reason", job.reason.to_string())
            .with("startedMs", job.started_ms)
    }

    fn copy_json(&self, copy: &DatabaseCopy) -> Object {
        let mut shown = Object::new().with("id", copy.id.to_string()).with("kind", "copy");
        if let Some(database) = self.engine.catalog.tree().database_by_rid(copy.from) {
            shown.set("database", database.id.as_str());
        }
        shown.with("to", copy.to.as_str()).with("reason", "request").with("startedMs", copy.started_ms)
    }
}

fn with_outcome(shown: Object, outcome: Option<&JobOutcome>) -> Object {
    match outcome {
        None => shown.with("status", "running"),
        Some(JobOutcome::Done) => shown.with("status", "done"),
        Some(JobOutcome::Cancelled) => shown.with("status", "cancelled"),
        Some(JobOutcome::Failed(why)) => shown.with("status", "failed").with("error", why.as_str()),
    }
}
