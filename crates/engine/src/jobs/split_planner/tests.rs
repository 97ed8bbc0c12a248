//! Partitions split automatically when size or throughput requires it.

use super::*;
use crate::testing::*;
use crate::{ContainerName, Engine, ThroughputRequest, Verb, WriteOptions};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Fact, Kind, Object, Value};
use pleiad_storage::Memory;

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

async fn account_with(limits: PartitionLimits, ru: i64) -> Arc<Engine> {
    let engine = open(Memory::new(), limits).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Manual(ru)).await.unwrap();
    engine
}

fn limits(partition_ru_initial: u32) -> PartitionLimits {
    PartitionLimits { partition_ru_initial, ..LIMITS }
}

async fn set_throughput(engine: &Engine, ru: i64) -> Result<()> {
    let rid = admit(engine, "c").container().rid;
    let offer = engine.catalog.tree().offer(OfferOwner::Container(rid)).cloned().unwrap();
    engine.catalog.replace_offer(offer.rid, crate::OfferChange::To(ThroughputRequest::Manual(ru)), None).await.map(drop)
}

fn is_scaling(engine: &Engine) -> bool {
    let rid = admit(engine, "c").container().rid;
    let offer = engine.catalog.tree().offer(OfferOwner::Container(rid)).cloned().unwrap();
    engine.catalog.tree().is_scaling(&offer, engine.limits())
}

async fn wait_idle(engine: &Engine) {
    engine.catalog.wait_for_changes().await;
    engine.catalog.tasks().wait_idle().await;
}

async fn put(engine: &Engine, id: &str, key: &str, bytes: usize) -> crate::EngineResponse<crate::Written> {
    let body: Value = Object::new().with("id", id).with("pk", key).with("text", "x".repeat(bytes)).into();
    engine.create_item(&admit(engine, "c"), Some(&pk(key)), Verb::Upsert, body, &WriteOptions::default()).await
}

#[tokio::test]
async fn s50_s51_s58_throughput_adds_exactly_the_partitions_it_needs() {
    let engine = account_with(limits(10_000), 30_000).await;
    let before = admit(&engine, "c").container().map.clone();
    assert_eq!(before.ranges().len(), 3);
    set_throughput(&engine, 45_000).await.unwrap();
    wait_idle(&engine).await;
    let after = admit(&engine, "c").container().map.clone();
    assert_eq!(after.ranges().len(), 5);
    let untouched = after.ranges().iter().filter(|range| before.ranges().contains(range)).count();
    assert_eq!(untouched, 1, "two were split, one was not");
    assert!(!is_scaling(&engine));
    set_throughput(&engine, 500).await.unwrap();
    wait_idle(&engine).await;
    assert_eq!(admit(&engine, "c").container().map, after, "lower throughput merges nothing");
}

#[tokio::test]
async fn s52_s59_successive_and_large_throughput_increases() {
    let engine = account_with(limits(10_000), 10_000).await;
    load(&engine, "c", 300, |n| n.to_string()).await;
    set_throughput(&engine, 130_000).await.unwrap();
    wait_idle(&engine).await;
    assert_eq!(admit(&engine, "c").container().partitions.len(), 13);
    set_throughput(&engine, 170_100).await.unwrap();
    wait_idle(&engine).await;
    assert_eq!(admit(&engine, "c").container().partitions.len(), 18);
    assert_eq!(admit(&engine, "c").container().items(), 300);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn an_offer_is_pending_until_the_splits_are_done_and_locked_meanwhile() {
    let engine = account_with(limits(10_000), 10_000).await;
    engine.catalog.jobs().hold(crate::JobStep::Copy);
    set_throughput(&engine, 20_000).await.unwrap();
    assert!(is_scaling(&engine));
    engine.catalog.jobs().wait_held_at(crate::JobStep::Copy).await;
    assert_eq!(set_throughput(&engine, 10_000).await.unwrap_err().kind, Kind::Locked);
    engine.catalog.jobs().release(crate::JobStep::Copy);
    wait_idle(&engine).await;
    assert!(!is_scaling(&engine));
    set_throughput(&engine, 10_000).await.unwrap();
}

#[tokio::test]
async fn s45_s51_s55_a_full_partition_splits_automatically() {
    let engine = account_with(PartitionLimits { partition_bytes_max: 100_000, ..limits(10_000) }, 400).await;
    for n in 0..150 {
        put(&engine, &n.to_string(), &format!("k{n}"), 1000).await.result.unwrap();
    }
    wait_idle(&engine).await;
    let reports = engine.partitions(&at_container(&engine, C).unwrap()).unwrap();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(reports.iter().all(|report| report.range.parents == [0] && report.item_bytes_max == 100_000));
    let (a, b) = (reports[0].items, reports[1].items);
    assert!(a + b == 150 && a.abs_diff(b) <= 30, "{a} {b}");
    for n in 150..600 {
        put(&engine, &n.to_string(), &format!("k{n}"), 1000).await.result.unwrap();
    }
    wait_idle(&engine).await;
    let reports = engine.partitions(&at_container(&engine, C).unwrap()).unwrap();
    assert!(reports.len() >= 6 && reports.iter().all(|report| report.item_bytes <= 110_000), "{reports:?}");
    assert_sound(&engine).await;
}

#[tokio::test]
async fn a_full_partition_of_one_key_rejects_growth_but_allows_deletes() {
    let engine = account_with(PartitionLimits { partition_bytes_max: 20_000, ..limits(10_000) }, 400).await;
    let mut written = 0;
    let refused = loop {
        let answer = put(&engine, &written.to_string(), "one", 1000).await;
        match answer.result {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        wait_idle(&engine).await;
    };
    let full = Fact::PartitionFull { bytes_max: 20_000, range: 0 };
    assert_eq!((refused.kind, refused.fact()), (Kind::QuotaExceeded, Some(&full)));
    assert!((18..=20).contains(&written), "{written}");
    assert!(
        engine.partitions(&at_container(&engine, C).unwrap()).unwrap()[0].is_unsplittable
            && engine.catalog.jobs().reports().is_empty()
    );
    assert!(read(&engine, &admit(&engine, "c"), "3", "one").await.result.is_ok());
    assert!(put(&engine, "3", "one", 10).await.result.is_ok(), "smaller is fine");
    assert!(delete(&engine, &admit(&engine, "c"), "4", "one").await.result.is_ok());
    assert!(put(&engine, "other", "two", 1000).await.result.is_ok());
}

#[tokio::test]
async fn s76_a_container_without_a_key_never_splits() {
    let engine = open(Memory::new(), PartitionLimits { partition_bytes_max: 20_000, ..LIMITS }).await;
    let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let definition = ContainerDefinition::create(&parse(r#"{"id":"c"}"#)).unwrap();
    let new = crate::catalog::NewContainer { definition, throughput: ThroughputRequest::Unspecified };
    engine.catalog.create_container(database.rid, new).await.unwrap();
    let put = async |id: &str, bytes: usize| {
        let body: Value = Object::new().with("id", id).with("text", "x".repeat(bytes)).into();
        engine.create_item(&admit(&engine, "c"), None, Verb::Upsert, body, &WriteOptions::default()).await.result
    };
    for n in 0..19 {
        put(&n.to_string(), 1000).await.unwrap();
    }
    assert_eq!(put("more", 1000).await.unwrap_err().kind, Kind::QuotaExceeded);
    assert!(put("3", 10).await.is_ok());
    assert_eq!(engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap_err().kind, Kind::Invalid);
    assert_eq!(
        (engine.partitions(&at_container(&engine, C).unwrap()).unwrap().len(), engine.catalog.jobs().reports().len()),
        (1, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s52_a_container_grows_to_five_hundred_partitions_and_works() {
    let engine = account_with(PartitionLimits { partition_ru_max: 100, ..limits(100) }, 400).await;
    load(&engine, "c", 300, |n| n.to_string()).await;
    set_throughput(&engine, 50_000).await.unwrap();
    wait_idle(&engine).await;
    let at = admit(&engine, "c");
    assert_eq!(at.container().partitions.len(), 500);
    for n in 0..300 {
        let (id, key) = (n.to_string(), n.to_string());
        assert!(read(&engine, &at, &id, &key).await.result.is_ok());
        assert!(put(&engine, &id, &key, 10).await.result.is_ok());
    }
    assert!(delete(&engine, &at, "0", "0").await.result.is_ok());
    assert!(create(&engine, &at, "new", "new").await.result.is_ok());
    let (mut rows, mut from) = (Vec::new(), None);
    loop {
        let page = engine.query_items(&at, ordered(from), None).await.result.unwrap();
        rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert!(rows.len() == 300 && rows.is_sorted(), "{rows:?}");
}

fn ordered(from: Option<crate::QueryCursor>) -> crate::ItemQuery {
    crate::ItemQuery {
        text: "SELECT VALUE c.id FROM c ORDER BY c.id".to_owned(),
        parameters: crate::Parameters::default(),
        scope: crate::FeedRange::Container,
        cross_partition: crate::CrossPartition::ByServer,
        size: crate::PageSize { rows: 70, bytes: 1 << 20 },
        from,
        resume: None,
        report: crate::ReportOptions::default(),
        enable_scan: false,
    }
}

#[tokio::test]
async fn after_an_aborted_split_the_next_write_requests_one_again() {
    let engine = account_with(PartitionLimits { partition_bytes_max: 20_000, ..limits(10_000) }, 400).await;
    engine.catalog.jobs().hold(crate::JobStep::Copy);
    for n in 0..25 {
        put(&engine, &n.to_string(), &format!("k{n}"), 1000).await.result.unwrap();
    }
    engine.catalog.jobs().wait_held_at(crate::JobStep::Copy).await;
    let job = *engine.catalog.tree().jobs.keys().next().unwrap();
    engine.catalog.jobs().cancel(job).await.unwrap();
    engine.catalog.jobs().release(crate::JobStep::Copy);
    wait_idle(&engine).await;
    assert_eq!(admit(&engine, "c").container().partitions.len(), 1, "the partition stays as it was");
    put(&engine, "more", "more", 1000).await.result.unwrap();
    wait_idle(&engine).await;
    assert!(admit(&engine, "c").container().partitions.len() > 1);
    assert_sound(&engine).await;
}
