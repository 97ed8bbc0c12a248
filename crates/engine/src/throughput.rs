//! Provisioned throughput: which values are valid, how many partitions they need, and how they are divided among them.
//!
//! Requested values are checked here. The governor admits requests against the result.

mod redistribute; // explicit RU/s per partition
mod shares; // the RU/s of each partition

use pleiad_model::{Error, Kind, Result};

pub use redistribute::Redistribution;
pub(crate) use redistribute::{check_caps, redistributed};
pub use shares::SharedThroughput;
pub(crate) use shares::divide;

use crate::PartitionLimits;

pub const MANUAL_RU_MIN: u32 = 400;
pub const MANUAL_RU_STEP: u32 = 100;
pub const AUTOSCALE_RU_MIN: u32 = 1000;
pub const AUTOSCALE_RU_STEP: u32 = 1000;
pub const RU_MAX: u32 = 1_000_000;
/// A container without a partition key always has one partition.
pub const FIXED_RU_MAX: u32 = 10_000;
/// RU/s of a partition in a serverless account.
pub const SERVERLESS_PARTITION_RU: u32 = 5_000;
/// How many containers share their database's throughput at most.
pub const SHARED_CONTAINERS_MAX: usize = 25;

/// How throughput is provisioned and enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Governance {
    /// Whether requests are throttled; if not, usage is only counted.
    pub enforced: bool,
    /// No throughput is provisioned, and none can be.
    pub serverless: bool,
    /// Unused budget becomes burst credits.
    pub burst: bool,
    pub serverless_partition_ru: u32,
    /// The minimum of a container with a partition key.
    pub container_ru_min: u32,
    /// The maximum of a container or database.
    pub container_ru_max: u32,
}

impl Default for Governance {
    fn default() -> Self {
        Governance {
            enforced: false,
            serverless: false,
            burst: false,
            serverless_partition_ru: SERVERLESS_PARTITION_RU,
            container_ru_min: MANUAL_RU_MIN,
            container_ru_max: RU_MAX,
        }
    }
}

/// How many partitions provide this throughput.
pub fn partitions_needed(ru: u32, partition_ru_max: u32) -> u32 {
    ru.div_ceil(partition_ru_max.max(1)).max(1)
}

/// The throughput that a client requests for a new database or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThroughputRequest {
    /// A container then shares its database's throughput, or gets the minimum.
    Unspecified,
    Manual(i64),
    Autoscale {
        max: i64,
        increment_percent: Option<i64>,
    },
}

/// A requested change of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferChange {
    To(ThroughputRequest),
    /// To manual or autoscale, whatever the kind of the offer was before.
    ToEither(ThroughputRequest),
    /// To the other kind; the service chooses the value.
    ToAutoscale,
    ToManual,
}

/// The throughput of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionedThroughput {
    Manual(u32),
    Autoscale { max: u32, increment_percent: Option<i64> },
}

impl ThroughputRequest {
    /// Checks the values; `None` if none was requested.
    pub fn check(self, governance: &Governance) -> Result<Option<ProvisionedThroughput>> {
        if governance.serverless && self != ThroughputRequest::Unspecified {
            return Err(Error::invalid(
                "Setting offer throughput or autopilot on container is not supported for serverless accounts.",
            ));
        }
        let ru_max = governance.container_ru_max;
        Ok(match self {
            ThroughputRequest::Unspecified => None,
            ThroughputRequest::Manual(requested) => {
                Some(ProvisionedThroughput::Manual(bounded(requested, MANUAL_RU_MIN, ru_max, MANUAL_RU_STEP)?))
            }
            ThroughputRequest::Autoscale { max, increment_percent } => {
                let max = bounded(max, AUTOSCALE_RU_MIN, ru_max, AUTOSCALE_RU_STEP)?;
                Some(ProvisionedThroughput::Autoscale { max, increment_percent })
            }
        })
    }
}

/// What determines the minimum of an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferFloor {
    /// The highest throughput that was ever provisioned.
    pub highest_ru: u32,
    pub stored_bytes: u64,
    /// Containers that share it.
    pub sharing: usize,
    /// The minimum of a container of this kind.
    pub container_ru_min: u32,
}

impl OfferFloor {
    fn stored_gb(&self) -> u32 {
        u32::try_from(self.stored_bytes.div_ceil(1 << 30)).unwrap_or(u32::MAX)
    }

    /// Containers beyond the number that the base minimum includes.
    fn extra_containers(&self) -> u32 {
        u32::try_from(self.sharing.saturating_sub(SHARED_CONTAINERS_MAX)).unwrap_or(u32::MAX)
    }

    fn manual_min(&self) -> u32 {
        let figures = [
            self.container_ru_min.max(MANUAL_RU_MIN),
            self.stored_gb(),
            self.highest_ru / 100,
            MANUAL_RU_MIN.saturating_add(self.extra_containers().saturating_mul(100)),
        ];
        largest_in_steps(figures, MANUAL_RU_STEP)
    }

    fn autoscale_min(&self) -> u32 {
        let figures = [
            AUTOSCALE_RU_MIN,
            self.stored_gb().saturating_mul(10),
            self.highest_ru / 10,
            AUTOSCALE_RU_MIN.saturating_add(self.extra_containers().saturating_mul(1000)),
        ];
        largest_in_steps(figures, AUTOSCALE_RU_STEP)
    }
}

/// The largest value, rounded up to a whole step.
fn largest_in_steps<const N: usize>(figures: [u32; N], step: u32) -> u32 {
    let largest = figures.into_iter().max().unwrap_or(0);
    largest.checked_next_multiple_of(step).unwrap_or(RU_MAX)
}

impl ProvisionedThroughput {
    /// The most RU that can be used in a second.
    pub fn ceiling_ru(self) -> u32 {
        match self {
            ProvisionedThroughput::Manual(ru) => ru,
            ProvisionedThroughput::Autoscale { max, .. } => max,
        }
    }

    /// The throughput that is reported as current: an idle autoscale resource scales down to a tenth.
    pub fn reported_ru(self) -> u32 {
        match self {
            ProvisionedThroughput::Manual(ru) => ru,
            ProvisionedThroughput::Autoscale { max, .. } => max / 10,
        }
    }

    /// The least throughput that a replace may set.
    pub fn minimum_ru(self, floor: &OfferFloor) -> u32 {
        match self {
            ProvisionedThroughput::Manual(_) => floor.manual_min(),
            ProvisionedThroughput::Autoscale { .. } => floor.autoscale_min(),
        }
    }

    /// The same throughput as autoscale, with the maximum that the service chooses.
    pub fn to_autoscale(self, floor: &OfferFloor) -> Self {
        let max = largest_in_steps([self.ceiling_ru(), floor.autoscale_min()], AUTOSCALE_RU_STEP);
        match self {
            ProvisionedThroughput::Manual(_) => ProvisionedThroughput::Autoscale { max, increment_percent: None },
            autoscale => autoscale,
        }
    }

    pub fn to_manual(self) -> Self {
        ProvisionedThroughput::Manual(self.ceiling_ru())
    }

    /// How many partitions a new container starts with.
    pub fn partitions(self, limits: &PartitionLimits) -> u32 {
        match self {
            ProvisionedThroughput::Manual(ru) => partitions_needed(ru, limits.partition_ru_initial),
            ProvisionedThroughput::Autoscale { max, .. } => partitions_needed(max, limits.partition_ru_max),
        }
        .max(1)
    }
}

fn bounded(asked: i64, min: u32, max: u32, step: u32) -> Result<u32> {
    let ru = u32::try_from(asked).unwrap_or(if asked < 0 { 0 } else { u32::MAX });
    if ru < min {
        return Err(Error::invalid(format!(
            "Requested throughput {asked} is less than required minimum throughput {min}"
        )));
    }
    if ru > max {
        return Err(Error::invalid(format!(
            "Requested throughput {asked} is greater than the maximum throughput {max}"
        )));
    }
    if ru % step != 0 {
        return Err(Error::invalid(format!(
            "The offer should have valid throughput values between {min} and {max} inclusive in increments of {step}."
        )));
    }
    Ok(ru)
}

/// A container without a partition key cannot have more than one partition.
pub fn check_fixed(throughput: ProvisionedThroughput) -> Result<()> {
    if throughput.ceiling_ru() <= FIXED_RU_MAX {
        return Ok(());
    }
    Err(Error::new(
        Kind::Invalid,
        format!(
            "A container without a partition key has at most {FIXED_RU_MAX} RU/s. Give it a partition key to reserve more."
        ),
    ))
}

#[cfg(test)]
mod tests;
