//! Delete by partition key as a client sees it.

use crate::jobs::{PurgeScans, purge_account};
use crate::testing::*;
use crate::{FeedRange, PageLimit};

#[tokio::test]
async fn the_items_of_the_key_disappear_and_other_keys_stay() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for key in ["a", "b", "c", "d"] {
        for id in ["1", "2", "3"] {
            create(&engine, &at, id, key).await.result.unwrap();
        }
    }
    engine.delete_by_partition_key(&at, Some(&pk("b"))).await.result.unwrap();
    let quota = PageLimit { items: 100, bytes: 1 << 20 };
    let listed = async || engine.list_items(&at, &FeedRange::Container, None, quota, None).await;
    assert_eq!(listed().await.result.unwrap().records.len(), 9);
    assert_eq!(kind(read(&engine, &at, "1", "b").await), pleiad_model::Kind::NotFound);
    create(&engine, &at, "1", "b").await.result.unwrap();
    assert_eq!(listed().await.result.unwrap().records.len(), 10);

    let trees = engine.catalog.current().upgrade().unwrap();
    purge_account(&trees, &mut PurgeScans::default(), &*engine.env, async || true).await;
    assert_eq!(listed().await.result.unwrap().records.len(), 10);
    assert_eq!(items_per_partition(at.container()).iter().sum::<u64>(), 10);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn a_partial_key_is_rejected() {
    let engine = account().await;
    container(&engine, "c", &["/a", "/b"], 4).await;
    let at = admit(&engine, "c");
    assert_eq!(kind(engine.delete_by_partition_key(&at, Some(&pk("x"))).await), pleiad_model::Kind::KeyMismatch);
    assert_eq!(kind(engine.delete_by_partition_key(&at, None).await), pleiad_model::Kind::KeyMismatch);
}
