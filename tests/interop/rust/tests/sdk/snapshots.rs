//! Snapshots of the whole account, and copies of a database: a client works across restores, whatever it has cached.
//! This test uses a separate server, and no other test runs at the same time: a restore replaces all data of the
//! account.

use azure_core::http::Method;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::{AccountReference, CosmosClient};

use crate::management::manage;
use crate::readings::ask;
use crate::support::*;

async fn request(endpoint: &str, method: Method, path: String, body: Option<Value>) -> Value {
    manage(endpoint, method, &path, body).await
}

/// Reads the items by query and by point reads; both must agree.
async fn everything(container: &ContainerClient) -> Vec<Value> {
    let ordered = ask(container, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::full_container()).await.unwrap();
    for n in ordered.iter().map(|n| n.as_i64().unwrap()) {
        assert_eq!(read(container, (n % 5).to_string(), &n.to_string()).await.unwrap()["n"], n);
    }
    ordered
}

fn restored() -> Vec<Value> {
    (0..20).map(Value::from).collect()
}

#[test]
fn a_client_sees_the_same_data_after_restores_and_in_copies() {
    let Ok(endpoint) = std::env::var("PLEIAD_ENDPOINT_RESTORED") else {
        return eprintln!("skipped: no server for restores was given");
    };
    block_on(async move {
        let account = AccountReference::with_authentication_key(endpoint.parse().expect("a URL"), key());
        let client = connect_as(account, CosmosClient::builder()).await.unwrap();
        let name = unique("rust");
        client.create_database(&name, None).await.unwrap();
        let database = client.database_client(name.clone());
        let properties = azure_data_cosmos::models::ContainerProperties::new("orders", "/pk".into());
        database.create_container(properties, None).await.unwrap();
        let orders = database.container_client("orders", None).await.unwrap();
        for n in 0..20 {
            let key = (n % 5).to_string();
            create(&orders, key.clone(), json!({"id": n.to_string(), "pk": key, "n": n})).await.unwrap();
        }
        copies(&endpoint, &client, &name, &orders).await;
        restores(&endpoint, &name, &orders).await;
        database.delete(None).await.unwrap();
    });
}

async fn restores(endpoint: &str, database: &str, orders: &ContainerClient) {
    let snapshot = unique("clean");
    request(endpoint, Method::Put, format!("snapshots/{snapshot}"), None).await;
    for round in 0..10 {
        create(orders, "0", json!({"id": "100", "pk": "0", "n": 100})).await.unwrap();
        delete(orders, "2", "2").await.unwrap();
        if round % 2 == 1 {
            let path = format!("containers/{database}/orders/partitions/split?wait=true");
            request(endpoint, Method::Post, path, Some(json!({}))).await;
            create(orders, "1", json!({"id": "101", "pk": "1", "n": 101})).await.unwrap();
        }
        request(endpoint, Method::Post, format!("snapshots/{snapshot}/restore"), None).await;
        assert_eq!(everything(orders).await, restored(), "round {round}");
    }
    request(endpoint, Method::Delete, format!("snapshots/{snapshot}"), None).await;
}

async fn copies(endpoint: &str, client: &CosmosClient, database: &str, orders: &ContainerClient) {
    let name = unique("copy");
    let path = format!("databases/{database}/copy?wait=true");
    let done = request(endpoint, Method::Post, path, Some(json!({"to": name}))).await;
    assert_eq!(done["status"], "done");
    let copy = client.database_client(name.clone());
    let copied = copy.container_client("orders", None).await.unwrap();
    assert_eq!(everything(&copied).await, restored());
    delete(&copied, "3", "3").await.unwrap();
    assert_eq!(read(orders, "3", "3").await.unwrap()["n"], 3);
    copy.delete(None).await.unwrap();
}
