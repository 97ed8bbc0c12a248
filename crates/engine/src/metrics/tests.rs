//! Metrics of a small account, on a manual clock.

use crate::testing::*;
use crate::*;

async fn busy() -> (Arc<Engine>, Arc<pleiad_model::env::ManualEnv>) {
    let (engine, env) = governed(Governance::default()).await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    create(&engine, &at, "1", "hot").await.result.unwrap();
    env.advance_ms(1000);
    for _ in 0..150 {
        let _ = read(&engine, &at, "1", "hot").await;
    }
    (engine, env)
}

#[tokio::test]
async fn a_hot_partition_is_reported_with_its_key() {
    let (engine, _) = busy().await;
    let metrics = engine.metrics(&whole(&engine)).unwrap();
    let partitions = &metrics.containers[0].partitions;
    let hot = partitions.iter().find(|partition| partition.normalized == 1.0).unwrap();
    assert_eq!((hot.share_ru, hot.requests, hot.requests_throttled, hot.items), (100.0, 101, 50, 1));
    assert_eq!(hot.busiest_keys[0].key, r#"["hot"]"#);
    assert!(hot.total_ru > 100.0 && hot.busiest_keys[0].ru > 90.0, "{hot:?}");
    assert_eq!(partitions.iter().filter(|partition| partition.requests == 0).count(), 3);
}

#[tokio::test]
async fn s34_the_largest_keys_are_reported_after_a_refresh() {
    let (engine, _) = busy().await;
    engine.refresh_key_statistics(&whole(&engine)).await.unwrap();
    let metrics = engine.metrics(&whole(&engine)).unwrap();
    let largest: Vec<_> =
        metrics.containers[0].partitions.iter().flat_map(|partition| &partition.largest_keys).collect();
    assert_eq!((largest.len(), largest[0].key.as_str(), largest[0].items), (1, r#"["hot"]"#, 1));
}

#[tokio::test]
async fn autoscale_reports_its_busiest_second_of_the_hour_and_a_tenth_when_idle() {
    let (engine, env) = governed(Governance::default()).await;
    let scaled = ThroughputRequest::Autoscale { max: 1000, increment_percent: None };
    try_container(&engine, "db", "c", &["/pk"], scaled).await.unwrap();
    let at = admit(&engine, "c");
    let reported = || engine.metrics(&whole(&engine)).unwrap().containers[0].autoscaled_ru.unwrap();
    assert_eq!(reported(), 100.0);
    for _ in 0..600 {
        assert!(
            read(&engine, &at, "1", "a").await.result.is_err_and(|error| error.kind == pleiad_model::Kind::NotFound)
        );
    }
    assert_eq!(reported(), 600.0);
    env.advance_ms(30 * 60_000);
    assert_eq!(reported(), 600.0);
    env.advance_ms(31 * 60_000);
    assert_eq!(reported(), 100.0);
}
