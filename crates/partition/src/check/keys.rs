//! Check of the key rows: adds up the size of each logical partition again.
//!
//! `member` and `key` rows are both in the order of effective keys, so only the sums of one effective key are held in
//! memory: usually those of one logical partition, more only if hashes collide.

use std::collections::BTreeMap;

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::store::Pair;
use pleiad_storage::{Direction, Limit, Snapshot, keyspace};

use super::cursor::KeyspaceCursor;
use super::item::CheckedItem;
use super::{Check, Tag, hex};
use crate::key::{KeyStats, LogicalKey};

/// The logical partitions at one effective key, by their row.
struct KeyGroup {
    epk: Vec<u8>,
    sums: BTreeMap<Bytes, (LogicalKey, KeyStats)>,
}

impl KeyGroup {
    fn add(&mut self, shard: u64, item: &CheckedItem) {
        let logical = &item.key.logical;
        let row = keyspace::key_stats(shard, item.record.epk.as_bytes(), &logical.hash());
        let (_, stats) = self.sums.entry(row).or_insert_with(|| (logical.clone(), KeyStats::default()));
        stats.items += 1;
        stats.bytes += item.record.body().len() as u64;
    }
}

impl Check<'_> {
    pub(super) async fn keys(&mut self) -> Result<()> {
        let mut members = self.cursor(Tag::Member);
        let mut group: Option<KeyGroup> = None;
        while let Some(chunk) = members.next(&self.snapshot).await? {
            for (row, doc) in self.members(chunk).await? {
                let Ok((epk, docnum)) = keyspace::decode_member(&row) else { continue };
                if let Some(done) = group.take_if(|group| group.epk != epk) {
                    self.compare_group(done).await?;
                }
                let group = group.get_or_insert_with(|| KeyGroup { epk, sums: BTreeMap::new() });
                let doc_row = keyspace::doc(self.range.shard, docnum);
                // An item that is missing or does not decode is reported already.
                if let Some(Ok(item)) = doc.map(|bytes| CheckedItem::read(self.schema, &doc_row, bytes)) {
                    group.add(self.range.shard, &item);
                }
            }
        }
        if let Some(done) = group {
            self.compare_group(done).await?;
        }
        self.keys_without_items().await
    }

    async fn members(&self, chunk: Vec<Pair>) -> Result<Vec<(Bytes, Option<Bytes>)>> {
        let doc = |row: &Bytes| Ok(keyspace::doc(self.range.shard, keyspace::decode_member(row)?.1));
        let rows: Vec<Bytes> = chunk.into_iter().map(|(row, _)| row).filter(|row| doc(row).is_ok()).collect();
        let docs = self.snapshot.get_many(&rows.iter().map(doc).collect::<Result<Vec<_>>>()?).await?;
        Ok(rows.into_iter().zip(docs).collect())
    }

    async fn compare_group(&mut self, mut group: KeyGroup) -> Result<()> {
        let mut rows = KeyspaceCursor::new(keyspace::epk_exact(self.range.shard, Tag::Key, &group.epk));
        while let Some(chunk) = rows.next(&self.snapshot).await? {
            self.report.keys += chunk.len() as u64;
            for (row, value) in chunk {
                match group.sums.remove(&row) {
                    None => self.add_problem(without_items(&row)),
                    Some((logical, stats)) if stats.encode(&logical) != value => {
                        self.add_problem(miscounted(&row, &stats))
                    }
                    Some(_) => {}
                }
            }
        }
        for row in group.sums.keys() {
            self.add_problem(format_args!("a logical partition lacks its key row {}", hex(row)));
        }
        Ok(())
    }

    /// Key rows at an effective key with items were compared before; the others make the count differ.
    async fn keys_without_items(&mut self) -> Result<()> {
        if self.count(Tag::Key).await? == self.report.keys {
            return Ok(());
        }
        let mut rows = self.cursor(Tag::Key);
        while let Some(chunk) = rows.next(&self.snapshot).await? {
            for (row, _) in chunk {
                if !self.has_members(&row).await? {
                    self.add_problem(without_items(&row));
                }
            }
        }
        Ok(())
    }

    async fn has_members(&self, row: &[u8]) -> Result<bool> {
        let Ok((epk, _)) = keyspace::decode_key_stats(row) else { return Ok(false) };
        let (from, to) = keyspace::epk_exact(self.range.shard, Tag::Member, &epk);
        Ok(!self.snapshot.scan(&from, &to, Direction::Forward, Limit::rows(1)).await?.pairs.is_empty())
    }
}

fn without_items(row: &[u8]) -> String {
    format!("the key row {} is of a logical partition without items", hex(row))
}

fn miscounted(row: &[u8], actual: &KeyStats) -> String {
    format!("the key row {} miscounts: there are {} items with {} bytes", hex(row), actual.items, actual.bytes)
}
