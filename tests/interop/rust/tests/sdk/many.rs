//! A thousand concurrent requests.

use azure_data_cosmos::models::ThroughputProperties;
use futures::future::join_all;

use crate::support::*;

both!(a_thousand_creates_and_reads, of_a_thousand_creates_of_one_item_one_succeeds);

const MANY: usize = 1000;

async fn a_thousand_creates_and_reads(world: World) {
    let container = &world.make_with("/pk", Some(ThroughputProperties::manual(18_000))).await.unwrap();
    let creates = (0..MANY).map(|n| create(container, n, json!({"id": n.to_string(), "pk": n, "n": n})));
    for response in join_all(creates).await {
        response.unwrap();
    }
    let reads = (0..MANY).map(|n| async move { read(container, n, &n.to_string()).await.unwrap()["n"].clone() });
    let expected: Vec<Value> = (0..MANY).map(Value::from).collect();
    assert_eq!(join_all(reads).await, expected);
}

async fn of_a_thousand_creates_of_one_item_one_succeeds(world: World) {
    let container = &world.make("/pk").await;
    let creates = (0..MANY).map(|n| create(container, "a", json!({"id": "x", "pk": "a", "n": n})));
    let (first, others): (Vec<_>, Vec<_>) = join_all(creates).await.into_iter().partition(|response| response.is_ok());
    assert_eq!(first.len(), 1);
    for other in others {
        refused(other, 409);
    }
}
