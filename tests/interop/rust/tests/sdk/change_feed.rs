//! The change feed: from the beginning, from now, from a token; of a container and of a key.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::ThroughputProperties;
use azure_data_cosmos::options::{ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint};
use futures::StreamExt;

use crate::support::*;

both!(every_change_is_returned_once, from_now_only_later_changes_are_returned, of_one_key);

/// The SDK returns an empty page for every range without changes.
const RANGES_MAX: usize = 5;

/// Reads until there are no more changes; returns the numbers, sorted, and the continuation.
async fn changes(
    container: &ContainerClient,
    scope: FeedScope,
    from: ChangeFeedStartFrom,
    token: Option<ContinuationToken>,
) -> (Vec<i64>, ContinuationToken) {
    let options = ChangeFeedOptions::default().with_max_item_count(MaxItemCountHint::Limit(2.try_into().unwrap()));
    let options = match token {
        Some(token) => options.with_continuation_token(token),
        None => options,
    };
    let mut pages = container.query_change_feed::<Value>(scope, from, Some(options)).await.unwrap();
    let (mut numbers, mut empty) = (Vec::new(), 0);
    while empty < RANGES_MAX {
        let page = pages.next().await.expect("a change feed has no end").unwrap();
        empty = if page.items().is_empty() { empty + 1 } else { 0 };
        for item in page.items() {
            numbers.push(item.current().expect("the newest version")["n"].as_i64().unwrap());
            assert!(item.metadata().and_then(|metadata| metadata.lsn()).is_some());
        }
    }
    numbers.sort_unstable();
    (numbers, pages.to_continuation_token().unwrap())
}

async fn filled(world: &World, throughput: u64) -> ContainerClient {
    let throughput = Some(ThroughputProperties::manual(throughput));
    let container = world.make_with("/pk", throughput).await.unwrap();
    for n in 0..10 {
        let key = format!("key {n}");
        create(&container, key.clone(), json!({"id": "x", "pk": key, "n": n})).await.unwrap();
    }
    replace(&container, "key 3", json!({"id": "x", "pk": "key 3", "n": 33})).await.unwrap();
    delete(&container, "key 4", "x").await.unwrap();
    container
}

async fn every_change_is_returned_once(world: World) {
    for throughput in [400, 30_000] {
        let container = filled(&world, throughput).await;
        let all = FeedScope::full_container;
        let (numbers, token) = changes(&container, all(), ChangeFeedStartFrom::Beginning, None).await;
        assert_eq!(numbers, [0, 1, 2, 5, 6, 7, 8, 9, 33]);
        upsert(&container, "key 7", json!({"id": "x", "pk": "key 7", "n": 77})).await.unwrap();
        let (later, _) = changes(&container, all(), ChangeFeedStartFrom::Beginning, Some(token)).await;
        assert_eq!(later, [77]);
    }
}

async fn from_now_only_later_changes_are_returned(world: World) {
    let container = filled(&world, 400).await;
    let all = FeedScope::full_container;
    let (numbers, token) = changes(&container, all(), ChangeFeedStartFrom::Now, None).await;
    assert!(numbers.is_empty());
    create(&container, "key 4", json!({"id": "y", "pk": "key 4", "n": 44})).await.unwrap();
    assert_eq!(changes(&container, all(), ChangeFeedStartFrom::Now, Some(token)).await.0, [44]);
}

async fn of_one_key(world: World) {
    let container = filled(&world, 30_000).await;
    let (numbers, _) = changes(&container, FeedScope::partition("key 3"), ChangeFeedStartFrom::Beginning, None).await;
    assert_eq!(numbers, [33]);
}
