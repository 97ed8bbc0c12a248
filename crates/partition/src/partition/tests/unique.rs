//! Unique constraints: which writes may take a value, and when it becomes free again.

use super::*;
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
    partition.write(schema, verb, &draft(schema, target, body), &Precondition::None, ts_s).await
}

#[tokio::test]
async fn a_value_is_taken_once_in_a_logical_partition_and_free_again_when_it_goes() {
    let (store, schema) = (memory(), unique_schema("/n"));
    let partition = open(&store).await;
    create(&partition, &schema, "a", "1", 5).await.unwrap();
    create(&partition, &schema, "a", "2", 6).await.unwrap();
    create(&partition, &schema, "b", "1", 5).await.unwrap();
    let before = (rows(&store, 7).await, partition.usage());
    let refused = [
        attempt(&partition, &schema, Verb::Create, "3", item("a", "3", 5), 7).await,
        attempt(&partition, &schema, Verb::Upsert, "3", item("a", "3", 5), 7).await,
        attempt(&partition, &schema, Verb::Upsert, "2", item("a", "2", 5), 7).await,
        attempt(&partition, &schema, Verb::Replace, "2", item("a", "2", 5), 7).await,
        attempt(&partition, &schema, Verb::Replace, "2", item("a", "9", 5), 7).await,
    ];
    for outcome in refused {
        let error = outcome.unwrap_err().error;
        assert_eq!((error.kind, error.message.as_str()), (Kind::Conflict, UNIQUE_TAKEN));
    }
    assert_eq!((rows(&store, 7).await, partition.usage()), before);
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
async fn of_many_who_want_a_value_at_once_one_gets_it() {
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
    assert_eq!((winners, partition.usage().items), (1, 1));
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_item_whose_time_is_over_holds_nothing() {
    let schema = Schema { default_ttl: Some(-1), ..unique_schema("/n") };
    let partition = open(&memory()).await;
    let mortal =
        |id: &str| -> Value { Object::new().with("id", id).with("pk", "a").with("n", 5i64).with("ttl", 10i64).into() };
    attempt(&partition, &schema, Verb::Create, "1", mortal("1"), 100).await.unwrap();
    assert!(attempt(&partition, &schema, Verb::Create, "2", mortal("2"), 110).await.is_err());
    attempt(&partition, &schema, Verb::Create, "2", mortal("2"), 111).await.unwrap();
    assert_eq!(partition.usage().items, 1, "the holder was removed in the same transaction");
    // The same with a replace, and with an expired item of the same id that holds the value itself.
    attempt(&partition, &schema, Verb::Create, "3", item("a", "3", 6), 111).await.unwrap();
    attempt(&partition, &schema, Verb::Replace, "3", mortal("3"), 130).await.unwrap();
    attempt(&partition, &schema, Verb::Create, "3", mortal("3"), 150).await.unwrap();
    assert_eq!(partition.usage().items, 1);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_item_that_was_erased_with_its_key_holds_nothing() {
    let (partition, schema) = (open(&memory()).await, unique_schema("/n"));
    create(&partition, &schema, "a", "1", 5).await.unwrap();
    partition.erase_key(&schema, &key(&schema, "a", "").logical, 7).await.unwrap();
    create(&partition, &schema, "a", "2", 5).await.unwrap();
    assert_eq!(create(&partition, &schema, "a", "3", 5).await.unwrap_err(), Kind::Conflict);
    while partition.sweep_erased(&schema, 7).await.unwrap() {}
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn every_claim_is_paid_for_like_a_term() {
    let (plain, twice) = (schema(&["/pk"]), Schema { unique: unique_key("/n"), ..schema(&["/pk"]) });
    let partition = open(&memory()).await;
    let paid = |outcome: Result<Written, Kind>| outcome.unwrap().charge_ru;
    let first = paid(create(&partition, &plain, "a", "1", 5).await);
    let second = paid(create(&partition, &twice, "b", "1", 5).await);
    assert!((second - first - price::TERM_RU).abs() < 1e-9, "{first} {second}");
}
