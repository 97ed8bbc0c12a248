//! Upgrades of a version 1 shard, which is made by downgrading a current one.

use pleiad_storage::Durability;

use super::*;
use crate::partition::{Partition, Precondition, Verb};
use crate::row_changes::docnum_value;
use crate::testing::{audit, draft, item, memory, open, range, rows, schema};

const SHARD: u64 = 7;

/// Downgrades all feed rows but the first `upgraded`, as if an upgrade had been interrupted there.
async fn downgrade(store: &AnyStore, upgraded: usize) {
    let mut batch = Batch::new();
    for row in rows(store, SHARD).await.keys().filter(|row| row[8] == Tag::Feed as u8).skip(upgraded) {
        let (_, _, docnum) = keyspace::decode_feed(row).unwrap();
        batch.delete(row);
        batch.put(&row[..row.len() - 8], docnum_value(docnum));
    }
    let state = store.get(&keyspace::state(SHARD)).await.unwrap().unwrap();
    // Without the fields for versions and merges.
    batch.put(keyspace::state(SHARD), [&[1], &state[1..17], &state[33..49]].concat());
    store.commit(&batch, Durability::Written).await.unwrap();
}

#[tokio::test]
async fn feed_rows_of_version_1_are_rewritten_at_open() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    for n in 0..3000 {
        let draft = draft(&schema, &n.to_string(), item(&format!("p{}", n % 9), &n.to_string(), n));
        partition.write(&schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }
    let today = rows(&store, SHARD).await;
    for upgraded in [0, 1500, 3000] {
        downgrade(&store, upgraded).await;
        let again = open(&store).await;
        assert_eq!(rows(&store, SHARD).await, today);
        audit(&again, &schema).await;
    }
}

#[tokio::test]
async fn a_feed_row_without_its_item_fails_the_open() {
    let store = memory();
    let mut batch = Batch::new();
    batch.put(keyspace::state(SHARD), [&[1][..], &[0; 32]].concat());
    batch.put(&keyspace::feed(SHARD, 1, 0, 5)[..21], docnum_value(5));
    store.commit(&batch, Durability::Written).await.unwrap();
    let committer = Committer::start(store.clone(), crate::testing::LATER).unwrap();
    let error = Partition::open(range(SHARD, 3), store, committer).await.err().unwrap();
    assert!(error.to_string().contains("feed row"), "{error}");
}
