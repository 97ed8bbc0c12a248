//! Split points, for partition keys of every kind.

use pleiad_model::policy::ContainerDefinition;
use pleiad_storage::Memory;

use crate::catalog::NewContainer;
use crate::testing::*;
use crate::*;

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

async fn with_key(key: &str) -> Arc<Engine> {
    let engine = open(Memory::new(), PartitionLimits { partition_ru_initial: 10_000, ..LIMITS }).await;
    let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let definition = ContainerDefinition::create(&parse(&format!(r#"{{"id":"c","partitionKey":{key}}}"#))).unwrap();
    let new = NewContainer { definition, throughput: ThroughputRequest::Unspecified };
    engine.catalog.create_container(database.rid, new).await.unwrap();
    engine
}

#[tokio::test]
async fn s35_s46_partitions_split_in_half_for_keys_of_every_kind() {
    let keys = [
        r#"{"paths":["/pk"],"kind":"Hash","version":1}"#,
        r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
        r#"{"paths":["/pk","/id"],"kind":"MultiHash","version":2}"#,
    ];
    for key in keys {
        let engine = with_key(key).await;
        for _ in 0..3 {
            let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
            engine.catalog.jobs().wait_ended(job).await.unwrap();
        }
        let at = admit(&engine, "c");
        assert_eq!(at.container().partitions.len(), 4);
        for n in 0..1200 {
            let (id, pk) = (n.to_string(), format!("p{}", n % 400));
            let key = match key.contains("MultiHash") {
                true => format!(r#"["{pk}","{id}"]"#),
                false => format!(r#"["{pk}"]"#),
            };
            let key = pleiad_model::partition_key::PartitionKey::parse(&key).unwrap();
            let options = WriteOptions::default();
            engine.create_item(&at, Some(&key), Verb::Create, item(&id, &pk), &options).await.result.unwrap();
        }
        let largest = items_per_partition(at.container()).into_iter().max().unwrap();
        assert!((240..480).contains(&largest), "{key}: {:?}", items_per_partition(at.container()));
        drop(at);
        let ranges = admit(&engine, "c").container().map.ranges().iter().map(|range| range.id).collect::<Vec<_>>();
        let job = engine.merge(at_container(&engine, C).unwrap(), &ranges).await.unwrap();
        engine.catalog.jobs().wait_ended(job).await.unwrap();
        let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
        engine.catalog.jobs().wait_ended(job).await.unwrap();
        let halves = items_per_partition(admit(&engine, "c").container());
        assert!(halves.len() == 2 && halves[0].abs_diff(halves[1]) < 60, "{halves:?}");
        assert_sound(&engine).await;
    }
}

#[tokio::test]
async fn a_partition_can_be_split_at_a_given_key() {
    let engine = with_key(r#"{"paths":["/pk"],"kind":"Hash","version":2}"#).await;
    let at = pleiad_model::partition_key::EffectiveKey::parse("10").unwrap();
    let job = engine.split(at_container(&engine, C).unwrap(), Some(0), Some(at.clone())).await.unwrap();
    let report = engine.catalog.jobs().wait_ended(job).await.unwrap();
    let job = report.task.repartition().unwrap();
    assert_eq!((job.kind, job.reason), (JobKind::Split, Reason::Request));
    assert_eq!(engine.partitions(&at_container(&engine, C).unwrap()).unwrap()[1].range.keys.min, at);
}
