//! Limits profiles: the limits that the service documented in earlier years.
//!
//! A profile sets only the limits that the documentation of its year states; the others have their current values. An
//! explicit setting takes precedence over the profile.

use super::value::Profile;

const GIB: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsProfile {
    pub partition_bytes_max: u64,
    pub key_bytes_max: u64,
    /// Minimum and maximum provisioned throughput of a container with a partition key.
    pub container_ru_min: u64,
    pub container_ru_max: u64,
}

const CURRENT: LimitsProfile = LimitsProfile {
    partition_bytes_max: 50 * GIB,
    key_bytes_max: 20 * GIB,
    container_ru_min: 400,
    container_ru_max: 1_000_000,
};

impl Profile {
    pub fn limits(self) -> LimitsProfile {
        match self {
            Profile::Of2016 => LimitsProfile {
                partition_bytes_max: 10 * GIB,
                key_bytes_max: 10 * GIB,
                container_ru_min: 10_100,
                container_ru_max: 250_000,
            },
            Profile::Of2017 => LimitsProfile {
                partition_bytes_max: 10 * GIB,
                key_bytes_max: 10 * GIB,
                container_ru_min: 2_500,
                ..CURRENT
            },
            Profile::Of2018 => LimitsProfile { key_bytes_max: 10 * GIB, ..CURRENT },
            Profile::Current => CURRENT,
        }
    }
}
