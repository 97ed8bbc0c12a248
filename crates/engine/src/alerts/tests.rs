//! Which alerts are raised, and how often.

use pleiad_storage::Memory;

use crate::testing::*;
use crate::*;

#[tokio::test]
async fn a_hot_partition_raises_one_alert_per_minute() {
    let (engine, env) = governed(Governance::default()).await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    assert!(engine.raise_alerts(&whole(&engine)).unwrap().is_empty());
    for _ in 0..130 {
        let _ = read(&engine, &at, "1", "hot").await;
    }
    assert!(engine.raise_alerts(&whole(&engine)).unwrap().is_empty(), "the minute has not ended");
    env.advance_ms(60_000);
    let alerts = engine.raise_alerts(&whole(&engine)).unwrap();
    assert_eq!(alerts.len(), 1);
    let busiest_key = Some(r#"["hot"]"#.to_owned());
    assert_eq!(alerts[0].kind, AlertKind::HotPartition { share_ru: 100.0, throttled: 30, busiest_key });
    assert!(engine.raise_alerts(&whole(&engine)).unwrap().is_empty());
    env.advance_ms(60_000);
    assert!(engine.raise_alerts(&whole(&engine)).unwrap().is_empty());
    assert_eq!(engine.metrics(&whole(&engine)).unwrap().alerts, 1);
}

#[tokio::test]
async fn s34_a_nearly_full_key_raises_one_alert() {
    let engine = open(Memory::new(), PartitionLimits { key_bytes_max: 1000, ..LIMITS }).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let mut raised = Vec::new();
    for n in 0..100 {
        if create(&engine, &at, &n.to_string(), "a").await.result.is_err() {
            break;
        }
        raised.extend(engine.raise_alerts(&whole(&engine)).unwrap());
    }
    assert_eq!(raised.len(), 1, "one alert, before the size limit rejects writes");
    assert!(
        matches!(&raised[0].kind, AlertKind::KeyNearlyFull { key, bytes: 701.., bytes_max: 1000 } if key == r#"["a"]"#)
    );
    assert!(raised[0].to_string().contains("db/c"));
}
