//! What others may read through a transaction: its moment, and what it has written since.
//!
//! Promise: whoever lays the one over the other sees what the transaction itself sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::Result;

use super::{BaseState, Transaction};
use crate::key::ItemKey;
use crate::record::Record;
use crate::snapshot::PartitionSnapshot;

impl Transaction<'_> {
    /// The moment that it reads. One that holds its latch has none.
    pub fn view(&self) -> Option<Arc<PartitionSnapshot>> {
        match &self.ground {
            BaseState::Snapshot(view) => Some(view.clone()),
            BaseState::Latched { .. } => None,
        }
    }

    /// What it has written, by number: the version that is there now, or that there is none.
    pub fn own_writes(&self) -> BTreeMap<u64, Option<Record>> {
        let now = |(docnum, change): (&u64, &super::ItemChange)| {
            (*docnum, change.now.as_ref().map(|version| version.record.clone()))
        };
        self.changes.iter().map(now).collect()
    }

    /// Which of its items has that number.
    pub async fn key_of(&self, docnum: u64) -> Result<Option<ItemKey>> {
        if let Some(change) = self.changes.get(&docnum) {
            return Ok(change.now.as_ref().map(|version| version.key.clone()));
        }
        let BaseState::Snapshot(view) = &self.ground else { return Ok(None) };
        let found = view.get(&[docnum]).await?.pop().flatten();
        let ours = found.filter(|record| record.epk == self.scope.logical.epk);
        Ok(ours.map(|record| self.scope.renamed(record.id())))
    }
}
