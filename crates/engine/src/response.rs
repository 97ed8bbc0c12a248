//! Engine response: a result with its request charge and the partition that served it.

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Partition;

/// The partition that served a request, and its LSN at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLsn {
    pub range: u32,
    pub lsn: u64,
}

/// A result with its request charge. Failed requests are charged, too, and name their partition as well.
#[derive(Debug)]
pub struct EngineResponse<T> {
    pub result: Result<T>,
    pub served_by: Option<PartitionLsn>,
    pub charge_ru: f64,
}

impl<T> EngineResponse<T> {
    /// A throttled request is free: nothing was done.
    pub fn failed(error: Error) -> Self {
        let charge_ru = match error.kind {
            Kind::Throttled { .. } => 0.0,
            _ => pleiad_partition::price::MISS_RU,
        };
        EngineResponse { result: Err(error), served_by: None, charge_ru }
    }

    pub fn priced(result: Result<T>, charge_ru: f64) -> Self {
        EngineResponse { result, served_by: None, charge_ru }
    }

    /// The LSN must be taken before the partition is read, so that the session token never covers more than was read.
    pub(crate) fn served_by(mut self, served_by: PartitionLsn) -> Self {
        self.served_by = Some(served_by);
        self
    }
}

pub(crate) fn partition_lsn(partition: &Partition) -> PartitionLsn {
    PartitionLsn { range: partition.range.id, lsn: partition.lsn() }
}
