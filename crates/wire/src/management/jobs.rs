//! Jobs: progress of splits, merges and database copies.

use pleiad_engine::{Action, Admitted, DatabaseCopy, JobOutcome, JobReport, JobTask, RepartitionJob, WholeAccount};
use pleiad_model::{Error, Object, Result, Value};

use super::request::{ManagementRequest, reject_unknown_members};
use super::{ManagementApi, ids, list, ok};
use crate::nosql::messages::message;
use crate::nosql::reply::Handled;

impl ManagementApi<'_> {
    pub(super) fn jobs(&self) -> Handled {
        let at = self.admit(Action::Monitor)?;
        let reports = self.engine.jobs(&at)?;
        let rows = reports.iter().map(|report| self.job_json(&at, report)).collect::<Result<_>>()?;
        list("jobs", rows)
    }

    pub(super) fn job(&self, id: u64) -> Handled {
        let at = self.admit(Action::Monitor)?;
        ok(self.job_json(&at, &self.find_job(&at, id)?)?)
    }

    pub(super) fn pause_job(&self, id: u64, paused: bool) -> Handled {
        let at = self.admit(Action::Administer)?;
        match paused {
            true => self.engine.pause_job(&at, id)?,
            false => self.engine.resume_job(&at, id)?,
        }
        self.job(id)
    }

    /// Responds when the job has ended. A job that had already ended stays unchanged.
    pub(super) async fn cancel_job(&self, id: u64) -> Handled {
        let at = self.admit(Action::Monitor)?;
        let report = match self.find_job(&at, id)? {
            ended if ended.outcome.is_some() => ended,
            _ => self.engine.cancel_job(&self.admit(Action::Administer)?, id).await?,
        };
        ok(self.job_json(&at, &report)?)
    }

    /// `POST databases/shop/copy {"to": "shop-test"}`
    pub(super) async fn copy_database(&self, from: &str, request: &ManagementRequest<'_>) -> Handled {
        let body = request.object()?;
        reject_unknown_members(&body, &["to"])?;
        let to = body.get("to").and_then(Value::as_str);
        let to = to.ok_or_else(|| Error::invalid("'to' says what the copy is called: {\"to\": \"name\"}."))?;
        let waits = request.waits()?;
        let id = self.engine.copy_database(&self.admit_database(Action::Administer, from)?, to).await?;
        self.job_reply(id, waits).await
    }

    pub(super) fn find_job(&self, at: &Admitted<WholeAccount>, id: u64) -> Result<JobReport> {
        let found = self.engine.jobs(at)?.into_iter().find(|report| report.task.id() == id);
        found.ok_or_else(|| {
            Error::not_found(format!("There is no job {id} among those under way or ended lately: see GET jobs."))
        })
    }

    /// Times are milliseconds since 1970-01-01.
    pub(super) fn job_json(&self, at: &Admitted<WholeAccount>, report: &JobReport) -> Result<Value> {
        let shown = match &report.task {
            JobTask::Repartition(job) => self.repartition_json(at, job)?,
            JobTask::Copy(copy) => self.copy_json(at, copy)?,
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
        Ok(with_outcome(shown, report.outcome.as_ref()).into())
    }

    fn repartition_json(&self, at: &Admitted<WholeAccount>, job: &RepartitionJob) -> Result<Object> {
        let mut shown = Object::new().with("id", job.id.to_string()).with("kind", job.kind.to_string());
        if let Some((database, container)) = self.engine.container_names(at, job.container)? {
            shown.set("database", database);
            shown.set("container", container);
        }
        Ok(shown
            .with("parents", ids(&job.parents))
            .with("children", ids(job.children.iter().map(|child| &child.id)))
            .with("reason", job.reason.to_string())
            .with("startedMs", job.started_ms))
    }

    fn copy_json(&self, at: &Admitted<WholeAccount>, copy: &DatabaseCopy) -> Result<Object> {
        let mut shown = Object::new().with("id", copy.id.to_string()).with("kind", "copy");
        if let Some(database) = self.engine.database_id(at, copy.from)? {
            shown.set("database", database);
        }
        Ok(shown.with("to", copy.to.as_str()).with("reason", "request").with("startedMs", copy.started_ms))
    }
}

fn with_outcome(shown: Object, outcome: Option<&JobOutcome>) -> Object {
    match outcome {
        None => shown.with("status", "running"),
        Some(JobOutcome::Done) => shown.with("status", "done"),
        Some(JobOutcome::Cancelled) => shown.with("status", "cancelled"),
        Some(JobOutcome::Failed(why)) => shown.with("status", "failed").with("error", message(why)),
    }
}
