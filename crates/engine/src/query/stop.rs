//! Why a page stops before its end: it has to run again, or it failed.
//!
//! Running again is control flow, not an error: no conversion turns a [`Stop`] into an `Error`, so that a `?` cannot
//! report a retry to the client.

use pleiad_model::Error;
use pleiad_storage::WouldBlock;

#[derive(Debug)]
pub enum Stop {
    Retry(PageRetry),
    Failed(Error),
}

/// How to run the page again. Nothing of this attempt is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRetry {
    /// On a blocking thread: this attempt ran inline, and would block or take long.
    WouldBlock,
    /// With the current catalog and a new snapshot: the indexing policy was replaced after the page was planned, or the
    /// snapshot is too old.
    Outdated,
}

impl Stop {
    pub const OUTDATED: Stop = Stop::Retry(PageRetry::Outdated);
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<WouldBlock> for Stop {
    fn from(_: WouldBlock) -> Stop {
        Stop::Retry(PageRetry::WouldBlock)
    }
}
