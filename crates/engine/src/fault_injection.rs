//! Fault injection: makes a partition answer "moved", throttle, or answer late. For tests of applications.
//!
//! Guarantees: a request that a fault rejects has done nothing. While no fault is set, the check costs one atomic load.
//! Which callers may set faults is decided elsewhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Fact, Kind, Result};
use pleiad_partition::Partition;

use crate::catalog::Container;
use crate::timer::sleep;
use crate::{Action, Admitted, Engine, WholeAccount};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    pub kind: FaultKind,
    /// How long a slow partition takes; the retry time that a throttled one returns.
    pub delay_ms: u64,
    /// How many more requests it will hit; without a limit if `None`.
    pub requests_left: Option<u64>,
    pub until_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// As after a split that the client does not know of yet.
    Gone,
    Throttled,
    Slow,
}

const KINDS: [(FaultKind, &str); 3] =
    [(FaultKind::Gone, "gone"), (FaultKind::Throttled, "throttled"), (FaultKind::Slow, "slow")];

impl FaultKind {
    pub fn parse(name: &str) -> Option<FaultKind> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    pub fn as_str(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

type FaultKey = (ContainerRid, u32);

/// A fault and the partition that it is set on.
#[derive(Clone, Debug)]
pub struct FaultAt {
    pub database: String,
    pub container: String,
    pub range: u32,
    pub fault: InjectedFault,
}

/// The faults that are set, by container and partition.
#[derive(Default)]
pub struct Faults {
    /// How many there are, so that requests take no lock while there are none.
    count: AtomicUsize,
    set: Mutex<HashMap<FaultKey, FaultAt>>,
}

impl Faults {
    pub fn list(&self) -> Vec<FaultAt> {
        let mut all: Vec<FaultAt> = self.set.lock().values().cloned().collect();
        all.sort_by(|a, b| (&a.database, &a.container, a.range).cmp(&(&b.database, &b.container, b.range)));
        all
    }

    fn put(&self, container: &Container, range: u32, fault: InjectedFault) {
        let (rid, database, container) = (container.rid, container.database.clone(), container.definition.id.clone());
        let mut set = self.set.lock();
        set.insert((rid, range), FaultAt { database, container, range, fault });
        self.count.store(set.len(), Ordering::Relaxed);
    }

    fn clear(&self, key: FaultKey) {
        let mut set = self.set.lock();
        set.remove(&key);
        self.count.store(set.len(), Ordering::Relaxed);
    }

    /// Every admission of a request at a partition calls this.
    #[inline]
    pub(crate) async fn inject(&self, container: &Container, partition: &Partition, now_ms: u64) -> Result<()> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let key = (container.rid, partition.range.id);
        if self.set.lock().get(&key).is_some_and(|at| at.fault.kind == FaultKind::Slow) {
            // An inline page ends here, and runs again on a blocking thread. The fault counts it once.
            tokio::task::yield_now().await;
        }
        match self.take_hit(key, now_ms) {
            Some(fault) => fault.inject(container).await,
            None => Ok(()),
        }
    }

    fn take_hit(&self, key: FaultKey, now_ms: u64) -> Option<InjectedFault> {
        let mut set = self.set.lock();
        let fault = &mut set.get_mut(&key)?.fault;
        let expired = fault.requests_left == Some(0) || fault.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        if expired {
            set.remove(&key);
            self.count.store(set.len(), Ordering::Relaxed);
            return None;
        }
        fault.requests_left = fault.requests_left.map(|left| left - 1);
        Some(*fault)
    }
}

impl InjectedFault {
    async fn inject(&self, container: &Container) -> Result<()> {
        match self.kind {
            FaultKind::Slow => {
                sleep(Duration::from_millis(self.delay_ms)).await;
                Ok(())
            }
            FaultKind::Gone => Err(Fact::InjectedGone { epoch: container.map.epoch }.into()),
            FaultKind::Throttled => Err(Fact::InjectedThrottle { retry_after_ms: self.delay_ms }.into()),
        }
    }
}

impl Engine {
    pub fn faults(&self, at: &Admitted<WholeAccount>) -> Result<Vec<FaultAt>> {
        at.check(Action::Monitor)?;
        Ok(self.meter.faults().list())
    }

    /// From now on requests to this partition get the fault; it replaces one that was set before.
    pub fn set_fault(&self, at: &Admitted, range: u32, fault: InjectedFault) -> Result<()> {
        at.check(Action::Administer)?;
        let container = at.container();
        if container.map.by_id(range).is_none() {
            let epoch = container.map.epoch;
            return Err(Error::new(Kind::Moved { epoch }, "There is no such partition key range (any more)."));
        }
        self.meter.faults().put(container, range, fault);
        Ok(())
    }

    pub fn clear_fault(&self, at: &Admitted, range: u32) -> Result<()> {
        at.check(Action::Administer)?;
        self.meter.faults().clear((at.container().rid, range));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
