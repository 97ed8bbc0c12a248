//! Throttle log: the requests that were throttled recently, and why.
//!
//! Invariant: memory is bounded. Throttled requests at one partition within one second are one entry with a count, so
//! that a burst does not evict the entries before it.

use std::collections::VecDeque;

use parking_lot::Mutex;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{ExceededLimit, Throttle};

use crate::authorize::{ActivityId, Admitted};

const ENTRIES_MAX: usize = 1024;
/// How many of the latest entries are searched for one of the same partition and second.
const LOOKBACK_ENTRIES: usize = 32;

/// Throttled requests at one partition within one second.
#[derive(Clone, Debug, PartialEq)]
pub struct ThrottleEntry {
    pub ts_s: u64,
    pub database: String,
    pub container: String,
    pub rid: ContainerRid,
    /// The details of the first of these requests.
    pub throttle: Throttle,
    pub over: ExceededLimit,
    pub throttled: u64,
    /// The activity of the first of these requests, for the client's own log.
    pub activity: ActivityId,
}

#[derive(Default)]
pub(crate) struct ThrottleLog {
    entries: Mutex<VecDeque<ThrottleEntry>>,
}

impl ThrottleLog {
    pub fn record(&self, now_ms: u64, at: &Admitted, throttle: &Throttle, over: ExceededLimit) {
        let container = at.container();
        let (ts_s, rid) = (now_ms / 1000, container.rid);
        let mut entries = self.entries.lock();
        let is_same = |entry: &&mut ThrottleEntry| {
            entry.ts_s == ts_s && entry.rid == rid && entry.throttle.range == throttle.range && entry.over == over
        };
        if let Some(entry) = entries.iter_mut().rev().take(LOOKBACK_ENTRIES).find(is_same) {
            entry.throttled += 1;
            return;
        }
        if entries.len() == ENTRIES_MAX {
            entries.pop_front();
        }
        let (database, name) = (container.database.clone(), container.definition.id.clone());
        entries.push_back(ThrottleEntry {
            ts_s,
            database,
            container: name,
            rid,
            throttle: throttle.clone(),
            over,
            throttled: 1,
            activity: at.activity(),
        });
    }

    /// The latest last.
    pub fn entries(&self) -> Vec<ThrottleEntry> {
        self.entries.lock().iter().cloned().collect()
    }
}
