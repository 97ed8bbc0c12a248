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

fn keeping() -> Schema {
    Schema { keeps_versions: true, ..schema(&["/pk"]) }
}

fn everything(after: u64) -> ChangeQuery {
    ChangeQuery { scope: crate::feed::KeyScope::Keys(EpkRange::FULL), after, since_s: 0, expiry: Expiry::new(None, 7) }
}

fn by(items: usize) -> PageLimit {
    PageLimit { items, bytes: WIDE }
}

async fn put(partition: &Partition, schema: &Schema, id: &str, ts_s: u32) {
    let draft = draft(schema, id, item("a", id, i64::from(ts_s)));
    partition.write(schema, Verb::Upsert, &draft, &Precondition::None, ts_s).await.unwrap();
}

async fn delete(partition: &Partition, schema: &Schema, id: &str, ts_s: u32) {
    partition.delete(schema, &key(schema, "a", id), &Precondition::None, ts_s).await.unwrap();
}

type Told = (u64, VersionKind, Option<u64>, Option<u64>);

fn told(version: &ItemVersion) -> Told {
    let lsn = |record: &Option<crate::Record>| record.as_ref().map(|record| record.lsn);
    (version.lsn, version.kind, lsn(&version.previous), lsn(&version.current))
}

#[tokio::test]
async fn every_version_comes_in_order_in_pages_of_every_size() {
    let (partition, schema) = (open(&memory()).await, keeping());
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
        let (mut got, mut after): (Vec<Told>, u64) = (Vec::new(), 0);
        while after < 60 {
            let page = partition.versions(&everything(after), by(items)).await.unwrap();
            assert!(!page.versions.is_empty() && page.versions.len() <= items);
            got.extend(page.versions.iter().map(told));
            after = page.lsn;
        }
        assert_eq!(got, want, "pages of {items}");
    }
    audit(&partition, &schema).await;
}

/// In both cases a new item replaces a dead one with the same id; only one of them expired.
#[tokio::test]
async fn what_was_erased_with_its_key_was_deleted_and_what_is_over_has_expired() {
    let (partition, erasing) = (open(&memory()).await, keeping());
    let mortal = Schema { default_ttl: Some(10), ..keeping() };
    for (schema, id, ts_s) in [(&erasing, "erased", 7), (&mortal, "over", 100)] {
        put(&partition, schema, id, ts_s).await;
        if id == "erased" {
            partition.erase_key(schema, &key(schema, "a", "").logical, 7).await.unwrap();
        }
        put(&partition, schema, id, ts_s + 20).await;
    }
    let page = partition.versions(&everything(0), by(9)).await.unwrap();
    let kinds: Vec<VersionKind> = page.versions.iter().map(|version| version.kind).collect();
    use VersionKind::{Create, Delete, Expire};
    assert_eq!(kinds, [Create, Delete, Create, Create, Expire, Create]);
}

#[tokio::test]
async fn versions_are_kept_from_the_first_write_under_the_policy_on() {
    let (partition, off) = (open(&memory()).await, schema(&["/pk"]));
    put(&partition, &off, "before", 7).await;
    assert!(partition.versions(&everything(1), by(9)).await.unwrap().versions.is_empty(), "complete from now on");
    assert!(partition.versions(&everything(0), by(9)).await.is_err(), "earlier versions were not retained");
    let on = keeping();
    put(&partition, &on, "after", 7).await;
    assert_eq!(partition.versions(&everything(1), by(9)).await.unwrap().versions.len(), 1);
    assert!(partition.versions(&everything(0), by(9)).await.is_err());

    put(&partition, &off, "unseen", 7).await;
    put(&partition, &on, "again", 7).await;
    assert!(partition.versions(&everything(2), by(9)).await.is_err(), "one version is missing");
    assert_eq!(partition.versions(&everything(3), by(9)).await.unwrap().versions.len(), 1);
}

#[tokio::test]
async fn versions_go_when_their_time_is_over_and_old_positions_hear_of_it() {
    let (partition, schema) = (open(&memory()).await, keeping());
    for ts_s in 100..120 {
        put(&partition, &schema, "x", ts_s).await;
    }
    while partition.trim_versions(110, u64::MAX).await.unwrap() {}
    assert!(partition.versions(&everything(9), by(99)).await.is_err());
    let page = partition.versions(&everything(10), by(99)).await.unwrap();
    assert_eq!(page.versions.iter().map(|version| version.lsn).collect::<Vec<_>>(), (11..=20).collect::<Vec<_>>());
    while partition.trim_versions(u32::MAX, u64::MAX).await.unwrap() {}
    assert!(partition.versions(&everything(20), by(99)).await.unwrap().versions.is_empty());
    assert!(partition.versions(&everything(19), by(99)).await.is_err());
    partition.forget_versions().await.unwrap();
    assert_eq!(partition.usage().versions_from, None);
    assert_eq!(partition.usage().lsn, 20, "trimming does not advance the LSN");
}

#[test]
fn a_transaction_goes_whole() {
    let row = |lsn, seq| (keyspace::version(7, lsn, seq, 1), Bytes::new());
    let rows = [row(4, 0), row(4, 1), row(5, 0), row(6, 0), row(6, 1)];
    let end = |old, more| end_of(&rows, old, more).unwrap();
    assert_eq!([end(0, false), end(1, false), end(2, false), end(3, false)], [None, None, Some(4), Some(5)]);
    assert_eq!([end(4, false), end(5, false), end(5, true)], [Some(5), Some(6), Some(5)]);
    assert_eq!(end_of(&rows[..2], 2, true).unwrap(), Some(4), "a transaction that fills a chunk is removed whole");
}
