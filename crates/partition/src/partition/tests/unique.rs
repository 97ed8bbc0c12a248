//! Unique constraints: which writes may take a value, and when it becomes free again.

use super::*;
use crate::price;
use crate::testing::{unique_key, unique_schema};
use pleiad_model::Object;

async fn attempt(
    partition: &Partition,
    schema: &Schema,
    verb: Verb,
    target: &str,
    body: Value,
    ts_s: u32,
) -> Result<Written, Rejected> {
    let written = partition.write(schema, verb, &draft(schema, target, body), &Precondition::None, ts_s).await;
    written.map_err(WriteError::failed)
}

#[tokio::test]
async fn a_value_is_unique_in_a_logical_partition_and_free_after_a_delete() {
    let (store, schema) = (memory(), unique_schema("/n"));
    let partition = open(&store).await;
    create(&partition, &schema, "a", "1", 5).await.unwrap();
    create(&partition, &schema, "a", "2", 6).await.unwrap();
    create(&partition, &schema, "b", "1", 5).await.unwrap();
    let before = (rows(&store, 7).await, partition.shard_state());
    let rejected = [
        attempt(&partition, &schema, Verb::Create, "3", item("a", "3", 5), 7).await,
        attempt(&partition, &schema, Verb::Upsert, "3", item("a", "3", 5), 7).await,
        attempt(&partition, &schema, Verb::Upsert, "2", item("a", "2", 5), 7).await,
        attempt(&partition, &schema, Verb::Replace, "2", item("a", "2", 5), 7).await,
        attempt(&partition, &schema, Verb::Replace, "2", item("a", "9", 5), 7).await,
    ];
    for outcome in rejected {
        let error = outcome.unwrap_err().error;
        assert_eq!((error.kind, error.fact()), (Kind::Conflict, Some(&Fact::UniqueViolation)));
    }
    assert_eq!((rows(&store, 7).await, partition.shard_state()), before);
    // An item may keep its own value, also when it is renamed.
    write(&partition, &schema, Verb::Replace, "1", item("a", "9", 5), Precondition::None).await.unwrap();
    assert_eq!(create(&partition, &schema, "a", "3", 5).await.unwrap_err(), Kind::Conflict);
    write(&partition, &schema, Verb::Replace, "9", item("a", "9", 7), Precondition::None).await.unwrap();
    create(&partition, &schema, "a", "3", 5).await.unwrap();
    delete(&partition, &schema, "a", "3").await.unwrap();
    create(&partition, &schema, "a", "4", 5).await.unwrap();
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn one_of_many_concurrent_writers_gets_a_unique_value() {
    let (partition, schema) = (Arc::new(open(&memory()).await), Arc::new(unique_schema("/n")));
    let gate = Gate::close(&partition.committer);
    let tasks: Vec<_> = (0..16)
        .map(|id| {
            let (partition, schema) = (partition.clone(), schema.clone());
            tokio::spawn(async move { create(&partition, &schema, "a", &id.to_string(), 5).await.is_ok() })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(gate);
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(task.await.unwrap());
    }
    assert_eq!((winners, partition.shard_state().items), (1, 1));
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_expired_item_holds_no_unique_value() {
    let schema = Schema { default_ttl: Some(-1), ..unique_schema("/n") };
    let partition = open(&memory()).await;
    let expiring =
        |id: &str| -> Value { Object::new().with("id", id).with("pk", "a").with("n", 5i64).with("ttl", 10i64).into() };
    attempt(&partition, &schema, Verb::Create, "1", expiring("1"), 100).await.unwrap();
    assert!(attempt(&partition, &schema, Verb::Create, "2", expiring("2"), 110).await.is_err());
    attempt(&partition, &schema, Verb::Create, "2", expiring("2"), 111).await.unwrap();
    assert_eq!(partition.shard_state().items, 1, "the holder was removed in the same transaction");
    // The same with a replace, and with an expired item of the same id that holds the value itself.
    attempt(&partition, &schema, Verb::Create, "3", item("a", "3", 6), 111).await.unwrap();
    attempt(&partition, &schema, Verb::Replace, "3", expiring("3"), 130).await.unwrap();
    attempt(&partition, &schema, Verb::Create, "3", expiring("3"), 150).await.unwrap();
    assert_eq!(partition.shard_state().items, 1);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_item_deleted_by_key_holds_no_unique_value() {
    let (partition, schema) = (open(&memory()).await, unique_schema("/n"));
    create(&partition, &schema, "a", "1", 5).await.unwrap();
    partition.delete_by_partition_key(&schema, &key(&schema, "a", "").logical, 7).await.unwrap();
    create(&partition, &schema, "a", "2", 5).await.unwrap();
    assert_eq!(create(&partition, &schema, "a", "3", 5).await.unwrap_err(), Kind::Conflict);
    while partition.purge_deleted_keys(&schema, 7).await.unwrap() {}
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn every_claim_is_charged_like_an_index_term() {
    let (plain, unique) = (schema(&["/pk"]), Schema { unique: unique_key("/n"), ..schema(&["/pk"]) });
    let partition = open(&memory()).await;
    let charge = |outcome: Result<Written, Kind>| outcome.unwrap().charge_ru;
    let first = charge(create(&partition, &plain, "a", "1", 5).await);
    let second = charge(create(&partition, &unique, "b", "1", 5).await);
    assert!((second - first - price::TERM_RU).abs() < 1e-9, "{first} {second}");
}
