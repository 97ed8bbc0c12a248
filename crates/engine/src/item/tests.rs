//! Item operations as a client sees them, over one, some and many partitions.

use pleiad_model::Kind;
use std::sync::Arc;

use super::*;
use crate::feed::FeedRange;
use crate::testing::*;
use crate::{Container, PageLimit};

/// With a container `c` keyed by `/pk`.
async fn world(partitions: i64) -> (Arc<Engine>, Arc<Container>, Admitted) {
    let engine = account().await;
    let container = container(&engine, "c", &["/pk"], partitions).await;
    let at = admit(&engine, "c");
    (engine, container, at)
}

async fn replace(engine: &Engine, at: &Admitted, key: &str, target: Target<'_>, body: &str) -> EngineResponse<Written> {
    engine.replace_item(at, Some(&pk(key)), target, parse(body), &WriteOptions::default()).await
}

#[tokio::test]
async fn s2_a_container_of_many_ranges_is_one_resource() {
    for partitions in [4, 16, 500] {
        let (engine, _, at) = world(partitions).await;
        for key in ["a", "b", "c", "d", "e"] {
            create(&engine, &at, "1", key).await.result.unwrap();
            let body = format!(r#"{{"id":"1","pk":"{key}","n":2}}"#);
            replace(&engine, &at, key, Target::Named("1"), &body).await.result.unwrap();
            assert_eq!(read(&engine, &at, "1", key).await.result.unwrap().body(), body.as_bytes());
            let options = WriteOptions::default();
            let upserted = engine.create_item(&at, Some(&pk(key)), Verb::Upsert, item("1", key), &options).await;
            assert!(!upserted.result.unwrap().created);
            delete(&engine, &at, "1", key).await.result.unwrap();
            assert_eq!(kind(read(&engine, &at, "1", key).await), Kind::NotFound);
        }
    }
}

#[tokio::test]
async fn s29_s30_a_logical_partition_exists_from_its_first_item_to_its_last() {
    let (engine, container, at) = world(4).await;
    let keys = async || {
        let mut count = 0;
        for partition in &container.partitions {
            count += partition.count_keys().await.unwrap();
        }
        count
    };
    create(&engine, &at, "1", "never seen").await.result.unwrap();
    assert!(read(&engine, &at, "1", "never seen").await.result.is_ok());
    create(&engine, &at, "2", "never seen").await.result.unwrap();
    create(&engine, &at, "1", "another").await.result.unwrap();
    assert_eq!(keys().await, 2);
    delete(&engine, &at, "1", "never seen").await.result.unwrap();
    assert_eq!(keys().await, 2);
    delete(&engine, &at, "2", "never seen").await.result.unwrap();
    assert_eq!(keys().await, 1);
    create(&engine, &at, "1", "never seen").await.result.unwrap();
    assert_eq!(keys().await, 2);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn s36_an_item_is_in_the_range_that_contains_its_hash() {
    let (engine, container, at) = world(16).await;
    for n in 0..200 {
        let key = format!("key-{n}");
        let served_by = create(&engine, &at, "1", &key).await.served_by.unwrap();
        let epk = pk(&key).effective(container.schema.key.as_ref().unwrap());
        let range = &container.map.ranges()[container.map.by_id(served_by.range).unwrap()];
        assert!(range.keys.contains(&epk));
        assert_eq!(read(&engine, &at, "1", &key).await.served_by.unwrap().range, served_by.range);
        let quota = PageLimit { items: 1000, bytes: 1 << 20 };
        let page = engine
            .list_items(&at, &FeedRange::PartitionKeyRange(served_by.range), None, quota, None)
            .await
            .result
            .unwrap();
        assert!(page.records.iter().any(|record| record.epk == epk));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s31_s38_s43_a_hundred_thousand_keys_spread_evenly() {
    let (engine, container, _) = world(5).await;
    load(&engine, "c", 100_000, |n| format!("key-{n}")).await;
    let spread = items_per_partition(&container);
    assert!(spread.iter().all(|items| (18_000..=22_000).contains(items)), "{spread:?}");
    let mut keys = 0;
    for partition in &container.partitions {
        keys += partition.count_keys().await.unwrap();
    }
    assert_eq!((keys, container.items()), (100_000, 100_000));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a minute or two: cargo test --release -p pleiad-engine s31_a_million -- --ignored --test-threads 1"]
async fn s31_a_million_keys_take_no_more_memory_than_a_hundred_thousand() {
    const GROWTH_KB_MAX: u64 = 128 << 10;
    let resident_kb = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let directory = tempfile::tempdir().unwrap();
    let engine = open(disk(directory.path()), LIMITS).await;
    engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
    let container = container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let mut before_kb = 0;
    for n in 0..1_000_000 {
        create(&engine, &at, "same", &format!("key-{n}")).await.result.unwrap();
        if n == 100_000 {
            before_kb = resident_kb();
        }
    }
    assert_eq!(container.items(), 1_000_000);
    let grown_kb = resident_kb().saturating_sub(before_kb);
    assert!(grown_kb < GROWTH_KB_MAX, "{grown_kb} KB more than with a hundred thousand keys");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s35_s42_one_key_for_all_items_is_allowed_and_stays_in_one_range() {
    let (engine, container, at) = world(4).await;
    load(&engine, "c", 10_000, |_| "same".into()).await;
    let mut spread = items_per_partition(&container);
    spread.sort_unstable();
    assert_eq!(spread, [0, 0, 0, 10_000]);
    assert_eq!(read(&engine, &at, "9999", "same").await.charge_ru, 1.0);
}

#[tokio::test]
async fn s39_a_partition_hosts_many_keys_and_a_key_needs_only_one() {
    let engine = open(pleiad_storage::Memory::new(), crate::PartitionLimits::default()).await;
    engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
    let small = container(&engine, "small", &["/pk"], 4).await;
    let large = container(&engine, "large", &["/pk"], 500).await;
    load(&engine, "small", 1000, |n| n.to_string()).await;
    load(&engine, "large", 10, |_| "one".into()).await;
    assert_eq!(items_per_partition(&small), [1000], "S57: 400 RU/s need one range");
    assert_eq!((large.partitions.len(), large.items()), (5, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s89_s90_a_read_costs_one_however_many_items_and_readers_there_are() {
    let (engine, _, at) = world(4).await;
    load(&engine, "c", 10, |n| n.to_string()).await;
    assert_eq!(read(&engine, &at, "7", "7").await.charge_ru, 1.0);
    load(&engine, "c", 10_000, |n| format!("more {n}")).await;
    assert_eq!(read(&engine, &at, "7", "7").await.charge_ru, 1.0);
    let reader = |_| {
        let engine = engine.clone();
        tokio::spawn(async move { read(&engine, &admit(&engine, "c"), "7", "7").await.charge_ru })
    };
    for reader in (0..500).map(reader).collect::<Vec<_>>() {
        assert_eq!(reader.await.unwrap(), 1.0);
    }
}

#[tokio::test]
async fn an_item_is_found_by_rid_under_its_own_key_only() {
    let (engine, container, at) = world(4).await;
    let docnum = create(&engine, &at, "1", "a").await.result.unwrap().record.unwrap().docnum;
    let rid = Target::Rid(ItemRid { container: container.rid, docnum });
    let read = async |key: &str| engine.read_item(&at, Some(&pk(key)), rid, None, None).await;
    assert_eq!(read("a").await.result.unwrap().record.id(), "1");
    assert_eq!(kind(read("b").await), Kind::NotFound);
    let renamed = replace(&engine, &at, "a", rid, r#"{"id":"2","pk":"a"}"#).await.result.unwrap();
    assert_eq!(renamed.record.unwrap().docnum, docnum);
    assert_eq!(read("a").await.result.unwrap().record.id(), "2");
    engine.delete_item(&at, Some(&pk("a")), rid, &Precondition::None).await.result.unwrap();
    assert_eq!(kind(read("a").await), Kind::NotFound);
}

#[tokio::test]
async fn s16_the_partition_keys_of_item_and_request_must_match() {
    let (engine, _, at) = world(4).await;
    let write = async |key: Option<&PartitionKey>, body: &str| {
        engine.create_item(&at, key, Verb::Create, parse(body), &WriteOptions::default()).await
    };
    assert_eq!(kind(write(None, r#"{"id":"1","pk":"a"}"#).await), Kind::KeyMismatch);
    assert_eq!(kind(write(Some(&pk("b")), r#"{"id":"1","pk":"a"}"#).await), Kind::KeyMismatch);
    assert_eq!(kind(write(Some(&pk("b")), r#"{"id":"1"}"#).await), Kind::KeyMismatch);
    create(&engine, &at, "1", "a").await.result.unwrap();
    assert_eq!(kind(replace(&engine, &at, "a", Target::Named("1"), r#"{"id":"1","pk":"b"}"#).await), Kind::KeyMismatch);
    let two = PartitionKey::parse(r#"["a","b"]"#).unwrap();
    assert_eq!(kind(engine.read_item(&at, Some(&two), Target::Named("1"), None, None).await), Kind::KeyMismatch);
}

#[tokio::test]
async fn an_invalid_item_is_rejected_before_anything_is_written() {
    let (engine, container, at) = world(4).await;
    let states = || container.partitions.iter().map(|partition| partition.shard_state()).collect::<Vec<_>>();
    let before = states();
    let write = async |body: Value| {
        let answer = engine.create_item(&at, Some(&pk("a")), Verb::Create, body, &WriteOptions::default()).await;
        assert_eq!(answer.charge_ru, 0.0);
        kind(answer)
    };
    for body in [
        r#"[1]"#,
        r#"{"pk":"a"}"#,
        r#"{"id":7,"pk":"a"}"#,
        r#"{"id":"a/b","pk":"a"}"#,
        r#"{"id":"1","pk":"a","ttl":0}"#,
    ] {
        assert_eq!(write(parse(body)).await, Kind::Invalid, "{body}");
    }
    let Value::Object(large) = item("1", "a") else { unreachable!() };
    assert_eq!(write(large.with("text", "x".repeat(ITEM_BYTES_MAX)).into()).await, Kind::TooLarge);
    assert_eq!(states(), before);
}

#[tokio::test]
async fn client_supplied_system_properties_are_dropped() {
    let (engine, _, at) = world(4).await;
    let body = parse(r#"{"_rid":"x","id":"1","_etag":"y","pk":"a","_ts":1,"_self":"z","_attachments":"w","_own":1}"#);
    engine.create_item(&at, Some(&pk("a")), Verb::Create, body, &WriteOptions::default()).await.result.unwrap();
    let record = read(&engine, &at, "1", "a").await.result.unwrap();
    assert_eq!(record.body(), br#"{"id":"1","pk":"a","_own":1}"#);
    assert_eq!(record.ts_s, 1_700_000_000);
}

#[tokio::test]
async fn a_container_without_a_partition_key_accepts_items_without_one() {
    let engine = account().await;
    let database = find_database(&engine, "db").unwrap().rid;
    let definition = pleiad_model::policy::ContainerDefinition::create(&parse(r#"{"id":"c"}"#)).unwrap();
    let new = crate::catalog::NewContainer { definition, throughput: crate::ThroughputRequest::Unspecified };
    let made = engine.catalog.create_container(database, new).await.unwrap();
    let at = admit(&engine, "c");
    let body = || parse(r#"{"id":"1","pk":"a"}"#);
    engine.create_item(&at, None, Verb::Create, body(), &WriteOptions::default()).await.result.unwrap();
    assert_eq!(
        kind(engine.create_item(&at, None, Verb::Create, body(), &WriteOptions::default()).await),
        Kind::Conflict
    );
    assert!(engine.read_item(&at, None, Target::Named("1"), None, None).await.result.is_ok());
    assert_eq!(items_per_partition(&made), [1]);
}
