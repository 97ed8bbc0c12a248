//! Read feed: items in docnum order, that is in insertion order, page by page.
//!
//! Guarantees: a page ends at the requested number of items or when its bytes reach the limit, whichever
//! comes first, and has a position for the next page only if there is a next item.

use pleiad_model::Result;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_storage::{Blocking, Limit};

use crate::partition::Partition;
use crate::record::Record;
use crate::snapshot::PartitionSnapshot;
use crate::ttl::Expiry;

/// A subset of a partition's items, by effective key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// The items whose effective key is in this range.
    Keys(EpkRange),
    /// The items of one logical partition.
    Key(EffectiveKey),
}

impl KeyScope {
    pub(crate) fn contains(&self, epk: &EffectiveKey) -> bool {
        match self {
            KeyScope::Keys(keys) => keys.contains(epk),
            KeyScope::Key(key) => key == epk,
        }
    }

    pub(crate) fn overlaps(&self, keys: &EpkRange) -> bool {
        match self {
            KeyScope::Keys(own) => own.intersect(keys).is_some(),
            KeyScope::Key(key) => keys.contains(key),
        }
    }
}

#[derive(Debug, Default)]
pub struct RecordPage {
    pub records: Vec<Record>,
    /// The docnum after which the next page starts; `None` at the end.
    pub next: Option<u64>,
}

/// The maximum size of one page.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    pub items: usize,
    pub bytes: usize,
}

/// Rows and bytes per read from the store: what a page holds in memory beyond its own limit is at most this and one
/// item.
const CHUNK_ROWS_MAX: usize = 1_000;
const CHUNK_BYTES_MAX: usize = 4 << 20;

impl Partition {
    /// The items after docnum `after`, in docnum order.
    pub async fn page(&self, scope: &KeyScope, after: u64, limit: PageLimit, expiry: Expiry) -> Result<RecordPage> {
        self.snapshot(Blocking::Suspend).await?.page(scope, after, limit, expiry).await
    }
}

impl PartitionSnapshot {
    /// As `Partition::page`, in this snapshot.
    pub async fn page(&self, scope: &KeyScope, after: u64, limit: PageLimit, expiry: Expiry) -> Result<RecordPage> {
        let mut builder = ItemPageBuilder { page: RecordPage::default(), limit, bytes: 0, scanned: 0 };
        let mut source = ItemSource::of(self, scope, after, limit.items).await?;
        loop {
            let (records, more) = source.next(self, builder.chunk_limit()).await?;
            for record in records {
                builder.scanned += 1;
                if scope.contains(&record.epk) && !self.is_dead(expiry, &record.view()) && !builder.try_push(record) {
                    return Ok(builder.page);
                }
            }
            if !more {
                return Ok(builder.page);
            }
        }
    }
}

/// How the items of a page are read. All but `Docs` return only items of the scope.
enum ItemSource<'a> {
    Docs { after: u64 },
    Members { key: &'a EffectiveKey, after: u64 },
    Listed { docnums: Vec<u64> },
}

impl<'a> ItemSource<'a> {
    async fn of(view: &PartitionSnapshot, scope: &'a KeyScope, after: u64, items: usize) -> Result<ItemSource<'a>> {
        let keys = match scope {
            KeyScope::Key(key) => return Ok(ItemSource::Members { key, after }),
            KeyScope::Keys(keys) if view.is_within(keys) => return Ok(ItemSource::Docs { after }),
            KeyScope::Keys(keys) => keys,
        };
        Ok(match view.members_in(keys, listed_max(view.items(), items)).await? {
            Some(mut docnums) => {
                docnums.drain(..docnums.partition_point(|docnum| *docnum <= after));
                ItemSource::Listed { docnums }
            }
            None => ItemSource::Docs { after },
        })
    }

    /// The next items, and whether there are more.
    async fn next(&mut self, view: &PartitionSnapshot, limit: Limit) -> Result<(Vec<Record>, bool)> {
        match self {
            ItemSource::Docs { after } => {
                let (records, more) = view.docs(*after, limit).await?;
                *after = last(&records).unwrap_or(*after);
                Ok((records, more))
            }
            ItemSource::Members { key, after } => {
                let (docnums, more) = view.members(key, *after, Limit::rows(limit.rows)).await?;
                let records = view.load(&docnums, limit.bytes).await?;
                *after = last(&records).unwrap_or(*after);
                let is_partial = records.len() < docnums.len();
                Ok((records, more || is_partial))
            }
            ItemSource::Listed { docnums } => {
                let records = view.load(&docnums[..docnums.len().min(limit.rows)], limit.bytes).await?;
                docnums.drain(..records.len());
                Ok((records, !docnums.is_empty()))
            }
        }
    }
}

fn last(records: &[Record]) -> Option<u64> {
    records.last().map(|record| record.docnum)
}

/// The largest number of members of an EPK range that is worth collecting for a page. If `m` of `n` items match, a scan
/// of all items finds one in `n/m`: a page reads `page·n/m` of them. Collecting reads `m` rows, each at a fifth of the
/// cost.
fn listed_max(items: u64, page: usize) -> usize {
    let page = page.min(CHUNK_ROWS_MAX) as u64;
    (5 * page).saturating_mul(items).isqrt().clamp(1 << 10, 1 << 18) as usize
}

struct ItemPageBuilder {
    page: RecordPage,
    limit: PageLimit,
    bytes: usize,
    /// Items read, in the scope or not.
    scanned: usize,
}

impl ItemPageBuilder {
    /// Adds an item; if it does not fit, returns false and the next page starts with it.
    fn try_push(&mut self, record: Record) -> bool {
        let size = record.body().len();
        let full =
            self.page.records.len() >= self.limit.items || (self.bytes > 0 && self.bytes + size > self.limit.bytes);
        if full {
            self.page.next = last(&self.page.records);
            return false;
        }
        self.bytes += size;
        self.page.records.push(record);
        true
    }

    /// One item more than the page still needs, so that its end is seen without another read; scaled by the share of
    /// matching items so far.
    fn chunk_limit(&self) -> Limit {
        let collected = self.page.records.len();
        let needed = self.limit.items.saturating_sub(collected).saturating_add(1);
        let rate = (self.scanned / collected.max(1)).max(1);
        let bytes = self.limit.bytes.saturating_sub(self.bytes).saturating_mul(rate);
        Limit { rows: needed.saturating_mul(rate).min(CHUNK_ROWS_MAX), bytes: bytes.min(CHUNK_BYTES_MAX) }
    }
}

#[cfg(test)]
mod tests;
