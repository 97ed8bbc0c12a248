//! All versions against a naive list of the changes.

use super::*;
use crate::partition::{Precondition, Verb};
use crate::schema::Schema;
use crate::testing::{Dice, audit, draft, item, key, memory, open, schema};
use crate::ttl::Expiry;
use crate::version_row::VersionKind;
use pleiad_model::partition_key::EpkRange;
use std::collections::BTreeMap;

const WIDE: usize = 1 << 30;

fn schema_with_versions() -> Schema {
    Schema { retains_versions: true, ..schema(&["/pk"]) }
}

fn everything(after: u64) -> ChangeQuery {
    ChangeQuery { scope: crate::feed::KeyScope::Keys(EpkRange::FULL), after, since_s: 0, expiry: Expiry::new(None, 7) }
}

fn page_of(items: usize) -> PageLimit {
    PageLimit { items, bytes: WIDE }
}

async fn put(partition: &Partition, schema: &Schema, id: &str, ts_s: u32) {
    let draft = draft(schema, id, item("a", id, i64::from(ts_s)));
    partition.write(schema, Verb::Upsert, &draft, &Precondition::None, ts_s).await.unwrap();
}

async fn delete(partition: &Partition, schema: &Schema, id: &str, ts_s: u32) {
    partition.delete(schema, &key(schema, "a", id), &Precondition::None, ts_s).await.unwrap();
}

type VersionSummary = (u64, VersionKind, Option<u64>, Option<u64>);

fn summary(version: &ItemVersion) -> VersionSummary {
    let lsn = |record: &Option<crate::Record>| record.as_ref().map(|record| record.lsn);
    (version.lsn, version.kind, lsn(&version.previous), lsn(&version.current))
}

#[tokio::test]
async fn every_version_is_returned_in_order_for_every_page_size() {
    let (partition, schema) = (open(&memory()).await, schema_with_versions());
    let (mut dice, mut model, mut want) = (Dice(3), BTreeMap::new(), Vec::new());
    for lsn in 1..=60 {
        let id = format!("i{}", dice.below(5));
        match (model.remove(&id), dice.below(3)) {
            (Some(old), 0) => {
                delete(&partition, &schema, &id, 7).await;
                want.push((lsn, VersionKind::Delete, Some(old), None));
            }
            (old, _) => {
                put(&partition, &schema, &id, 7).await;
                let kind = if old.is_some() { VersionKind::Replace } else { VersionKind::Create };
                want.push((lsn, kind, old, Some(lsn)));
                model.insert(id, lsn);
            }
        }
    }
    for items in [1, 2, 7, 100] {
        let (mut got, mut after): (Vec<VersionSummary>, u64) = (Vec::new(), 0);
        while after < 60 {
            let page = partition.versions(&everything(after), page_of(items)).await.unwrap();
            assert!(!page.versions.is_empty() && page.versions.len() <= items);
            got.extend(page.versions.iter().map(summary));
            after = page.lsn;
        }
        assert_eq!(got, want, "pages of {items}");
    }
    audit(&partition, &schema).await;
}

/// In both cases a new item replaces a dead one with the same id; only one of them expired.
#[tokio::test]
async fn items_deleted_by_key_are_delete_versions_and_expired_items_are_expire_versions() {
    let (partition, without_ttl) = (open(&memory()).await, schema_with_versions());
    let expiring = Schema { default_ttl: Some(10), ..schema_with_versions() };
    for (schema, id, ts_s) in [(&without_ttl, "erased", 7), (&expiring, "over", 100)] {
        put(&partition, schema, id, ts_s).await;
        if id == "erased" {
            partition.delete_by_partition_key(schema, &key(schema, "a", "").logical, 7).await.unwrap();
        }
        put(&partition, schema, id, ts_s + 20).await;
    }
    let page = partition.versions(&everything(0), page_of(9)).await.unwrap();
    let kinds: Vec<VersionKind> = page.versions.iter().map(|version| version.kind).collect();
    use VersionKind::{Create, Delete, Expire};
    assert_eq!(kinds, [Create, Delete, Create, Create, Expire, Create]);
}

#[tokio::test]
async fn versions_are_retained_from_the_first_write_under_the_policy() {
    let (partition, off) = (open(&memory()).await, schema(&["/pk"]));
    put(&partition, &off, "before", 7).await;
    assert!(partition.versions(&everything(1), page_of(9)).await.unwrap().versions.is_empty(), "complete from now on");
    assert!(partition.versions(&everything(0), page_of(9)).await.is_err(), "earlier versions were not retained");
    let on = schema_with_versions();
    put(&partition, &on, "after", 7).await;
    assert_eq!(partition.versions(&everything(1), page_of(9)).await.unwrap().versions.len(), 1);
    assert!(partition.versions(&everything(0), page_of(9)).await.is_err());

    put(&partition, &off, "unseen", 7).await;
    put(&partition, &on, "again", 7).await;
    assert!(partition.versions(&everything(2), page_of(9)).await.is_err(), "one version is missing");
    assert_eq!(partition.versions(&everything(3), page_of(9)).await.unwrap().versions.len(), 1);
}

#[tokio::test]
async fn old_versions_are_trimmed_and_earlier_positions_are_rejected() {
    let (partition, schema) = (open(&memory()).await, schema_with_versions());
    for ts_s in 100..120 {
        put(&partition, &schema, "x", ts_s).await;
    }
    while partition.trim_versions(110, u64::MAX).await.unwrap() {}
    assert!(partition.versions(&everything(9), page_of(99)).await.is_err());
    let page = partition.versions(&everything(10), page_of(99)).await.unwrap();
    assert_eq!(page.versions.iter().map(|version| version.lsn).collect::<Vec<_>>(), (11..=20).collect::<Vec<_>>());
    while partition.trim_versions(u32::MAX, u64::MAX).await.unwrap() {}
    assert!(partition.versions(&everything(20), page_of(99)).await.unwrap().versions.is_empty());
    assert!(partition.versions(&everything(19), page_of(99)).await.is_err());
    partition.clear_retention_watermark().await.unwrap();
    assert_eq!(partition.shard_state().versions_from, None);
    assert_eq!(partition.shard_state().lsn, 20, "trimming does not advance the LSN");
}

#[test]
fn trimming_never_divides_a_transaction() {
    let row = |lsn, seq| (keyspace::version(7, lsn, seq, 1), Bytes::new());
    let rows = [row(4, 0), row(4, 1), row(5, 0), row(6, 0), row(6, 1)];
    let end = |old, more| trim_end(&rows, old, more).unwrap();
    assert_eq!([end(0, false), end(1, false), end(2, false), end(3, false)], [None, None, Some(4), Some(5)]);
    assert_eq!([end(4, false), end(5, false), end(5, true)], [Some(5), Some(6), Some(5)]);
    assert_eq!(trim_end(&rows[..2], 2, true).unwrap(), Some(4), "a transaction that fills a chunk is removed whole");
}
