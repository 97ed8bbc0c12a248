//! Session tokens: the LSNs that a client has already seen, partition by partition.
//!
//! Guarantees: a read that carries a token is answered from a state at least as new, or fails. A partition that the
//! token does not name requires nothing; the LSNs of a range that was split or merged count at the partitions that
//! replaced it.

use pleiad_model::error::SessionAhead;
use pleiad_model::{Fact, Result};
use pleiad_partition::Partition;

/// Range ids with the LSN seen there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken(pub Vec<(u32, u64)>);

impl SessionToken {
    pub(crate) fn check(&self, partition: &Partition) -> Result<()> {
        let (asked_lsn, reached_lsn) = (self.required_lsn(partition), partition.lsn());
        if asked_lsn <= reached_lsn {
            return Ok(());
        }
        Err(Fact::SessionAhead(Box::new(SessionAhead { range: partition.range.id, asked_lsn, reached_lsn })).into())
    }

    /// The LSN that the partition must have reached. For a child of a split, LSNs seen at its parents count as well.
    fn required_lsn(&self, partition: &Partition) -> u64 {
        let range = &partition.range;
        let counts = |id: &u32| *id == range.id || range.parents.contains(id);
        self.0.iter().filter(|(id, _)| counts(id)).map(|(_, lsn)| *lsn).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
