//! Many items, in insertion order, a page at a time.
//!
//! Promise: a page ends at the asked number of items or when its bytes reach the limit, whichever
//! comes first, and says where the next begins only if there is a next item.

use bytes::Bytes;
use pleiad_model::partition_key::{EffectiveKey, KeyRange};
use pleiad_model::{Error, Result};
use pleiad_storage::{AnySnapshot, Direction, Snapshot, Store, keyspace};

use crate::partition::Partition;
use crate::record::Record;

/// Which of a partition's items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those whose effective key is in here.
    Keys(KeyRange),
    /// Those of one logical partition.
    Key(EffectiveKey),
}

#[derive(Debug, Default)]
pub struct Page {
    pub records: Vec<Record>,
    /// The item number after which the next page starts; `None` at the end.
    pub next: Option<u64>,
}

/// How much one page may hold.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    pub items: usize,
    pub bytes: usize,
}

/// Rows asked of the store at once: 32 of the largest items are 64 MB, which is the most that a page
/// holds in memory beyond its own limit, half of that while nothing is known of their size.
const CHUNK_ROWS_FIRST: usize = 16;
const CHUNK_ROWS_MAX: usize = 32;
/// Rows of keys alone are small.
const KEY_ROWS: usize = 512;

impl Partition {
    /// The items after number `after`, in order of their numbers.
    pub async fn page(&self, scope: &Scope, after: u64, quota: Quota) -> Result<Page> {
        let snapshot = self.store.snapshot().await?;
        let mut filling = Filling { page: Page::default(), quota, bytes: 0, seen: 0, seen_bytes: 0 };
        let mut after = after;
        loop {
            let rows = filling.chunk_rows();
            let chunk = match scope {
                Scope::Keys(_) => self.docs(&snapshot, after, rows).await?,
                Scope::Key(epk) => self.members(&snapshot, epk, after, rows).await?,
            };
            let ended = chunk.len() < rows;
            for record in chunk {
                after = record.docnum;
                filling.see(&record);
                if wanted(scope, &record) && !filling.take(record) {
                    return Ok(filling.page);
                }
            }
            if ended {
                filling.page.next = None;
                return Ok(filling.page);
            }
        }
    }

    async fn docs(&self, snapshot: &AnySnapshot, after: u64, rows: usize) -> Result<Vec<Record>> {
        let from = keyspace::doc(self.range.shard, after.saturating_add(1));
        let (_, to) = keyspace::range(self.range.shard, keyspace::Tag::Doc);
        let found = snapshot.scan(&from, &to, Direction::Forward, rows).await?;
        found.into_iter().map(|(_, bytes)| Record::decode(bytes)).collect()
    }

    async fn members(
        &self,
        snapshot: &AnySnapshot,
        epk: &EffectiveKey,
        after: u64,
        rows: usize,
    ) -> Result<Vec<Record>> {
        let shard = self.range.shard;
        let from = keyspace::member(shard, epk.as_bytes(), after.saturating_add(1));
        let to = keyspace::member(shard, epk.as_bytes(), u64::MAX);
        let found = snapshot.scan(&from, &to, Direction::Forward, rows).await?;
        let docnum = |row: &Bytes| Ok(keyspace::doc(shard, keyspace::decode_member(row)?.1));
        let docs = found.iter().map(|(row, _)| docnum(row)).collect::<Result<Vec<_>>>()?;
        let missing = || Error::corrupt("a member without its item");
        let records = snapshot.get_many(&docs).await?;
        records.into_iter().map(|bytes| Record::decode(bytes.ok_or_else(missing)?)).collect()
    }

    /// How many logical partitions there are.
    pub async fn count_keys(&self) -> Result<u64> {
        let snapshot = self.store.snapshot().await?;
        let (mut from, to) = keyspace::range(self.range.shard, keyspace::Tag::Key);
        let mut count = 0;
        loop {
            let rows = snapshot.scan(&from, &to, Direction::Forward, KEY_ROWS).await?;
            count += rows.len() as u64;
            match rows.last() {
                Some((last, _)) if rows.len() == KEY_ROWS => from = keyspace::after(last),
                _ => return Ok(count),
            }
        }
    }
}

struct Filling {
    page: Page,
    quota: Quota,
    bytes: usize,
    /// Items looked at, wanted or not: they tell how large the next ones may be.
    seen: usize,
    seen_bytes: usize,
}

impl Filling {
    fn see(&mut self, record: &Record) {
        self.seen += 1;
        self.seen_bytes += record.body().len();
    }

    /// Takes one more item; when it does not fit, the next page starts before it.
    fn take(&mut self, record: Record) -> bool {
        let size = record.body().len();
        let full =
            self.page.records.len() >= self.quota.items || (self.bytes > 0 && self.bytes + size > self.quota.bytes);
        if full {
            self.page.next = self.page.records.last().map(|last| last.docnum);
            return false;
        }
        self.bytes += size;
        self.page.records.push(record);
        true
    }

    /// One more than is missing, so that the end is seen without asking again; at the rate at which
    /// wanted items were met so far.
    fn chunk_rows(&self) -> usize {
        let taken = self.page.records.len();
        let missing = self.quota.items.saturating_sub(taken).saturating_add(1);
        if self.seen == 0 {
            return missing.min(CHUNK_ROWS_FIRST);
        }
        let average = (self.seen_bytes / self.seen).max(1);
        let affordable = self.quota.bytes.saturating_sub(self.bytes) / average + 2;
        let rows = missing.min(affordable).saturating_mul(self.seen / taken.max(1));
        rows.clamp(2, CHUNK_ROWS_MAX)
    }
}

fn wanted(scope: &Scope, record: &Record) -> bool {
    match scope {
        Scope::Keys(keys) => keys.contains(&record.epk),
        Scope::Key(epk) => record.epk == *epk,
    }
}

#[cfg(test)]
mod tests;
