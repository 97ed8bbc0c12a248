//! An item as the check sees it: its record, and everything else computed again from its body.

use std::fmt;

use bytes::Bytes;
use pleiad_model::item::item_id;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Result, json};
use pleiad_storage::keyspace;
use pleiad_storage::store::Pair;

use crate::index::IndexTerm;
use crate::key::ItemKey;
use crate::record::Record;
use crate::row_changes::{NewVersion, OldVersion, docnum_value, feed_row};
use crate::schema::{Schema, StoredTerms};
use crate::unique::Claim;
use pleiad_model::partition_map::PartitionKeyRange;

pub struct CheckedItem {
    /// From the key of its row; the record has it, too.
    pub docnum: u64,
    pub record: Record,
    /// From its body.
    pub key: ItemKey,
    pub terms: StoredTerms,
    pub claims: Vec<Claim>,
}

impl CheckedItem {
    pub fn read(schema: &Schema, row: &[u8], bytes: Bytes) -> Result<CheckedItem> {
        let docnum = keyspace::docnum_of_doc(row)?;
        let record = Record::decode(bytes)?;
        let body = json::parse(record.body())?;
        let key = schema.key.as_ref().map(|definition| PartitionKey::extract(definition, &body));
        let key = ItemKey::new(schema.key.as_ref(), &key.unwrap_or_default(), item_id(&body)?);
        let terms = schema.stored_terms(&record, &body);
        let claims = schema.unique.claims(&key.logical, &body);
        Ok(CheckedItem { docnum, record, key, terms, claims })
    }

    /// Contradictions between the record and its row, its body or its partition.
    pub fn faults(&self, range: &PartitionKeyRange) -> Vec<&'static str> {
        let record = &self.record;
        let faults = [
            (record.docnum != self.docnum, "is stored under another number than its own"),
            (record.id() != self.key.id, "has another id in its body"),
            (record.epk != self.key.logical.epk, "is not where its partition key belongs"),
            (!range.keys.contains(&record.epk), "lies outside the partition's range"),
        ];
        faults.into_iter().filter_map(|(is, fault)| is.then_some(fault)).collect()
    }

    /// Every row that must exist because of this item, except its own.
    pub fn rows(&self, shard: u64) -> Vec<Pair> {
        let (record, epk) = (&self.record, self.record.epk.as_bytes());
        let mut rows = Vec::with_capacity(3 + self.claims.len() + self.terms.certain().len());
        rows.push((keyspace::id(shard, epk, &self.key.hash), docnum_value(self.docnum)));
        rows.push((keyspace::member(shard, epk, self.docnum), Bytes::new()));
        rows.push((feed_row(shard, record), Bytes::copy_from_slice(epk)));
        rows.extend(self.claims.iter().map(|claim| (claim.row(shard, epk), docnum_value(self.docnum))));
        let content = |term: &IndexTerm| Bytes::copy_from_slice(term.content());
        rows.extend(self.terms.certain().iter().map(|term| (term.row(shard, self.docnum), content(term))));
        rows
    }

    /// Whether this is one of the item's rows, or one that it can have during an index transformation.
    pub fn may_have(&self, shard: u64, row: &[u8]) -> bool {
        self.rows(shard).iter().any(|(own, _)| own == row)
            || self.terms.possible.iter().any(|term| term.row(shard, self.docnum) == row)
    }

    /// As the version that a copy removes (`as_old`) or adds (`as_new`).
    pub fn as_old(&self) -> OldVersion<'_> {
        OldVersion { key: &self.key, record: &self.record, terms: &self.terms, claims: &self.claims }
    }

    pub fn as_new(&self) -> NewVersion<'_> {
        NewVersion { key: &self.key, record: &self.record, terms: &self.terms.possible, claims: &self.claims }
    }
}

impl fmt::Display for CheckedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {} ({:?}, LSN {})", self.docnum, self.record.id(), self.record.lsn)
    }
}
