//! Preconditions of catalog changes: If-Match on a resource, and create, upsert or replace.
//!
//! Guarantees: a change with a precondition changes the version that it names, or nothing. The check runs while the
//! catalog lock is held, so of two clients that read the same version one gets "precondition failed".

use std::sync::Arc;

use pleiad_model::{Fact, Result};
use pleiad_partition::Precondition;

use super::tree::CatalogVersion;

/// How a resource is stored under its name.
pub enum PutMode<R> {
    Create,
    /// Replaces the resource of that name, if there is one and the precondition holds.
    Upsert(Precondition),
    Replace(ConditionalRid<R>),
}

/// A resource with a `_rid` and versions.
pub(super) trait Versioned {
    type Rid: PartialEq + Copy;

    fn rid(&self) -> Self::Rid;
    fn version(&self) -> CatalogVersion;
}

impl<R> PutMode<R> {
    /// The resource that this put replaces, if any. `by_name` already has the name; `by_rid` looks up the target of a
    /// replace.
    pub(super) fn resource_to_replace<T: Versioned<Rid = R>>(
        &self,
        by_name: Option<&Arc<T>>,
        by_rid: impl FnOnce(R) -> Option<Arc<T>>,
    ) -> Result<Option<Arc<T>>>
    where
        R: PartialEq + Copy,
    {
        match self {
            PutMode::Create if by_name.is_some() => Err(Fact::ResourceExists.into()),
            PutMode::Create => Ok(None),
            PutMode::Upsert(condition) => {
                by_name.map_or(Ok(()), |named| check(named.version(), condition))?;
                Ok(by_name.cloned())
            }
            PutMode::Replace(target) => {
                let old = by_rid(target.rid).ok_or(Fact::ResourceMissing)?;
                if by_name.is_some_and(|named| named.rid() != target.rid) {
                    return Err(Fact::ResourceExists.into());
                }
                target.check(old.version()).map(|()| Some(old))
            }
        }
    }
}

/// A `_rid` and the precondition on its version. Most callers have none.
pub struct ConditionalRid<R> {
    pub rid: R,
    condition: Precondition,
}

impl<R> From<R> for ConditionalRid<R> {
    fn from(rid: R) -> Self {
        ConditionalRid { rid, condition: Precondition::None }
    }
}

impl<R> ConditionalRid<R> {
    pub fn new(rid: R, condition: Precondition) -> Self {
        ConditionalRid { rid, condition }
    }

    pub(super) fn check(&self, version: CatalogVersion) -> Result<()> {
        check(version, &self.condition)
    }
}

fn check(version: CatalogVersion, condition: &Precondition) -> Result<()> {
    let holds = condition.holds_for(|| version.etag().to_string());
    if holds { Ok(()) } else { Err(Fact::PreconditionNotMet.into()) }
}
