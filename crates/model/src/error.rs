//! Errors, classified by what the caller can do next.
//!
//! The kind is the contract: every protocol has its own table from kinds to status codes. What happened is a fact with
//! fields, for which every protocol has its own sentence, or text. This module has no status codes.

mod fact; // what went wrong on the item path

use std::fmt;
use std::time::Duration;

pub use fact::{
    ContainerRecreated, Fact, KeyMismatch, NameStart, PatchError, PatchFault, PatchVerb, SessionAhead, ThrottledRequest,
};

#[cfg(test)]
mod tests;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub kind: Kind,
    /// Private, so that a fact has its own kind.
    detail: ErrorDetail,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorDetail {
    Fact(Fact),
    /// Off the item path: policies, queries, the catalog, jobs, storage.
    Text(String),
}

/// Which partition ran out of request units, and which key used most of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// The partition key range.
    pub range: u32,
    pub share_ru: f64,
    /// Used in the current second, including the overdraft of earlier seconds.
    pub used_ru: f64,
    /// The partition key with the highest recent usage, as clients write it.
    pub busiest_key: Option<String>,
}

/// The kind of an error: what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The same request will fail again.
    Invalid,
    /// The response has a number that JSON cannot represent.
    NotFinite,
    /// The partition key in the request is not the one in the item, or has the wrong shape.
    KeyMismatch,
    /// The query cannot be answered without a plan that spans partitions.
    CrossPartition,
    /// The name refers to another container than the caller expected: resolve the name again.
    ContainerChanged,
    /// The caller is authenticated, but not allowed to do this.
    Forbidden,
    /// A quota is used up; deleting data helps, retrying does not.
    QuotaExceeded,
    /// The logical partition has reached its storage cap.
    KeyFull,
    /// No such resource.
    NotFound,
    /// The parent of the resource does not exist.
    OwnerNotFound,
    /// This replica has not yet reached the LSN of the session token.
    SessionNotAvailable,
    /// Another writer was first; read again, then decide.
    Conflict,
    /// The precondition on the resource's version does not hold.
    PreconditionFailed,
    /// Another operation of the same transaction failed, so this one was not executed.
    FailedDependency,
    /// The request or its response is larger than the limit.
    TooLarge,
    /// The time limit was exceeded; a smaller request helps.
    TimedOut,
    /// Another change of the same resource is still running.
    Locked,
    /// The request is valid; retry it after the given time.
    Throttled { retry_after: Duration, over: ExceededLimit },
    /// Concurrent writers conflicted; the same request may succeed if retried immediately.
    RetryWith,
    /// The caller's partition map is stale; refresh it.
    Moved { epoch: u64 },
    /// The request is understood, but the feature is not supported.
    Unsupported,
    /// The store cannot accept work now.
    Unavailable,
    /// A bug or a fault of the server; the log has the details.
    Internal,
}

/// The throughput limit that is currently exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// The partition's share of the provisioned throughput.
    Share,
    /// The part of that share that a throughput bucket may use.
    Bucket,
}

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, detail: ErrorDetail::Text(message.into()) }
    }

    /// `None` for errors that are text.
    pub fn fact(&self) -> Option<&Fact> {
        match &self.detail {
            ErrorDetail::Fact(fact) => Some(fact),
            ErrorDetail::Text(_) => None,
        }
    }

    pub fn detail(&self) -> &ErrorDetail {
        &self.detail
    }

    pub fn into_detail(self) -> ErrorDetail {
        self.detail
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

    /// For a feature that is understood but not supported; the message names the feature.
    pub fn unsupported(feature: impl fmt::Display) -> Self {
        Error::new(
            Kind::Unsupported,
            format!("{feature}: not built in this version of Pleiad. See docs/compatibility.md."),
        )
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Error::new(Kind::Unavailable, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Kind::Internal, message)
    }

    /// Stored bytes that do not decode.
    pub fn corrupt(what: impl fmt::Display) -> Self {
        Error::new(Kind::Internal, format!("the store holds bytes that do not decode: {what}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            ErrorDetail::Fact(fact) => fact.fmt(f),
            ErrorDetail::Text(text) => f.write_str(text),
        }
    }
}

impl From<Fact> for Error {
    fn from(fact: Fact) -> Self {
        Error { kind: fact.kind(), detail: ErrorDetail::Fact(fact) }
    }
}

impl std::error::Error for Error {}
