//! Test controls: pausing splits and merges at a step, injecting faults into partitions, advancing the clock.
//!
//! Invariant: a production server rejects all of these, so no request can make it behave incorrectly. It answers only
//! the read of `topology`, which changes nothing.

use pleiad_engine::{Action, ContainerName, FaultAt, FaultKind, InjectedFault, JobStep};
use pleiad_model::env::{Env, OffsetEnv};
use pleiad_model::{Error, Kind, Object, Result, Value};

use super::request::{ManagementRequest, number, reject_unknown_members};
use super::{ManagementApi, ok};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;

/// Longer than the timeout of any client.
const DELAY_MS_MAX: u64 = 10 * 60 * 1000;
const DELAY_MS_DEFAULT: u64 = 1000;

impl ManagementApi<'_> {
    /// The limits that govern partitions, and the test controls in effect.
    pub(super) fn topology(&self) -> Handled {
        let at = self.admit(Action::Monitor)?;
        let limits = self.engine.limits();
        let steps = self.engine.held_steps(&at)?;
        let faults = self.engine.faults(&at)?;
        ok(Object::new()
            .with("isSteerable", self.clock.is_some())
            .with("partitionBytesMax", limits.partition_bytes_max)
            .with("partitionThroughputMax", u64::from(limits.partition_ru_max))
            .with("partitionThroughputInitial", u64::from(limits.partition_ru_initial))
            .with("keyBytesMax", limits.key_bytes_max)
            .with("rangesInitial", u64::from(limits.ranges_initial))
            .with("holds", steps.iter().map(|step| Value::from(step.to_string())).collect::<Vec<_>>())
            .with("faults", faults.iter().map(fault_json).collect::<Vec<_>>())
            .with("clockAheadMs", self.clock.as_ref().map_or(0, |clock| clock.offset_ms())))
    }

    pub(super) fn hold(&self, step: JobStep, held: bool) -> Handled {
        self.test_clock()?;
        let at = self.admit(Action::Administer)?;
        match held {
            true => self.engine.hold_jobs_at(&at, step)?,
            false => self.engine.release_jobs_at(&at, step)?,
        }
        Ok(Reply::empty(Status::NoContent))
    }

    pub(super) fn set_fault(&self, name: ContainerName<'_>, id: u32, request: &ManagementRequest<'_>) -> Handled {
        self.test_clock()?;
        let fault = self.parse_fault(&request.object()?)?;
        let at = self.admit_container(Action::Administer, name)?;
        Self::check_range(&at, id)?;
        self.engine.set_fault(&at, id, fault)?;
        Ok(Reply::empty(Status::NoContent))
    }

    pub(super) fn clear_fault(&self, name: ContainerName<'_>, id: u32) -> Handled {
        self.test_clock()?;
        self.engine.clear_fault(&self.admit_container(Action::Administer, name)?, id)?;
        Ok(Reply::empty(Status::NoContent))
    }

    pub(super) fn move_clock(&self, request: &ManagementRequest<'_>) -> Handled {
        let clock = self.test_clock()?;
        let body = request.object()?;
        reject_unknown_members(&body, &["advance_ms"])?;
        let by_ms = number(&body, "advance_ms")?
            .ok_or_else(|| Error::invalid("'advance_ms' says how many milliseconds the clock moves ahead."))?;
        clock.advance_ms(by_ms);
        ok(Object::new().with("nowMs", clock.now_ms()).with("aheadMs", clock.offset_ms()))
    }

    fn test_clock(&self) -> Result<&OffsetEnv> {
        self.clock.ok_or_else(|| {
            Error::new(
                Kind::Forbidden,
                "Holds, faults and a moved clock are for tests: `pleiad dev` has them, `pleiad serve` does not.",
            )
        })
    }

    /// `{"kind": "slow", "delay_ms": 500, "count": 3}`; without a count or a duration the fault stays until it is
    /// cleared.
    fn parse_fault(&self, body: &Object) -> Result<InjectedFault> {
        reject_unknown_members(body, &["kind", "count", "duration_ms", "delay_ms"])?;
        let delay_ms = number(body, "delay_ms")?.unwrap_or(DELAY_MS_DEFAULT).min(DELAY_MS_MAX);
        let until_ms = number(body, "duration_ms")?.map(|ms| self.engine.now_ms().saturating_add(ms));
        Ok(InjectedFault { kind: kind(body)?, delay_ms, requests_left: number(body, "count")?, until_ms })
    }
}

fn kind(body: &Object) -> Result<FaultKind> {
    let name = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    FaultKind::parse(name).ok_or_else(|| Error::invalid("'kind' must be gone (410), throttled (429) or slow."))
}

fn fault_json(at: &FaultAt) -> Value {
    let fault = &at.fault;
    let mut shown = Object::new()
        .with("database", at.database.as_str())
        .with("container", at.container.as_str())
        .with("id", at.range.to_string())
        .with("kind", fault.kind.as_str())
        .with("delay_ms", fault.delay_ms);
    if let Some(left) = fault.requests_left {
        shown.set("count", left);
    }
    if let Some(until_ms) = fault.until_ms {
        shown.set("untilMs", until_ms);
    }
    shown.into()
}
