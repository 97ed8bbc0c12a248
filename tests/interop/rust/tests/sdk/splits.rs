//! Splits and merges are invisible to clients that use partition keys, for every feature of a container.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ChangeFeedPageIterator, ContinuationToken, FeedScope};
use azure_data_cosmos::models::{ChangeFeedItem, ChangeFeedOperationType};
use azure_data_cosmos::options::{ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint};
use futures::{StreamExt, TryStreamExt};

use crate::readings::{ask, pages_of};
use crate::support::*;

both!(
    the_change_feed_continues_after_splits_and_merges,
    the_feed_of_all_versions_continues_after_splits_and_merges,
    all_versions_without_a_retention_policy_are_400,
    unique_keys_hold_after_splits_and_merges,
    a_paged_query_continues_after_a_split,
    feed_ranges_from_before_a_split_return_their_items,
);

/// More consecutive empty pages than there are ranges.
const EMPTY_MAX: usize = 6;

type Changes = ChangeFeedPageIterator<ChangeFeedItem<Value>>;

async fn changes(container: &ContainerClient, mode: ChangeFeedMode, token: Option<ContinuationToken>) -> Changes {
    let from = match mode {
        ChangeFeedMode::AllVersionsAndDeletes => ChangeFeedStartFrom::Now,
        _ => ChangeFeedStartFrom::Beginning,
    };
    let options = ChangeFeedOptions::default().with_mode(mode);
    let options = options.with_max_item_count(MaxItemCountHint::Limit(5.try_into().unwrap()));
    let options = match token {
        Some(token) => options.with_continuation_token(token),
        None => options,
    };
    container.query_change_feed::<Value>(FeedScope::full_container(), from, Some(options)).await.unwrap()
}

/// Reads until there are no more changes.
async fn drain(pages: &mut Changes) -> Vec<ChangeFeedItem<Value>> {
    let (mut items, mut empty) = (Vec::new(), 0);
    while empty < EMPTY_MAX {
        let page = pages.next().await.expect("a change feed has no end").unwrap().into_items();
        empty = if page.is_empty() { empty + 1 } else { 0 };
        items.extend(page);
    }
    items
}

fn numbers(items: &[ChangeFeedItem<Value>]) -> Vec<i64> {
    let mut numbers: Vec<i64> = items.iter().map(|item| item.current().unwrap()["n"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

async fn fill(container: &ContainerClient, numbers: std::ops::Range<i64>) {
    for n in numbers {
        create(container, n.to_string(), json!({"id": n.to_string(), "pk": n.to_string(), "n": n})).await.unwrap();
    }
}

fn range(numbers: std::ops::Range<i64>) -> Vec<i64> {
    numbers.collect()
}

async fn the_change_feed_continues_after_splits_and_merges(world: World) {
    let container = world.define(json!({})).await.unwrap();
    fill(&container, 0..40).await;
    let mut pages = changes(&container, ChangeFeedMode::LatestVersion, None).await;
    let mut seen = pages.next().await.unwrap().unwrap().into_items();
    world.split(&container).await;
    fill(&container, 40..50).await;
    seen.extend(drain(&mut pages).await);
    assert_eq!(numbers(&seen), range(0..50));

    let continuation = pages.to_continuation_token().unwrap();
    world.merge(&container).await;
    fill(&container, 50..60).await;
    assert_eq!(numbers(&drain(&mut pages).await), range(50..60), "the same reader");
    let mut another = changes(&container, ChangeFeedMode::LatestVersion, Some(continuation)).await;
    assert_eq!(numbers(&drain(&mut another).await), range(50..60), "another reader with its token");
}

async fn the_feed_of_all_versions_continues_after_splits_and_merges(world: World) {
    let container = world.define(json!({"changeFeedPolicy": {"retentionDuration": 60}})).await.unwrap();
    let mut pages = changes(&container, ChangeFeedMode::AllVersionsAndDeletes, None).await;
    assert!(drain(&mut pages).await.is_empty());
    fill(&container, 0..20).await;
    replace(&container, "7", json!({"id": "7", "pk": "7", "n": 70})).await.unwrap();
    delete(&container, "3", "3").await.unwrap();
    let mut seen = pages.next().await.unwrap().unwrap().into_items();
    world.split(&container).await;
    delete(&container, "4", "4").await.unwrap();
    seen.extend(drain(&mut pages).await);

    let kinds = |kind| seen.iter().filter(move |change| change.operation_type() == Some(kind));
    assert_eq!(kinds(ChangeFeedOperationType::Create).count(), 20);
    let replaced: Vec<_> = kinds(ChangeFeedOperationType::Replace).collect();
    assert_eq!(replaced.len(), 1);
    assert_eq!((replaced[0].previous().is_some(), &replaced[0].current().unwrap()["n"]), (false, &json!(70)));
    let mut deleted: Vec<_> = kinds(ChangeFeedOperationType::Delete)
        .map(|change| change.metadata().unwrap())
        .map(|metadata| (metadata.id().unwrap(), metadata.partition_key().unwrap().clone()))
        .collect();
    deleted.sort_by_key(|(id, _)| *id);
    assert_eq!(deleted, [("3", json!({"pk": "3"})), ("4", json!({"pk": "4"}))]);

    let continuation = pages.to_continuation_token().unwrap();
    world.merge(&container).await;
    fill(&container, 20..23).await;
    let mut another = changes(&container, ChangeFeedMode::AllVersionsAndDeletes, Some(continuation)).await;
    assert_eq!(numbers(&drain(&mut another).await), range(20..23));
}

async fn all_versions_without_a_retention_policy_are_400(world: World) {
    let container = world.define(json!({})).await.unwrap();
    let options = ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
    let all = FeedScope::full_container();
    let result = match container.query_change_feed::<Value>(all, ChangeFeedStartFrom::Now, Some(options)).await {
        Ok(mut pages) => pages.next().await.expect("a response").map(|_| ()),
        Err(error) => Err(error),
    };
    refused(result, 400);
}

async fn unique_keys_hold_after_splits_and_merges(world: World) {
    let people = world.define(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}})).await.unwrap();
    for n in 0..12 {
        let key = format!("key {n}");
        create(&people, key.clone(), json!({"id": "1", "pk": key, "mail": "x"})).await.unwrap();
    }
    for step in 0..3 {
        match step {
            2 => world.merge(&people).await,
            _ => world.split(&people).await,
        }
        for n in 0..12 {
            let key = format!("key {n}");
            refused(create(&people, key.clone(), json!({"id": "2", "pk": key, "mail": "x"})).await, 409);
        }
        delete(&people, "key 3", "1").await.unwrap();
        create(&people, "key 3", json!({"id": "1", "pk": "key 3", "mail": "x"})).await.unwrap();
    }
}

async fn a_paged_query_continues_after_a_split(world: World) {
    let container = world.define(json!({})).await.unwrap();
    fill(&container, 0..40).await;
    let text = "SELECT VALUE c.n FROM c ORDER BY c.n";
    let rows = container.query_items::<i64>(text, FeedScope::full_container(), Some(pages_of(7))).await.unwrap();
    let mut pages = rows.into_pages();
    let mut seen = pages.next().await.unwrap().unwrap().into_items();
    world.split(&container).await;
    while let Some(page) = pages.try_next().await.unwrap() {
        seen.extend(page.into_items());
    }
    assert_eq!(seen, range(0..40));
}

async fn feed_ranges_from_before_a_split_return_their_items(world: World) {
    let container = world.define(json!({})).await.unwrap();
    fill(&container, 0..30).await;
    let ranges = container.read_feed_ranges(None).await.unwrap();
    world.split(&container).await;
    let mut seen = Vec::new();
    for range in ranges {
        let rows = ask(&container, "SELECT VALUE c.n FROM c", FeedScope::range(range)).await.unwrap();
        seen.extend(rows.iter().map(|n| n.as_i64().unwrap()));
    }
    seen.sort_unstable();
    assert_eq!(seen, range(0..30));
}
