//! Enforcement of provisioned throughput, on a manual clock. A container of n hundred RU/s has n partitions of 100
//! each.

mod charges; // what is charged, in which order of checks, and what is told
mod early_end; // requests that are dropped or fail

use pleiad_model::{Fact, Kind};
use std::collections::BTreeMap;

use pleiad_model::env::ManualEnv;
use pleiad_partition::governor::{Priority, RequestClass};

use crate::testing::*;
use crate::*;

async fn account() -> (Arc<Engine>, Arc<ManualEnv>) {
    governed(Governance::default()).await
}

fn is_throttled<T>(answer: &EngineResponse<T>) -> bool {
    matches!(&answer.result, Err(error) if matches!(error.kind, Kind::Throttled { .. }))
}

/// Point reads of missing items; each costs as much as the read of a 1 KB item.
async fn reads(engine: &Engine, at: &Admitted, key: &str, count: usize) -> usize {
    let mut served = 0;
    for _ in 0..count {
        served += usize::from(!is_throttled(&read(engine, at, "1", key).await));
    }
    served
}

/// Keys by their partition.
fn keys_by_range(at: &Admitted, keys: impl Iterator<Item = String>) -> BTreeMap<usize, Vec<String>> {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let definition = at.container().schema.key.as_ref().unwrap();
    for key in keys {
        let range = at.container().map.locate(&pk(&key).effective(definition));
        found.entry(range).or_default().push(key);
    }
    found
}

fn many_keys(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("key{n}"))
}

/// A page of a hundred rows at most, of the whole container, merged by the server.
fn item_query(text: &str, from: Option<QueryCursor>) -> ItemQuery {
    ItemQuery {
        text: text.to_owned(),
        parameters: Parameters::default(),
        scope: FeedRange::Container,
        cross_partition: CrossPartition::ByServer,
        size: PageSize { rows: 100, bytes: 1 << 20 },
        from,
        resume: None,
        report: ReportOptions::default(),
        enable_scan: false,
    }
}

async fn set_ru(engine: &Engine, container: &Container, ru: i64) -> Result<()> {
    let owner = OfferOwner::Container(container.rid);
    let rid = engine.catalog.tree().offer(owner).unwrap().rid;
    engine.catalog.replace_offer(rid, OfferChange::To(ThroughputRequest::Manual(ru)), None).await.map(drop)
}

#[tokio::test]
async fn s65_s66_each_partition_has_an_equal_share_for_all_its_keys() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for keys in keys_by_range(&at, many_keys(40)).values() {
        let mut served = 0;
        for key in keys.iter().take(3) {
            served += reads(&engine, &at, key, 60).await;
        }
        assert_eq!(served, 100);
    }
    env.advance_ms(1000);
    assert_eq!(reads(&engine, &at, "key0", 150).await, 100);
}

#[tokio::test]
async fn s33_s67_s68_a_hot_key_is_throttled_while_the_container_has_throughput_left() {
    let (engine, _) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    assert_eq!(reads(&engine, &at, "key0", 300).await, 100);
    let ranges = keys_by_range(&at, many_keys(40));
    let cold = ranges.values().find(|keys| !keys.contains(&"key0".to_owned())).unwrap();
    assert_eq!(reads(&engine, &at, &cold[0], 50).await, 50);
    let refusal = read(&engine, &at, "1", "key0").await;
    assert_eq!(refusal.charge_ru, 0.0);
    let Err(error) = refusal.result else { panic!("served") };
    let Some(Fact::Throttled(request)) = error.fact() else { panic!("{error}") };
    let throttle = &request.throttle;
    assert_eq!(
        (throttle.share_ru, throttle.used_ru, throttle.busiest_key.as_deref()),
        (100.0, 100.0, Some(r#"["key0"]"#))
    );
    assert_eq!((request.database.as_str(), request.container.as_str()), ("db", "c"));
}

#[tokio::test]
async fn s69_s154_even_load_uses_nearly_all_throughput() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let ranges = keys_by_range(&at, many_keys(1_000));
    for _ in 0..3 {
        for keys in ranges.values() {
            for key in keys.iter().take(96) {
                assert!(!is_throttled(&read(&engine, &at, "1", key).await));
            }
        }
        env.advance_ms(1000);
    }
}

#[tokio::test]
async fn s72_s158_s161_containers_are_throttled_and_changed_independently() {
    let (engine, env) = account().await;
    let january = container(&engine, "january", &["/pk"], 8).await;
    container(&engine, "february", &["/pk"], 8).await;
    let (old, new) = (admit(&engine, "january"), admit(&engine, "february"));
    set_ru(&engine, &january, 400).await.unwrap();
    assert_eq!((reads(&engine, &old, "a", 120).await, reads(&engine, &new, "a", 120).await), (50, 100));
    env.advance_ms(1000);
    assert_eq!(reads(&engine, &old, "a", 40).await, 40);
}

#[tokio::test]
async fn s63_s160_a_new_offer_applies_immediately_to_every_partition() {
    let (engine, env) = account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let keys: Vec<String> = keys_by_range(&at, many_keys(40)).into_values().map(|keys| keys[0].clone()).collect();
    for (ru, share) in [(400, 100), (800, 200), (400, 100)] {
        set_ru(&engine, &c, ru).await.unwrap();
        env.advance_ms(10_000);
        for key in &keys {
            assert_eq!(reads(&engine, &at, key, 250).await, share);
        }
    }
}

#[tokio::test]
async fn s92_load_within_the_offer_is_served_and_a_fifth_more_is_throttled() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for (per_second, refused) in [(100, 0), (120, 20)] {
        for _ in 0..10 {
            assert_eq!(per_second - reads(&engine, &at, "a", per_second).await, refused);
            env.advance_ms(1000);
        }
    }
}

#[tokio::test]
async fn s87_failures_after_a_lookup_are_charged() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    create(&engine, &at, "1", "a").await.result.unwrap();
    let partition = at
        .container()
        .partition(at.container().map.locate(&pk("a").effective(at.container().schema.key.as_ref().unwrap())));
    let total = || partition.as_ref().unwrap().governor.usage().total_ru();
    let before = total();
    assert_eq!(kind(create(&engine, &at, "1", "a").await), Kind::Conflict);
    assert_eq!(kind(read(&engine, &at, "2", "a").await), Kind::NotFound);
    assert_eq!(kind(delete(&engine, &at, "2", "a").await), Kind::NotFound);
    assert_eq!(total() - before, 3.0);
    env.advance_ms(1000);
    // The last write exceeds the budget, and the next second has less.
    let mut served = 0;
    while !is_throttled(&create(&engine, &at, &format!("n{served}"), "a").await) {
        served += 1;
    }
    assert!((15..=25).contains(&served), "{served}");
}

#[tokio::test]
async fn s155_s159_tenants_of_one_partition_have_no_isolation() {
    let (engine, _) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let ranges = keys_by_range(&at, many_keys(100));
    let together = ranges.values().find(|keys| keys.len() > 1).unwrap();
    reads(&engine, &at, &together[0], 100).await;
    assert!(is_throttled(&read(&engine, &at, "1", &together[1]).await));
}

#[tokio::test]
async fn s157_s164_many_keys_write_several_times_as_fast_as_one() {
    let (engine, _) = account().await;
    container(&engine, "c", &["/pk"], 5).await;
    let at = admit(&engine, "c");
    let mut one = 0;
    while !is_throttled(&create(&engine, &at, &one.to_string(), "2018-08-09").await) {
        one += 1;
    }
    let mut many = 0;
    for suffix in 1..=400 {
        many += usize::from(create(&engine, &at, "1", &format!("2018-08-09.{suffix}")).await.result.is_ok());
    }
    assert!(many >= 3 * one, "{many} with suffixes, {one} without");
}

#[tokio::test]
async fn containers_share_database_throughput() {
    let (engine, _) = account().await;
    let shared = engine.catalog.create_database("shared", ThroughputRequest::Manual(400)).await.unwrap();
    for id in ["a", "b"] {
        let new =
            catalog::NewContainer { definition: definition(id, &["/pk"]), throughput: ThroughputRequest::Unspecified };
        engine.catalog.create_container(shared.rid, new).await.unwrap();
    }
    let at = |container| at_container(&engine, ContainerName::Named { database: "shared", container }).unwrap();
    assert_eq!(reads(&engine, &at("a"), "k", 300).await + reads(&engine, &at("b"), "k", 300).await, 400);
}

#[tokio::test]
async fn twenty_five_containers_share_and_the_next_needs_its_own() {
    let (engine, _) = account().await;
    let shared = engine.catalog.create_database("shared", ThroughputRequest::Manual(400)).await.unwrap();
    let create = |n: usize, throughput| {
        let new = catalog::NewContainer { definition: definition(&format!("c{n}"), &["/pk"]), throughput };
        engine.catalog.create_container(shared.rid, new)
    };
    for n in 0..25 {
        create(n, ThroughputRequest::Unspecified).await.unwrap();
    }
    assert_eq!(create(25, ThroughputRequest::Unspecified).await.err().unwrap().kind, Kind::Invalid);
    create(25, ThroughputRequest::Manual(400)).await.unwrap();
}

#[tokio::test]
async fn serverless_partitions_have_the_documented_maximum_and_no_offer() {
    let governance = Governance { serverless: true, serverless_partition_ru: 50, ..Governance::default() };
    let (engine, _) = governed(governance).await;
    let refused = try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Manual(400)).await;
    assert_eq!(refused.err().unwrap().kind, Kind::Invalid);
    try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
    assert!(engine.catalog.tree().offers.is_empty());
    assert_eq!(reads(&engine, &admit(&engine, "c"), "k", 120).await, 50);
    assert_eq!(Governance::default().serverless_partition_ru, 5_000);
}

#[tokio::test]
async fn low_priority_is_throttled_first() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let (high, low) =
        (admit(&engine, "c"), admit(&engine, "c").in_class(RequestClass { priority: Priority::Low, bucket: None }));
    assert_eq!(reads(&engine, &high, "a", 80).await, 80);
    env.advance_ms(1000);
    assert_eq!((reads(&engine, &low, "a", 80).await, reads(&engine, &high, "a", 80).await), (20, 80));
}

#[tokio::test]
async fn a_feed_page_ends_at_a_throttled_partition_and_continues_later() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for n in 0..40 {
        create(&engine, &at, &n.to_string(), &format!("key{n}")).await.result.unwrap();
        env.advance_ms(1000);
    }
    let ranges = keys_by_range(&at, many_keys(40));
    reads(&engine, &at, &ranges[&2][0], 200).await;
    let quota = PageLimit { items: 100, bytes: 1 << 20 };
    let first = engine.list_items(&at, &FeedRange::Container, None, quota, None).await.result.unwrap();
    assert_eq!(first.records.len(), ranges[&0].len() + ranges[&1].len());
    let again = engine.list_items(&at, &FeedRange::Container, first.next.clone(), quota, None).await;
    assert!(is_throttled(&again));
    env.advance_ms(1000);
    let rest = engine.list_items(&at, &FeedRange::Container, first.next, quota, None).await.result.unwrap();
    assert_eq!(first.records.len() + rest.records.len(), 40);
}

#[tokio::test]
async fn a_query_page_ends_at_a_throttled_partition_and_continues_later() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for n in 0..40 {
        create(&engine, &at, &n.to_string(), &format!("key{n}")).await.result.unwrap();
        env.advance_ms(1000);
    }
    let ranges = keys_by_range(&at, many_keys(40));
    reads(&engine, &at, &ranges[&2][0], 200).await;
    let sorted = engine.query_items(&at, item_query("SELECT VALUE c.id FROM c ORDER BY c.id", None), None).await;
    assert!(is_throttled(&sorted), "all partitions or none");
    let first = engine.query_items(&at, item_query("SELECT VALUE c.id FROM c", None), None).await;
    let first_charge_ru = first.charge_ru;
    let first = first.result.unwrap();
    assert_eq!(first.rows.len(), ranges[&0].len() + ranges[&1].len());
    let paid =
        |range: usize| at.container().partition(range).unwrap().governor.usage().second_ru(engine.now_ms() / 1000);
    assert!((paid(0) + paid(1) - first_charge_ru).abs() < 0.02, "{} and {}", paid(0), paid(1));
    assert!(is_throttled(
        &engine.query_items(&at, item_query("SELECT VALUE c.id FROM c", first.next.clone()), None).await
    ));
    env.advance_ms(1000);
    let rest = engine.query_items(&at, item_query("SELECT VALUE c.id FROM c", first.next), None).await.result.unwrap();
    assert_eq!(first.rows.len() + rest.rows.len(), 40);
}

#[tokio::test]
async fn the_throttle_log_has_one_entry_per_second() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for _ in 0..2 {
        reads(&engine, &at, "a", 130).await;
        env.advance_ms(1000);
    }
    let log = engine.throttles(&whole(&engine)).unwrap();
    assert_eq!(log.iter().map(|entry| entry.throttled).collect::<Vec<_>>(), [30, 30]);
    assert_eq!((log[0].container.as_str(), log[1].ts_s - log[0].ts_s), ("c", 1));
    assert_eq!(log[0].throttle.busiest_key.as_deref(), Some(r#"["a"]"#));
}

#[tokio::test]
async fn requests_are_not_throttled_by_default() {
    let engine = crate::testing::account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    assert_eq!(reads(&engine, &at, "a", 500).await, 500);
}

#[tokio::test]
async fn throughput_can_be_moved_to_the_partition_that_needs_it() {
    let (engine, env) = account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let keys: Vec<String> = keys_by_range(&at, many_keys(40)).into_values().map(|keys| keys[0].clone()).collect();
    let shares = async |expected: [usize; 4]| {
        env.advance_ms(10_000);
        for (key, share) in keys.iter().zip(expected) {
            assert_eq!(reads(&engine, &at, key, 500).await, share);
        }
    };
    let targets = BTreeMap::from([(0, 50), (2, 150)]);
    let offer = engine.catalog.redistribute(c.rid, &targets).await.unwrap();
    assert_eq!(offer.throughput, ProvisionedThroughput::Manual(400));
    shares([50, 100, 150, 100]).await;
    // The total is doubled, and the partitions keep their proportions.
    set_ru(&engine, &c, 800).await.unwrap();
    shares([100, 200, 300, 200]).await;
    engine.catalog.redistribute(c.rid, &BTreeMap::new()).await.unwrap();
    shares([200, 200, 200, 200]).await;
    for bad in [(9, 100), (0, 0), (0, 10_001)] {
        assert!(engine.catalog.redistribute(c.rid, &BTreeMap::from([bad])).await.is_err(), "{bad:?}");
    }
}

#[tokio::test]
async fn a_bucket_is_capped_at_every_partition() {
    let (engine, _) = account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let rid = engine.catalog.tree().offer(OfferOwner::Container(c.rid)).unwrap().rid;
    let caps = Caps { percent: [30, 0, 0, 0, 0], default_bucket: None };
    let same = OfferChange::To(ThroughputRequest::Manual(400));
    engine.catalog.replace_offer(rid, same, Some(caps)).await.unwrap();
    let at = admit(&engine, "c").in_class(RequestClass { bucket: BucketId::new(1), ..RequestClass::default() });
    assert_eq!(reads(&engine, &at, "a", 100).await, 30);
    let refusal = read(&engine, &at, "1", "a").await.result.unwrap_err();
    assert!(matches!(refusal.kind, Kind::Throttled { over: pleiad_model::ExceededLimit::Bucket, .. }));
    assert_eq!(reads(&engine, &admit(&engine, "c"), "a", 100).await, 70);
    let more = Caps { percent: [101, 0, 0, 0, 0], default_bucket: None };
    assert!(engine.catalog.replace_offer(rid, same, Some(more)).await.is_err());
}
