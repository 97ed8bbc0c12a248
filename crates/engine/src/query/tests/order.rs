//! `ORDER BY` over items without a value at the key: they are returned in their position, whichever query is the first
//! to scan for them, and while other items change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Kind, Object, Value, json};
use pleiad_sql::sort_encoding::{SortValue, encode_key};
use pleiad_sql::testing::TestQuery;

use crate::query::PageSize;
use crate::query::exam::{Case, QueryWorld, item_query};
use crate::{FeedRange, Verb, WriteOptions};

const STABLE: usize = 300;
const CHANGING: usize = 100;

/// An item with or without `v`; every second stable item has none. The first ten stable items have a `w`; changing
/// items never do.
fn item(n: usize, has_v: bool) -> Value {
    let item = Object::new().with("id", n.to_string()).with("pk", "one");
    let item = if has_v { item.with("v", if n < STABLE { 1000 + n as i64 } else { n as i64 }) } else { item };
    Value::from(if n < 10 { item.with("w", n as i64) } else { item })
}

/// The ids of the rows, and whether they come from an ordered index scan.
async fn query_ids(world: &QueryWorld, sql: &str) -> (Vec<usize>, bool) {
    let asked = TestQuery { text: sql.to_owned(), parameters: Vec::new() };
    let size = PageSize { rows: 1000, bytes: 1 << 20 };
    let query = item_query(&asked, FeedRange::Container, size, None, false);
    let page = world.engine.query_items(&world.at, query, None).await.result.unwrap();
    let id = |row: &[u8]| json::parse(row).unwrap().as_str().unwrap().parse().unwrap();
    (page.rows.iter().map(id).collect(), page.report.access_paths.iter().any(|(path, _)| path.starts_with("index")))
}

/// Gives this many items a value and removes it again.
async fn toggle_values(world: &QueryWorld, changing: usize, stop: &AtomicBool) {
    let key = PartitionKey::parse(r#"["one"]"#).unwrap();
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        let item = item(STABLE + round * 7 % changing, (round / changing).is_multiple_of(2));
        let options = WriteOptions::default();
        world.engine.create_item(&world.at, Some(&key), Verb::Upsert, item, &options).await.result.unwrap();
        round += 1;
    }
}

/// An ordered scan that reads values without an order in the index sorts instead, at the same snapshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_item_is_returned_twice_when_an_ordered_scan_falls_back_to_a_sort() {
    let list = |n: usize| {
        let item = Object::new().with("id", n.to_string()).with("pk", "one");
        (Value::from(item.with("v", vec![Value::from(n as i64)])), None)
    };
    let few = (STABLE..STABLE + 10).map(|n| (item(n, true), None));
    let case = Case::of(
        json::parse(br#"{"includedPaths":[{"path":"/*"}]}"#).unwrap(),
        1,
        (0..STABLE).map(list).chain(few).collect(),
    );
    let (world, stop) = (Arc::new(QueryWorld::open(&case).await), Arc::new(AtomicBool::new(false)));
    let writer = tokio::spawn({
        let (world, stop) = (world.clone(), stop.clone());
        async move { toggle_values(&world, 10, &stop).await }
    });
    // Lists are sorted by their hash.
    let mut by_hash: Vec<usize> = (0..STABLE).collect();
    by_hash.sort_by_cached_key(|n| {
        let mut key = Vec::new();
        encode_key(&SortValue::of(Some(&Value::from(vec![Value::from(*n as i64)]))), false, &mut key);
        key
    });
    for _ in 0..400 {
        let (rows, _) = query_ids(&world, "SELECT TOP 30 VALUE c.id FROM c ORDER BY c.v").await;
        let (first, lists) = rows.split_at(10);
        assert!((STABLE..STABLE + 10).all(|n| first.contains(&n)), "{rows:?}");
        assert_eq!(lists, &by_hash[..20], "{rows:?}");
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_queries_all_return_the_items_without_the_key() {
    let items = (0..STABLE + CHANGING).map(|n| (item(n, n % 2 == 1), None)).collect();
    let case = Case::of(json::parse(br#"{"includedPaths":[{"path":"/*"}]}"#).unwrap(), 1, items);
    let (world, stop) = (Arc::new(QueryWorld::open(&case).await), Arc::new(AtomicBool::new(false)));
    let writer = tokio::spawn({
        let (world, stop) = (world.clone(), stop.clone());
        async move { toggle_values(&world, CHANGING, &stop).await }
    });
    let without_v: Vec<usize> = (0..STABLE).filter(|n| n % 2 == 0).collect();
    let down: Vec<usize> = (0..STABLE).rev().filter(|n| n % 2 == 1).collect();
    let with_w: Vec<usize> = (0..10).rev().chain((STABLE..STABLE + CHANGING).rev()).collect();
    let wanted = Arc::new([
        ("SELECT TOP 20 VALUE c.id FROM c ORDER BY c.v", without_v[..20].to_vec()),
        ("SELECT TOP 20 VALUE c.id FROM c ORDER BY c.v DESC", down[..20].to_vec()),
        ("SELECT TOP 20 VALUE c.id FROM c ORDER BY c.w DESC", with_w[..20].to_vec()),
    ]);
    let readers: Vec<_> = (0..6)
        .map(|reader| {
            let (world, wanted) = (world.clone(), wanted.clone());
            tokio::spawn(async move {
                for round in 0..60 {
                    let (sql, rows) = &wanted[(reader + round) % wanted.len()];
                    assert_eq!(query_ids(&world, sql).await, (rows.clone(), true), "{sql}");
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

/// A query that times out leaves the candidates so far to the next one, and its message says how to avoid the scan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_for_missing_values_that_times_out_continues_in_the_next_query() {
    let long = |n: usize| {
        let Value::Object(item) = item(n, n % 2 == 1) else { unreachable!() };
        (Value::from(item.with("text", "x".repeat(60_000))), None)
    };
    let policy = json::parse(br#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/text/*"}]}"#).unwrap();
    // Every reading advances the clock by six seconds, and there is one for each megabyte.
    let case = Case { step_ms: 6_000, ..Case::of(policy, 1, (0..STABLE).map(long).collect()) };
    let world = QueryWorld::open(&case).await;
    let mut timeouts = 0;
    let page = loop {
        let asked =
            TestQuery { text: "SELECT TOP 3 VALUE c.id FROM c ORDER BY c.v".to_owned(), parameters: Vec::new() };
        let query = item_query(&asked, FeedRange::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, false);
        match world.engine.query_items(&world.new_request(), query, None).await.result {
            Ok(page) => break page,
            Err(error) => {
                assert!(error.kind == Kind::TimedOut && error.to_string().contains("include \"/v/?\""), "{error}")
            }
        }
        timeouts += 1;
    };
    assert!(page.rows.iter().eq([&b"\"0\""[..], b"\"2\"", b"\"4\""]));
    assert!((1..6).contains(&timeouts), "{timeouts}");
}
