//! Throughput redistribution: an operator moves RU/s from other partitions to hot ones.
//!
//! Invariant: no partition gets more than it can provide, and the offer afterwards is the sum of the shares, rounded up
//! to a valid step. When the offer changes later, the shares keep their proportions.

use std::collections::BTreeMap;

use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_model::{Error, Result};
use pleiad_partition::governor::Caps;

use super::shares::fraction;
use super::{AUTOSCALE_RU_STEP, MANUAL_RU_STEP, ProvisionedThroughput};
use crate::catalog::{Offer, OfferOwner};

/// How many partitions one request may name.
const TARGETS_MAX: usize = 20;

/// RU/s by partition key range; empty if they are divided evenly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redistribution(pub BTreeMap<u32, u32>);

impl Redistribution {
    pub fn ru_of(&self, range: u32) -> Option<u32> {
        self.0.get(&range).copied()
    }
}

/// The offer after these ranges get the target RU/s.
pub(crate) fn redistributed(
    old: &Offer,
    ranges: &[PartitionKeyRange],
    targets: &BTreeMap<u32, u32>,
    partition_ru_max: u32,
) -> Result<(Redistribution, ProvisionedThroughput)> {
    if targets.is_empty() {
        return Ok((Redistribution::default(), old.throughput));
    }
    check(ranges, targets, partition_ru_max)?;
    let current = |range: &PartitionKeyRange| {
        f64::from(old.throughput.ceiling_ru()) * fraction(&old.redistribution, ranges, range)
    };
    let share = |range: &PartitionKeyRange| targets.get(&range.id).copied().unwrap_or_else(|| round_ru(current(range)));
    let shares: BTreeMap<u32, u32> = ranges.iter().map(|range| (range.id, share(range))).collect();
    let sum = shares.values().fold(0u32, |sum, ru| sum.saturating_add(*ru));
    let throughput = match old.throughput {
        ProvisionedThroughput::Manual(_) => ProvisionedThroughput::Manual(in_steps(sum, MANUAL_RU_STEP)),
        ProvisionedThroughput::Autoscale { increment_percent, .. } => {
            ProvisionedThroughput::Autoscale { max: in_steps(sum, AUTOSCALE_RU_STEP), increment_percent }
        }
    };
    Ok((Redistribution(shares), throughput))
}

fn check(ranges: &[PartitionKeyRange], targets: &BTreeMap<u32, u32>, partition_ru_max: u32) -> Result<()> {
    if targets.len() > TARGETS_MAX {
        return Err(Error::invalid(format!("At most {TARGETS_MAX} partitions can be given throughput at once.")));
    }
    for (id, ru) in targets {
        if !ranges.iter().any(|range| range.id == *id) {
            return Err(Error::invalid(format!("The container has no partition key range {id}.")));
        }
        if *ru == 0 || *ru > partition_ru_max {
            return Err(Error::invalid(format!(
                "Partition key range {id} cannot have {ru} RU/s: a physical partition gives from 1 to {partition_ru_max}."
            )));
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share lies between 0 and the offer")]
fn round_ru(ru: f64) -> u32 {
    ru.round().max(1.0) as u32
}

fn in_steps(ru: u32, step: u32) -> u32 {
    ru.checked_next_multiple_of(step).unwrap_or(super::RU_MAX)
}

/// Throughput buckets divide the throughput of one container.
pub(crate) fn check_caps(caps: &Caps, owner: OfferOwner) -> Result<()> {
    if *caps == Caps::default() {
        return Ok(());
    }
    if matches!(owner, OfferOwner::Database(_)) {
        return Err(Error::invalid("Throughput buckets are not supported for throughput that a database shares."));
    }
    match caps.percent.iter().all(|percent| *percent <= 100) {
        true => Ok(()),
        false => Err(Error::invalid("A throughput bucket has from 1 to 100 percent.")),
    }
}
