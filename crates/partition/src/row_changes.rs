//! Row changes: the rows that one item change puts and deletes, and those that later writers must see before the batch
//! is durable.
//!
//! Invariant: `id`, `member`, `index`, `vector`, `unique`, `feed` and `key` rows change in the same batch as the item
//! they point at. `partition` decides which change to make.

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::{Batch, keyspace};

use crate::index::{IndexTerm, is_priced};
use crate::key::{ItemKey, KeyStats};
use crate::key_tombstones::KeyTombstone;
use crate::record::Record;
use crate::schema::StoredTerms;
use crate::unique::Claim;
use crate::version_row::{self, VersionKind};

/// The row changes of one transaction.
#[derive(Default)]
pub struct RowChanges {
    pub batch: Batch,
    /// Rows that the next writer reads: it must see them although they are not durable yet.
    pub pending: Vec<(Bytes, Option<Bytes>)>,
    /// While the partition is being copied: the LSN of the log rows that name the changed items.
    pub log_lsn: Option<u64>,
    /// Set if the container retains all versions.
    pub versions: Option<Versions>,
    /// A tombstone whose row is in the batch: it takes effect with the batch.
    pub key_tombstone: Option<KeyTombstone>,
}

/// The LSN and numbering of a transaction's version rows.
pub struct Versions {
    pub lsn: u64,
    pub ts_s: u32,
    /// How many version rows it has written so far.
    count: u32,
}

impl Versions {
    pub fn new(lsn: u64, ts_s: u32) -> Versions {
        Versions { lsn, ts_s, count: 0 }
    }
}

/// The version that a change replaces or removes.
pub struct OldVersion<'a> {
    pub key: &'a ItemKey,
    pub record: &'a Record,
    pub terms: &'a StoredTerms,
    pub claims: &'a [Claim],
}

/// The version that a change writes.
pub struct NewVersion<'a> {
    pub key: &'a ItemKey,
    pub record: &'a Record,
    pub terms: &'a [IndexTerm],
    pub claims: &'a [Claim],
}

/// How many index rows and claims a change removed and added, counting only those that are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermCount {
    pub removed: usize,
    pub added: usize,
}

impl TermCount {
    /// The counts of a change of index terms.
    pub fn between(old: &StoredTerms, new: &[IndexTerm]) -> TermCount {
        let (removed, added) = differing(old, new);
        TermCount::of(&removed, &added)
    }

    /// The counts of a change of unique values.
    pub fn of_claims(old: &[Claim], new: &[Claim]) -> TermCount {
        let without =
            |claims: &[Claim], others: &[Claim]| claims.iter().filter(|claim| !others.contains(claim)).count();
        TermCount { removed: without(old, new), added: without(new, old) }
    }

    fn of(removed: &[&IndexTerm], added: &[&IndexTerm]) -> TermCount {
        let priced = |terms: &[&IndexTerm]| terms.iter().filter(|term| is_priced(term)).count();
        TermCount { removed: priced(removed), added: priced(added) }
    }
}

/// The terms whose rows must be deleted, and those whose rows must be put.
fn differing<'a>(old: &'a StoredTerms, new: &'a [IndexTerm]) -> (Vec<&'a IndexTerm>, Vec<&'a IndexTerm>) {
    let without = |terms: &[IndexTerm], term: &&IndexTerm| terms.binary_search(term).is_err();
    let removed = old.possible.iter().filter(|term| without(new, term)).collect();
    let added = new.iter().filter(|term| without(old.certain(), term)).collect();
    (removed, added)
}

impl std::ops::Add for TermCount {
    type Output = TermCount;

    fn add(self, other: TermCount) -> TermCount {
        TermCount { removed: self.removed + other.removed, added: self.added + other.added }
    }
}

impl RowChanges {
    pub fn insert(&mut self, shard: u64, new: &NewVersion<'_>) {
        let docnum = new.record.docnum;
        self.log(shard, new.record);
        self.put_pending(keyspace::id(shard, new.record.epk.as_bytes(), &new.key.hash), docnum_value(docnum));
        self.put_pending(keyspace::doc(shard, docnum), new.record.bytes().clone());
        self.batch.put(keyspace::member(shard, new.record.epk.as_bytes(), docnum), Bytes::new());
        self.put_feed(shard, new.record);
        new.terms.iter().for_each(|term| self.put_term(shard, term, docnum));
        new.claims
            .iter()
            .for_each(|claim| self.put_pending(claim.row(shard, new.record.epk.as_bytes()), docnum_value(docnum)));
        self.put_version(shard, VersionKind::Create, None, Some(new.record));
    }

    pub fn remove(&mut self, shard: u64, old: &OldVersion<'_>) {
        self.remove_rows(shard, old);
        self.put_version(shard, VersionKind::Delete, Some(old.record), None);
    }

    /// Removes an expired item.
    pub fn expire(&mut self, shard: u64, old: &OldVersion<'_>) {
        self.remove_rows(shard, old);
        self.put_version(shard, VersionKind::Expire, Some(old.record), None);
    }

    fn remove_rows(&mut self, shard: u64, old: &OldVersion<'_>) {
        let docnum = old.record.docnum;
        self.log(shard, old.record);
        self.delete_pending(keyspace::id(shard, old.record.epk.as_bytes(), &old.key.hash));
        self.delete_pending(keyspace::doc(shard, docnum));
        self.batch.delete(keyspace::member(shard, old.record.epk.as_bytes(), docnum));
        self.batch.delete(feed_row(shard, old.record));
        old.terms.possible.iter().for_each(|term| self.delete_term(shard, term, docnum));
        old.claims.iter().for_each(|claim| self.delete_pending(claim.row(shard, old.record.epk.as_bytes())));
    }

    /// The item keeps its docnum, and so its `_rid` and its `member` row.
    pub fn update(&mut self, shard: u64, old: &OldVersion<'_>, new: &NewVersion<'_>) -> TermCount {
        let docnum = new.record.docnum;
        self.log(shard, new.record);
        if old.key.hash != new.key.hash {
            self.delete_pending(keyspace::id(shard, old.record.epk.as_bytes(), &old.key.hash));
            self.put_pending(keyspace::id(shard, new.record.epk.as_bytes(), &new.key.hash), docnum_value(docnum));
        }
        self.put_pending(keyspace::doc(shard, docnum), new.record.bytes().clone());
        self.batch.delete(feed_row(shard, old.record));
        self.put_feed(shard, new.record);
        self.put_version(shard, VersionKind::Replace, Some(old.record), Some(new.record));
        let count = self.change_terms(shard, docnum, old.terms, new.terms);
        count + self.change_claims(shard, old, new)
    }

    /// Unique values that the new version no longer has become free.
    fn change_claims(&mut self, shard: u64, old: &OldVersion<'_>, new: &NewVersion<'_>) -> TermCount {
        let (epk, docnum) = (new.record.epk.as_bytes(), docnum_value(new.record.docnum));
        let removed = old.claims.iter().filter(|claim| !new.claims.contains(claim));
        let added = new.claims.iter().filter(|claim| !old.claims.contains(claim));
        removed.for_each(|claim| self.delete_pending(claim.row(shard, epk)));
        added.for_each(|claim| self.put_pending(claim.row(shard, epk), docnum.clone()));
        TermCount::of_claims(old.claims, new.claims)
    }

    pub fn put_version(&mut self, shard: u64, kind: VersionKind, previous: Option<&Record>, current: Option<&Record>) {
        let (Some(versions), Some(record)) = (&mut self.versions, previous.or(current)) else { return };
        let row = keyspace::version(shard, versions.lsn, versions.count, record.docnum);
        self.batch.put(row, version_row::encode(kind, versions.ts_s, previous, current));
        versions.count += 1;
    }

    /// Items of one transaction may have exchanged ids: puts the id row of the item that has the id at the end.
    pub fn claim_id(&mut self, shard: u64, key: &ItemKey, docnum: u64) {
        self.put_pending(keyspace::id(shard, key.logical.epk.as_bytes(), &key.hash), docnum_value(docnum));
    }

    /// The same for unique values.
    pub fn claim(&mut self, shard: u64, claims: &[Claim], record: &Record) {
        let (epk, docnum) = (record.epk.as_bytes(), docnum_value(record.docnum));
        claims.iter().for_each(|claim| self.put_pending(claim.row(shard, epk), docnum.clone()));
    }

    pub fn put_key_stats(&mut self, row: Bytes, stats: &KeyStats, key: &ItemKey) {
        match stats.items {
            0 => self.delete_pending(row),
            _ => self.put_pending(row, stats.encode(&key.logical)),
        }
    }

    /// Replaces the index rows that exist, or may exist, by exactly those of the new terms.
    pub fn change_terms(&mut self, shard: u64, docnum: u64, old: &StoredTerms, new: &[IndexTerm]) -> TermCount {
        let (removed, added) = differing(old, new);
        removed.iter().for_each(|term| self.delete_term(shard, term, docnum));
        added.iter().for_each(|term| self.put_term(shard, term, docnum));
        TermCount::of(&removed, &added)
    }

    fn log(&mut self, shard: u64, record: &Record) {
        if let Some(lsn) = self.log_lsn {
            self.batch.put(keyspace::log(shard, lsn, 0, record.docnum), record.epk.as_bytes());
        }
    }

    fn put_feed(&mut self, shard: u64, record: &Record) {
        self.batch.put(feed_row(shard, record), record.epk.as_bytes());
    }

    fn put_term(&mut self, shard: u64, term: &IndexTerm, docnum: u64) {
        self.batch.put(term.row(shard, docnum), term.content());
    }

    fn delete_term(&mut self, shard: u64, term: &IndexTerm, docnum: u64) {
        self.batch.delete(term.row(shard, docnum));
    }

    fn put_pending(&mut self, key: Bytes, value: Bytes) {
        self.batch.put(&key, &value);
        self.pending.push((key, Some(value)));
    }

    fn delete_pending(&mut self, key: Bytes) {
        self.batch.delete(&key);
        self.pending.push((key, None));
    }
}

/// The change feed row of a version. The row's value is its effective key: a reader of one key range need not fetch the
/// items outside it.
pub fn feed_row(shard: u64, record: &Record) -> Bytes {
    keyspace::feed(shard, record.lsn, u32::from(record.seq), record.docnum)
}

/// A docnum as a row's value.
pub fn docnum_value(docnum: u64) -> Bytes {
    Bytes::copy_from_slice(&docnum.to_be_bytes())
}

pub fn docnum_from_value(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| pleiad_model::Error::corrupt("item number"))?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
