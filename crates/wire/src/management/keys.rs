//! Logical partitions: their number, the largest and the busiest.

use pleiad_engine::{Action, ContainerName, KeyOrder, KeyReport};
use pleiad_model::{Error, Object, Result, Value, json};

use super::request::ManagementRequest;
use super::{ManagementApi, list, ok};
use crate::nosql::reply::Handled;

const TOP_DEFAULT: usize = 20;
const TOP_MAX: usize = 1000;

impl ManagementApi<'_> {
    pub(super) async fn keys(&self, at: ContainerName<'_>, request: &ManagementRequest<'_>) -> Handled {
        let (top, by) = (top(request)?, order(request)?);
        let cap = self.engine.limits().key_bytes_max;
        let keys = self.engine.top_keys(&self.admit_container(Action::Monitor, at)?, by, top).await?;
        list("keys", keys.iter().map(|key| key_json(key, cap)).collect())
    }

    pub(super) async fn statistics(&self, at: ContainerName<'_>) -> Handled {
        let found = self.engine.statistics(&self.admit_container(Action::Monitor, at)?).await?;
        let partition = |one: &pleiad_engine::PartitionStatistics| {
            Object::new()
                .with("id", one.range.to_string())
                .with("logicalPartitions", one.keys)
                .with("items", one.items)
                .with("bytes", one.item_bytes)
                .into()
        };
        let sum = |of: fn(&pleiad_engine::PartitionStatistics) -> u64| found.iter().map(of).sum::<u64>();
        ok(Object::new()
            .with("logicalPartitions", sum(|one| one.keys))
            .with("items", sum(|one| one.items))
            .with("bytes", sum(|one| one.item_bytes))
            .with("partitions", found.iter().map(partition).collect::<Vec<Value>>()))
    }
}

fn top(request: &ManagementRequest<'_>) -> Result<usize> {
    let Some(text) = request.param("top")? else { return Ok(TOP_DEFAULT) };
    match text.parse() {
        Ok(top) if (1..=TOP_MAX).contains(&top) => Ok(top),
        _ => Err(Error::invalid(format!("'top' is {text:?}; it must be a number from 1 to {TOP_MAX}."))),
    }
}

fn order(request: &ManagementRequest<'_>) -> Result<KeyOrder> {
    match request.param("by")?.as_deref() {
        None | Some("size") => Ok(KeyOrder::Size),
        Some("ru") => Ok(KeyOrder::RequestUnits),
        Some(other) => Err(Error::invalid(format!("'by' is {other:?}; keys are ordered by size or by ru."))),
    }
}

/// `limitUse` is the size as a fraction of the maximum size of a logical partition.
fn key_json(key: &KeyReport, cap: u64) -> Value {
    let value = json::parse(key.key.to_json().as_bytes()).unwrap_or(Value::Null);
    let shown = Object::new().with("partitionKey", value).with("partitionKeyRangeId", key.range.to_string());
    match key.ru {
        Some(ru) => shown.with("requestUnits", ru).into(),
        None => shown
            .with("items", key.items)
            .with("bytes", key.bytes)
            .with("sizeKB", key.bytes.div_ceil(1024))
            .with("limitUse", fraction(key.bytes, cap))
            .into(),
    }
}

/// Rounded to four decimals.
fn fraction(of: u64, whole: u64) -> f64 {
    (of as f64 / whole.max(1) as f64 * 10_000.0).round() / 10_000.0
}
