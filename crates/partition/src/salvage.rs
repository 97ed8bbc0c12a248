//! Salvage: reads the items of a shard from a store of which parts cannot be read.
//!
//! Guarantees: every item that the store can still return is visited once, in docnum order. An unreadable block costs
//! the items in it and no others: the scan continues at the first docnum behind it that can be read.

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::{AnySnapshot, Chunk, Direction, Limit, Snapshot, keyspace};

use crate::record::Record;
use keyspace::Tag;

/// What was found in one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvagedShard {
    pub items: u64,
    /// One sentence per item or run of items that could not be read.
    pub problems: Vec<String>,
}

const CHUNK: Limit = Limit { rows: 256, bytes: 4 << 20 };

/// Calls `visit` with the text of every readable item. Fails only if `visit` does.
pub async fn salvage_items(
    snapshot: &AnySnapshot,
    shard: u64,
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<SalvagedShard> {
    let mut salvaged = SalvagedShard::default();
    let scan = DocScan { snapshot, shard, to: keyspace::range(shard, Tag::Doc).1 };
    let mut next = Some(0);
    while let Some(docnum) = next {
        let chunk = match scan.chunk(docnum, CHUNK).await {
            Ok(chunk) => chunk,
            Err(error) => {
                next = scan.skip_unreadable(docnum).await;
                let behind = next.map_or_else(|| "on".to_owned(), |behind| format!("to {}", behind - 1));
                salvaged.problems.push(format!("shard {shard}, items from docnum {docnum} {behind}: {error}"));
                continue;
            }
        };
        next = None;
        for (row, bytes) in &chunk.pairs {
            let docnum = docnum_of(row);
            match Record::decode(bytes.clone()) {
                Ok(record) => {
                    salvaged.items += 1;
                    visit(record.body())?;
                }
                Err(error) => salvaged.problems.push(format!("shard {shard}, docnum {docnum}: {error}")),
            }
            next = docnum.checked_add(1).filter(|_| chunk.more);
        }
    }
    Ok(salvaged)
}

struct DocScan<'a> {
    snapshot: &'a AnySnapshot,
    shard: u64,
    to: Bytes,
}

impl DocScan<'_> {
    /// Rows from this docnum on. If a chunk cannot be read, its first row may still be readable.
    async fn chunk(&self, docnum: u64, limit: Limit) -> Result<Chunk> {
        let from = keyspace::doc(self.shard, docnum);
        match self.snapshot.scan(&from, &self.to, Direction::Forward, limit).await {
            Err(_) => self.snapshot.scan(&from, &self.to, Direction::Forward, Limit::rows(1)).await,
            chunk => chunk,
        }
    }

    /// The first docnum after this one from which on rows can be read: steps that double, then halve.
    async fn skip_unreadable(&self, docnum: u64) -> Option<u64> {
        let (mut unreadable, mut step) = (docnum, 1);
        let mut readable = loop {
            let candidate = docnum.checked_add(step)?;
            if self.is_readable(candidate).await {
                break candidate;
            }
            (unreadable, step) = (candidate, step.checked_mul(2)?);
        };
        while readable - unreadable > 1 {
            let middle = unreadable + (readable - unreadable) / 2;
            if self.is_readable(middle).await {
                readable = middle;
            } else {
                unreadable = middle;
            }
        }
        Some(readable)
    }

    async fn is_readable(&self, docnum: u64) -> bool {
        self.chunk(docnum, Limit::rows(1)).await.is_ok()
    }
}

/// The last eight bytes of the row's key.
fn docnum_of(row: &[u8]) -> u64 {
    row.last_chunk::<8>().map_or(0, |docnum| u64::from_be_bytes(*docnum))
}
