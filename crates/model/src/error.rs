//! An error says what the caller can do next.
//!
//! The kind is the contract: every protocol keeps its own table from kinds to numbers. The
//! message is for people and may change. Nothing here knows a status code.

use std::fmt;
use std::time::Duration;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    /// Why a request was throttled.
    pub throttle: Option<Box<Throttle>>,
}

/// Where request units ran out, and who took them.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// The partition key range.
    pub range: u32,
    pub share_ru: f64,
    /// In this second, with what was overdrawn before.
    pub used_ru: f64,
    /// The partition key that took most of late, as clients write it.
    pub busiest_key: Option<String>,
}

/// What went wrong, in terms of what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The same request will fail again.
    Invalid,
    /// The answer holds a number that JSON cannot write.
    NotFinite,
    /// The partition key in the request is not the one in the item, or has the wrong shape.
    KeyMismatch,
    /// The query cannot be answered without a plan that spans partitions.
    CrossPartition,
    /// The container at this name is not the one the caller knew: resolve the name again.
    ContainerChanged,
    /// Known caller, not allowed to do this.
    Forbidden,
    /// A quota is used up; deleting helps, repeating does not.
    QuotaExceeded,
    /// The logical partition has reached its storage cap.
    KeyFull,
    /// No such resource.
    NotFound,
    /// The parent of the resource does not exist.
    OwnerNotFound,
    /// This replica has not yet seen what the session token asks for.
    SessionNotAvailable,
    /// Someone was first; read again, then decide.
    Conflict,
    /// The condition on the resource's version does not hold.
    PreconditionFailed,
    /// Another operation of the same transaction failed, so that this one did not take place.
    FailedDependency,
    /// The request or its answer is larger than the limit.
    TooLarge,
    /// It took longer than it may; asking for less helps.
    TimedOut,
    /// Another change of the same resource is still running.
    Locked,
    /// The right request at the wrong moment.
    Throttled { retry_after: Duration, over: ExceededLimit },
    /// Concurrent writers met; the same request may succeed at once.
    RetryWith,
    /// The caller's partition map is old; refresh it.
    Moved { epoch: u64 },
    /// What the caller holds of the container is old: admit again, then repeat. Clients do not hear of it.
    Outdated,
    /// Understood, not built.
    Refused,
    /// The store cannot accept work now.
    Unavailable,
    /// Ours; the log has the details.
    Internal,
}

/// What is used up for the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// The partition's share of the reserved throughput.
    Share,
    /// The part of it that a throughput bucket may use.
    Bucket,
}

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), throttle: None }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(Kind::Invalid, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Error::new(Kind::NotFound, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Error::new(Kind::Conflict, message)
    }

    /// For what is understood but not built: names the feature, never pretends.
    pub fn refused(feature: impl fmt::Display) -> Self {
        Error::new(Kind::Refused, format!("{feature}: not built in this version of Pleiad. See docs/compatibility.md."))
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Error::new(Kind::Unavailable, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Kind::Internal, message)
    }

    /// Bytes that we wrote and cannot read back.
    pub fn corrupt(what: impl fmt::Display) -> Self {
        Error::new(Kind::Internal, format!("the store holds bytes that do not decode: {what}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
