//! Usage: throttled requests, metrics under Cosmos DB's names, alerts.

use pleiad_engine::metrics::{ContainerMetrics, PartitionMetrics};
use pleiad_engine::{Action, ProvisionedThroughput, ThrottleEntry};
use pleiad_model::{ExceededLimit, Object, Value, json};

use super::{ManagementApi, list};
use crate::nosql::reply::Handled;
use crate::webhook::alert_json;

impl ManagementApi<'_> {
    /// Newest last.
    pub(super) fn throttles(&self) -> Handled {
        list("throttles", self.engine.throttles(&self.admit(Action::Monitor)?)?.iter().map(throttle_json).collect())
    }

    /// Newest last.
    pub(super) fn alerts(&self) -> Handled {
        let alerts = self.engine.recent_alerts(&self.admit(Action::Monitor)?)?;
        list("alerts", alerts.iter().map(|alert| alert_json(alert).into()).collect())
    }

    pub(super) fn metrics(&self) -> Handled {
        let mut rows = Vec::new();
        for container in &self.engine.metrics(&self.admit(Action::Monitor)?)?.containers {
            let mut metric_list = MetricList { metrics: container, rows: &mut rows };
            metric_list.add_container();
            container.partitions.iter().for_each(|partition| metric_list.add_partition(partition));
        }
        list("metrics", rows)
    }
}

/// The metrics of one container, appended to the list.
struct MetricList<'a> {
    metrics: &'a ContainerMetrics,
    rows: &'a mut Vec<Value>,
}

impl MetricList<'_> {
    fn add_container(&mut self) {
        let sum = |figure: fn(&PartitionMetrics) -> u64| self.metrics.partitions.iter().map(figure).sum::<u64>() as f64;
        let (items, bytes) = (sum(|partition| partition.items), sum(|partition| partition.item_bytes));
        self.add("DocumentCount", "Count", items, &[]);
        self.add("DataUsage", "Bytes", bytes, &[]);
        match self.metrics.throughput {
            Some(ProvisionedThroughput::Manual(ru)) => self.add("ProvisionedThroughput", "Count", ru.into(), &[]),
            Some(ProvisionedThroughput::Autoscale { max, .. }) => {
                self.add("AutoscaleMaxThroughput", "Count", max.into(), &[]);
            }
            None => {}
        }
        if let Some(ru) = self.metrics.autoscaled_ru {
            self.add("AutoscaledRU", "Count", ru, &[]);
        }
        if let Some(index) = &self.metrics.global_index {
            let status = ("GlobalSecondaryIndexStatus", index.status);
            let lag_s = index.lag_ms as f64 / 1000.0;
            self.add("GlobalSecondaryIndexPropagationLatency", "Seconds", lag_s, &[status]);
        }
    }

    fn add_partition(&mut self, partition: &PartitionMetrics) {
        let id = partition.range.to_string();
        let range = ("PartitionKeyRangeId", id.as_str());
        self.add("PhysicalPartitionSizeInfo", "Bytes", partition.item_bytes as f64, &[range]);
        self.add("PhysicalPartitionThroughputInfo", "Count", partition.share_ru, &[range]);
        self.add("NormalizedRUConsumption", "Percent", partition.normalized * 100.0, &[range]);
        self.add("TotalRequestUnits", "Count", partition.total_ru, &[range]);
        self.add("TotalRequests", "Count", partition.requests as f64, &[range]);
        self.add("TotalRequests", "Count", partition.requests_throttled as f64, &[range, ("StatusCode", "429")]);
        for busy in &partition.busiest_keys {
            self.add("PartitionKeyRUConsumption", "Count", busy.ru, &[range, ("PartitionKey", &busy.key)]);
        }
        for large in &partition.largest_keys {
            let kb = large.bytes.div_ceil(1024) as f64;
            self.add("PartitionKeyStatistics", "KB", kb, &[range, ("PartitionKey", &large.key)]);
        }
    }

    fn add(&mut self, name: &str, unit: &str, value: f64, more: &[(&str, &str)]) {
        let named = Object::new()
            .with("DatabaseName", self.metrics.database.as_str())
            .with("CollectionName", self.metrics.container.as_str());
        let dimensions = more.iter().fold(named, |all, (name, value)| all.with(*name, *value));
        let value = (value * 100.0).round() / 100.0;
        let row = Object::new().with("name", name).with("unit", unit).with("value", value);
        self.rows.push(row.with("dimensions", dimensions).into());
    }
}

fn throttle_json(entry: &ThrottleEntry) -> Value {
    let over = match entry.over {
        ExceededLimit::Share => "partition",
        ExceededLimit::Bucket => "throughputBucket",
    };
    let mut shown = Object::new()
        .with("time", entry.ts_s)
        .with("database", entry.database.as_str())
        .with("container", entry.container.as_str())
        .with("partitionKeyRangeId", entry.throttle.range.to_string())
        .with("refused", entry.throttled)
        .with("over", over)
        .with("throughput", entry.throttle.share_ru)
        .with("used", entry.throttle.used_ru)
        .with("activityId", entry.activity.as_str());
    if let Some(key) = entry.throttle.busiest_key.as_ref().and_then(|key| json::parse(key.as_bytes()).ok()) {
        shown.set("busiestKey", key);
    }
    shown.into()
}
