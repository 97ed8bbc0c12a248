//! What every answer tells besides its result: what it cost and which partition gave it.

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Partition;

/// The partition that served a request, and how far it had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLsn {
    pub range: u32,
    pub lsn: u64,
}

/// A result with its price. Refusals cost too, and tell their place as well.
#[derive(Debug)]
pub struct EngineResponse<T> {
    pub result: Result<T>,
    pub place: Option<PartitionLsn>,
    pub charge_ru: f64,
}

impl<T> EngineResponse<T> {
    /// Who was throttled pays nothing: nothing was done.
    pub fn refused(error: Error) -> Self {
        let charge_ru = match error.kind {
            Kind::Throttled { .. } => 0.0,
            _ => pleiad_partition::price::MISS_RU,
        };
        EngineResponse { result: Err(error), place: None, charge_ru }
    }

    pub fn priced(result: Result<T>, charge_ru: f64) -> Self {
        EngineResponse { result, place: None, charge_ru }
    }

    /// Taken before the partition is read, so that the token never promises more than was seen.
    pub(crate) fn at(mut self, place: PartitionLsn) -> Self {
        self.place = Some(place);
        self
    }
}

pub(crate) fn place(partition: &Partition) -> PartitionLsn {
    PartitionLsn { range: partition.range.id, lsn: partition.lsn() }
}
