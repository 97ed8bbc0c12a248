//! The durable record of a split or merge in progress.
//!
//! Invariant: the row is written before the first byte is copied, and deleted in the batch that publishes the new
//! map. So a crash at any time leaves either a job to resume or the new map.
//!
//! ```text
//! {"kind":"split","container":"Sl8fALN4sw4=","parents":[0],"children":[{"id":1,…},{"id":2,…}],"copied":null,
//!  "reason":"storage","started":1700000000000}
//! ```

use std::fmt;

use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_model::partition_map::{range_from_value, range_to_value};
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Object, Result, Value};
use pleiad_text::ANALYZER_VERSION;

#[derive(Clone, Debug, PartialEq)]
pub struct RepartitionJob {
    pub id: u64,
    pub kind: JobKind,
    pub container: ContainerRid,
    /// The ids of the ranges that are replaced.
    pub parents: Vec<u32>,
    /// The ranges that replace them, in the order of the hash space.
    pub children: Vec<PartitionKeyRange>,
    /// The schema version of the copied index rows, once the children hold a copy of the parents' snapshot. The
    /// change log has what was written since.
    pub copied_under: Option<u64>,
    pub reason: Reason,
    pub started_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    Split,
    Merge,
}

/// Why a job was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A partition exceeds its size.
    Storage,
    /// The partitions cannot provide the provisioned throughput.
    Throughput,
    /// An operator requested it.
    Request,
}

const KINDS: [(JobKind, &str); 2] = [(JobKind::Split, "split"), (JobKind::Merge, "merge")];
const REASONS: [(Reason, &str); 3] =
    [(Reason::Storage, "storage"), (Reason::Throughput, "throughput"), (Reason::Request, "request")];

impl RepartitionJob {
    pub(super) fn to_object(&self) -> Object {
        let parents: Vec<Value> = self.parents.iter().map(|&id| Value::from(u64::from(id))).collect();
        let children: Vec<Value> = self.children.iter().map(range_to_value).collect();
        Object::new()
            .with("kind", self.kind.to_string())
            .with("container", self.container.to_string())
            .with("parents", parents)
            .with("children", children)
            .with("copied", self.copied_under.map_or(Value::Null, Value::from))
            .with("analyzer", u64::from(ANALYZER_VERSION))
            .with("reason", self.reason.to_string())
            .with("started", self.started_ms)
    }

    pub(super) fn from_value(id: u64, row: &Value) -> Result<RepartitionJob> {
        let corrupt = || Error::corrupt("job row");
        let text = |name| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let list = |name| row.get(name).and_then(Value::as_array).ok_or_else(corrupt);
        let number = |value: &Value| value.as_i64().and_then(|n| u32::try_from(n).ok()).ok_or_else(corrupt);
        let started = row.get("started").and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
        // The children of an earlier version have full-text rows of its analyzer: they are copied again.
        let is_current = row.get("analyzer").and_then(Value::as_i64) == Some(i64::from(ANALYZER_VERSION));
        let copied_under = row.get("copied").and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
        Ok(RepartitionJob {
            id,
            kind: by_name(&KINDS, text("kind")).ok_or_else(corrupt)?,
            container: ContainerRid::parse(text("container")).ok_or_else(corrupt)?,
            parents: list("parents")?.iter().map(number).collect::<Result<_>>()?,
            children: list("children")?.iter().map(range_from_value).collect::<Result<_>>()?,
            copied_under: copied_under.filter(|_| is_current),
            reason: by_name(&REASONS, text("reason")).ok_or_else(corrupt)?,
            started_ms: started.ok_or_else(corrupt)?,
        })
    }
}

fn by_name<T: Copy>(names: &[(T, &str)], text: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == text).map(|(value, _)| *value)
}

fn name<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(known, _)| known == value).map_or("", |(_, name)| name)
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&KINDS, self))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&REASONS, self))
    }
}

#[cfg(test)]
mod tests {
    use pleiad_model::partition_key::EpkRange;
    use pleiad_model::resource_id::DatabaseRid;

    use super::*;

    #[test]
    fn job_rows_round_trip() {
        let keys = EpkRange::FULL;
        let child = PartitionKeyRange { id: 3, shard: 9, prefix: 3, keys, parents: vec![1, 2], since: 0 };
        let container = ContainerRid { database: DatabaseRid(1), number: 2 };
        for (kind, reason) in KINDS.into_iter().flat_map(|kind| REASONS.map(|reason| (kind.0, reason.0))) {
            let (parents, children) = (vec![1, 2], vec![child.clone()]);
            let job = RepartitionJob {
                id: 7,
                kind,
                container,
                parents,
                children,
                copied_under: Some(4),
                reason,
                started_ms: 5,
            };
            assert_eq!(RepartitionJob::from_value(7, &job.to_object().into()).unwrap(), job);
            let mut earlier = job.to_object();
            earlier.remove("analyzer");
            let again = RepartitionJob { copied_under: None, ..job };
            assert_eq!(RepartitionJob::from_value(7, &earlier.into()).unwrap(), again, "copied by an earlier analyzer");
        }
        assert!(RepartitionJob::from_value(7, &Object::new().into()).is_err());
    }
}
