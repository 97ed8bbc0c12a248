//! Unique values within one transaction, and between two.

use super::*;
use crate::testing::unique_schema;

#[track_caller]
fn assert_unique_violation(step: Result<OperationEffect, Rejected>) {
    assert_eq!(step.unwrap_err().error.fact(), Some(&Fact::UniqueViolation));
}

#[tokio::test]
async fn a_released_value_can_be_claimed_in_the_same_transaction() {
    for latched in [false, true] {
        let (store, schema) = (memory(), unique_schema("/n"));
        let partition = open(&store).await;
        for (id, n) in [("a", 1), ("b", 2), ("c", 3)] {
            create(&partition, &schema, id, n).await;
        }
        let at = logical(&schema, "p");
        let mut tx = match latched {
            true => partition.begin_latched(&schema, at, NOW_S).await,
            false => partition.begin(&schema, at, NOW_S).await.unwrap(),
        };
        assert_unique_violation(put(&mut tx, &schema, Verb::Create, "d", 1).await);
        // Two items exchange their values through a third value, in both directions of their docnums.
        put(&mut tx, &schema, Verb::Replace, "a", 9).await.unwrap();
        put(&mut tx, &schema, Verb::Replace, "b", 1).await.unwrap();
        put(&mut tx, &schema, Verb::Replace, "a", 2).await.unwrap();
        assert_unique_violation(put(&mut tx, &schema, Verb::Create, "d", 2).await);
        tx.delete(&key(&schema, "p", "c"), &Precondition::None).await.unwrap();
        put(&mut tx, &schema, Verb::Create, "d", 3).await.unwrap();
        assert_unique_violation(put(&mut tx, &schema, Verb::Upsert, "e", 3).await);
        tx.commit().await.unwrap();
        let all = ["a", "b", "c", "d"].map(|id| read(&partition, &schema, id));
        let [a, b, c, d] = all;
        assert_eq!((a.await, b.await, c.await, d.await), (Some(2), Some(1), None, Some(3)));
        audit(&partition, &schema).await;
    }
}

#[tokio::test]
async fn the_first_committer_gets_a_unique_value() {
    let (store, schema) = (memory(), unique_schema("/n"));
    let partition = open(&store).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "mine", 5).await.unwrap();
    create(&partition, &schema, "theirs", 5).await;
    assert_eq!(tx.commit().await.unwrap_err().failed().error.kind, Kind::RetryWith);
    let mut again = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    assert_unique_violation(put(&mut again, &schema, Verb::Create, "mine", 5).await);
    put(&mut again, &schema, Verb::Create, "mine", 6).await.unwrap();
    again.commit().await.unwrap();
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn an_expired_holder_is_removed_in_the_same_transaction() {
    let schema = Schema { default_ttl: Some(10), ..unique_schema("/n") };
    let partition = open(&memory()).await;
    create(&partition, &schema, "old", 5).await;
    let mut tx = partition.begin(&schema, logical(&schema, "p"), NOW_S + 100).await.unwrap();
    put(&mut tx, &schema, Verb::Create, "new", 5).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((partition.shard_state().items, read(&partition, &schema, "old").await), (1, None));
    audit(&partition, &schema).await;
}
