//! `err.number`: the error codes that scripts see.
//!
//! Invariant: one number per kind. Protocols have tables of their own; this one is part of the server-side API,
//! whichever protocol called the script.

use pleiad_model::Kind;

#[cfg(test)]
mod tests;

pub fn error_number(kind: Kind) -> u16 {
    match kind {
        Kind::Invalid
        | Kind::NotFinite
        | Kind::KeyMismatch
        | Kind::CrossPartition
        | Kind::ContainerChanged
        | Kind::Unsupported => 400,
        Kind::Forbidden | Kind::QuotaExceeded | Kind::KeyFull => 403,
        Kind::NotFound | Kind::OwnerNotFound | Kind::SessionNotAvailable => 404,
        Kind::Conflict => 409,
        Kind::PreconditionFailed => 412,
        Kind::FailedDependency => 424,
        Kind::TooLarge => 413,
        Kind::TimedOut => 408,
        Kind::Throttled { .. } => 429,
        Kind::RetryWith | Kind::Locked => 449,
        Kind::Moved { .. } | Kind::Unavailable | Kind::Internal => 500,
    }
}
