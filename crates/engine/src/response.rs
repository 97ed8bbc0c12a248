//! Engine response: a result with its request charge and the partition that served it.

use pleiad_model::{Error, Result};
use pleiad_partition::Partition;

/// The partition that served a request, and its LSN at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLsn {
    pub range: u32,
    pub lsn: u64,
}

/// A result with its request charge, which is what the partitions were charged. Failed requests are charged for what
/// they did, and name their partition as well.
#[derive(Debug)]
pub struct EngineResponse<T> {
    pub result: Result<T>,
    pub served_by: Option<PartitionLsn>,
    pub charge_ru: f64,
}

impl<T> EngineResponse<T> {
    /// A request for which no partition is charged: it was rejected before it was admitted, or throttled, or all of its
    /// attempts were waived.
    pub fn failed(error: Error) -> Self {
        EngineResponse { result: Err(error), served_by: None, charge_ru: 0.0 }
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

/// What the partitions of a feed page were charged so far, and the partition that was read last.
#[derive(Default)]
pub(crate) struct FeedCharge {
    pub served_by: Option<PartitionLsn>,
    pub charge_ru: f64,
}

impl FeedCharge {
    /// The page or its failure, with the charge of all partitions that were read.
    pub fn into_response<T>(self, result: Result<T>) -> EngineResponse<T> {
        EngineResponse { result, served_by: self.served_by, charge_ru: self.charge_ru }
    }
}

pub(crate) fn partition_lsn(partition: &Partition) -> PartitionLsn {
    PartitionLsn { range: partition.range.id, lsn: partition.lsn() }
}
