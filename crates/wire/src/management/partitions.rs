//! Physical partitions: size and throughput of each; splits and merges on demand.

use pleiad_engine::{Action, Admitted, ContainerName, JobKind, JobReport, PartitionReport};
use pleiad_model::partition_key::{EffectiveKey, PartitionKey};
use pleiad_model::{Error, Kind, Object, Result, Value, json};

use super::request::{ManagementRequest, reject_unknown_members};
use super::{ManagementApi, ids, json_reply, list};
use crate::nosql::reply::{ErrorReply, Handled};
use crate::nosql::status::Status;

impl ManagementApi<'_> {
    pub(super) fn partitions(&self, at: ContainerName<'_>) -> Handled {
        let reports = self.engine.partitions(&self.admit_container(Action::Monitor, at)?)?;
        list("partitions", reports.iter().map(partition_json).collect())
    }

    pub(super) fn check_range(at: &Admitted, id: u32) -> Result<()> {
        let container = at.container();
        if container.map.by_id(id).is_some() {
            return Ok(());
        }
        let ids: Vec<String> = container.map.ranges().iter().map(|range| range.id.to_string()).collect();
        Err(Error::not_found(format!("There is no partition {id} (any more); there are {}.", ids.join(", "))))
    }

    /// `{"at": "1FFF…"}` or `{"at": ["a key"]}`; by default the split point halves the bytes.
    pub(super) async fn split(
        &self,
        name: ContainerName<'_>,
        id: Option<u32>,
        request: &ManagementRequest<'_>,
    ) -> Handled {
        let body = request.object()?;
        reject_unknown_members(&body, &["at"])?;
        let split_point = body.get("at");
        let split_point = split_point.map(|value| self.parse_split_point(name, value)).transpose()?;
        let waits = request.waits()?;
        let at = self.admit_container(Action::Administer, name)?;
        id.map_or(Ok(()), |id| Self::check_range(&at, id))?;
        let job = self.engine.split(at, id, split_point).await?;
        self.job_reply(job, waits).await
    }

    /// `{"ids": ["1", "2"]}`
    pub(super) async fn merge(&self, name: ContainerName<'_>, request: &ManagementRequest<'_>) -> Handled {
        let body = request.object()?;
        reject_unknown_members(&body, &["ids"])?;
        let ids = merge_ids(&body)?;
        let waits = request.waits()?;
        let at = self.admit_container(Action::Administer, name)?;
        ids.iter().try_for_each(|id| Self::check_range(&at, *id))?;
        let job = self.engine.merge(at, &ids).await?;
        self.job_reply(job, waits).await
    }

    pub(super) async fn job_reply(&self, job: u64, waits: bool) -> Handled {
        let at = self.admit(Action::Monitor)?;
        if waits {
            match self.engine.wait_for_job(&at, job).await {
                Ok(report) => return Ok(json_reply(Status::Ok, self.job_json(&at, &report)?)),
                // The job is registered and resumes at the next start: an error would make the client start it twice.
                Err(error) if error.kind == Kind::Unavailable => {}
                Err(error) => return Err(error.into()),
            }
        }
        let report = self.find_job(&at, job)?;
        Ok(json_reply(Status::Accepted, self.job_json(&at, &report)?))
    }

    /// A partition key value in brackets, or an effective partition key in hexadecimal digits.
    fn parse_split_point(&self, name: ContainerName<'_>, at: &Value) -> Result<EffectiveKey, ErrorReply> {
        let invalid =
            || Error::invalid("'at' is a partition key in brackets, or an effective key as hexadecimal text.");
        match at {
            Value::String(hex) => Ok(EffectiveKey::parse(hex).map_err(|_| invalid())?),
            Value::Array(_) => {
                let named = self.admit_container(Action::Administer, name)?;
                let key = PartitionKey::parse(&json::to_string(at))?;
                let definition = named.container().definition.partition_key.as_ref().ok_or_else(invalid)?;
                Ok(key.effective(definition))
            }
            _ => Err(invalid().into()),
        }
    }
}

fn merge_ids(body: &Object) -> Result<Vec<u32>> {
    let invalid = || Error::invalid("'ids' must list the partitions to merge: {\"ids\": [\"1\", \"2\"]}.");
    let id = |value: &Value| match value {
        Value::String(text) => text.parse().map_err(|_| invalid()),
        value => value.as_i64().and_then(|id| u32::try_from(id).ok()).ok_or_else(invalid),
    };
    body.get("ids").and_then(Value::as_array).ok_or_else(invalid)?.iter().map(id).collect()
}

fn partition_json(report: &PartitionReport) -> Value {
    let range = &report.range;
    let shown = Object::new()
        .with("id", range.id.to_string())
        .with("minInclusive", range.keys.min.to_string())
        .with("maxExclusive", range.keys.max.to_string())
        .with("parents", ids(&range.parents))
        .with("items", report.items)
        .with("bytes", report.item_bytes)
        .with("bytesMax", report.item_bytes_max)
        .with("lsn", report.lsn)
        .with("throughput", report.share_ru)
        .with("normalizedUse", report.normalized_use);
    with_status(shown, report).into()
}

fn with_status(shown: Object, report: &PartitionReport) -> Object {
    match &report.job {
        Some(job) => shown.with("status", job_status(job)).with("job", job.task.id().to_string()).with("percent", job.percent()),
        None if report.is_unsplittable => shown
            .with("status", "full")
            .with("reason", "It holds too much and cannot be split: all its items have one partition key value. Delete items, or give them a key with more values."),
        None => shown.with("status", "online"),
    }
}

fn job_status(job: &JobReport) -> &'static str {
    match job.task.repartition().map(|job| job.kind) {
        Some(JobKind::Merge) => "merging",
        _ => "splitting",
    }
}
