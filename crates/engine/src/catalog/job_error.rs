//! Why a job did not finish: control flow of splits, merges and copies, apart from errors.

use std::fmt;

use pleiad_model::{Error, Fact, Kind};

#[derive(Debug)]
pub(crate) enum JobError {
    /// What the job began with has changed. A split or merge starts again while its row exists.
    Outdated(JobOutdated),
    /// An operator cancelled it.
    Cancelled,
    Failed(Error),
}

/// What has changed since the job began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobOutdated {
    ContainerChanged,
    PolicyReplaced,
    ContainerDeleted,
    /// A container of the database that is being copied.
    SourceDeleted,
    CopyDropped,
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        JobError::Failed(error)
    }
}

impl From<Fact> for JobError {
    fn from(fact: Fact) -> Self {
        JobError::Failed(fact.into())
    }
}

impl From<JobOutdated> for JobError {
    fn from(what: JobOutdated) -> Self {
        JobError::Outdated(what)
    }
}

/// For the report of the job, and the log.
impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Failed(error) => error,
            JobError::Outdated(_) | JobError::Cancelled => Error::new(Kind::Conflict, error.to_string()),
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Outdated(what) => what.fmt(f),
            JobError::Cancelled => f.write_str("the job was cancelled"),
            JobError::Failed(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for JobOutdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobOutdated::ContainerChanged => "the container has changed while it was repartitioned",
            JobOutdated::PolicyReplaced => "the indexing policy has changed",
            JobOutdated::ContainerDeleted => "the container is gone",
            JobOutdated::SourceDeleted => "a container of the database was deleted while it was copied",
            JobOutdated::CopyDropped => "the database is gone, or its copy was cancelled",
        })
    }
}
