//! Write retry: runs a write on the partition that owns its key, and again when its container changes meanwhile.
//!
//! Guarantees: a write runs on the partition that owns its key under the newest schema, and is charged there once,
//! however often it had to start again. The caller supplies the write; it must leave nothing behind when the partition
//! returns `Kind::Outdated`.

use std::sync::Arc;

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::partition::Rejected;
use pleiad_partition::{Partition, Written};

use crate::response::{EngineResponse, partition_lsn};
use crate::{Admitted, Container, ContainerName, Engine};

/// How many changes of its container one request waits for before it fails.
pub(crate) const CONTAINER_CHANGES_MAX: usize = 8;

/// The partition that a write runs on, and the container version whose schema applies.
pub(crate) struct WriteTarget {
    pub partition: Arc<Partition>,
    pub container: Arc<Container>,
}

/// The result of a write, with its LSN and its charge.
pub(crate) struct WriteOutcome<T> {
    pub value: T,
    pub lsn: u64,
    pub charge_ru: f64,
}

impl From<Written> for WriteOutcome<Written> {
    fn from(written: Written) -> Self {
        WriteOutcome { lsn: written.lsn, charge_ru: written.charge_ru, value: written }
    }
}

impl Engine {
    /// Runs a client's write. If the container's indexing policy or its partitions change meanwhile, the write runs
    /// again when the change is published. The client does not notice.
    pub(crate) async fn with_writable_partition<T, F: Future<Output = Result<WriteOutcome<T>, Rejected>>>(
        &self,
        at: &Admitted,
        key: &LogicalKey,
        write: impl Fn(WriteTarget) -> F,
    ) -> EngineResponse<T> {
        match check_writable(at) {
            Ok(()) => self.with_current_partition(at, key, write).await,
            Err(error) => EngineResponse::failed(error),
        }
    }

    /// The same without the check that clients may write to the container: for callers that only read, or that check it
    /// themselves.
    pub(crate) async fn with_current_partition<T, F: Future<Output = Result<WriteOutcome<T>, Rejected>>>(
        &self,
        at: &Admitted,
        key: &LogicalKey,
        write: impl Fn(WriteTarget) -> F,
    ) -> EngineResponse<T> {
        let mut container = at.container.clone();
        for _ in 0..CONTAINER_CHANGES_MAX {
            let partition = match owning_partition(&container, key) {
                Ok(partition) => partition.clone(),
                Err(error) => return EngineResponse::failed(error),
            };
            let visit = match self.meter.enter(at, partition.clone()) {
                Ok(visit) => visit,
                Err(error) => return EngineResponse::failed(error).served_by(partition_lsn(&partition)),
            };
            let outcome = write(WriteTarget { partition: partition.clone(), container: container.clone() }).await;
            if !matches!(&outcome, Err(Rejected { error: Error { kind: Kind::Outdated, .. }, .. })) {
                let answer = into_response(&partition, outcome);
                self.meter.pay(visit, answer.charge_ru, Some(key));
                if partition.take_split_request() {
                    self.catalog.split_if_needed(container.rid);
                }
                return answer;
            }
            self.meter.leave(visit);
            self.catalog.wait_for_changes().await;
            container = match self.admit(ContainerName::Rid(at.container.rid), None) {
                Ok(newer) => newer.container,
                Err(error) => return EngineResponse::failed(error),
            };
        }
        let changing = Error::new(Kind::RetryWith, "The container is changing all the time. Try again.");
        EngineResponse::failed(self.check_ready().err().unwrap_or(changing))
    }
}

/// A global secondary index is written from its source only.
pub(crate) fn check_writable(at: &Admitted) -> Result<()> {
    let Some(index) = &at.container.definition.global_index else { return Ok(()) };
    let message = format!(
        "Write operations are not allowed on a global secondary index container: it is read-only. Write to its source container '{}'.",
        index.source
    );
    Err(Error::new(Kind::Forbidden, message))
}

/// A write reports its own LSN, whatever the partition has committed since.
fn into_response<T>(partition: &Partition, outcome: Result<WriteOutcome<T>, Rejected>) -> EngineResponse<T> {
    let mut served_by = partition_lsn(partition);
    match outcome {
        Ok(WriteOutcome { value, lsn, charge_ru }) => {
            served_by.lsn = lsn;
            EngineResponse::priced(Ok(value), charge_ru).served_by(served_by)
        }
        Err(Rejected { error, charge_ru }) => EngineResponse::priced(Err(error), charge_ru).served_by(served_by),
    }
}

pub(crate) fn owning_partition<'a>(container: &'a Container, key: &LogicalKey) -> Result<&'a Arc<Partition>> {
    container.partition(container.map.locate(&key.epk))
}
