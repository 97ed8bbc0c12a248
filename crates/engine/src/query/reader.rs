//! One partition, at one moment, for a thread that may wait.
//!
//! Promise: everything read through one reader is of the same moment. Reads are chunks, so that the store is asked
//! seldom and memory stays bounded.

use pleiad_model::Result;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_partition::Record;
use pleiad_partition::index::TermRange;
use pleiad_partition::view::{Posting, View};
use pleiad_storage::{Direction, Limit};
use tokio::runtime::Handle;

use super::reach::Slice;

pub struct Reader {
    view: View,
    handle: Handle,
}

/// What one look at the index may bring.
const POSTINGS: Limit = Limit { rows: 8192, bytes: 1 << 20 };
/// Looking this far tells small ranges exactly.
const PROBE_ROWS: usize = 256;

impl Reader {
    pub fn open(slice: &Slice, handle: &Handle) -> Result<Reader> {
        let view = handle.block_on(slice.partition.view())?;
        Ok(Reader { view, handle: handle.clone() })
    }

    /// How many items the partition has.
    pub fn items(&self) -> u64 {
        self.view.items()
    }

    /// Items behind a number, in the order of their numbers.
    pub fn docs(&self, after: u64, limit: Limit) -> Result<(Vec<Record>, bool)> {
        self.handle.block_on(self.view.docs(after, limit))
    }

    pub fn get(&self, docnums: &[u64]) -> Result<Vec<Option<Record>>> {
        self.handle.block_on(self.view.get(docnums))
    }

    /// One logical partition's items behind a number.
    pub fn members(&self, key: &EffectiveKey, after: u64, limit: Limit) -> Result<(Vec<u64>, bool)> {
        self.handle.block_on(self.view.members(key, after, limit))
    }

    /// Index rows of a path, from one end of the range.
    pub fn postings(&self, path: u64, range: &TermRange, direction: Direction) -> Result<(Vec<Posting>, bool)> {
        self.handle.block_on(self.view.postings(path, &range.from, &range.to, direction, POSTINGS))
    }

    /// About how many rows the range has; exact when they are few.
    pub fn estimate(&self, path: u64, range: &TermRange) -> Result<u64> {
        let few = Limit::rows(PROBE_ROWS);
        let (rows, more) = self
            .handle
            .block_on(self.view.postings(path, &range.from, &range.to, Direction::Forward, few))?;
        if !more {
            return Ok(rows.len() as u64);
        }
        let estimate = self.handle.block_on(self.view.estimate(path, &range.from, &range.to))?;
        Ok(estimate.max(PROBE_ROWS as u64 + 1))
    }
}
