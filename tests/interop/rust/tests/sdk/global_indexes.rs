//! Global secondary indexes, while source and index split. This SDK does not support them, and passes them on.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::ContainerProperties;

use crate::readings::ask;
use crate::support::*;

both!(an_index_is_filled_and_maintained_and_rejects_writes);

async fn in_city(index: &ContainerClient, city: &'static str) -> Vec<i64> {
    let rows = ask(index, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::partition(city)).await.unwrap();
    rows.iter().map(|n| n.as_i64().expect("a number")).collect()
}

async fn an_index_is_filled_and_maintained_and_rejects_writes(world: World) {
    let source = world.define(json!({})).await.unwrap();
    let cities = ["Rome", "Oslo", "Lima"];
    for n in 0..12 {
        let key = format!("c{}", n % 5);
        let item = json!({"id": n.to_string(), "pk": key, "city": cities[n % 3], "n": n});
        create(&source, key, item).await.unwrap();
    }
    let index = index_of(&world, &source).await;
    eventually(|| async { in_city(&index, "Rome").await == [0, 3, 6, 9] }).await;

    world.split(&source).await;
    upsert(&source, "c0", json!({"id": "0", "pk": "c0", "city": "Lima", "n": 0})).await.unwrap();
    delete(&source, "c3", "3").await.unwrap();
    eventually(|| async { in_city(&index, "Rome").await == [6, 9] }).await;
    eventually(|| async { in_city(&index, "Lima").await == [0, 2, 5, 8, 11] }).await;

    world.split(&index).await;
    create(&source, "new", json!({"id": "12", "pk": "new", "city": "Oslo", "n": 12})).await.unwrap();
    eventually(|| async { in_city(&index, "Oslo").await == [1, 4, 7, 10, 12] }).await;

    refused(create(&index, "Rome", json!({"id": "x", "city": "Rome"})).await, 403);
    refused(source.delete(None).await, 400);
    index.delete(None).await.unwrap();
}

async fn index_of(world: &World, source: &ContainerClient) -> ContainerClient {
    let source = source.read(None).await.unwrap().into_model().unwrap();
    let definition = json!({
        "id": unique("i"),
        "partitionKey": {"paths": ["/city"], "kind": "Hash", "version": 2},
        "globalSecondaryIndexDefinition": {
            "sourceCollectionId": source.id,
            "definition": "SELECT c.id, c.city, c.n FROM c",
        },
    });
    let properties: ContainerProperties = serde_json::from_value(definition).unwrap();
    let name = properties.id.to_string();
    world.database.create_container(properties, None).await.unwrap();
    world.database.container_client(name, None).await.unwrap()
}
