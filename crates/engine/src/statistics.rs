//! Key statistics: the number of logical partitions, the largest and the busiest.
//!
//! Guarantees: memory is bounded by how many keys are requested, however many there are. Sizes are exact and take a
//! scan over all keys; request units are those of this minute and the one before, and are sampled.

use pleiad_model::Result;
use pleiad_model::partition_key::PartitionKey;

use crate::catalog::Container;
use crate::{Action, Admitted, Engine};

/// How logical partitions are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    Size,
    RequestUnits,
}

/// One logical partition. `items` and `bytes` are 0 for `KeyOrder::RequestUnits`.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyReport {
    pub key: PartitionKey,
    pub range: u32,
    pub items: u64,
    pub bytes: u64,
    /// The RUs it consumed recently; set for `KeyOrder::RequestUnits`.
    pub ru: Option<f64>,
}

/// Totals of the logical partitions of one physical partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStatistics {
    pub range: u32,
    pub keys: u64,
    pub items: u64,
    pub item_bytes: u64,
}

impl Engine {
    /// In the order of the hash space.
    pub async fn statistics(&self, at: &Admitted) -> Result<Vec<PartitionStatistics>> {
        at.check(Action::Monitor)?;
        let container = at.container();
        let mut all = Vec::with_capacity(container.partitions.len());
        for partition in &container.partitions {
            let (range, state) = (partition.range.id, partition.shard_state());
            let keys = partition.count_keys().await?;
            all.push(PartitionStatistics { range, keys, items: state.items, item_bytes: state.item_bytes });
        }
        Ok(all)
    }

    /// The first `top` logical partitions of a container, the largest or busiest first.
    pub async fn top_keys(&self, at: &Admitted, by: KeyOrder, top: usize) -> Result<Vec<KeyReport>> {
        at.check(Action::Monitor)?;
        match by {
            KeyOrder::Size => keys_by_size(at.container(), top).await,
            KeyOrder::RequestUnits => self.keys_by_use(at.container(), top),
        }
    }

    fn keys_by_use(&self, container: &Container, top: usize) -> Result<Vec<KeyReport>> {
        let mut all = Vec::new();
        for partition in &container.partitions {
            for busy in partition.governor.usage().busiest_keys(self.now_ms(), top) {
                let key = PartitionKey::decode_components(&busy.components)?;
                all.push(KeyReport { key, range: partition.range.id, items: 0, bytes: 0, ru: Some(busy.ru) });
            }
        }
        all.sort_by(|a, b| b.ru.unwrap_or(0.0).total_cmp(&a.ru.unwrap_or(0.0)));
        all.truncate(top);
        Ok(all)
    }
}

async fn keys_by_size(container: &Container, top: usize) -> Result<Vec<KeyReport>> {
    let mut all = Vec::new();
    for partition in &container.partitions {
        for large in partition.key_statistics(top).await?.largest {
            let (key, stats) = (PartitionKey::decode_components(&large.components)?, large.stats);
            let (range, items, bytes) = (partition.range.id, stats.items, stats.bytes);
            all.push(KeyReport { key, range, items, bytes, ru: None });
        }
    }
    all.sort_by_key(|report| std::cmp::Reverse(report.bytes));
    all.truncate(top);
    Ok(all)
}

#[cfg(test)]
mod tests;
