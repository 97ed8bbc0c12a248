//! Version log of a transaction: one version row per operation, for containers that retain all versions.
//!
//! Invariant: if versions are retained, each operation leaves one version, in operation order, all at the transaction's
//! LSN; operations on items that it created and deleted again are included. Otherwise nothing is logged.
//!
//! ```text
//! operations   create "x" n=1     replace "x" n=2      delete "x"
//! versions     8.0 create → 1     8.1 replace 1 → 2    8.2 delete 2 →        items: as before
//! ```

use super::PreparedVersion;
use crate::record::Record;
use crate::row_changes::RowChanges;
use crate::schema::Schema;
use crate::version_row::VersionKind;

pub(super) struct VersionLog(Option<Vec<LoggedOperation>>);

struct LoggedOperation {
    kind: VersionKind,
    previous: Option<Record>,
    current: Option<Record>,
}

impl VersionLog {
    pub fn new(schema: &Schema) -> VersionLog {
        VersionLog(schema.retains_versions.then(Vec::new))
    }

    pub fn push(&mut self, kind: VersionKind, previous: Option<&PreparedVersion>, current: Option<&Record>) {
        let Some(operations) = &mut self.0 else { return };
        let previous = previous.map(|version| version.record.clone());
        operations.push(LoggedOperation { kind, previous, current: current.cloned() });
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn write_rows(&self, shard: u64, lsn: u64, rows: &mut RowChanges) {
        for LoggedOperation { kind, previous, current } in self.0.iter().flatten() {
            let [previous, current] =
                [previous, current].map(|record| record.as_ref().map(|record| with_lsn(record, lsn)));
            rows.put_version(shard, *kind, previous.as_ref(), current.as_ref());
        }
    }
}

/// The transaction's own writes have no LSN yet.
fn with_lsn(record: &Record, lsn: u64) -> Record {
    match record.lsn {
        0 => record.with_lsn(lsn, 0),
        _ => record.clone(),
    }
}
