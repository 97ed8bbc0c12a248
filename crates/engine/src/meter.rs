//! Request-unit admission: admits a request at each partition that it touches, and charges its work there.
//!
//! Guarantees: a request is admitted at a partition before it reads or writes items there, and charged there for the
//! work it did, also if it failed after a lookup (404, 409, 412). A throttled request has written nothing.
//! Background jobs are neither admitted nor charged. `throughput` decides how much a partition may provide; the
//! governor does the arithmetic.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use pleiad_model::env::Env;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Error, ExceededLimit, Kind, Result, Throttle};
use pleiad_partition::Partition;
use pleiad_partition::governor::{Admission, Throttled};
use pleiad_partition::key::LogicalKey;

use crate::fault_injection::Faults;
use crate::throttle_log::{ThrottleEntry, ThrottleLog};
use crate::{Admitted, Container};

#[derive(Clone)]
pub(crate) struct Meter {
    env: Arc<dyn Env>,
    log: Arc<ThrottleLog>,
    faults: Arc<Faults>,
}

/// A request that is admitted at one partition and not yet charged.
pub(crate) struct Visit<P> {
    partition: P,
    admission: Admission,
}

impl Meter {
    pub fn new(env: Arc<dyn Env>) -> Self {
        Meter { env, log: Arc::default(), faults: Arc::default() }
    }

    pub fn enter<P: Deref<Target = Partition>>(&self, at: &Admitted, partition: P) -> Result<Visit<P>> {
        let now_ms = self.env.now_ms();
        self.faults.inject(&at.container, &partition, now_ms)?;
        match partition.governor.admit(now_ms, at.class) {
            Ok(admission) => Ok(Visit { partition, admission }),
            Err(refusal) => Err(self.refuse(&at.container, &partition, now_ms, &refusal)),
        }
    }

    pub fn pay<P: Deref<Target = Partition>>(&self, visit: Visit<P>, charge_ru: f64, key: Option<&LogicalKey>) {
        let key = key.map(LogicalKey::components);
        visit.partition.governor.settle(self.env.now_ms(), visit.admission, charge_ru, key);
    }

    /// Cancels an admission: the request ended before anything was done here, for example because another partition
    /// throttled it.
    pub fn leave<P: Deref<Target = Partition>>(&self, visit: Visit<P>) {
        visit.partition.governor.cancel(self.env.now_ms(), visit.admission);
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn throttles(&self) -> Vec<ThrottleEntry> {
        self.log.entries()
    }

    fn refuse(&self, container: &Container, partition: &Partition, now_ms: u64, refusal: &Throttled) -> Error {
        let throttle = Throttle {
            range: partition.range.id,
            share_ru: refusal.share_ru,
            used_ru: refusal.used_ru,
            busiest_key: busiest_key(partition, now_ms),
        };
        let retry_after = Duration::from_millis(refusal.retry_after_ms);
        let message = explain(container, &throttle, refusal.exceeded);
        self.log.record(now_ms, container, &throttle, refusal.exceeded);
        let kind = Kind::Throttled { retry_after, over: refusal.exceeded };
        Error { throttle: Some(Box::new(throttle)), ..Error::new(kind, message) }
    }
}

fn busiest_key(partition: &Partition, now_ms: u64) -> Option<String> {
    let busiest = partition.governor.usage().busiest_keys(now_ms, 1).pop()?;
    PartitionKey::decode_components(&busiest.components).ok().map(|key| key.to_json())
}

fn explain(container: &Container, throttle: &Throttle, over: ExceededLimit) -> String {
    let Throttle { range, share_ru, used_ru, busiest_key } = throttle;
    let whose = match over {
        ExceededLimit::Share => "its share is",
        ExceededLimit::Bucket => "the throughput bucket may use",
    };
    let key = busiest_key.as_ref().map(|key| format!(" The busiest partition key is {key}.")).unwrap_or_default();
    format!(
        "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. \
         Partition key range {range} of {}/{}: {whose} {share_ru} RU/s, {used_ru} are used in this second.{key} \
         Learn more: http://aka.ms/cosmosdb-error-429",
        container.database, container.definition.id
    )
}

#[cfg(test)]
mod tests;
