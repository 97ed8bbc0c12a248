//! Visibility: which of the stored items exist for a reader or a writer.
//!
//! Invariant: an item is dead when it has expired or a key tombstone covers it, although its rows exist until they are
//! purged. Every point read, list, query, change feed and write decides it here; callers outside this crate pass the
//! `Expiry` of their request and never look at an item's time themselves.
//!
//! ```text
//! reader   its expiry and the tombstones that are durable at its LSN
//! writer   its expiry and all tombstones: the sequence of writers already contains queued ones
//! ```

use crate::key_tombstones::Tombstones;
use crate::record::RecordView;
use crate::ttl::Expiry;

/// The LSN of a writer, which sees queued tombstones.
pub(crate) const WRITER_LSN: u64 = u64::MAX;

pub(crate) fn is_dead(record: &RecordView<'_>, expiry: Expiry, tombstones: &impl Tombstones, seen_lsn: u64) -> bool {
    expiry.is_expired(record) || tombstones.covers(record, seen_lsn)
}
