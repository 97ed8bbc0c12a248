//! Outcomes of writes that were not made: rejected, failed, or to be repeated because the container has changed.
//!
//! Invariant: an outdated write has left nothing behind, and its caller repeats it under the current map and schema.
//! That is control flow: no client is told.

use pleiad_model::Error;

use crate::price;

/// The caller's view of the container is stale: the partition's items have moved, or its schema was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outdated;

/// Why a write was not made.
#[derive(Debug)]
pub enum WriteError<E = Rejected> {
    Outdated,
    Failed(E),
}

/// For background work, which is not charged.
pub type MaintenanceError = WriteError<Error>;

/// A rejected write, with the charge for the lookup.
#[derive(Debug)]
pub struct Rejected {
    pub error: Error,
    pub charge_ru: f64,
}

impl From<Error> for Rejected {
    fn from(error: Error) -> Self {
        Rejected { error, charge_ru: price::MISS_RU }
    }
}

impl<E> From<Outdated> for WriteError<E> {
    fn from(Outdated: Outdated) -> Self {
        WriteError::Outdated
    }
}

impl<E: From<Error>> From<Error> for WriteError<E> {
    fn from(error: Error) -> Self {
        WriteError::Failed(error.into())
    }
}

impl From<Rejected> for WriteError {
    fn from(rejected: Rejected) -> Self {
        WriteError::Failed(rejected)
    }
}

impl From<Rejected> for MaintenanceError {
    fn from(rejected: Rejected) -> Self {
        WriteError::Failed(rejected.error)
    }
}

impl From<WriteError> for MaintenanceError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Outdated => WriteError::Outdated,
            WriteError::Failed(rejected) => rejected.into(),
        }
    }
}

impl From<MaintenanceError> for WriteError {
    fn from(error: MaintenanceError) -> Self {
        match error {
            WriteError::Outdated => WriteError::Outdated,
            WriteError::Failed(error) => error.into(),
        }
    }
}

#[cfg(test)]
impl<E> WriteError<E> {
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(self, WriteError::Outdated)
    }

    /// For tests that expect a failure.
    #[track_caller]
    pub(crate) fn failed(self) -> E {
        match self {
            WriteError::Outdated => panic!("outdated"),
            WriteError::Failed(error) => error,
        }
    }
}
