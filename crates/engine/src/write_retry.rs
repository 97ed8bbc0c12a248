//! Write retry: runs a write on the partition that owns its key, and again when its container changes meanwhile.
//!
//! Guarantees: a write runs on the partition that owns its key under the newest schema, and is charged there once,
//! however often it had to start again. The caller supplies the write; it must leave nothing behind when the partition
//! returns `WriteError::Outdated`.

use std::borrow::Cow;
use std::sync::Arc;

use pleiad_model::{Error, Fact, Result};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{Partition, Queued, Rejected, WriteError, Written};

use crate::catalog::CONTAINER_CHANGES_MAX;
use crate::response::{EngineResponse, partition_lsn};
use crate::{Admission, Admitted, Container, Engine};

/// The partition that a write runs on, the container version whose schema applies, and the admission that it is
/// charged to.
///
/// The write owns it, so that the admission is settled wherever the write is dropped, and returns the admission with its
/// outcome. Nothing is cloned unless the container has changed.
pub(crate) struct WriteTarget<'e> {
    pub partition: Cow<'e, Arc<Partition>>,
    pub container: Cow<'e, Arc<Container>>,
    pub admission: Admission<'e>,
}

/// The admission of a write, and its outcome.
pub(crate) type WriteEnd<'e, T> = (Admission<'e>, Result<WriteOutcome<T>, WriteError>);

impl WriteTarget<'_> {
    /// Charges a write at the moment it is decided, then waits until the outcome is durable.
    ///
    /// Cancel safety: dropped while it waits, a queued write is completed and charged.
    pub async fn await_write(&mut self, decided: Result<Queued, WriteError>) -> Result<Written, WriteError> {
        self.admission.charge_at_least(match &decided {
            Ok(queued) => queued.written().charge_ru,
            Err(WriteError::Failed(rejected)) => rejected.charge_ru,
            Err(WriteError::Outdated) => 0.0, // charged when it runs again
        });
        self.partition.await_outcome(decided).await
    }
}

/// The result of a write, with its LSN and the charge of all its work.
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
    pub(crate) async fn with_writable_partition<'e, T, F: Future<Output = WriteEnd<'e, T>>>(
        &'e self,
        at: &'e Admitted,
        key: &'e LogicalKey,
        write: impl Fn(WriteTarget<'e>) -> F,
    ) -> EngineResponse<T> {
        match check_writable(at) {
            Ok(()) => self.with_current_partition(at, key, write).await,
            Err(error) => EngineResponse::failed(error),
        }
    }

    /// The same without the check that clients may write to the container: for callers that only read, or that check it
    /// themselves.
    pub(crate) async fn with_current_partition<'e, T, F: Future<Output = WriteEnd<'e, T>>>(
        &'e self,
        at: &'e Admitted,
        key: &'e LogicalKey,
        write: impl Fn(WriteTarget<'e>) -> F,
    ) -> EngineResponse<T> {
        let mut container = Cow::Borrowed(at.container());
        for _ in 0..CONTAINER_CHANGES_MAX {
            let partition = match &container {
                Cow::Borrowed(container) => container.owning_partition(key).map(Cow::Borrowed),
                Cow::Owned(newer) => newer.owning_partition(key).cloned().map(Cow::Owned),
            };
            let partition = match partition {
                Ok(partition) => partition,
                Err(error) => return EngineResponse::failed(error),
            };
            let admission = match self.meter.admit(at, partition.clone(), Some(key)).await {
                Ok(admission) => admission,
                Err(error) => return EngineResponse::failed(error).served_by(partition_lsn(&partition)),
            };
            let target = WriteTarget { partition: partition.clone(), container: container.clone(), admission };
            let (mut admission, outcome) = write(target).await;
            let decided = match outcome {
                Ok(done) => Some(Ok(done)),
                Err(WriteError::Failed(rejected)) => Some(Err(rejected)),
                Err(WriteError::Outdated) => None,
            };
            if let Some(decided) = decided {
                let answer = into_response(&partition, admission, decided);
                if partition.take_split_request() {
                    self.catalog.split_if_needed(container.rid);
                }
                return answer;
            }
            admission.waive();
            drop(admission);
            self.catalog.wait_for_changes().await;
            container = match self.current_container(at) {
                Ok(newer) => Cow::Owned(newer),
                Err(error) => return EngineResponse::failed(error),
            };
        }
        EngineResponse::failed(self.check_ready().err().unwrap_or_else(|| Error::from(Fact::ContainerChanging)))
    }
}

/// A global secondary index is written from its source only.
pub(crate) fn check_writable(at: &Admitted) -> Result<()> {
    match &at.container().definition.global_index {
        None => Ok(()),
        Some(index) => Err(Fact::ContainerReadOnly { source: index.source.as_str().into() }.into()),
    }
}

/// A write reports its own LSN, whatever the partition has committed since, and what the partition was charged.
fn into_response<T>(
    partition: &Partition,
    mut admission: Admission<'_>,
    outcome: Result<WriteOutcome<T>, Rejected>,
) -> EngineResponse<T> {
    let mut served_by = partition_lsn(partition);
    let (result, charge_ru) = match outcome {
        Ok(WriteOutcome { value, lsn, charge_ru }) => {
            served_by.lsn = lsn;
            (Ok(value), charge_ru)
        }
        Err(Rejected { error, charge_ru }) => (Err(error), charge_ru),
    };
    admission.set_charge(charge_ru);
    EngineResponse::priced(result, admission.settle()).served_by(served_by)
}
