//! Throughput: what may be reserved, and how many partitions it takes.

use pleiad_model::{Error, Kind, Result};

use crate::Limits;

pub const MANUAL_RU_MIN: u32 = 400;
pub const MANUAL_RU_STEP: u32 = 100;
pub const AUTOSCALE_RU_MIN: u32 = 1000;
pub const AUTOSCALE_RU_STEP: u32 = 1000;
pub const RU_MAX: u32 = 1_000_000;
/// A container without a partition key is one partition for good.
pub const FIXED_RU_MAX: u32 = 10_000;

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

/// What is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionedThroughput {
    Manual(u32),
    Autoscale { max: u32, increment_percent: Option<i64> },
}

impl ThroughputRequest {
    /// Checks the figures; `None` when nothing was asked for.
    pub fn check(self) -> Result<Option<ProvisionedThroughput>> {
        Ok(match self {
            ThroughputRequest::Unspecified => None,
            ThroughputRequest::Manual(asked) => {
                Some(ProvisionedThroughput::Manual(bounded(asked, MANUAL_RU_MIN, MANUAL_RU_STEP)?))
            }
            ThroughputRequest::Autoscale { max, increment_percent } => {
                let max = bounded(max, AUTOSCALE_RU_MIN, AUTOSCALE_RU_STEP)?;
                Some(ProvisionedThroughput::Autoscale { max, increment_percent })
            }
        })
    }
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

    /// How low a replace may go after `highest` was once reserved.
    pub fn minimum_ru(self, highest: u32) -> u32 {
        match self {
            ProvisionedThroughput::Manual(_) => (highest / 100).max(MANUAL_RU_MIN).next_multiple_of(MANUAL_RU_STEP),
            ProvisionedThroughput::Autoscale { .. } => {
                (highest / 10).max(AUTOSCALE_RU_MIN).next_multiple_of(AUTOSCALE_RU_STEP)
            }
        }
    }

    /// How many partitions a new container starts with.
    pub fn partitions(self, limits: &Limits) -> u32 {
        match self {
            ProvisionedThroughput::Manual(ru) => ru.div_ceil(limits.partition_ru_initial.max(1)),
            ProvisionedThroughput::Autoscale { max, .. } => max.div_ceil(limits.partition_ru_max.max(1)),
        }
        .max(1)
    }
}

fn bounded(asked: i64, min: u32, step: u32) -> Result<u32> {
    let ru = u32::try_from(asked).unwrap_or(if asked < 0 { 0 } else { u32::MAX });
    if ru < min {
        return Err(Error::invalid(format!(
            "Requested throughput {asked} is less than required minimum throughput {min}"
        )));
    }
    if ru > RU_MAX {
        return Err(Error::invalid(format!(
            "Requested throughput {asked} is greater than the maximum throughput {RU_MAX}"
        )));
    }
    if ru % step != 0 {
        return Err(Error::invalid(format!(
            "The offer should have valid throughput values between {min} and {RU_MAX} inclusive in increments of {step}."
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
mod tests {
    use super::*;

    fn manual(ru: i64) -> Result<Option<ProvisionedThroughput>> {
        ThroughputRequest::Manual(ru).check()
    }

    fn partitions(ru: i64, initial: u32) -> u32 {
        let limits = Limits { partition_ru_initial: initial, ..Limits::default() };
        manual(ru).unwrap().unwrap().partitions(&limits)
    }

    #[test]
    fn s83_the_minimum_is_400_and_s62_steps_are_100() {
        assert!(manual(400).is_ok() && manual(10_100).is_ok());
        assert!(manual(300).is_err() && manual(399).is_err() && manual(10_050).is_err() && manual(-1).is_err());
        assert!(manual(1_000_000).is_ok() && manual(1_000_100).is_err());
    }

    #[test]
    fn s44_s57_partitions_follow_throughput() {
        assert_eq!([400, 10_000, 20_000, 45_000].map(|ru| partitions(ru, 10_000)), [1, 1, 2, 5]);
        assert_eq!([400, 11_000, 12_000, 30_000].map(|ru| partitions(ru, 6_000)), [1, 2, 2, 5]);
    }

    #[test]
    fn s54_s55_the_default_limits() {
        let limits = Limits::default();
        assert_eq!(
            (limits.partition_ru_max, limits.partition_bytes_max >> 30, limits.key_bytes_max >> 30),
            (10_000, 50, 20)
        );
    }

    #[test]
    fn autoscale_has_a_minimum_and_reports_a_tenth() {
        let ask = |max| ThroughputRequest::Autoscale { max, increment_percent: None }.check();
        assert!(ask(1000).is_ok() && ask(900).is_err() && ask(1500).is_err());
        assert_eq!(
            ask(-200).unwrap_err().message,
            "Requested throughput -200 is less than required minimum throughput 1000"
        );
        assert_eq!(ask(5000).unwrap().unwrap().reported_ru(), 500);
    }

    #[test]
    fn s80_a_container_without_a_key_stays_small() {
        assert!(check_fixed(ProvisionedThroughput::Manual(10_000)).is_ok());
        assert!(check_fixed(ProvisionedThroughput::Manual(10_100)).is_err());
    }

    #[test]
    fn the_minimum_follows_the_highest_ever() {
        let manual = ProvisionedThroughput::Manual(400);
        assert_eq!([400, 30_000, 50_000, 1_000_000].map(|highest| manual.minimum_ru(highest)), [400, 400, 500, 10_000]);
    }
}
