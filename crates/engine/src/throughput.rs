//! Throughput: what may be reserved, how many partitions it takes, and how it is divided over them.
//!
//! Figures are checked here, when a client asks for them. Who may use how much of a second is the governor's job.

mod redistribute; // divided by hand
mod shares; // what each partition may give

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
/// A container without a partition key is one partition for good.
pub const FIXED_RU_MAX: u32 = 10_000;
/// What a partition of a serverless account may give.
pub const SERVERLESS_PARTITION_RU: u32 = 5_000;
/// Containers that share their database's throughput.
pub const SHARED_CONTAINERS_MAX: usize = 25;

/// How throughput is reserved and held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Governance {
    /// Whether anybody is ever throttled; if not, use is only counted.
    pub enforced: bool,
    /// Nothing is reserved, and nothing can be.
    pub serverless: bool,
    /// Idle seconds are saved for later.
    pub burst: bool,
    pub serverless_partition_ru: u32,
    /// The least that a container with a partition key can reserve.
    pub container_ru_min: u32,
    /// The most that a container or database can reserve.
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

/// How many partitions it takes to give that much.
pub fn partitions_needed(ru: u32, partition_ru_max: u32) -> u32 {
    ru.div_ceil(partition_ru_max.max(1)).max(1)
}

/// What a client asks for when it creates a database or container.
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

/// How an offer is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferChange {
    To(ThroughputRequest),
    /// Manual or autoscale, whichever it was before.
    ToEither(ThroughputRequest),
    /// To the other kind, with the figure that the service gives it.
    ToAutoscale,
    ToManual,
}

/// What is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionedThroughput {
    Manual(u32),
    Autoscale { max: u32, increment_percent: Option<i64> },
}

impl ThroughputRequest {
    /// Checks the figures; `None` when nothing was asked for.
    pub fn check(self, governance: &Governance) -> Result<Option<ProvisionedThroughput>> {
        if governance.serverless && self != ThroughputRequest::Unspecified {
            return Err(Error::invalid(
                "Setting offer throughput or autopilot on container is not supported for serverless accounts.",
            ));
        }
        let ru_max = governance.container_ru_max;
        Ok(match self {
            ThroughputRequest::Unspecified => None,
            ThroughputRequest::Manual(asked) => {
                Some(ProvisionedThroughput::Manual(bounded(asked, MANUAL_RU_MIN, ru_max, MANUAL_RU_STEP)?))
            }
            ThroughputRequest::Autoscale { max, increment_percent } => {
                let max = bounded(max, AUTOSCALE_RU_MIN, ru_max, AUTOSCALE_RU_STEP)?;
                Some(ProvisionedThroughput::Autoscale { max, increment_percent })
            }
        })
    }
}

/// What bounds how low an offer may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferFloor {
    /// The most that was ever reserved.
    pub highest_ru: u32,
    pub stored_bytes: u64,
    /// Containers that share it.
    pub sharing: usize,
    /// The least of a container like this one.
    pub container_ru_min: u32,
}

impl OfferFloor {
    fn stored_gb(&self) -> u32 {
        u32::try_from(self.stored_bytes.div_ceil(1 << 30)).unwrap_or(u32::MAX)
    }

    /// Containers beyond those that every database may have.
    fn further(&self) -> u32 {
        u32::try_from(self.sharing.saturating_sub(SHARED_CONTAINERS_MAX)).unwrap_or(u32::MAX)
    }

    fn manual_min(&self) -> u32 {
        let figures = [
            self.container_ru_min.max(MANUAL_RU_MIN),
            self.stored_gb(),
            self.highest_ru / 100,
            MANUAL_RU_MIN.saturating_add(self.further().saturating_mul(100)),
        ];
        whole(figures, MANUAL_RU_STEP)
    }

    fn autoscale_min(&self) -> u32 {
        let figures = [
            AUTOSCALE_RU_MIN,
            self.stored_gb().saturating_mul(10),
            self.highest_ru / 10,
            AUTOSCALE_RU_MIN.saturating_add(self.further().saturating_mul(1000)),
        ];
        whole(figures, AUTOSCALE_RU_STEP)
    }
}

/// The largest, in whole steps.
fn whole<const N: usize>(figures: [u32; N], step: u32) -> u32 {
    let largest = figures.into_iter().max().unwrap_or(0);
    largest.checked_next_multiple_of(step).unwrap_or(RU_MAX)
}

impl ProvisionedThroughput {
    /// The most that can be used in a second.
    pub fn ceiling_ru(self) -> u32 {
        match self {
            ProvisionedThroughput::Manual(ru) => ru,
            ProvisionedThroughput::Autoscale { max, .. } => max,
        }
    }

    /// What is reported as reserved now: an idle autoscale resource rests at a tenth.
    pub fn reported_ru(self) -> u32 {
        match self {
            ProvisionedThroughput::Manual(ru) => ru,
            ProvisionedThroughput::Autoscale { max, .. } => max / 10,
        }
    }

    /// How low a replace may go.
    pub fn minimum_ru(self, held: &OfferFloor) -> u32 {
        match self {
            ProvisionedThroughput::Manual(_) => held.manual_min(),
            ProvisionedThroughput::Autoscale { .. } => held.autoscale_min(),
        }
    }

    /// The same as autoscale: the maximum that the service chooses.
    pub fn to_autoscale(self, held: &OfferFloor) -> Self {
        let max = whole([self.ceiling_ru(), held.autoscale_min()], AUTOSCALE_RU_STEP);
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

/// A container without a partition key cannot grow past one partition.
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
