//! Time to live, also while the partition splits.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::TimeToLive;

use crate::readings::ask;
use crate::support::*;

both!(items_expire, an_invalid_time_to_live_is_400, the_default_is_stored_and_can_be_changed);

async fn ids(container: &ContainerClient) -> Vec<Value> {
    ask(container, "SELECT VALUE c.id FROM c ORDER BY c.id", FeedScope::full_container()).await.unwrap()
}

async fn items_expire(world: World) {
    let container = world.define(json!({"defaultTtl": 3})).await.unwrap();
    for n in 10..20 {
        let (id, key) = (n.to_string(), format!("key {n}"));
        create(&container, key.clone(), json!({"id": id, "pk": key})).await.unwrap();
        let (id, key) = (format!("stays {n}"), format!("key {n}"));
        create(&container, key.clone(), json!({"id": id, "pk": key, "ttl": -1})).await.unwrap();
    }
    world.split(&container).await;
    eventually(|| async { ids(&container).await.len() == 10 }).await;
    assert!(ids(&container).await.iter().all(|id| id.as_str().unwrap().starts_with("stays")));
    refused(read(&container, "key 11", "11").await, 404);
    refused(delete(&container, "key 11", "11").await, 404);
    create(&container, "key 11", json!({"id": "11", "pk": "key 11", "ttl": -1})).await.unwrap();
    assert_eq!(read(&container, "key 11", "11").await.unwrap()["id"], "11");
}

async fn an_invalid_time_to_live_is_400(world: World) {
    let container = world.define(json!({"defaultTtl": 5})).await.unwrap();
    for ttl in [json!(0), json!(-10), json!(null), json!("1")] {
        refused(create(&container, "a", json!({"id": "x", "pk": "a", "ttl": ttl})).await, 400);
    }
}

async fn the_default_is_stored_and_can_be_changed(world: World) {
    let container = world.define(json!({"defaultTtl": -1})).await.unwrap();
    let properties = container.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(properties.default_ttl, TimeToLive::NoDefault);
    container.replace(properties.with_default_ttl(1000), None).await.unwrap();
    let properties = container.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(properties.default_ttl, TimeToLive::Seconds(1000));
    container.replace(properties.with_default_ttl(TimeToLive::Forever), None).await.unwrap();
    assert!(container.read(None).await.unwrap().into_model().unwrap().default_ttl.is_forever());
}
