//! The items of all query tests, and helpers that compute the expected results in plain Rust.
//!
//! They are in a container with five partitions under 23 keys. `mixed` has every JSON type in turn, and is missing from
//! one item in eight. Expected results are computed from these items and never typed by hand.

use std::cmp::Ordering;
use std::num::NonZeroU32;

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ContainerProperties, IndexingPolicy, PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::{CreateContainerOptions, MaxItemCountHint, QueryOptions};
use azure_data_cosmos::{Query, Result};
use futures::future::join_all;
use futures::TryStreamExt;

use crate::support::*;

pub const RANGES: usize = 5;
pub const ONE_KEY: &str = "device 7";
const KINDS: [&str; 3] = ["humidity", "pressure", "temperature"];
const THROUGHPUT: u64 = 6_000 * RANGES as u64;

pub fn readings() -> Vec<Value> {
    (0..240).map(reading).collect()
}

pub fn of_one_key() -> Vec<Value> {
    readings().into_iter().filter(|item| item["pk"] == ONE_KEY).collect()
}

fn reading(n: usize) -> Value {
    let tags = ["cold", "new", "loud", "blue", "far"];
    let mut item = json!({
        "id": format!("{n:04}"),
        "pk": format!("device {}", n % 23),
        "n": n,
        "metric": (n * 37 % 101) as f64 / 4.0,
        "kind": KINDS[n % 3],
        "floor": n % 5,
        "on": n % 2 == 0,
        "tags": (0..n % 4).map(|step| tags[(n + step) % 5]).collect::<Vec<_>>(),
        "place": {"city": format!("city {}", n % 7), "geo": {"x": n % 10, "y": -(n as i64)}},
    });
    let values =
        [json!(null), json!(false), json!(true), json!(n), json!(format!("text {n}")), json!([n]), json!({"n": n})];
    if n % 8 != 0 {
        item["mixed"] = values[n % 8 - 1].clone();
    }
    item
}

impl World {
    /// The readings in five partitions.
    pub async fn readings(&self) -> ContainerClient {
        let container = self.make_indexed("/pk", policy()).await;
        load(&container, &readings(), |item| item["pk"].as_str().unwrap_or_default().to_owned().into()).await;
        container
    }

    pub async fn make_indexed(
        &self,
        key: impl Into<PartitionKeyDefinition>,
        policy: IndexingPolicy,
    ) -> ContainerClient {
        let name = unique("c");
        let properties = ContainerProperties::new(name.clone(), key.into()).with_indexing_policy(policy);
        let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(THROUGHPUT));
        self.database.create_container(properties, Some(options)).await.expect("a container");
        self.database.container_client(name, None).await.expect("the container")
    }
}

pub async fn load(
    container: &ContainerClient,
    items: &[Value],
    key: impl Fn(&Value) -> azure_data_cosmos::PartitionKey,
) {
    for some in items.chunks(40) {
        for response in join_all(some.iter().map(|item| create(container, key(item), item.clone()))).await {
            response.expect("an item");
        }
    }
}

/// ORDER BY returns items without the property only when its path is included by name.
fn policy() -> IndexingPolicy {
    serde_json::from_value(json!({
        "automatic": true,
        "indexingMode": "consistent",
        "includedPaths": [{"path": "/*"}, {"path": "/mixed/?"}],
        "compositeIndexes": [
            [{"path": "/kind", "order": "ascending"}, {"path": "/metric", "order": "descending"}],
            [{"path": "/floor", "order": "ascending"}, {"path": "/n", "order": "ascending"}],
        ],
    }))
    .expect("a policy")
}

/// All rows of a query.
pub async fn ask(container: &ContainerClient, query: impl Into<Query>, scope: FeedScope) -> Result<Vec<Value>> {
    container.query_items::<Value>(query, scope, None).await?.try_collect().await
}

pub async fn ask_with(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
    options: QueryOptions,
) -> Result<Vec<Value>> {
    container.query_items::<Value>(query, scope, Some(options)).await?.try_collect().await
}

pub fn pages_of(rows: u32) -> QueryOptions {
    QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(NonZeroU32::new(rows).expect("not 0")))
}

/// For rows whose order is not guaranteed. (serde_json keeps the members of an object sorted.)
pub fn bag(rows: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut texts: Vec<String> = rows.into_iter().map(|row| in_floats(row).to_string()).collect();
    texts.sort_unstable();
    texts
}

/// 1 and 1.0 are one number to the database, and two to serde_json.
pub fn in_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(values) => values.into_iter().map(in_floats).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, in_floats(value))).collect(),
        other => other,
    }
}

/// The order of values of one type, and of types among themselves. Missing members read as null here, so a test about
/// them checks for itself.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).expect("a number"),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}
