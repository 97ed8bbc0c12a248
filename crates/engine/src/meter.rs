//! Admission: admits a request at each partition that it touches, and charges its work there.
//!
//! Guarantees: a request is admitted at a partition before it reads or writes items there, and charged there exactly
//! once for the work it did, however it ends: with a result, with an error (404, 409, 412), or because its client
//! disconnected and its future was dropped. What a partition was charged is what the client is told. A throttled
//! request has written nothing. Background jobs are neither admitted nor charged. `throughput` decides how much a
//! partition may provide; the governor does the arithmetic.
//!
//! Every operation has one order of checks, so that the same request fails in the same way on every path:
//!
//! ```text
//! admit ──▶ check the session ──▶ read or decide ──▶ charge ──▶ settle
//!   │             │                     │                          ▲
//!   │ 429: free   │ 404/1002: a miss    │ dropped: the charge so far, or cancelled if there is none
//! ```
//!
//! The charge so far: a read costs at least a miss from its first lookup on, a query what it has scanned. A write costs
//! nothing before it is decided and its whole charge from then on: a queued write completes without its client. The
//! operations of a batch are charged one by one as they are executed, whether or not the batch commits.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use pleiad_model::env::Env;
use pleiad_model::error::ThrottledRequest;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Error, Fact, Result, Throttle};
use pleiad_partition::governor::{Reservation, Throttled};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{Partition, price};

use crate::Admitted;
use crate::fault_injection::Faults;
use crate::session::SessionToken;
use crate::throttle_log::{ThrottleEntry, ThrottleLog};

#[derive(Clone)]
pub(crate) struct Meter {
    env: Arc<dyn Env>,
    log: Arc<ThrottleLog>,
    faults: Arc<Faults>,
}

/// A request that is admitted at one partition. Dropping it settles the charge so far, or cancels the admission if
/// nothing was charged.
#[must_use = "a request is charged when its admission is dropped"]
pub(crate) struct Admission<'a> {
    /// Borrowed for the time of a call; owned only by work that outlives its request.
    env: Cow<'a, Arc<dyn Env>>,
    partition: Cow<'a, Arc<Partition>>,
    /// The logical partition that the statistics of busy keys count the charge for.
    key: Option<Cow<'a, LogicalKey>>,
    /// `None` after `detach`.
    reservation: Option<Reservation>,
    charge_ru: f64,
}

impl Meter {
    pub fn new(env: Arc<dyn Env>) -> Self {
        Meter { env, log: Arc::default(), faults: Arc::default() }
    }

    pub async fn admit<'a>(
        &'a self,
        at: &Admitted,
        partition: Cow<'a, Arc<Partition>>,
        key: Option<&'a LogicalKey>,
    ) -> Result<Admission<'a>> {
        let now_ms = self.env.now_ms();
        self.faults.inject(at.container(), &partition, now_ms).await?;
        match partition.governor.admit(now_ms, at.class()) {
            Ok(reservation) => Ok(Admission {
                env: Cow::Borrowed(&self.env),
                partition,
                key: key.map(Cow::Borrowed),
                reservation: Some(reservation),
                charge_ru: 0.0,
            }),
            Err(refusal) => Err(self.refuse(at, &partition, now_ms, &refusal)),
        }
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn throttles(&self) -> Vec<ThrottleEntry> {
        self.log.entries()
    }

    fn refuse(&self, at: &Admitted, partition: &Partition, now_ms: u64, refusal: &Throttled) -> Error {
        let throttle = Throttle {
            range: partition.range.id,
            share_ru: refusal.share_ru,
            used_ru: refusal.used_ru,
            busiest_key: busiest_key(partition, now_ms),
        };
        self.log.record(now_ms, at, &throttle, refusal.exceeded);
        let request = ThrottledRequest {
            retry_after: Duration::from_millis(refusal.retry_after_ms),
            over: refusal.exceeded,
            database: at.container().database.clone(),
            container: at.container().definition.id.clone(),
            throttle,
        };
        Fact::Throttled(Box::new(request)).into()
    }
}

impl Admission<'_> {
    pub fn partition(&self) -> &Arc<Partition> {
        &self.partition
    }

    /// Adds the charge of work that was done.
    pub fn charge(&mut self, ru: f64) {
        self.charge_ru += ru;
    }

    /// Raises the charge to that of all the work done so far.
    pub fn charge_at_least(&mut self, ru: f64) {
        self.charge_ru = self.charge_ru.max(ru);
    }

    /// Replaces the charge so far by that of the finished work.
    pub fn set_charge(&mut self, ru: f64) {
        self.charge_ru = ru;
    }

    /// Forgets the charge: the work is done again from the beginning, and charged then.
    pub fn waive(&mut self) {
        self.set_charge(0.0);
    }

    /// Checks that the partition has reached what the session has seen. A request that comes too early costs a miss.
    pub fn check_session(&mut self, at: &Admitted, session: Option<&SessionToken>) -> Result<()> {
        let checked = session.map_or(Ok(()), |session| session.check(&self.partition));
        checked.inspect_err(|_| self.charge_at_least(at.read_ru(price::MISS_RU)))
    }

    /// Begins a read: checks the session, and charges a miss, which the read costs whatever it finds.
    pub fn begin_read(&mut self, at: &Admitted, session: Option<&SessionToken>) -> Result<()> {
        self.check_session(at, session)?;
        self.charge_at_least(at.read_ru(price::MISS_RU));
        Ok(())
    }

    /// Charges the partition now; returns the charge, which is what the client is told.
    pub fn settle(self) -> f64 {
        self.charge_ru
    }

    /// Hands the admission to work that outlives the request; what remains here is charged nothing.
    pub fn detach(&mut self) -> Admission<'static> {
        Admission {
            env: Cow::Owned(Arc::clone(&self.env)),
            partition: Cow::Owned(Arc::clone(&self.partition)),
            key: self.key.as_deref().cloned().map(Cow::Owned),
            reservation: self.reservation.take(),
            charge_ru: std::mem::take(&mut self.charge_ru),
        }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else { return };
        let (governor, now_ms) = (&self.partition.governor, self.env.now_ms());
        if self.charge_ru > 0.0 {
            governor.settle(now_ms, reservation, self.charge_ru, self.key.as_deref().map(LogicalKey::components));
        } else {
            governor.cancel(now_ms, reservation);
        }
    }
}

fn busiest_key(partition: &Partition, now_ms: u64) -> Option<String> {
    let busiest = partition.governor.usage().busiest_keys(now_ms, 1).pop()?;
    PartitionKey::decode_components(&busiest.components).ok().map(|key| key.to_json())
}

#[cfg(test)]
mod tests;
