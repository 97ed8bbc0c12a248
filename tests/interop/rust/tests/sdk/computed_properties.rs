//! Computed properties: queries return them, items do not contain them. This SDK does not support them in a container's
//! definition, and passes them on.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;

use crate::readings::{ask, load};
use crate::support::*;

both!(
    in_where_and_order_by_over_all_partitions,
    in_group_by_of_one_key,
    items_do_not_contain_them,
    definitions_are_stored,
    an_invalid_definition_is_400
);

fn definition() -> Value {
    json!({
        "computedProperties": [
            {"name": "low", "query": "SELECT VALUE LOWER(c.name) FROM c"},
            {"name": "total", "query": "SELECT VALUE c.price * c.count FROM c"},
        ],
        "indexingPolicy": {
            "automatic": true, "indexingMode": "consistent",
            "includedPaths": [{"path": "/*"}, {"path": "/low/?"}, {"path": "/total/?"}],
        },
    })
}

async fn filled(world: &World) -> ContainerClient {
    let container = world.define(definition()).await.unwrap();
    let item = |n: i64| {
        let name = format!("{}{}", if n % 2 == 0 { "NAME" } else { "Name" }, n % 4);
        json!({"id": n.to_string(), "pk": (n % 7).to_string(), "name": name, "price": n, "count": 2})
    };
    let items: Vec<Value> = (0..40).map(item).collect();
    load(&container, &items, |item| item["pk"].as_str().unwrap_or_default().to_owned().into()).await;
    container
}

async fn check(container: &ContainerClient) {
    let all = FeedScope::full_container;
    let found = ask(container, "SELECT c.id, c.low FROM c WHERE c.low = 'name3'", all()).await.unwrap();
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|row| row["low"] == "name3"));
    let totals = ask(container, "SELECT VALUE c.total FROM c WHERE c.total >= 40 ORDER BY c.total DESC", all()).await;
    assert_eq!(totals.unwrap(), (20..40).rev().map(|n| json!(2 * n)).collect::<Vec<_>>());
}

async fn in_where_and_order_by_over_all_partitions(world: World) {
    let container = filled(&world).await;
    check(&container).await;
    world.split(&container).await;
    check(&container).await;
    world.merge(&container).await;
    check(&container).await;
}

async fn in_group_by_of_one_key(world: World) {
    let container = filled(&world).await;
    let text = "SELECT c.low, COUNT(1) AS n FROM c GROUP BY c.low";
    let mut rows = ask(&container, text, FeedScope::partition("3")).await.unwrap();
    rows.sort_by_key(|row| row["low"].to_string());
    let expected = [("name0", 1), ("name1", 1), ("name2", 2), ("name3", 2)];
    assert_eq!(rows, expected.map(|(low, n)| json!({"low": low, "n": n})));
}

async fn items_do_not_contain_them(world: World) {
    let container = filled(&world).await;
    assert!(read(&container, "3", "3").await.unwrap().get("low").is_none());
    let rows = ask(&container, "SELECT * FROM c", FeedScope::full_container()).await.unwrap();
    assert!(rows.len() == 40 && rows.iter().all(|row| row.get("low").is_none()));
}

/// A definition that is read, changed and sent back loses no property that this SDK does not support.
async fn definitions_are_stored(world: World) {
    let container = filled(&world).await;
    let read = container.read(None).await.unwrap().into_model().unwrap();
    let sent = serde_json::to_value(&read).unwrap();
    assert_eq!(sent["computedProperties"], definition()["computedProperties"]);
    let replaced = container.replace(read.with_default_ttl(1000), None).await.unwrap().into_model().unwrap();
    assert_eq!(serde_json::to_value(&replaced).unwrap()["computedProperties"], sent["computedProperties"]);
    check(&container).await;
}

async fn an_invalid_definition_is_400(world: World) {
    for query in ["SELECT c.b FROM c", "SELECT VALUE c.b FROM c WHERE true", "SELECT VALUE GetCurrentTicks() FROM c"] {
        let definition = json!({"computedProperties": [{"name": "a", "query": query}]});
        refused(world.define(definition).await, 400);
    }
}
