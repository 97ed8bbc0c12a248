//! A thousand requests at once.

use azure_data_cosmos::models::ThroughputProperties;
use futures::future::join_all;

use crate::support::*;

both!(a_thousand_creates_and_reads, of_a_thousand_who_create_one_item_one_is_first);

const MANY: usize = 1000;

async fn a_thousand_creates_and_reads(world: World) {
    let container = &world.make_with("/pk", Some(ThroughputProperties::manual(18_000))).await.unwrap();
    let creates = (0..MANY).map(|n| create(container, n, json!({"id": n.to_string(), "pk": n, "n": n})));
    for answer in join_all(creates).await {
        answer.unwrap();
    }
    let reads = (0..MANY).map(|n| async move { read(container, n, &n.to_string()).await.unwrap()["n"].clone() });
    let wanted: Vec<Value> = (0..MANY).map(Value::from).collect();
    assert_eq!(join_all(reads).await, wanted);
}

async fn of_a_thousand_who_create_one_item_one_is_first(world: World) {
    let container = &world.make("/pk").await;
    let creates = (0..MANY).map(|n| create(container, "a", json!({"id": "x", "pk": "a", "n": n})));
    let (first, others): (Vec<_>, Vec<_>) = join_all(creates).await.into_iter().partition(|answer| answer.is_ok());
    assert_eq!(first.len(), 1);
    for other in others {
        refused(other, 409);
    }
}
