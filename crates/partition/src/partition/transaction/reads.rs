//! Reads through a transaction: its snapshot and its own writes, for queries that run inside it.
//!
//! Guarantees: the snapshot with `own_writes` on top is exactly what the transaction itself sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::Result;

use super::{BaseState, Transaction};
use crate::key::ItemKey;
use crate::record::Record;
use crate::snapshot::PartitionSnapshot;

impl Transaction<'_> {
    /// Its snapshot; `None` for a latched transaction, which reads the current state.
    pub fn view(&self) -> Option<Arc<PartitionSnapshot>> {
        match &self.base {
            BaseState::Snapshot(view) => Some(view.clone()),
            BaseState::Latched { .. } => None,
        }
    }

    /// Its writes by docnum: the current version, or `None` for a deleted item.
    pub fn own_writes(&self) -> BTreeMap<u64, Option<Record>> {
        let now = |(docnum, change): (&u64, &super::ItemChange)| {
            (*docnum, change.new.as_ref().map(|version| version.record.clone()))
        };
        self.changes.iter().map(now).collect()
    }

    /// The key of the item with that docnum, if it is in its logical partition.
    pub async fn key_of(&self, docnum: u64) -> Result<Option<ItemKey>> {
        if let Some(change) = self.changes.get(&docnum) {
            return Ok(change.new.as_ref().map(|version| version.key.clone()));
        }
        let BaseState::Snapshot(view) = &self.base else { return Ok(None) };
        let found = view.get(&[docnum]).await?.pop().flatten();
        let in_scope = found.filter(|record| record.epk == self.scope.logical.epk);
        Ok(in_scope.map(|record| self.scope.renamed(record.id())))
    }
}
