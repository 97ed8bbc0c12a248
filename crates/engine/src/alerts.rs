//! Alerts: hot partitions and nearly full partition keys.
//!
//! Guarantees: an alert is raised once per cause (a partition and minute; a key that passes seven tenths of its
//! limit), and never on the path of a request. The program decides where alerts go besides the log.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pleiad_model::Result;
use pleiad_partition::key::LargeKey;

use pleiad_partition::Partition;

use crate::catalog::Container;
use crate::{Action, Admitted, Engine, WholeAccount, metrics};

/// Something an operator should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    pub ts_s: u64,
    pub database: String,
    pub container: String,
    pub range: u32,
    pub kind: AlertKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlertKind {
    /// A partition throttled requests in the previous minute.
    HotPartition { share_ru: f64, throttled: u64, busiest_key: Option<String> },
    /// A logical partition holds more than seven tenths of its size limit.
    KeyNearlyFull { key: String, bytes: u64, bytes_max: u64 },
}

impl AlertKind {
    pub fn name(&self) -> &'static str {
        match self {
            AlertKind::HotPartition { .. } => "HotPartition",
            AlertKind::KeyNearlyFull { .. } => "KeyNearlyFull",
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Alert { database, container, range, .. } = self;
        write!(f, "partition key range {range} of {database}/{container}")?;
        match &self.kind {
            AlertKind::HotPartition { share_ru, throttled, busiest_key } => {
                write!(f, " refused {throttled} requests in a minute; its share is {share_ru} RU/s")?;
                busiest_key.iter().try_for_each(|key| write!(f, ", the busiest key is {key}"))
            }
            AlertKind::KeyNearlyFull { key, bytes, bytes_max } => {
                write!(f, ": the partition key {key} holds {bytes} bytes of at most {bytes_max}")
            }
        }
    }
}

/// How many recent alerts are retained.
const ALERTS_MAX: usize = 256;

/// The recent alerts, their number since the start, and the minute of the last check.
#[derive(Default)]
pub(crate) struct AlertLog {
    minute: AtomicU64,
    raised: AtomicU64,
    recent: Mutex<VecDeque<Alert>>,
}

impl AlertLog {
    fn record(&self, alerts: &[Alert]) {
        self.raised.fetch_add(alerts.len() as u64, Ordering::Relaxed);
        let mut recent = self.recent.lock();
        recent.extend(alerts.iter().cloned());
        let surplus = recent.len().saturating_sub(ALERTS_MAX);
        recent.drain(..surplus);
    }
}

impl Engine {
    /// Raises the alerts that are due since the last call. To be called every few seconds.
    pub fn raise_alerts(&self, at: &Admitted<WholeAccount>) -> Result<Vec<Alert>> {
        at.check(Action::Monitor)?;
        let now_ms = self.now_ms();
        let minute = now_ms / 60_000;
        let is_new_minute = self.alert_log.minute.swap(minute, Ordering::Relaxed) != minute;
        let tree = self.catalog.tree();
        let mut alerts = Vec::new();
        for container in tree.databases.values().flat_map(|database| database.containers.values()) {
            for partition in &container.partitions {
                alerts.extend(nearly_full(container, partition, now_ms));
                if is_new_minute {
                    alerts.extend(hot(container, partition, now_ms));
                }
            }
        }
        self.alert_log.record(&alerts);
        alerts.iter().for_each(|alert| tracing::warn!(kind = alert.kind.name(), "{alert}"));
        Ok(alerts)
    }

    /// Finds the largest keys of each partition that was written to since the last refresh. To be called now and then.
    pub async fn refresh_key_statistics(&self, at: &Admitted<WholeAccount>) -> Result<()> {
        at.check(Action::Monitor)?;
        let tree = self.catalog.tree();
        for container in tree.databases.values().flat_map(|database| database.containers.values()) {
            for partition in &container.partitions {
                partition.refresh_key_statistics().await?;
            }
        }
        Ok(())
    }

    /// The alerts that were raised recently, the latest last.
    pub fn recent_alerts(&self, at: &Admitted<WholeAccount>) -> Result<Vec<Alert>> {
        at.check(Action::Monitor)?;
        Ok(self.alert_log.recent.lock().iter().cloned().collect())
    }

    pub(crate) fn alerts_raised(&self) -> u64 {
        self.alert_log.raised.load(Ordering::Relaxed)
    }
}

fn hot(container: &Container, partition: &Partition, now_ms: u64) -> Option<Alert> {
    let usage = partition.governor.usage();
    let throttled = usage.throttled_in_minute((now_ms / 60_000).saturating_sub(1));
    if throttled == 0 {
        return None;
    }
    let busiest_key = usage.busiest_keys(now_ms, 1).pop().and_then(|busy| metrics::key_text(&busy.components));
    let kind = AlertKind::HotPartition { share_ru: partition.governor.share_ru(), throttled, busiest_key };
    Some(alert(container, partition, now_ms, kind))
}

fn nearly_full(container: &Container, partition: &Partition, now_ms: u64) -> Vec<Alert> {
    let bytes_max = container.schema.size_limits.key_bytes_max;
    let to_alert = |large: LargeKey| {
        let key = metrics::key_text(&large.components)?;
        let kind = AlertKind::KeyNearlyFull { key, bytes: large.stats.bytes, bytes_max };
        Some(alert(container, partition, now_ms, kind))
    };
    partition.large_keys.take_nearly_full().into_iter().filter_map(to_alert).collect()
}

fn alert(container: &Container, partition: &Partition, now_ms: u64, kind: AlertKind) -> Alert {
    let (database, container) = (container.database.clone(), container.definition.id.clone());
    Alert { ts_s: now_ms / 1000, database, container, range: partition.range.id, kind }
}

#[cfg(test)]
mod tests;
