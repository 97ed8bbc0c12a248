//! Vector search: policies, the nearest first over several partitions, within one key and behind a split.

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
    policies_are_kept,
    the_nearest_come_first_over_all_partitions,
    one_partition_key,
    a_filter_an_offset_and_a_limit,
    what_is_no_vector_has_no_distance,
    a_direction_is_400,
    without_a_count_the_sdk_refuses_by_itself,
    a_split_changes_no_answer,
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

type Measure = fn([i64; 3], [i64; 3]) -> f64;

/// Each path, how it is measured, and whether more is nearer.
const MEASURES: [(&str, Measure, bool); 3] =
    [("c.near", euclidean, false), ("c.alike", cosine, true), ("c.o.dot", dot, true)];

fn wanted(measure: Measure, more_is_nearer: bool, keeps: impl Fn(i64) -> bool) -> Vec<f64> {
    let mut distances: Vec<f64> = (0..ITEMS).filter(|n| keeps(*n)).map(|n| measure(vector(n), TO)).collect();
    distances.sort_by(f64::total_cmp);
    if more_is_nearer {
        distances.reverse();
    }
    distances
}

#[track_caller]
fn close(got: &[Value], wanted: &[f64]) {
    assert_eq!(got.len(), wanted.len(), "{got:?} instead of {wanted:?}");
    for (got, wanted) in got.iter().zip(wanted) {
        assert!((got.as_f64().expect("a number") - wanted).abs() < 1e-6, "{got} instead of {wanted}");
    }
}

fn definition() -> ContainerProperties {
    let embedding = |path: &str, kind, measure| VectorEmbedding::new(path, kind, 3, measure);
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

/// Five partitions with ninety items that have vectors, and two that have none.
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
    for (path, measure, more) in MEASURES {
        let got = ask(container, distances(path, "TOP 10", ""), FeedScope::full_container()).await.unwrap();
        close(&got, &wanted(measure, more, |_| true)[..10]);
    }
}

async fn policies_are_kept(world: World) {
    let container = filled(&world).await;
    let read = container.read(None).await.unwrap().into_model().unwrap();
    let asked = definition();
    assert_eq!(read.vector_embedding_policy, asked.vector_embedding_policy);
    let kinds = |properties: &ContainerProperties| {
        let policy = properties.indexing_policy.as_ref().expect("a policy");
        policy.vector_indexes.iter().map(|index| (index.path.clone(), index.index_type.clone())).collect::<Vec<_>>()
    };
    assert!(kinds(&read) == kinds(&asked));
}

async fn the_nearest_come_first_over_all_partitions(world: World) {
    let container = filled(&world).await;
    assert_eq!(container.read_feed_ranges(None).await.unwrap().len(), 5);
    check_nearest(&container).await;
    let paged = ask_with(&container, distances("c.near", "TOP 25", ""), FeedScope::full_container(), pages_of(4)).await;
    close(&paged.unwrap(), &wanted(euclidean, false, |_| true)[..25]);
}

async fn one_partition_key(world: World) {
    let container = filled(&world).await;
    for (path, measure, more) in MEASURES {
        let got = ask(&container, distances(path, "TOP 50", ""), FeedScope::partition("3")).await.unwrap();
        close(&got, &wanted(measure, more, |n| n % 9 == 3));
    }
}

async fn a_filter_an_offset_and_a_limit(world: World) {
    let container = filled(&world).await;
    let filtered = distances("c.alike", "TOP 10", "WHERE c.n >= 60");
    let got = ask(&container, filtered, FeedScope::full_container()).await.unwrap();
    close(&got, &wanted(cosine, true, |n| n >= 60)[..10]);
    let distance = "VectorDistance(c.near, @v)";
    let text = format!("SELECT VALUE {distance} FROM c ORDER BY {distance} OFFSET 3 LIMIT 7");
    let got = ask(&container, query(&text), FeedScope::full_container()).await.unwrap();
    close(&got, &wanted(euclidean, false, |_| true)[3..10]);
}

async fn what_is_no_vector_has_no_distance(world: World) {
    let container = filled(&world).await;
    let text = "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(VectorDistance(c.near, @v)) ORDER BY c.id";
    let got = ask(&container, query(text), FeedScope::full_container()).await.unwrap();
    assert_eq!(got, ["none", "short"]);
}

async fn a_direction_is_400(world: World) {
    let container = filled(&world).await;
    let text = "SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.near, @v) DESC";
    refused(ask(&container, query(text), FeedScope::partition("3")).await, 400);
    refused(ask(&container, query(text), FeedScope::full_container()).await, 400);
}

/// It holds what it merges, so it must know how much that can be.
async fn without_a_count_the_sdk_refuses_by_itself(world: World) {
    let container = filled(&world).await;
    let refusal = ask(&container, distances("c.near", "", ""), FeedScope::full_container()).await.unwrap_err();
    assert!(status(&refusal).1 >= 20_000, "a sub-status of the client: {refusal}");
}

async fn a_split_changes_no_answer(world: World) {
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
