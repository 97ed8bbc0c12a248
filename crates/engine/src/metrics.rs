//! Account metrics: throughput and storage by physical partition, and the busiest and largest keys.
//!
//! Guarantees: collecting metrics does not slow down requests. Usage figures are exact; the busiest keys are sampled,
//! and the largest keys are as old as the last refresh of the key statistics (`alerts`). The protocol layer names
//! the time series.

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::resource_id::ContainerRid;
use pleiad_partition::Partition;
use pleiad_partition::key::LargeKey;
use pleiad_partition::usage::{BusyKey, KEYS_REPORTED};

use crate::catalog::{CatalogTree, Container, Offer, OfferOwner};
use crate::{Action, Admitted, Engine, ProvisionedThroughput, WholeAccount};

#[derive(Clone, Debug, Default)]
pub struct AccountMetrics {
    pub containers: Vec<ContainerMetrics>,
    /// Alerts raised since the start.
    pub alerts: u64,
}

#[derive(Clone, Debug)]
pub struct ContainerMetrics {
    pub database: String,
    pub container: String,
    pub rid: ContainerRid,
    /// Its own throughput, or its database's if it shares that.
    pub throughput: Option<ProvisionedThroughput>,
    /// The RU/s that an autoscale resource scaled to in the last hour: its busiest second, a tenth of the maximum at
    /// least.
    pub autoscaled_ru: Option<f64>,
    /// Set for a global secondary index.
    pub global_index: Option<IndexMetrics>,
    pub partitions: Vec<PartitionMetrics>,
}

/// How far a global secondary index has followed its source.
#[derive(Clone, Debug)]
pub struct IndexMetrics {
    /// The service's term for built or being built.
    pub status: &'static str,
    pub built_percent: u64,
    /// For how long the source has had changes that the index has not applied.
    pub lag_ms: u64,
}

#[derive(Clone, Debug)]
pub struct PartitionMetrics {
    /// The partition key range.
    pub range: u32,
    pub share_ru: f64,
    /// The RUs of the busiest second of this minute and the last, as a fraction of the share.
    pub normalized: f64,
    /// The RUs of the previous second.
    pub last_second_ru: f64,
    pub total_ru: f64,
    /// The RUs beyond what one request may leave owing.
    pub forgiven_ru: f64,
    pub requests: u64,
    pub requests_throttled: u64,
    pub items: u64,
    pub item_bytes: u64,
    /// The keys that consumed most RUs in this minute and the last.
    pub busiest_keys: Vec<KeyCharge>,
    pub largest_keys: Vec<KeySize>,
}

/// A partition key, as clients write it, and the RUs it consumed.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyCharge {
    pub key: String,
    pub ru: f64,
}

/// A partition key, as clients write it, and its size.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySize {
    pub key: String,
    pub bytes: u64,
    pub items: u64,
}

impl Engine {
    pub fn metrics(&self, at: &Admitted<WholeAccount>) -> pleiad_model::Result<AccountMetrics> {
        at.check(Action::Monitor)?;
        let (tree, now_ms) = (self.catalog.tree(), self.now_ms());
        let containers = tree.databases.values().flat_map(|database| database.containers.values());
        let containers = containers.map(|container| container_metrics(&tree, container, now_ms)).collect();
        Ok(AccountMetrics { containers, alerts: self.alerts_raised() })
    }
}

pub(crate) fn container_metrics(tree: &CatalogTree, container: &Container, now_ms: u64) -> ContainerMetrics {
    let throughput = offer_of(tree, container).map(|offer| offer.throughput);
    let busiest = || container.partitions.iter().map(|partition| partition.governor.usage().normalized_in_hour(now_ms));
    let autoscaled_ru = match throughput {
        Some(ProvisionedThroughput::Autoscale { max, .. }) => Some(f64::from(max) * busiest().fold(0.1, f64::max)),
        _ => None,
    };
    ContainerMetrics {
        database: container.database.clone(),
        container: container.definition.id.clone(),
        rid: container.rid,
        throughput,
        autoscaled_ru,
        global_index: container.definition.global_index.is_some().then(|| IndexMetrics {
            status: container.index_status(),
            built_percent: container.progress.percent(),
            lag_ms: container.progress.behind_ms(now_ms),
        }),
        partitions: container.partitions.iter().map(|partition| partition_metrics(partition, now_ms)).collect(),
    }
}

fn offer_of<'t>(tree: &'t CatalogTree, container: &Container) -> Option<&'t Offer> {
    let own = tree.offer(OfferOwner::Container(container.rid));
    own.or_else(|| tree.offer(OfferOwner::Database(container.rid.database))).map(|offer| &**offer)
}

fn partition_metrics(partition: &Partition, now_ms: u64) -> PartitionMetrics {
    let (usage, stored) = (partition.governor.usage(), partition.shard_state());
    let minute = now_ms / 60_000;
    PartitionMetrics {
        range: partition.range.id,
        share_ru: partition.governor.share_ru(),
        normalized: usage.normalized(minute).max(usage.normalized(minute.saturating_sub(1))),
        last_second_ru: usage.second_ru((now_ms / 1000).saturating_sub(1)),
        total_ru: usage.total_ru(),
        forgiven_ru: usage.forgiven_ru(),
        requests: usage.requests(),
        requests_throttled: usage.requests_throttled(),
        items: stored.items,
        item_bytes: stored.item_bytes,
        busiest_keys: usage.busiest_keys(now_ms, KEYS_REPORTED).into_iter().filter_map(|busy| charge(&busy)).collect(),
        largest_keys: partition.large_keys.largest().iter().filter_map(size).collect(),
    }
}

fn charge(busy: &BusyKey) -> Option<KeyCharge> {
    Some(KeyCharge { key: key_text(&busy.components)?, ru: busy.ru })
}

fn size(large: &LargeKey) -> Option<KeySize> {
    Some(KeySize { key: key_text(&large.components)?, bytes: large.stats.bytes, items: large.stats.items })
}

pub(crate) fn key_text(components: &[u8]) -> Option<String> {
    PartitionKey::decode_components(components).ok().map(|key| key.to_json())
}

#[cfg(test)]
mod tests;
