//! Transactions: atomic, at one LSN, invisible before the commit; and conflicts between two of them.

mod model; // random concurrent transactions against a model
mod unique; // unique constraints

use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Kind, Value};

use super::*;
use crate::change_feed::ChangeQuery;
use crate::testing::{audit, draft, item, key, memory, open, schema};
use crate::ttl::Expiry;

const NOW_S: u32 = 1_000;
const ALL: PageLimit = PageLimit { items: 100, bytes: 1 << 20 };

fn logical(schema: &Schema, pk: &str) -> LogicalKey {
    key(schema, pk, "").logical
}

async fn create(partition: &Partition, schema: &Schema, id: &str, n: i64) {
    let draft = draft(schema, id, item("p", id, n));
    partition.write(schema, Verb::Create, &draft, &Precondition::None, NOW_S).await.unwrap();
}

async fn put(
    tx: &mut Transaction<'_>,
    schema: &Schema,
    verb: Verb,
    id: &str,
    n: i64,
) -> Result<OperationEffect, Rejected> {
    tx.put(verb, &draft(schema, id, item("p", id, n)), &Precondition::None).await
}

fn n_of(record: &Record) -> i64 {
    let body = json::parse(record.body()).unwrap();
    body.get("n").and_then(Value::as_i64).unwrap()
}

async fn read(partition: &Partition, schema: &Schema, id: &str) -> Option<i64> {
    partition.read(&key(schema, "p", id), Expiry::NEVER).await.unwrap().as_ref().map(n_of)
}

async fn read_in(tx: &Transaction<'_>, schema: &Schema, id: &str) -> Option<i64> {
    tx.read(&key(schema, "p", id)).await.unwrap().as_ref().map(n_of)
}

#[tokio::test]
async fn s114_all_changes_commit_at_one_lsn_and_are_invisible_before() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    create(&partition, &schema, "a", 1).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    put(&mut tx, &schema, Verb::Replace, "a", 2).await.unwrap();
    let b = put(&mut tx, &schema, Verb::Create, "b", 3).await.unwrap();
    put(&mut tx, &schema, Verb::Upsert, "b", 4).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "c", 5).await.unwrap();
    tx.delete(&key(&schema, "p", "c"), &Precondition::None).await.unwrap();
    assert_eq!((read_in(&tx, &schema, "b").await, read_in(&tx, &schema, "c").await), (Some(4), None));
    assert_eq!((read(&partition, &schema, "a").await, read(&partition, &schema, "b").await), (Some(1), None));

    assert_eq!(tx.commit().await.unwrap(), 2);
    assert_eq!((partition.lsn(), partition.shard_state().items), (2, 2));
    assert_eq!((read(&partition, &schema, "a").await, read(&partition, &schema, "b").await), (Some(2), Some(4)));
    let stored = partition.read(&key(&schema, "p", "b"), Expiry::NEVER).await.unwrap().unwrap();
    assert_eq!(stored.docnum, b.record.unwrap().docnum);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn s114_an_aborted_transaction_changes_nothing() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let mut tx = partition.begin_latched(&schema, logical(&schema, "p"), NOW_S).await;
    put(&mut tx, &schema, Verb::Create, "a", 1).await.unwrap();
    let rejected = put(&mut tx, &schema, Verb::Create, "a", 2).await.unwrap_err();
    assert_eq!(tx.abort(rejected).await.failed().error.kind, Kind::Conflict);
    assert_eq!((partition.lsn(), read(&partition, &schema, "a").await), (0, None));
    create(&partition, &schema, "a", 3).await;
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_etag_returned_inside_a_transaction_stays_valid_after_the_commit() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    let first = put(&mut tx, &schema, Verb::Create, "a", 1).await.unwrap().record.unwrap().etag();
    let condition = Precondition::IfMatch(first.to_string());
    let second = tx.put(Verb::Replace, &draft(&schema, "a", item("p", "a", 2)), &condition).await.unwrap();
    let second = second.record.unwrap().etag();
    assert_ne!(first, second);
    let stale = tx.put(Verb::Replace, &draft(&schema, "a", item("p", "a", 3)), &condition).await;
    assert_eq!(stale.unwrap_err().error.kind, Kind::PreconditionFailed);
    create(&partition, &schema, "other", 0).await; // takes the LSN that the transaction would have got
    tx.commit().await.unwrap();
    assert_eq!(partition.read(&key(&schema, "p", "a"), Expiry::NEVER).await.unwrap().unwrap().etag(), second);
}

#[tokio::test]
async fn s117_reads_use_one_snapshot_and_the_first_committer_wins() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    create(&partition, &schema, "a", 1).await;
    let mut late = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    let mut soon = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    put(&mut soon, &schema, Verb::Replace, "a", 2).await.unwrap();
    soon.commit().await.unwrap();
    assert_eq!(read_in(&late, &schema, "a").await, Some(1));
    put(&mut late, &schema, Verb::Replace, "a", 3).await.unwrap();
    assert_eq!(late.commit().await.unwrap_err().failed().error.kind, Kind::RetryWith);
    assert_eq!(read(&partition, &schema, "a").await, Some(2));
}

#[tokio::test]
async fn two_concurrent_creates_of_one_item_do_not_both_succeed() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "a", 1).await.unwrap();
    create(&partition, &schema, "a", 2).await;
    assert_eq!(tx.commit().await.unwrap_err().failed().error.kind, Kind::RetryWith);
    assert_eq!(read(&partition, &schema, "a").await, Some(2));
}

#[tokio::test]
async fn a_rejected_operation_does_not_fail_the_commit() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    create(&partition, &schema, "a", 1).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    assert!(put(&mut tx, &schema, Verb::Create, "a", 2).await.is_err());
    put(&mut tx, &schema, Verb::Create, "b", 3).await.unwrap();
    let replaced = draft(&schema, "a", item("p", "a", 9));
    partition.write(&schema, Verb::Replace, &replaced, &Precondition::None, NOW_S).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(read(&partition, &schema, "b").await, Some(3));
}

#[tokio::test]
async fn s116_items_of_another_key_are_rejected() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    let other = draft(&schema, "a", item("q", "a", 1));
    let refusal = tx.put(Verb::Create, &other, &Precondition::None).await.unwrap_err();
    assert_eq!(refusal.error.kind, Kind::Invalid);
    assert!(tx.delete(&key(&schema, "q", "a"), &Precondition::None).await.is_err());
    assert!(tx.read(&key(&schema, "q", "a")).await.is_err());
}

#[tokio::test]
async fn items_can_exchange_their_ids() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    for (id, n) in [("a", 1), ("b", 2), ("c", 3)] {
        create(&partition, &schema, id, n).await;
    }
    let mut tx = partition.begin_latched(&schema, logical(&schema, "p"), NOW_S).await;
    for (from, to, n) in [("a", "spare", 1), ("c", "a", 3), ("b", "c", 2), ("spare", "b", 1)] {
        tx.put(Verb::Replace, &draft(&schema, from, item("p", to, n)), &Precondition::None).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut found = Vec::new();
    for id in ["a", "b", "c", "spare"] {
        found.push(read(&partition, &schema, id).await);
    }
    assert_eq!(found, [Some(3), Some(1), Some(2), None]);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_item_deleted_and_created_again_gets_a_new_docnum() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    create(&partition, &schema, "a", 1).await;
    let before = partition.read(&key(&schema, "p", "a"), Expiry::NEVER).await.unwrap().unwrap().docnum;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    tx.delete(&key(&schema, "p", "a"), &Precondition::None).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "a", 2).await.unwrap();
    tx.commit().await.unwrap();
    let after = partition.read(&key(&schema, "p", "a"), Expiry::NEVER).await.unwrap().unwrap();
    assert!(after.docnum > before && n_of(&after) == 2);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn s117_its_items_are_the_snapshot_with_its_own_writes() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    for (id, n) in [("a", 1), ("b", 2), ("c", 3)] {
        create(&partition, &schema, id, n).await;
    }
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    create(&partition, &schema, "later", 9).await;
    put(&mut tx, &schema, Verb::Create, "d", 4).await.unwrap();
    put(&mut tx, &schema, Verb::Replace, "b", 20).await.unwrap();
    tx.delete(&key(&schema, "p", "a"), &Precondition::None).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "e", 5).await.unwrap();
    let all = tx.items(0, ALL).await.unwrap();
    assert_eq!(all.records.iter().map(n_of).collect::<Vec<_>>(), [20, 3, 4, 5]);
    let (mut paged, mut after) = (Vec::new(), 0);
    loop {
        let page = tx.items(after, PageLimit { items: 1, bytes: 1 << 20 }).await.unwrap();
        paged.extend(page.records.iter().map(n_of));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(paged, [20, 3, 4, 5]);
}

#[tokio::test]
async fn change_feed_pages_never_divide_a_transaction() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    for batch in 0..3 {
        let mut tx = partition.begin_latched(&schema, logical(&schema, "p"), NOW_S).await;
        for n in 0..10 {
            put(&mut tx, &schema, Verb::Create, &format!("{batch}-{n}"), n).await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    let (mut after, mut sizes) = (0, Vec::new());
    while after < partition.lsn() {
        let scope = KeyScope::Key(logical(&schema, "p").epk);
        let query = ChangeQuery { scope, after, since_s: 0, expiry: schema.expiry(NOW_S) };
        let page = partition.changes(&query, PageLimit { items: 3, bytes: 1 << 20 }).await.unwrap();
        (after, sizes) = (page.lsn, [sizes, vec![page.records.len()]].concat());
    }
    assert_eq!(sizes, [10, 10, 10]);
}

#[tokio::test]
async fn a_fenced_transaction_fails_and_leaves_nothing() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "a", 1).await.unwrap();
    partition.sequencer.state.lock().fenced = true;
    assert!(tx.commit().await.unwrap_err().is_outdated());
    let mut tx = partition.begin_latched(&schema, logical(&schema, "p"), NOW_S).await;
    let missing = put(&mut tx, &schema, Verb::Replace, "a", 1).await.unwrap_err();
    assert!(tx.abort(missing).await.is_outdated());
    assert_eq!(partition.lsn(), 0);
}

/// The versions after an LSN: LSN, kind, `n` before and after.
async fn versions_after(partition: &Partition, after: u64) -> Vec<(u64, VersionKind, Option<i64>, Option<i64>)> {
    let (scope, expiry) = (KeyScope::Keys(EpkRange::FULL), Expiry::new(None, NOW_S));
    let limit = PageLimit { items: 1, ..ALL };
    let page = partition.versions(&ChangeQuery { scope, after, since_s: 0, expiry }, limit).await.unwrap();
    let n = |record: &Option<Record>| record.as_ref().map(n_of);
    let all_have_lsns = |version: &crate::version_row::ItemVersion| {
        version.previous.iter().all(|old| old.lsn > 0) && version.current.iter().all(|new| new.lsn == version.lsn)
    };
    assert!(page.versions.iter().all(all_have_lsns));
    page.versions.iter().map(|version| (version.lsn, version.kind, n(&version.previous), n(&version.current))).collect()
}

#[tokio::test]
async fn every_operation_leaves_a_version_if_all_are_retained() {
    use VersionKind::{Create, Delete, Replace};
    let (store, schema) = (memory(), Schema { retains_versions: true, ..schema(&["/pk"]) });
    let partition = open(&store).await;
    create(&partition, &schema, "old", 4).await;
    for latched in [false, true] {
        let scope = logical(&schema, "p");
        let mut tx = match latched {
            false => partition.begin(&schema, scope, NOW_S).await.unwrap(),
            true => partition.begin_latched(&schema, scope, NOW_S).await,
        };
        let x = if latched { "x2" } else { "x1" };
        put(&mut tx, &schema, Verb::Create, x, 1).await.unwrap();
        put(&mut tx, &schema, Verb::Replace, x, 2).await.unwrap();
        put(&mut tx, &schema, Verb::Upsert, "old", 5).await.unwrap();
        assert!(put(&mut tx, &schema, Verb::Create, "old", 7).await.is_err(), "rejected: leaves no version");
        put(&mut tx, &schema, Verb::Replace, "old", 4).await.unwrap();
        put(&mut tx, &schema, Verb::Create, "tmp", 9).await.unwrap();
        tx.delete(&key(&schema, "p", "tmp"), &Precondition::None).await.unwrap();
        let lsn = tx.commit().await.unwrap();
        let want = [
            (lsn, Create, None, Some(1)),
            (lsn, Replace, Some(1), Some(2)),
            (lsn, Replace, Some(4), Some(5)),
            (lsn, Replace, Some(5), Some(4)),
            (lsn, Create, None, Some(9)),
            (lsn, Delete, Some(9), None),
        ];
        assert_eq!(versions_after(&partition, lsn - 1).await, want, "a page contains all versions of one LSN");
    }
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn a_transaction_that_leaves_no_item_still_leaves_its_versions() {
    use VersionKind::{Create, Delete, Expire};
    let retaining = Schema { retains_versions: true, default_ttl: Some(10), ..schema(&["/pk"]) };
    let partition = open(&memory()).await;
    let draft = draft(&retaining, "a", item("p", "a", 1));
    partition.write(&retaining, Verb::Create, &draft, &Precondition::None, NOW_S - 100).await.unwrap();
    let mut tx = partition.begin_latched(&retaining, logical(&retaining, "p"), NOW_S).await;
    put(&mut tx, &retaining, Verb::Create, "a", 2).await.unwrap();
    tx.delete(&key(&retaining, "p", "a"), &Precondition::None).await.unwrap();
    assert_eq!(tx.commit().await.unwrap(), 2);
    let want = [(2, Expire, Some(1), None), (2, Create, None, Some(2)), (2, Delete, Some(2), None)];
    assert_eq!(versions_after(&partition, 1).await, want);

    let mut tx = partition.begin(&retaining, logical(&retaining, "p"), NOW_S).await.unwrap();
    put(&mut tx, &retaining, Verb::Create, "b", 3).await.unwrap();
    tx.delete(&key(&retaining, "p", "b"), &Precondition::None).await.unwrap();
    assert_eq!((tx.commit().await.unwrap(), partition.shard_state().items), (3, 0));
    assert_eq!(versions_after(&partition, 2).await, [(3, Create, None, Some(3)), (3, Delete, Some(3), None)]);
    audit(&partition, &retaining).await;
}
