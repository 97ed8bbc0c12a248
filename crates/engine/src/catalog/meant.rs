//! Which resource a request is about, and which version of it.
//!
//! Promise: whoever names a version changes that one or nothing. It is judged with the catalog's turn in hand, so that of two who have
//! seen the same version one is told that it came too late.

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Condition;
use pleiad_partition::partition::CONDITION_FAILS;

use super::tree::Version;

/// A resource, by its `_rid`. Most callers mean it whatever it has become.
pub struct Meant<R> {
    pub rid: R,
    condition: Condition,
}

impl<R> From<R> for Meant<R> {
    fn from(rid: R) -> Self {
        Meant { rid, condition: Condition::None }
    }
}

impl<R> Meant<R> {
    pub fn new(rid: R, condition: Condition) -> Self {
        Meant { rid, condition }
    }

    pub(super) fn check(&self, version: Version) -> Result<()> {
        check(version, &self.condition)
    }
}

pub(super) fn check(version: Version, condition: &Condition) -> Result<()> {
    let holds = match condition {
        Condition::None | Condition::IfAny => true,
        Condition::IfMatch(etag) => *etag == version.etag().to_string(),
        Condition::IfAbsent => false,
    };
    let stale = || Error::new(Kind::PreconditionFailed, CONDITION_FAILS);
    holds.then_some(()).ok_or_else(stale)
}
