//! Where a write is done, and done again when its container changes meanwhile.
//!
//! Promise: a write goes to the partition that owns its key under the newest schema, and is paid for there once, however
//! often it had to be begun. What it does there is someone else's job; it must leave nothing behind when the partition says
//! `Kind::Outdated`.

use std::sync::Arc;

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::partition::Rejected;
use pleiad_partition::{Partition, Written};

use crate::response::{EngineResponse, place};
use crate::{Admitted, Container, ContainerName, Engine};

/// How many changes of its container one request sits out.
pub(crate) const CONTAINER_CHANGES_MAX: usize = 8;

/// Where an item is written, and under which schema.
pub(crate) struct WriteTarget {
    pub partition: Arc<Partition>,
    pub container: Arc<Container>,
}

/// What was done there: how far the partition has come with it, and the price.
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
    /// A write that comes while the container's indexing policy or its partitions change is done again when the change is
    /// published. Its client does not notice.
    pub(crate) async fn at_home<T, F: Future<Output = Result<WriteOutcome<T>, Rejected>>>(
        &self,
        at: &Admitted,
        key: &LogicalKey,
        write: impl Fn(WriteTarget) -> F,
    ) -> EngineResponse<T> {
        match check_writable(at) {
            Ok(()) => self.at_home_of(at, key, write).await,
            Err(error) => EngineResponse::refused(error),
        }
    }

    /// Also in a container that clients do not write to, for whoever does not.
    pub(crate) async fn at_home_of<T, F: Future<Output = Result<WriteOutcome<T>, Rejected>>>(
        &self,
        at: &Admitted,
        key: &LogicalKey,
        write: impl Fn(WriteTarget) -> F,
    ) -> EngineResponse<T> {
        let mut container = at.container.clone();
        for _ in 0..CONTAINER_CHANGES_MAX {
            let partition = match home(&container, key) {
                Ok(partition) => partition.clone(),
                Err(error) => return EngineResponse::refused(error),
            };
            let visit = match self.meter.enter(at, partition.clone()) {
                Ok(visit) => visit,
                Err(error) => return EngineResponse::refused(error).at(place(&partition)),
            };
            let outcome = write(WriteTarget { partition: partition.clone(), container: container.clone() }).await;
            if !matches!(&outcome, Err(Rejected { error: Error { kind: Kind::Outdated, .. }, .. })) {
                let answer = settle(&partition, outcome);
                self.meter.pay(visit, answer.charge_ru, Some(key));
                if partition.hear_growth() {
                    self.catalog.consider(container.rid);
                }
                return answer;
            }
            self.meter.leave(visit);
            self.catalog.settled().await;
            container = match self.admit(ContainerName::Rid(at.container.rid), None) {
                Ok(newer) => newer.container,
                Err(error) => return EngineResponse::refused(error),
            };
        }
        let changing = Error::new(Kind::RetryWith, "The container is changing all the time. Try again.");
        EngineResponse::refused(self.check_ready().err().unwrap_or(changing))
    }
}

/// An index is filled from its source and by nobody else.
pub(crate) fn check_writable(at: &Admitted) -> Result<()> {
    let Some(index) = &at.container.definition.global_index else { return Ok(()) };
    let message = format!(
        "Write operations are not allowed on a global secondary index container: it is read-only. Write to its source container '{}'.",
        index.source
    );
    Err(Error::new(Kind::Forbidden, message))
}

/// A write answers with its own LSN, whatever happened at the partition since.
fn settle<T>(partition: &Partition, outcome: Result<WriteOutcome<T>, Rejected>) -> EngineResponse<T> {
    let mut place = place(partition);
    match outcome {
        Ok(WriteOutcome { value, lsn, charge_ru }) => {
            place.lsn = lsn;
            EngineResponse::priced(Ok(value), charge_ru).at(place)
        }
        Err(Rejected { error, charge_ru }) => EngineResponse::priced(Err(error), charge_ru).at(place),
    }
}

pub(crate) fn home<'a>(container: &'a Container, key: &LogicalKey) -> Result<&'a Arc<Partition>> {
    container.partition(container.map.locate(&key.epk))
}
