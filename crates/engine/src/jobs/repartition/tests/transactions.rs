//! Transactional batches and delete by partition key while partitions are split and merged.

use super::*;
use crate::{BatchAction, BatchOperation, OperationOutcome, PageLimit};
use pleiad_model::Kind;

fn operation(action: BatchAction, id: Option<&str>) -> BatchOperation {
    let (key, options, known_etag) = Default::default();
    BatchOperation { action: Ok(action), id: id.map(str::to_owned), key, options, known_etag }
}

fn upsert(id: &str, key: &str, n: i64) -> BatchOperation {
    let body = Object::new().with("id", id).with("pk", key).with("n", n);
    operation(BatchAction::Upsert(body.into()), None)
}

/// Writes two items always together and checks that a reader of both finds them equal.
async fn write_pairs(engine: Arc<Engine>, key: String, stop: Arc<AtomicBool>) -> i64 {
    let (old, mut n) = (admit(&engine, "c"), 0);
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let newest = admit(&engine, "c");
        let at = if n % 2 == 0 { &newest } else { &old };
        let batch = [upsert("left", &key, n), upsert("right", &key, n)];
        let written = engine.run_batch(at, Some(&pk(&key)), &batch, None).await.result.unwrap();
        assert!(written.iter().all(|answer| answer.result.is_ok()), "{written:?}");
        let reads = ["left", "right"].map(|id| operation(BatchAction::Read, Some(id)));
        let read = engine.run_batch(&newest, Some(&pk(&key)), &reads, None).await.result.unwrap();
        for answer in read {
            let Ok(OperationOutcome::Read(record)) = answer.result else { panic!("{key}: {answer:?}") };
            assert!(
                record.body().ends_with(format!("\"n\":{n}}}").as_bytes()),
                "{key}: only half of the batch is visible"
            );
        }
        tokio::task::yield_now().await;
    }
    n
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s114_batches_stay_atomic_and_deleted_keys_stay_deleted() {
    let engine = one_partition().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..4).map(|n| tokio::spawn(write_pairs(engine.clone(), format!("pair {n}"), stop.clone()))).collect();
    let deleted_key = pk("7");
    engine.delete_by_partition_key(&admit(&engine, "c"), Some(&deleted_key)).await.result.unwrap();
    create(&engine, &admit(&engine, "c"), "new", "7").await.result.unwrap();
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    wait_published(&engine, job).await;
    let job = engine.merge(at_container(&engine, C).unwrap(), &[1, 2]).await.unwrap();
    wait_published(&engine, job).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        assert!(writer.await.unwrap() > 0);
    }
    let at = admit(&engine, "c");
    let quota = PageLimit { items: 1_000, bytes: 4 << 20 };
    let page =
        engine.list_items(&at, &crate::FeedRange::PartitionKey(deleted_key), None, quota, None).await.result.unwrap();
    assert_eq!(page.records.iter().map(|record| record.id()).collect::<Vec<_>>(), ["new"]);
    assert_eq!(crate::testing::kind(read(&engine, &at, "7", "7").await), Kind::NotFound);
}

async fn items_of(engine: &Engine, key: &str) -> usize {
    let (at, limit) = (admit(engine, "c"), PageLimit { items: 1_000, bytes: 4 << 20 });
    let page = engine.list_items(&at, &crate::FeedRange::PartitionKey(pk(key)), None, limit, None).await;
    page.result.unwrap().records.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_key_deleted_during_a_copy_disappears_at_once_and_stays_deleted() {
    const ITEMS: usize = 450;
    let engine = one_partition().await;
    for n in 0..ITEMS {
        create(&engine, &admit(&engine, "c"), &n.to_string(), "large").await.result.unwrap();
    }
    engine.catalog.jobs().hold(JobStep::CatchUp);
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    engine.catalog.jobs().wait_held_at(JobStep::CatchUp).await;
    let reader = tokio::spawn({
        let engine = engine.clone();
        async move {
            let mut seen = vec![items_of(&engine, "large").await];
            while seen.last() != Some(&0) {
                seen.push(items_of(&engine, "large").await);
            }
            seen
        }
    });
    engine.delete_by_partition_key(&admit(&engine, "c"), Some(&pk("large"))).await.result.unwrap();
    assert_eq!(items_of(&engine, "large").await, 0);
    let seen = reader.await.unwrap();
    assert!(seen.iter().all(|items| [0, ITEMS].contains(items)), "{seen:?}");
    engine.catalog.jobs().release(JobStep::CatchUp);
    wait_published(&engine, job).await;
    create(&engine, &admit(&engine, "c"), "new", "large").await.result.unwrap();
    assert_eq!(items_of(&engine, "large").await, 1);
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    drop(engine);
    let engine = reopen(store, ONE).await;
    assert_eq!(items_of(&engine, "large").await, 1);
}
