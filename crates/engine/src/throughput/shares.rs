//! Throughput shares: divides the provisioned throughput among physical partitions.
//!
//! Invariant: throughput is divided only here, when the account is opened and whenever a tree is published. So a new
//! partition map, a replaced offer or another container in a shared database takes effect with the tree that contains
//! it.
//!
//! ```text
//! dedicated    T over N partitions          T/N each, or as redistributed, never more than a partition can provide
//! shared       T over P slots, T/P each     partition i of N uses slot i·P/N together with the other containers
//! serverless   nothing provisioned          the documented maximum per partition
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_partition::Partition;
use pleiad_partition::governor::{Caps, Governor, GovernorConfig};

use super::{MANUAL_RU_MIN, ProvisionedThroughput, Redistribution};
use crate::PartitionLimits;
use crate::catalog::{CatalogTree, Container, Database, Offer, OfferOwner};

/// The throughput that the containers of a database share: one governor per slot. Successive trees share it.
#[derive(Debug, Default)]
pub struct SharedThroughput(Mutex<Vec<Arc<Governor>>>);

impl SharedThroughput {
    fn slots(&self, count: usize) -> Vec<Arc<Governor>> {
        let mut slots = self.0.lock();
        slots.resize_with(count, Arc::default);
        slots.clone()
    }
}

/// Gives every partition of the tree its share.
pub(crate) fn divide(tree: &CatalogTree, limits: &PartitionLimits) {
    let offers: HashMap<OfferOwner, &Offer> = tree.offers.values().map(|offer| (offer.owner, &**offer)).collect();
    for database in tree.databases.values() {
        let mut sharing = Vec::new();
        for container in database.containers.values() {
            match offers.get(&OfferOwner::Container(container.rid)) {
                _ if limits.governance.serverless => set_all_partitions(container, serverless(limits)),
                Some(offer) => dedicate(container, offer, limits),
                None => sharing.push(&**container),
            }
        }
        match offers.get(&OfferOwner::Database(database.rid)) {
            Some(offer) => share(database, &sharing, offer.throughput, limits),
            // Created without an offer while the account was serverless: it gets the minimum.
            None => sharing.iter().for_each(|container| {
                set_all_partitions(
                    container,
                    governor_config(f64::from(MANUAL_RU_MIN) / partition_count(container), limits),
                );
            }),
        }
    }
}

fn serverless(limits: &PartitionLimits) -> GovernorConfig {
    GovernorConfig { burst: false, ..governor_config(f64::from(limits.governance.serverless_partition_ru), limits) }
}

fn governor_config(share_ru: f64, limits: &PartitionLimits) -> GovernorConfig {
    let governance = &limits.governance;
    let share_ru = share_ru.min(f64::from(limits.partition_ru_max));
    GovernorConfig { share_ru, enforced: governance.enforced, burst: governance.burst, caps: Caps::default() }
}

fn set_all_partitions(container: &Container, config: GovernorConfig) {
    container.partitions.iter().for_each(|partition| partition.governor.set(&config, None));
}

fn dedicate(container: &Container, offer: &Offer, limits: &PartitionLimits) {
    let ceiling_ru = f64::from(offer.throughput.ceiling_ru());
    let ranges = container.map.ranges();
    for partition in &container.partitions {
        let fraction = fraction(&offer.redistribution, ranges, &partition.range);
        let config = GovernorConfig { caps: offer.caps, ..governor_config(ceiling_ru * fraction, limits) };
        partition.governor.set(&config, None);
    }
}

/// A range's fraction of the offer. The children of a split divide their parent's share among them.
pub(crate) fn fraction(
    redistribution: &Redistribution,
    ranges: &[PartitionKeyRange],
    range: &PartitionKeyRange,
) -> f64 {
    let weight = |range: &PartitionKeyRange| -> f64 {
        let known = |id: &u32| redistribution.ru_of(*id).map(|ru| (*id, f64::from(ru)));
        let parent = || {
            let (id, ru) = range.parents.iter().rev().find_map(known)?;
            let descendants = ranges.iter().filter(|other| other.parents.contains(&id)).count();
            Some(ru / descendants.max(1) as f64)
        };
        known(&range.id).map(|(_, ru)| ru).or_else(parent).unwrap_or(1.0)
    };
    weight(range) / ranges.iter().map(weight).sum::<f64>()
}

fn share(database: &Database, sharing: &[&Container], throughput: ProvisionedThroughput, limits: &PartitionLimits) {
    let partitions_max = sharing.iter().map(|container| container.partitions.len()).max().unwrap_or(1);
    let wanted = super::partitions_needed(throughput.ceiling_ru(), limits.partition_ru_max);
    let slots = usize::try_from(wanted).unwrap_or(partitions_max).min(partitions_max).max(1);
    let config = governor_config(f64::from(throughput.ceiling_ru()) / slots as f64, limits);
    let slots = database.pool.slots(slots);
    slots.iter().for_each(|slot| slot.set(&config, None));
    for container in sharing {
        let partitions = container.partitions.len();
        for (at, partition) in container.partitions.iter().enumerate() {
            set_shared(partition, slots.get(at * slots.len() / partitions.max(1)), &config);
        }
    }
}

/// The partition's own governor counts usage; the slot's governor throttles.
fn set_shared(partition: &Partition, slot: Option<&Arc<Governor>>, config: &GovernorConfig) {
    partition.governor.set(config, slot.cloned());
}

fn partition_count(container: &Container) -> f64 {
    container.partitions.len().max(1) as f64
}
