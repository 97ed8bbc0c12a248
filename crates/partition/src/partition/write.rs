//! Single-item writes: from the current version to a sequenced change (insert, update, remove, expire).
//!
//! Invariant: the caller holds the logical partition's latch, so that what is looked up here stays true until the
//! change is sequenced. `checks` decides what is rejected, `row_changes` which rows a change puts and deletes.

use std::borrow::Cow;

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::partition_map::PartitionKeyRange;
use pleiad_model::{Fact, Result, json};

use super::checks::{check_exists, check_key_size, check_version, check_write, rejected};
use super::sequencer::Queued;
use super::{Draft, Partition, Precondition, Rejected, Verb, WriteError, Written};
use crate::index::{self, IndexTerm};
use crate::key::{ItemKey, KeyStats};
use crate::price;
use crate::record::{Contents, FieldOffsets, Record};
use crate::row_changes::{NewVersion, OldVersion, RowChanges};
use crate::schema::{Schema, StoredTerms};
use crate::shard_state::{DOCNUM_COUNTER_BITS, ShardState};
use crate::ttl::Expiry;
use crate::unique::Claim;

impl Partition {
    pub(super) async fn put(
        &self,
        schema: &Schema,
        verb: Verb,
        new: &PreparedWrite<'_>,
        condition: &Precondition,
    ) -> Result<Queued, WriteError> {
        let found = self.current(new.target).await?;
        let is_dead = found.as_ref().is_some_and(|record| self.is_dead(schema, new.ts_s, record));
        let (old, dead) = if is_dead { (None, found) } else { (found, None) };
        check_write(verb, old.as_ref(), condition)?;
        match old {
            None => self.insert(schema, new, dead).await,
            Some(record) => self.update(schema, new, record).await,
        }
    }

    /// `dead` is a dead item with the same id: it is removed in the same transaction.
    async fn insert(
        &self,
        schema: &Schema,
        new: &PreparedWrite<'_>,
        dead: Option<Record>,
    ) -> Result<Queued, WriteError> {
        let dead = dead.map(|record| RemovedVersion::new(schema, new.target.clone(), record)).transpose()?;
        let dead = self.check_unique(schema, new, None, dead).await?;
        let mut stats = self.key_stats(&new.key).await?;
        let before = stats.bytes;
        dead.iter().for_each(|removed| removed.subtract_from_key(&mut stats));
        stats.items += 1;
        stats.bytes += new.body.len() as u64;
        check_key_size(schema, &stats)?;
        self.large_keys.record_growth(&new.key, before, &stats, schema.size_limits.key_bytes_max);
        let expiry = schema.expiry(new.ts_s);
        self.sequence(schema, new.ts_s, |shard, changes| {
            let docnum = next_docnum(&self.range, shard)?;
            let record = Record::encode(&new.contents(docnum), shard.lsn, 0)?;
            dead.iter().for_each(|removed| removed.write_removal(&expiry, self.range.shard, shard, changes));
            changes.insert(self.range.shard, &new.as_new(&record));
            changes.put_key_stats(self.key_row(&new.key), &stats, &new.key);
            shard.items += 1;
            shard.item_bytes += new.body.len() as u64;
            self.check_partition_size(schema, shard)?;
            let charge_ru = price::create(new.body.len(), index::count_priced(&new.terms) + new.claims.len());
            Ok(Written { record: Some(record), created: true, lsn: shard.lsn, charge_ru })
        })
    }

    async fn update(&self, schema: &Schema, new: &PreparedWrite<'_>, old: Record) -> Result<Queued, WriteError> {
        let renamed = new.key.hash != new.target.hash;
        let other = if renamed { self.current(&new.key).await? } else { None };
        let is_dead = other.as_ref().is_some_and(|other| self.is_dead(schema, new.ts_s, other));
        if other.is_some() && !is_dead {
            return Err(rejected(Fact::ItemExists, old.body().len()).into());
        }
        let dead = other.map(|other| RemovedVersion::new(schema, new.key.clone().into_owned(), other)).transpose()?;
        let dead = self.check_unique(schema, new, Some(old.docnum), dead).await?;
        let old = RemovedVersion::new(schema, new.target.clone(), old)?;
        let (old_bytes, new_bytes) = (old.record.body().len(), new.body.len());
        let mut stats = self.key_stats(&new.key).await?;
        let before = stats.bytes;
        dead.iter().for_each(|removed| removed.subtract_from_key(&mut stats));
        stats.bytes = (stats.bytes + new_bytes as u64).saturating_sub(old_bytes as u64);
        if new_bytes > old_bytes {
            check_key_size(schema, &stats)?;
            self.large_keys.record_growth(&new.key, before, &stats, schema.size_limits.key_bytes_max);
        }
        let expiry = schema.expiry(new.ts_s);
        self.sequence(schema, new.ts_s, |shard, changes| {
            let record = Record::encode(&new.contents(old.record.docnum), shard.lsn, 0)?;
            dead.iter().for_each(|removed| removed.write_removal(&expiry, self.range.shard, shard, changes));
            let count = changes.update(self.range.shard, &old.as_old(), &new.as_new(&record));
            changes.put_key_stats(self.key_row(&new.key), &stats, &new.key);
            shard.item_bytes = (shard.item_bytes + new_bytes as u64).saturating_sub(old_bytes as u64);
            if new_bytes > old_bytes {
                self.check_partition_size(schema, shard)?;
            }
            let charge_ru = price::replace(old_bytes, new_bytes, count.removed, count.added);
            Ok(Written { record: Some(record), created: false, lsn: shard.lsn, charge_ru })
        })
    }

    /// Rejects the write if a live item holds one of the new version's unique values. Returns the dead holders,
    /// together with the dead item that is passed in: they are removed in the same transaction. `own` is the docnum of
    /// the item that is written.
    async fn check_unique(
        &self,
        schema: &Schema,
        new: &PreparedWrite<'_>,
        own: Option<u64>,
        dead: Option<RemovedVersion>,
    ) -> Result<Vec<RemovedVersion>, Rejected> {
        let mut dead: Vec<RemovedVersion> = dead.into_iter().collect();
        for claim in &new.claims {
            let Some(holder) = self.holder(claim, &new.key).await? else { continue };
            if own == Some(holder) || dead.iter().any(|removed| removed.record.docnum == holder) {
                continue;
            }
            let record = self.current_by_docnum(holder).await?;
            if !self.is_dead(schema, new.ts_s, &record) {
                return Err(rejected(Fact::UniqueViolation, record.body().len()));
            }
            dead.push(RemovedVersion::new(schema, new.key.renamed(record.id()), record)?);
        }
        Ok(dead)
    }

    pub(super) async fn remove(
        &self,
        schema: &Schema,
        key: &ItemKey,
        condition: &Precondition,
        ts_s: u32,
    ) -> Result<Queued, WriteError> {
        let old = self.current(key).await?.filter(|record| !self.is_dead(schema, ts_s, record));
        let old = check_exists(old)?;
        check_version(&old, condition)?;
        let old = RemovedVersion::new(schema, key.clone(), old)?;
        let mut stats = self.key_stats(key).await?;
        old.subtract_from_key(&mut stats);
        self.sequence(schema, ts_s, |shard, changes| {
            changes.remove(self.range.shard, &old.as_old());
            changes.put_key_stats(self.key_row(key), &stats, key);
            old.subtract_from_shard(shard);
            let rows = index::count_priced(&old.terms.possible) + old.claims.len();
            let charge_ru = price::delete(old.record.body().len(), rows);
            Ok(Written { record: None, created: false, lsn: shard.lsn, charge_ru })
        })
    }

    /// Removes an expired item, unless it has been written since.
    pub(crate) async fn expire_item(
        &self,
        schema: &Schema,
        found: &Record,
        now_s: u32,
    ) -> Result<Option<Queued>, WriteError> {
        let key = key_of(schema, found)?;
        let _latch = self.latch(&key).await;
        let current = self.current(&key).await?.filter(|current| current.docnum == found.docnum);
        let Some(current) = current.filter(|current| schema.expiry(now_s).is_expired(&current.view())) else {
            return Ok(None);
        };
        let removed = RemovedVersion::new(schema, key, current)?;
        let mut stats = self.key_stats(&removed.key).await?;
        removed.subtract_from_key(&mut stats);
        let queued = self.sequence(schema, now_s, |shard, changes| {
            removed.write_removal(&schema.expiry(now_s), self.range.shard, shard, changes);
            changes.put_key_stats(self.key_row(&removed.key), &stats, &removed.key);
            Ok(Written { record: None, created: false, lsn: shard.lsn, charge_ru: 0.0 })
        })?;
        Ok(Some(queued))
    }
}

/// A version that is removed or replaced, with its index terms and unique claims.
struct RemovedVersion {
    key: ItemKey,
    record: Record,
    terms: StoredTerms,
    claims: Vec<Claim>,
}

impl RemovedVersion {
    fn new(schema: &Schema, key: ItemKey, record: Record) -> Result<Self> {
        let body = json::parse(record.body())?;
        let (terms, claims) = (schema.stored_terms(&record, &body), schema.unique.claims(&key.logical, &body));
        Ok(RemovedVersion { key, record, terms, claims })
    }

    fn as_old(&self) -> OldVersion<'_> {
        OldVersion { key: &self.key, record: &self.record, terms: &self.terms, claims: &self.claims }
    }

    fn subtract_from_key(&self, stats: &mut KeyStats) {
        stats.items = stats.items.saturating_sub(1);
        stats.bytes = stats.bytes.saturating_sub(self.record.body().len() as u64);
    }

    fn subtract_from_shard(&self, shard: &mut ShardState) {
        shard.items = shard.items.saturating_sub(1);
        shard.item_bytes = shard.item_bytes.saturating_sub(self.record.body().len() as u64);
    }

    /// Removes a dead item: one that is expired, or was deleted with its partition key.
    fn write_removal(&self, expiry: &Expiry, shard_id: u64, shard: &mut ShardState, changes: &mut RowChanges) {
        match expiry.is_expired(&self.record.view()) {
            true => changes.expire(shard_id, &self.as_old()),
            false => changes.remove(shard_id, &self.as_old()),
        }
        self.subtract_from_shard(shard);
    }
}

pub(super) fn key_of(schema: &Schema, record: &Record) -> Result<ItemKey> {
    let body = json::parse(record.body())?;
    let key = schema.key.as_ref().map(|definition| PartitionKey::extract(definition, &body)).unwrap_or_default();
    Ok(ItemKey::new(schema.key.as_ref(), &key, record.id()))
}

/// A draft with everything computed that needs no latch.
pub(super) struct PreparedWrite<'a> {
    pub(super) target: &'a ItemKey,
    pub(super) key: Cow<'a, ItemKey>,
    pub(super) ts_s: u32,
    indexed: bool,
    fields: FieldOffsets,
    pub(super) body: &'a [u8],
    pub(super) terms: Vec<IndexTerm>,
    pub(super) claims: Vec<Claim>,
}

impl<'a> PreparedWrite<'a> {
    pub(super) fn new(schema: &Schema, draft: &'a Draft, ts_s: u32) -> Self {
        let (target, indexed, body) = (&draft.target, draft.indexed, draft.text.as_slice());
        let renamed = draft.id != target.id;
        let key = if renamed { Cow::Owned(target.renamed(&draft.id)) } else { Cow::Borrowed(target) };
        let terms = schema.terms(&draft.body, ts_s, indexed);
        let claims = schema.unique.claims(&target.logical, &draft.body);
        PreparedWrite { target, key, ts_s, indexed, fields: FieldOffsets::of(body), body, terms, claims }
    }

    fn as_new<'n>(&'n self, record: &'n Record) -> NewVersion<'n> {
        NewVersion { key: &self.key, record, terms: &self.terms, claims: &self.claims }
    }

    pub(super) fn contents(&self, docnum: u64) -> Contents<'_> {
        let (ts_s, indexed, fields, body) = (self.ts_s, self.indexed, &self.fields, self.body);
        let terms = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        let (epk, id) = (&self.key.logical.epk, self.key.id.as_str());
        Contents { docnum, ts_s, terms, indexed, etag_source: None, epk, id, fields, body }
    }
}

pub(super) fn next_docnum(range: &PartitionKeyRange, shard: &mut ShardState) -> Result<u64> {
    shard.last_item += 1;
    if shard.last_item >> DOCNUM_COUNTER_BITS != 0 {
        return Err(Fact::DocnumsExhausted { range: range.id }.into());
    }
    Ok(u64::from(range.prefix) << DOCNUM_COUNTER_BITS | shard.last_item)
}
