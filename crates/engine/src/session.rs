//! Sessions: what a client has already seen, partition by partition.
//!
//! Promise: a read that carries a token answers from a state at least as new, or says that it
//! cannot. Ranges the token does not name, and ranges that no longer exist, ask for nothing.

use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Partition;

/// Range ids with the LSN seen there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken(pub Vec<(u32, u64)>);

impl SessionToken {
    pub(crate) fn check(&self, partition: &Partition) -> Result<()> {
        let asked = self.asked_of(partition);
        if asked <= partition.lsn() {
            return Ok(());
        }
        Err(Error::new(
            Kind::SessionNotAvailable,
            format!(
                "The read session is not available for the input session token: it asks for {asked}, partition {} has reached {}.",
                partition.range.id,
                partition.lsn()
            ),
        ))
    }

    /// A child of a split answers for what was seen at its parents.
    fn asked_of(&self, partition: &Partition) -> u64 {
        let range = &partition.range;
        let about = |id: &u32| *id == range.id || range.parents.contains(id);
        self.0.iter().filter(|(id, _)| about(id)).map(|(_, lsn)| *lsn).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
