//! Transactional batch and bulk as a client sees them.

use pleiad_model::{Consistency, Kind};
use std::sync::Arc;

use super::*;
use crate::testing::*;

async fn world() -> (Arc<Engine>, Admitted) {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    (engine, at)
}

fn operation(action: BatchAction, id: Option<&str>, key: Option<&str>) -> BatchOperation {
    let options = WriteOptions::default();
    BatchOperation { action: Ok(action), id: id.map(str::to_owned), key: key.map(pk), options, known_etag: None }
}

fn creates(ids: std::ops::Range<usize>, key: &str) -> Vec<BatchOperation> {
    ids.map(|id| operation(BatchAction::Create(item(&id.to_string(), key)), None, Some(key))).collect()
}

fn kinds(answers: &[BatchOperationResult]) -> Vec<Option<Kind>> {
    answers.iter().map(|answer| answer.result.as_ref().err().map(|error| error.kind)).collect()
}

#[tokio::test]
async fn a_batch_has_at_most_a_hundred_operations() {
    let (engine, at) = world().await;
    let answer = engine.run_batch(&at, Some(&pk("a")), &creates(0..100, "a"), None).await;
    assert!(answer.result.unwrap().iter().all(|answer| answer.result.is_ok()));
    assert_eq!(answer.served_by.unwrap().lsn, 2, "after the container's own LSN");
    assert_eq!(kind(engine.run_batch(&at, Some(&pk("b")), &creates(0..101, "b"), None).await), Kind::Invalid);
    assert_eq!(kind(engine.run_batch(&at, Some(&pk("b")), &[], None).await), Kind::Invalid);
    assert_eq!(kind(read(&engine, &at, "0", "b").await), Kind::NotFound);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn s114_a_failed_batch_writes_nothing_and_is_charged_for_its_work() {
    let (engine, at) = world().await;
    create(&engine, &at, "7", "a").await.result.unwrap();
    let answer = engine.run_batch(&at, Some(&pk("a")), &creates(0..10, "a"), None).await;
    let answers = answer.result.unwrap();
    let want: Vec<Option<Kind>> =
        (0..10).map(|n| Some(if n == 7 { Kind::Conflict } else { Kind::FailedDependency })).collect();
    assert_eq!(kinds(&answers), want);
    assert!(answer.charge_ru > 30.0, "{}", answer.charge_ru);
    assert_eq!(kind(read(&engine, &at, "0", "a").await), Kind::NotFound);
    assert_eq!(at.container().partitions.iter().map(|partition| partition.lsn()).max(), Some(2));
}

#[tokio::test]
async fn results_have_the_etags_of_the_items() {
    let (engine, at) = world().await;
    let operations = [
        operation(BatchAction::Create(item("1", "a")), None, None),
        operation(BatchAction::Read, Some("1"), None),
        operation(BatchAction::Replace(parse(r#"{"id":"1","pk":"a","n":1}"#)), Some("1"), None),
    ];
    let answers = engine.run_batch(&at, Some(&pk("a")), &operations, None).await.result.unwrap();
    let [
        Ok(OperationOutcome::Created(created)),
        Ok(OperationOutcome::Read(seen)),
        Ok(OperationOutcome::Replaced(replaced)),
    ] = [0, 1, 2].map(|at: usize| answers[at].result.as_ref())
    else {
        panic!("{answers:?}")
    };
    assert_eq!(created.etag(), seen.etag());
    assert_eq!(read(&engine, &at, "1", "a").await.result.unwrap().etag(), replaced.etag());
    assert_ne!(created.etag(), replaced.etag());
    let mut again = operation(BatchAction::Read, Some("1"), None);
    again.known_etag = Some(replaced.etag().to_string());
    let answers = engine.run_batch(&at, Some(&pk("a")), &[again], None).await.result.unwrap();
    assert!(matches!(answers[0].result, Ok(OperationOutcome::Unchanged(_))));
}

#[tokio::test]
async fn bulk_results_are_in_request_order() {
    let (engine, at) = world().await;
    create(&engine, &at, "3", "k3").await.result.unwrap();
    let operations: Vec<BatchOperation> = (0..20)
        .map(|n| {
            let key = format!("k{}", n % 7);
            operation(BatchAction::Create(item(&n.to_string(), &key)), None, Some(&key))
        })
        .collect();
    let answers = engine.run_bulk(&at, None, None, &operations, true, None).await.result.unwrap();
    let want: Vec<Option<Kind>> = (0..20).map(|n| (n == 3).then_some(Kind::Conflict)).collect();
    assert_eq!(kinds(&answers), want);
    assert_eq!(items_per_partition(at.container()).iter().sum::<u64>(), 20);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn bulk_for_one_key_rejects_other_keys() {
    let (engine, at) = world().await;
    let operations: Vec<BatchOperation> = ["a", "b"].iter().flat_map(|key| creates(0..1, key)).collect();
    let answers = engine.run_bulk(&at, Some(&pk("a")), None, &operations, true, None).await.result.unwrap();
    assert_eq!(kinds(&answers), [None, Some(Kind::KeyMismatch)]);
    assert_eq!(kind(read(&engine, &at, "0", "b").await), Kind::NotFound);
}

#[tokio::test]
async fn bulk_preserves_the_order_within_a_key() {
    let (engine, at) = world().await;
    let operations = [
        operation(BatchAction::Create(item("1", "a")), None, Some("a")),
        operation(BatchAction::Delete, Some("1"), Some("a")),
        operation(BatchAction::Create(parse(r#"{"id":"1","pk":"a","n":2}"#)), None, Some("a")),
    ];
    let answers = engine.run_bulk(&at, None, None, &operations, true, None).await.result.unwrap();
    assert_eq!(kinds(&answers), [None, None, None]);
    assert_eq!(read(&engine, &at, "1", "a").await.result.unwrap().body(), br#"{"id":"1","pk":"a","n":2}"#);
}

#[tokio::test]
async fn bulk_is_throttled_operation_by_operation() {
    let (engine, _) = governed(LIMITS.governance).await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    while create(&engine, &at, &engine.random_u64().to_string(), "a").await.result.is_ok() {}
    let operations: Vec<BatchOperation> = ["a", "b", "c", "d"].iter().flat_map(|key| creates(0..1, key)).collect();
    let answers = engine.run_bulk(&at, None, None, &operations, true, None).await.result.unwrap();
    assert!(matches!(kinds(&answers)[0], Some(Kind::Throttled { .. })), "{answers:?}");
    assert!(kinds(&answers).contains(&None), "{answers:?}");
}

#[tokio::test]
async fn a_batch_in_a_fixed_container_reaches_all_items() {
    let engine = account().await;
    let definition = pleiad_model::policy::ContainerDefinition::create(&parse(r#"{"id":"c"}"#));
    let Ok(definition) = definition else { return };
    let database = find_database(&engine, "db").unwrap().rid;
    let new = crate::catalog::NewContainer { definition, throughput: crate::ThroughputRequest::Unspecified };
    engine.catalog.create_container(database, new).await.unwrap();
    let at = admit(&engine, "c");
    let operations = [
        operation(BatchAction::Create(item("1", "a")), None, None),
        operation(BatchAction::Create(item("2", "b")), None, None),
    ];
    let answers = engine.run_batch(&at, None, &operations, None).await.result.unwrap();
    assert_eq!(kinds(&answers), [None, None]);
}

/// A read of a missing item costs more at a stronger consistency level, as a read of an existing one does.
#[tokio::test]
async fn reads_of_missing_items_are_charged_by_consistency_level() {
    let (engine, at) = world().await;
    for (level, wanted_ru) in [(Consistency::Session, price::MISS_RU), (Consistency::Strong, 2.0 * price::MISS_RU)] {
        let at = at.clone().reading_at(level);
        let missing = [operation(BatchAction::Read, Some("none"), Some("a"))];
        let batch = engine.run_batch(&at, Some(&pk("a")), &missing, None).await;
        let bulk = engine.run_bulk(&at, None, None, &missing, true, None).await;
        for answer in [batch, bulk] {
            let charged = (answer.charge_ru, answer.result.unwrap()[0].charge_ru);
            assert_eq!(charged, (wanted_ru, wanted_ru), "{level:?}");
        }
    }
}
