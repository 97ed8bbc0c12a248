//! Transactions: atomic changes to one logical partition, all at one LSN or none, under snapshot isolation.
//!
//! Guarantees: a transaction sees a snapshot of its logical partition with its own writes on top. Other readers see
//! none of its writes before `commit`, and all of them afterwards. A rejected operation changes nothing, and the
//! transaction can continue. Dropping a transaction discards it.
//!
//! ```text
//! begin          optimistic: reads a snapshot and takes no latch. The items it has written must be unchanged when it
//!                commits: the first committer wins, the other fails with `ConflictingWrite`
//! begin_latched  pessimistic: holds its logical partition's latch from beginning to end, so that no other writer can
//!                interfere; for callers that wait for nothing while they hold it
//!
//! snapshot   5 "a" @3     6 "b" @4
//! own        5 "a" →                   9 "c" new        docnums and etags are final, LSNs are not
//! commit     is "a" still @3, is there still no "c"?  one LSN: 5 "a" @8.0, 9 "c" @8.1
//! ```

mod commit; // validation, and the rows of all changes
mod version_log; // a version row for every operation
mod reads; // snapshot and own writes, for queries inside a transaction

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pleiad_model::{Error, Fact, Result, json};
use pleiad_storage::Blocking;
use tokio::sync::MutexGuard;

use super::checks::{check_exists, check_key_size, check_version, check_write, rejected};
use super::write::{PreparedWrite, key_of};
use super::{Draft, Partition, Precondition, Queued, Rejected, Verb, WriteError};
use crate::feed::{KeyScope, PageLimit, RecordPage};
use crate::index;
use crate::key::{ItemKey, KeyStats, LogicalKey};
use crate::price;
use crate::record::{Contents, EtagSource, Record};
use crate::row_changes::TermCount;
use crate::schema::{Schema, StoredTerms};
use crate::snapshot::PartitionSnapshot;
use crate::unique::Claim;
use crate::version_row::VersionKind;
use version_log::VersionLog;

/// Limit of item bytes written by one transaction: they stay in memory until its end.
pub const TRANSACTION_BYTES_MAX: usize = 64 << 20;
/// The changes of one LSN are numbered with 16 bits.
pub const TRANSACTION_CHANGES_MAX: usize = u16::MAX as usize;

pub struct Transaction<'a> {
    partition: &'a Partition,
    schema: &'a Schema,
    /// Identifies its logical partition; the id is empty.
    scope: ItemKey,
    ts_s: u32,
    base: BaseState<'a>,
    /// The LSN and number that its etags contain, because its own LSN is not known before the commit.
    etag_source: EtagSource,
    /// The docnum of each id that the transaction has touched; `None` if the id is free.
    ids: HashMap<[u8; 16], Option<u64>>,
    changes: BTreeMap<u64, ItemChange>,
    version_log: VersionLog,
    /// The docnum that holds each unique value the transaction has touched; `None` if it is free.
    claim_holders: HashMap<Claim, Option<u64>>,
    /// The versions that its writes depend on; `commit` validates them.
    expected_versions: Vec<(ItemKey, Option<VersionId>)>,
    /// The holders of unique values that its writes depend on; `commit` validates them.
    expected_holders: Vec<(Claim, Option<u64>)>,
    stats: Option<KeyStats>,
    key_delta: KeyDelta,
    written_bytes: usize,
}

/// The committed state below its own writes.
enum BaseState<'a> {
    Snapshot(Arc<PartitionSnapshot>),
    Latched { _latch: MutexGuard<'a, ()> },
}

/// Identifies one version within a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VersionId {
    docnum: u64,
    lsn: u64,
    seq: u16,
}

/// The net change of one item.
struct ItemChange {
    old: Option<PreparedVersion>,
    new: Option<PreparedVersion>,
    /// The old version was removed because it had expired.
    is_expired: bool,
    writes: u16,
}

struct PreparedVersion {
    key: ItemKey,
    record: Record,
    terms: StoredTerms,
    claims: Vec<Claim>,
}

/// By how much the logical partition grows or shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeyDelta {
    items: i64,
    bytes: i64,
}

/// The result of one operation of a transaction.
#[derive(Debug)]
pub struct OperationEffect {
    /// The new version, its LSN still unknown; `None` after a delete.
    pub record: Option<Record>,
    pub created: bool,
    pub charge_ru: f64,
}

impl Partition {
    /// Begins an optimistic transaction on a snapshot of one logical partition. Takes no latch. For blocking threads:
    /// the transaction reads on the spot.
    pub async fn begin<'a>(&'a self, schema: &'a Schema, logical: LogicalKey, ts_s: u32) -> Result<Transaction<'a>> {
        let view = self.snapshot(Blocking::Thread).await?;
        Ok(self.transaction(schema, logical.item(""), ts_s, BaseState::Snapshot(Arc::new(view))))
    }

    /// Begins a transaction that excludes other writers of its logical partition: the caller must not wait for clients.
    pub async fn begin_latched<'a>(&'a self, schema: &'a Schema, logical: LogicalKey, ts_s: u32) -> Transaction<'a> {
        let scope = logical.item("");
        let latch = self.latch(&scope).await;
        self.transaction(schema, scope, ts_s, BaseState::Latched { _latch: latch })
    }

    fn transaction<'a>(
        &'a self,
        schema: &'a Schema,
        scope: ItemKey,
        ts_s: u32,
        base: BaseState<'a>,
    ) -> Transaction<'a> {
        let number = self.transactions.fetch_add(1, Ordering::Relaxed);
        let (ids, changes, claim_holders, expected_versions, expected_holders, stats) = Default::default();
        Transaction {
            partition: self,
            schema,
            scope,
            ts_s,
            base,
            etag_source: (self.shard_state().lsn, etag_seq(number)),
            ids,
            changes,
            version_log: VersionLog::new(schema),
            claim_holders,
            expected_versions,
            expected_holders,
            stats,
            key_delta: KeyDelta::default(),
            written_bytes: 0,
        }
    }
}

/// Etags of transactions have the highest bit set, which the etag of a single write never has. Two transactions that
/// began at one LSN differ in the next eight bits, versions of one item in the last seven.
fn etag_seq(number: u64) -> u16 {
    0x8000 | (number as u16 & 0xFF) << 7
}

impl Transaction<'_> {
    /// The LSN of its snapshot. A latched transaction has none: the current LSN.
    pub fn lsn(&self) -> u64 {
        match &self.base {
            BaseState::Snapshot(view) => view.lsn(),
            BaseState::Latched { .. } => self.partition.lsn(),
        }
    }

    pub async fn read(&self, key: &ItemKey) -> Result<Option<Record>> {
        if key.logical != self.scope.logical {
            return Err(Fact::KeyOutsideTransaction.into());
        }
        Ok(self.split_dead(self.find(key).await?).0)
    }

    /// Its items after docnum `after`, in docnum order; items that it has created come last.
    pub async fn items(&self, after: u64, limit: PageLimit) -> Result<RecordPage> {
        let BaseState::Snapshot(view) = &self.base else {
            return Err(Error::internal("a latched transaction reads single items"));
        };
        let scope = KeyScope::Key(self.scope.logical.epk.clone());
        let mut page = view.page(&scope, after, limit, self.schema.expiry(self.ts_s)).await?;
        page.records = page.records.into_iter().filter_map(|record| self.as_changed(record)).collect();
        if page.next.is_none() {
            self.add_created(after, limit, &mut page);
        }
        Ok(page)
    }

    fn as_changed(&self, record: Record) -> Option<Record> {
        match self.changes.get(&record.docnum) {
            None => Some(record),
            Some(change) => change.new.as_ref().map(|version| version.record.clone()),
        }
    }

    fn add_created(&self, after: u64, limit: PageLimit, page: &mut RecordPage) {
        let mut bytes: usize = page.records.iter().map(|record| record.body().len()).sum();
        let created = self.changes.range(after.saturating_add(1)..).filter(|(_, change)| change.old.is_none());
        for version in created.filter_map(|(_, change)| change.new.as_ref()) {
            let size = version.record.body().len();
            let is_full = page.records.len() >= limit.items || (bytes > 0 && bytes + size > limit.bytes);
            if is_full {
                page.next = page.records.last().map(|record| record.docnum);
                return;
            }
            bytes += size;
            page.records.push(version.record.clone());
        }
    }

    /// Creates, replaces or upserts an item.
    pub async fn put(
        &mut self,
        verb: Verb,
        draft: &Draft,
        condition: &Precondition,
    ) -> Result<OperationEffect, Rejected> {
        let (versions_len, holders_len) = (self.expected_versions.len(), self.expected_holders.len());
        let effect = self.try_put(verb, draft, condition).await;
        if effect.is_err() {
            self.expected_versions.truncate(versions_len);
            self.expected_holders.truncate(holders_len);
        }
        effect
    }

    pub async fn delete(&mut self, key: &ItemKey, condition: &Precondition) -> Result<OperationEffect, Rejected> {
        let versions_len = self.expected_versions.len();
        let effect = self.try_delete(key, condition).await;
        if effect.is_err() {
            self.expected_versions.truncate(versions_len);
        }
        effect
    }

    async fn try_put(
        &mut self,
        verb: Verb,
        draft: &Draft,
        condition: &Precondition,
    ) -> Result<OperationEffect, Rejected> {
        if draft.target.logical != self.scope.logical {
            return Err(Error::from(Fact::KeyOutsideTransaction).into());
        }
        self.check_size(draft.text.len())?;
        let new = PreparedWrite::new(self.schema, draft, self.ts_s);
        let found = self.find_to_write(new.target).await?;
        let (old, dead) = self.split_dead(found);
        check_write(verb, old.as_ref(), condition)?;
        let effect = match old {
            None => self.insert(new, dead).await,
            Some(old) => self.update(new, old).await,
        }?;
        if !draft.indexed {
            self.partition.unindexed.set();
        }
        self.written_bytes += draft.text.len();
        Ok(effect)
    }

    async fn try_delete(&mut self, key: &ItemKey, condition: &Precondition) -> Result<OperationEffect, Rejected> {
        if key.logical != self.scope.logical {
            return Err(Error::from(Fact::KeyOutsideTransaction).into());
        }
        let found = self.find_to_write(key).await?;
        let (old, _) = self.split_dead(found);
        check_version(check_exists(old.as_ref())?, condition)?;
        self.check_size(0)?;
        let Some(old) = old else { return Err(Error::internal("an item that was there is not").into()) };
        let bytes = old.body().len();
        let change = change_entry(&mut self.changes, self.schema, key, old)?;
        let rows =
            change.latest().map_or(0, |version| index::count_priced(&version.terms.possible) + version.claims.len());
        self.version_log.push(VersionKind::Delete, change.latest(), None);
        let claims = change.drop_latest();
        let charge_ru = price::delete(bytes, rows);
        self.ids.insert(key.hash, None);
        self.claim_holders.extend(claims.into_iter().map(|claim| (claim, None)));
        self.key_delta.add(-1, -(bytes as i64));
        Ok(OperationEffect { record: None, created: false, charge_ru })
    }

    async fn insert(&mut self, new: PreparedWrite<'_>, dead: Option<Record>) -> Result<OperationEffect, Rejected> {
        let dead = self.check_unique(&new.claims, None, dead).await?;
        let mut delta = KeyDelta { items: 1, bytes: new.body.len() as i64 };
        dead.iter().for_each(|record| delta.add(-1, -(record.body().len() as i64)));
        self.check_delta(delta).await?;
        for record in dead {
            self.remove_dead(record)?;
        }
        let docnum = self.partition.reserve_docnum()?;
        let record = Record::encode(&Contents { etag_source: Some(self.etag_source), ..new.contents(docnum) }, 0, 0)?;
        let charge_ru = price::create(new.body.len(), index::count_priced(&new.terms) + new.claims.len());
        self.claim_holders.extend(new.claims.iter().map(|claim| (*claim, Some(docnum))));
        let (key, terms, claims) = (new.key.into_owned(), new.terms.into(), new.claims);
        let now = PreparedVersion { key, record: record.clone(), terms, claims };
        self.version_log.push(VersionKind::Create, None, Some(&record));
        self.ids.insert(now.key.hash, Some(docnum));
        self.changes.insert(docnum, ItemChange { old: None, new: Some(now), is_expired: false, writes: 1 });
        self.key_delta.add(delta.items, delta.bytes);
        Ok(OperationEffect { record: Some(record), created: true, charge_ru })
    }

    async fn update(&mut self, new: PreparedWrite<'_>, old: Record) -> Result<OperationEffect, Rejected> {
        let (old_bytes, new_bytes, docnum) = (old.body().len(), new.body.len(), old.docnum);
        let dead = match new.key.hash == new.target.hash {
            true => None,
            false => self.check_id_free(&new.key, old_bytes).await?,
        };
        let dead = self.check_unique(&new.claims, Some(docnum), dead).await?;
        let mut delta = KeyDelta { items: 0, bytes: new_bytes as i64 - old_bytes as i64 };
        dead.iter().for_each(|record| delta.add(-1, -(record.body().len() as i64)));
        self.check_delta(delta).await?;
        for record in dead {
            self.remove_dead(record)?;
        }
        let change = change_entry(&mut self.changes, self.schema, new.target, old)?;
        let tag = (self.etag_source.0, self.etag_source.1 | change.writes & 0x7F);
        let record = Record::encode(&Contents { etag_source: Some(tag), ..new.contents(docnum) }, 0, 0)?;
        let count = change.latest().map(|version| version.count_changes(&new)).unwrap_or_default();
        self.version_log.push(VersionKind::Replace, change.latest(), Some(&record));
        let former = change.drop_latest();
        self.claim_holders.extend(former.into_iter().map(|claim| (claim, None)));
        self.claim_holders.extend(new.claims.iter().map(|claim| (*claim, Some(docnum))));
        self.ids.insert(new.target.hash, None);
        self.ids.insert(new.key.hash, Some(docnum));
        let (key, terms, claims) = (new.key.into_owned(), new.terms.into(), new.claims);
        change.new = Some(PreparedVersion { key, record: record.clone(), terms, claims });
        change.writes = change.writes.wrapping_add(1); // only its low bits distinguish versions
        self.key_delta.add(delta.items, delta.bytes);
        let charge_ru = price::replace(old_bytes, new_bytes, count.removed, count.added);
        Ok(OperationEffect { record: Some(record), created: false, charge_ru })
    }

    /// Rejects an id that a live item has. Returns the dead item with that id, if there is one.
    async fn check_id_free(&mut self, key: &ItemKey, old_bytes: usize) -> Result<Option<Record>, Rejected> {
        let found = self.find_to_write(key).await?;
        match self.split_dead(found) {
            (Some(_), _) => Err(rejected(Fact::ItemExists, old_bytes)),
            (None, dead) => Ok(dead),
        }
    }

    /// Rejects the write if a live item holds one of the claimed unique values. Returns the dead holders, together with
    /// the dead item that is passed in. `own` is the docnum of the item that is written.
    async fn check_unique(
        &mut self,
        claims: &[Claim],
        own: Option<u64>,
        dead: Option<Record>,
    ) -> Result<Vec<Record>, Rejected> {
        let mut dead: Vec<Record> = dead.into_iter().collect();
        for claim in claims {
            let holder = self.find_holder(claim).await?.filter(|holder| Some(*holder) != own);
            let Some(holder) = holder.filter(|holder| dead.iter().all(|record| record.docnum != *holder)) else {
                continue;
            };
            match self.split_dead(self.find_by_docnum(holder).await?) {
                (Some(taken), _) => return Err(rejected(Fact::UniqueViolation, taken.body().len())),
                (None, record) => dead.extend(record),
            }
        }
        Ok(dead)
    }

    /// The holder as this transaction sees it. Remembers it for validation at commit.
    async fn find_holder(&mut self, claim: &Claim) -> Result<Option<u64>> {
        if let Some(holder) = self.claim_holders.get(claim) {
            return Ok(*holder);
        }
        let BaseState::Snapshot(view) = &self.base else { return self.partition.holder(claim, &self.scope).await };
        let holder = view.holder(claim, self.scope.logical.epk.as_bytes()).await?;
        self.expected_holders.push((*claim, holder));
        Ok(holder)
    }

    async fn find_by_docnum(&self, docnum: u64) -> Result<Option<Record>> {
        if let Some(change) = self.changes.get(&docnum) {
            return Ok(change.new.as_ref().map(|version| version.record.clone()));
        }
        match &self.base {
            BaseState::Snapshot(view) => Ok(view.get(&[docnum]).await?.pop().flatten()),
            BaseState::Latched { .. } => self.partition.current_by_docnum(docnum).await.map(Some),
        }
    }

    fn remove_dead(&mut self, dead: Record) -> Result<()> {
        let key = self.scope.renamed(dead.id());
        let is_expired = self.schema.expiry(self.ts_s).is_expired(&dead.view());
        let change = change_entry(&mut self.changes, self.schema, &key, dead)?;
        let kind = if is_expired { VersionKind::Expire } else { VersionKind::Delete };
        self.version_log.push(kind, change.latest(), None);
        let claims = change.drop_latest();
        change.is_expired = is_expired;
        self.claim_holders.extend(claims.into_iter().map(|claim| (claim, None)));
        self.ids.insert(key.hash, None);
        Ok(())
    }

    /// Separates a live item from a dead one.
    fn split_dead(&self, found: Option<Record>) -> (Option<Record>, Option<Record>) {
        match found {
            Some(record) if self.is_dead(&record) => (None, Some(record)),
            found => (found, None),
        }
    }

    fn is_dead(&self, record: &Record) -> bool {
        // Its own writes have no LSN yet and are live.
        let is_own = self.changes.get(&record.docnum).is_some_and(|change| change.new.is_some());
        !is_own
            && match &self.base {
                BaseState::Snapshot(view) => view.is_dead(self.schema.expiry(self.ts_s), &record.view()),
                BaseState::Latched { .. } => self.partition.is_dead(self.schema, self.ts_s, record),
            }
    }

    /// Removes an item, dead or live, if it still has this version.
    pub(super) async fn remove_if_unchanged(&mut self, found: &Record) -> Result<()> {
        let key = key_of(self.schema, found)?;
        let current = self.find(&key).await?.filter(|current| VersionId::of(current) == VersionId::of(found));
        let Some(current) = current else { return Ok(()) };
        self.key_delta.add(-1, -(current.body().len() as i64));
        let change = change_entry(&mut self.changes, self.schema, &key, current)?;
        self.version_log.push(VersionKind::Delete, change.latest(), None);
        let claims = change.drop_latest();
        self.claim_holders.extend(claims.into_iter().map(|claim| (claim, None)));
        self.ids.insert(key.hash, None);
        Ok(())
    }

    /// The item as this transaction sees it.
    async fn find(&self, key: &ItemKey) -> Result<Option<Record>> {
        let Some(docnum) = self.ids.get(&key.hash) else { return self.find_in_base(key).await };
        let change = docnum.and_then(|docnum| self.changes.get(&docnum));
        Ok(change.and_then(|change| change.new.as_ref()).map(|version| version.record.clone()))
    }

    async fn find_in_base(&self, key: &ItemKey) -> Result<Option<Record>> {
        match &self.base {
            BaseState::Snapshot(view) => view.find(key).await,
            BaseState::Latched { .. } => self.partition.current(key).await,
        }
    }

    /// Finds an item to be written, and remembers the version that the write depends on.
    async fn find_to_write(&mut self, key: &ItemKey) -> Result<Option<Record>> {
        let found = self.find(key).await?;
        if matches!(self.base, BaseState::Snapshot(_)) && !self.ids.contains_key(&key.hash) {
            let live = found.as_ref().filter(|record| !self.is_dead(record));
            self.expected_versions.push((key.clone(), live.map(VersionId::of)));
        }
        Ok(found)
    }

    /// Rejects only changes that add bytes.
    async fn check_delta(&mut self, delta: KeyDelta) -> Result<()> {
        if delta.bytes <= 0 {
            return Ok(());
        }
        let stats = match &self.stats {
            Some(stats) => stats.clone(),
            None => self.partition.key_stats(&self.scope).await?,
        };
        let mut after = self.key_delta;
        after.add(delta.items, delta.bytes);
        check_key_size(self.schema, &after.applied_to(&stats))?;
        self.stats = Some(stats);
        Ok(())
    }

    fn check_size(&self, bytes: usize) -> Result<()> {
        let changes = self.changes.len().max(self.version_log.len());
        if self.written_bytes + bytes <= TRANSACTION_BYTES_MAX && changes < TRANSACTION_CHANGES_MAX {
            return Ok(());
        }
        let (changes_max, bytes_max) = (TRANSACTION_CHANGES_MAX, TRANSACTION_BYTES_MAX);
        Err(Fact::TransactionTooLarge { changes_max, bytes_max }.into())
    }
}

/// The item's entry in the change map, created at its first change.
fn change_entry<'c>(
    changes: &'c mut BTreeMap<u64, ItemChange>,
    schema: &Schema,
    key: &ItemKey,
    old: Record,
) -> Result<&'c mut ItemChange> {
    use std::collections::btree_map::Entry;
    match changes.entry(old.docnum) {
        Entry::Occupied(occupied) => Ok(occupied.into_mut()),
        Entry::Vacant(vacant) => {
            let body = json::parse(old.body())?;
            let (terms, claims) = (schema.stored_terms(&old, &body), schema.unique.claims(&key.logical, &body));
            let was = PreparedVersion { key: key.clone(), record: old, terms, claims };
            Ok(vacant.insert(ItemChange { old: Some(was), new: None, is_expired: false, writes: 0 }))
        }
    }
}

impl ItemChange {
    /// The version that a write replaces.
    fn latest(&self) -> Option<&PreparedVersion> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// Removes the latest version; returns the unique claims that become free.
    fn drop_latest(&mut self) -> Vec<Claim> {
        let claims = self.latest().map(|version| version.claims.clone());
        self.new = None;
        claims.unwrap_or_default()
    }
}

impl PreparedVersion {
    /// How many index rows and claims differ between this version and the next.
    fn count_changes(&self, next: &PreparedWrite<'_>) -> TermCount {
        TermCount::between(&self.terms, &next.terms) + TermCount::of_claims(&self.claims, &next.claims)
    }
}

impl VersionId {
    fn of(record: &Record) -> VersionId {
        VersionId { docnum: record.docnum, lsn: record.lsn, seq: record.seq }
    }
}

impl KeyDelta {
    fn add(&mut self, items: i64, bytes: i64) {
        self.items += items;
        self.bytes += bytes;
    }

    fn applied_to(&self, stats: &KeyStats) -> KeyStats {
        let items = stats.items.saturating_add_signed(self.items);
        KeyStats { items, bytes: stats.bytes.saturating_add_signed(self.bytes) }
    }
}

#[cfg(test)]
mod tests;
