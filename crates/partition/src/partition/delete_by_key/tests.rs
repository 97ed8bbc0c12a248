//! Delete by partition key: items disappear immediately, their rows are purged later, and later writes stay.

use super::*;
use crate::change_feed::ChangeQuery;
use crate::feed::{KeyScope, PageLimit};
use crate::partition::{Precondition, Verb};
use crate::testing::{audit, draft, item, key, memory, open, schema};
use crate::ttl::Expiry;

const NOW_S: u32 = 1_000;
const ALL: PageLimit = PageLimit { items: 1_000, bytes: 1 << 24 };

async fn create(partition: &Partition, schema: &Schema, pk: &str, id: &str, n: i64) {
    let draft = draft(schema, id, item(pk, id, n));
    partition.write(schema, Verb::Create, &draft, &Precondition::None, NOW_S).await.unwrap();
}

/// How many items of one key the read feed and the change feed return.
async fn seen(partition: &Partition, schema: &Schema, pk: &str) -> (usize, usize) {
    let scope = KeyScope::Key(key(schema, pk, "").logical.epk);
    let expiry = schema.expiry(NOW_S);
    let page = partition.page(&scope, 0, ALL, expiry).await.unwrap();
    let changes = partition.changes(&ChangeQuery { scope, after: 0, since_s: 0, expiry }, ALL).await.unwrap();
    (page.records.len(), changes.records.len())
}

async fn filled() -> (std::sync::Arc<pleiad_storage::AnyStore>, Schema, Partition) {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    for n in 0..450 {
        create(&partition, &schema, "p", &n.to_string(), n).await;
    }
    create(&partition, &schema, "q", "0", 0).await;
    (store, schema, partition)
}

#[tokio::test]
async fn items_disappear_immediately_and_later_writes_stay() {
    let (_store, schema, partition) = filled().await;
    let lsn = partition.delete_by_partition_key(&schema, &key(&schema, "p", "").logical, NOW_S).await.unwrap();
    assert_eq!((lsn, partition.lsn()), (452, 452));
    assert_eq!(partition.read(&key(&schema, "p", "7"), Expiry::NEVER).await.unwrap(), None);
    assert_eq!((seen(&partition, &schema, "p").await, seen(&partition, &schema, "q").await), ((0, 0), (1, 1)));
    let missing = partition.delete(&schema, &key(&schema, "p", "7"), &Precondition::None, NOW_S).await;
    assert_eq!(missing.unwrap_err().failed().error.kind, pleiad_model::Kind::NotFound);

    create(&partition, &schema, "p", "7", 77).await;
    let mut tx = partition.begin(&schema, key(&schema, "p", "").logical, NOW_S).await.unwrap();
    assert_eq!(tx.read(&key(&schema, "p", "8")).await.unwrap(), None);
    assert_eq!(tx.items(0, ALL).await.unwrap().records.len(), 1);
    tx.put(Verb::Create, &draft(&schema, "8", item("p", "8", 88)), &Precondition::None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(seen(&partition, &schema, "p").await, (2, 2));

    let mut steps = 0;
    while partition.purge_deleted_keys(&schema, NOW_S).await.unwrap() {
        steps += 1;
    }
    assert!((2..10).contains(&steps), "{steps}");
    assert_eq!((seen(&partition, &schema, "p").await, partition.shard_state().items), ((2, 2), 3));
    assert!(partition.key_tombstones.get().is_empty());
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn a_purge_resumes_after_a_restart() {
    let (store, schema, partition) = filled().await;
    partition.delete_by_partition_key(&schema, &key(&schema, "p", "").logical, NOW_S).await.unwrap();
    assert!(partition.purge_deleted_keys(&schema, NOW_S).await.unwrap());
    drop(partition);
    let partition = open(&store).await;
    assert_eq!((seen(&partition, &schema, "p").await, partition.shard_state().items), ((0, 0), 251));
    while partition.purge_deleted_keys(&schema, NOW_S).await.unwrap() {}
    assert_eq!(partition.shard_state().items, 1);
    audit(&partition, &schema).await;
    drop(partition);
    assert!(open(&store).await.key_tombstones.get().is_empty());
}

/// Readers see all items of the key or none, and a client that disconnects leaves no part of them.
#[tokio::test]
async fn during_a_copy_a_delete_is_one_change_as_well() {
    let (_store, schema, partition) = filled().await;
    partition.begin_log(1).unwrap();
    let before = partition.shard_state();
    let lsn = partition.delete_by_partition_key(&schema, &key(&schema, "p", "").logical, NOW_S).await.unwrap();
    assert_eq!((lsn, partition.shard_state().items), (before.lsn + 1, before.items));
    assert_eq!((seen(&partition, &schema, "p").await, seen(&partition, &schema, "q").await), ((0, 0), (1, 1)));
}

#[tokio::test]
async fn a_transaction_on_items_deleted_meanwhile_fails() {
    let (_store, schema, partition) = filled().await;
    let mut tx = partition.begin(&schema, key(&schema, "p", "").logical, NOW_S).await.unwrap();
    tx.put(Verb::Replace, &draft(&schema, "7", item("p", "7", 1)), &Precondition::None).await.unwrap();
    partition.delete_by_partition_key(&schema, &key(&schema, "p", "").logical, NOW_S).await.unwrap();
    assert_eq!(tx.commit().await.unwrap_err().failed().error.kind, pleiad_model::Kind::RetryWith);
    assert_eq!(seen(&partition, &schema, "p").await, (0, 0));
}

/// A purge that ends while the key is deleted again must not remove the new tombstone's row.
#[tokio::test]
async fn a_newer_tombstone_survives_the_purge_of_an_older_one() {
    let (store, schema, partition) = filled().await;
    let logical = key(&schema, "p", "").logical;
    let first = partition.delete_by_partition_key(&schema, &logical, NOW_S).await.unwrap();
    create(&partition, &schema, "p", "new", 1).await;
    let old = KeyTombstone { epk: logical.epk.clone(), lsn: first };
    while partition.purge_chunk(&schema, &old, NOW_S).await.unwrap() {}
    let second = partition.delete_by_partition_key(&schema, &logical, NOW_S).await.unwrap();
    assert!(
        !partition.key_tombstones.remove(&old)
            && partition.key_tombstones.get().first().is_some_and(|mark| mark.lsn == second)
    );
    drop(partition);
    assert_eq!(seen(&open(&store).await, &schema, "p").await, (0, 0));
}

#[tokio::test]
async fn a_rejected_delete_leaves_no_tombstone() {
    let (_store, schema, partition) = filled().await;
    let logical = key(&schema, "p", "").logical;
    let first = partition.delete_by_partition_key(&schema, &logical, NOW_S).await.unwrap();
    create(&partition, &schema, "p", "new", 1).await;
    partition.committer.stop().await;
    let rejected = partition.delete_by_partition_key(&schema, &logical, NOW_S).await.unwrap_err();
    assert_eq!(rejected.failed().error.fact(), Some(&pleiad_model::Fact::Stopping));
    // The former tombstone of the key is in effect again, and covers no later item.
    assert_eq!(partition.key_tombstones.get().first().map(|tombstone| tombstone.lsn), Some(first));
    let live = partition.current(&key(&schema, "p", "new")).await.unwrap().unwrap();
    assert!(!partition.is_dead(&schema, NOW_S, &live));
}
