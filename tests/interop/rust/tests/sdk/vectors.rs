//! Vector search: policies, ordering by distance over several partitions, within one key and after a split.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{
    ContainerProperties, IndexingPolicy, VectorDataType, VectorDistanceFunction, VectorEmbedding,
    VectorEmbeddingPolicy, VectorIndex, VectorIndexType,
};
use azure_data_cosmos::options::CreateContainerOptions;
use azure_data_cosmos::{models::ThroughputProperties, Query};

use crate::readings::{ask, ask_with, load, pages_of};
use crate::support::*;

both!(
    policies_are_stored,
    rows_are_ordered_by_distance_over_all_partitions,
    one_partition_key,
    a_filter_an_offset_and_a_limit,
    an_invalid_vector_has_no_distance,
    a_sort_direction_is_400,
    without_a_limit_the_sdk_returns_an_error,
    splits_and_merges_do_not_change_the_results,
);

const ITEMS: i64 = 90;
const TO: [i64; 3] = [3, 4, 5];

fn vector(n: i64) -> [i64; 3] {
    [n % 7 + 1, n * 5 % 11, n * 3 % 13]
}

fn item(n: i64) -> Value {
    json!({"id": n.to_string(), "pk": (n % 9).to_string(), "n": n, "near": vector(n), "alike": vector(n), "o": {"dot": vector(n)}})
}

fn dot(a: [i64; 3], b: [i64; 3]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x * y) as f64).sum()
}

fn euclidean(a: [i64; 3], b: [i64; 3]) -> f64 {
    a.iter().zip(b).map(|(x, y)| ((x - y) * (x - y)) as f64).sum::<f64>().sqrt()
}

fn cosine(a: [i64; 3], b: [i64; 3]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

type Metric = fn([i64; 3], [i64; 3]) -> f64;

/// Each path, its metric, and whether a larger value is nearer.
const METRICS: [(&str, Metric, bool); 3] =
    [("c.near", euclidean, false), ("c.alike", cosine, true), ("c.o.dot", dot, true)];

fn expected(metric: Metric, more_is_nearer: bool, predicate: impl Fn(i64) -> bool) -> Vec<f64> {
    let mut distances: Vec<f64> = (0..ITEMS).filter(|n| predicate(*n)).map(|n| metric(vector(n), TO)).collect();
    distances.sort_by(f64::total_cmp);
    if more_is_nearer {
        distances.reverse();
    }
    distances
}

#[track_caller]
fn close(got: &[Value], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{got:?} instead of {expected:?}");
    for (got, expected) in got.iter().zip(expected) {
        assert!((got.as_f64().expect("a number") - expected).abs() < 1e-6, "{got} instead of {expected}");
    }
}

fn definition() -> ContainerProperties {
    let embedding = |path: &str, kind, metric| VectorEmbedding::new(path, kind, 3, metric);
    let embeddings = VectorEmbeddingPolicy::default()
        .with_embedding(embedding("/near", VectorDataType::Float32, VectorDistanceFunction::Euclidean))
        .with_embedding(embedding("/alike", VectorDataType::Float32, VectorDistanceFunction::Cosine))
        .with_embedding(embedding("/o/dot", VectorDataType::Int8, VectorDistanceFunction::DotProduct));
    let indexing = IndexingPolicy::default()
        .with_included_path("/*")
        .with_excluded_path("/near/*")
        .with_excluded_path("/alike/*")
        .with_excluded_path("/o/dot/*")
        .with_vector_index(VectorIndex::new("/near", VectorIndexType::Flat))
        .with_vector_index(VectorIndex::new("/alike", VectorIndexType::DiskANN))
        .with_vector_index(VectorIndex::new("/o/dot", VectorIndexType::QuantizedFlat));
    ContainerProperties::new(unique("vectors"), "/pk".into())
        .with_vector_embedding_policy(embeddings)
        .with_indexing_policy(indexing)
}

/// Five partitions with ninety items that have vectors, and two items without one.
async fn filled(world: &World) -> ContainerClient {
    let properties = definition();
    let name = properties.id.to_string();
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(30_000));
    world.database.create_container(properties, Some(options)).await.unwrap();
    let container = world.database.container_client(name, None).await.unwrap();
    let mut items: Vec<Value> = (0..ITEMS).map(item).collect();
    items.push(json!({"id": "none", "pk": "none", "n": -1}));
    items.push(json!({"id": "short", "pk": "short", "n": -1, "near": [1, 2]}));
    load(&container, &items, |item| item["pk"].as_str().unwrap_or_default().to_owned().into()).await;
    container
}

fn query(text: &str) -> Query {
    Query::from(text).with_parameter("@v", TO).unwrap()
}

fn distances(path: &str, head: &str, tail: &str) -> Query {
    let distance = format!("VectorDistance({path}, @v)");
    query(&format!("SELECT {head} VALUE {distance} FROM c {tail} ORDER BY {distance}"))
}

async fn check_nearest(container: &ContainerClient) {
    for (path, metric, more) in METRICS {
        let got = ask(container, distances(path, "TOP 10", ""), FeedScope::full_container()).await.unwrap();
        close(&got, &expected(metric, more, |_| true)[..10]);
    }
}

async fn policies_are_stored(world: World) {
    let container = filled(&world).await;
    let read = container.read(None).await.unwrap().into_model().unwrap();
    let defined = definition();
    assert_eq!(read.vector_embedding_policy, defined.vector_embedding_policy);
    let kinds = |properties: &ContainerProperties| {
        let policy = properties.indexing_policy.as_ref().expect("a policy");
        policy.vector_indexes.iter().map(|index| (index.path.clone(), index.index_type.clone())).collect::<Vec<_>>()
    };
    assert!(kinds(&read) == kinds(&defined));
}

async fn rows_are_ordered_by_distance_over_all_partitions(world: World) {
    let container = filled(&world).await;
    assert_eq!(container.read_feed_ranges(None).await.unwrap().len(), 5);
    check_nearest(&container).await;
    let paged = ask_with(&container, distances("c.near", "TOP 25", ""), FeedScope::full_container(), pages_of(4)).await;
    close(&paged.unwrap(), &expected(euclidean, false, |_| true)[..25]);
}

async fn one_partition_key(world: World) {
    let container = filled(&world).await;
    for (path, metric, more) in METRICS {
        let got = ask(&container, distances(path, "TOP 50", ""), FeedScope::partition("3")).await.unwrap();
        close(&got, &expected(metric, more, |n| n % 9 == 3));
    }
}

async fn a_filter_an_offset_and_a_limit(world: World) {
    let container = filled(&world).await;
    let filtered = distances("c.alike", "TOP 10", "WHERE c.n >= 60");
    let got = ask(&container, filtered, FeedScope::full_container()).await.unwrap();
    close(&got, &expected(cosine, true, |n| n >= 60)[..10]);
    let distance = "VectorDistance(c.near, @v)";
    let text = format!("SELECT VALUE {distance} FROM c ORDER BY {distance} OFFSET 3 LIMIT 7");
    let got = ask(&container, query(&text), FeedScope::full_container()).await.unwrap();
    close(&got, &expected(euclidean, false, |_| true)[3..10]);
}

async fn an_invalid_vector_has_no_distance(world: World) {
    let container = filled(&world).await;
    let text = "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(VectorDistance(c.near, @v)) ORDER BY c.id";
    let got = ask(&container, query(text), FeedScope::full_container()).await.unwrap();
    assert_eq!(got, ["none", "short"]);
}

async fn a_sort_direction_is_400(world: World) {
    let container = filled(&world).await;
    let text = "SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.near, @v) DESC";
    refused(ask(&container, query(text), FeedScope::partition("3")).await, 400);
    refused(ask(&container, query(text), FeedScope::full_container()).await, 400);
}

/// It merges in memory, so it needs a limit.
async fn without_a_limit_the_sdk_returns_an_error(world: World) {
    let container = filled(&world).await;
    let error = ask(&container, distances("c.near", "", ""), FeedScope::full_container()).await.unwrap_err();
    assert!(status(&error).1 >= 20_000, "a sub-status of the client: {error}");
}

async fn splits_and_merges_do_not_change_the_results(world: World) {
    let container = filled(&world).await;
    check_nearest(&container).await;
    world.split(&container).await;
    check_nearest(&container).await;
    let mut moved = item(3);
    moved["near"] = json!([-50, -50, -50]);
    upsert(&container, "3", moved).await.unwrap();
    world.split(&container).await;
    let text = "SELECT TOP 1 VALUE c.id FROM c ORDER BY VectorDistance(c.near, [-50, -50, -49])";
    assert_eq!(ask(&container, text, FeedScope::full_container()).await.unwrap(), ["3"]);
    world.merge(&container).await;
    assert_eq!(ask(&container, text, FeedScope::full_container()).await.unwrap(), ["3"]);
}
