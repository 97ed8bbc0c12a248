//! Proves: an ANN search returns existing items with their true distances; a graph is loaded from its rows.

use std::collections::BTreeMap;

use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Object, Value, json};
use pleiad_storage::{AnyStore, Blocking};

use super::persist::{decode_neighbors, decode_position, encode_neighbors, encode_position};
use super::*;
use crate::index::ComputedDefinitions;
use crate::partition::{Precondition, Verb};
use crate::schema::{Schema, SizeLimits};
use crate::testing::*;
use crate::ttl::Expiry;

const DIMENSIONS: usize = 16;

fn vector_schema(kind: &str) -> Schema {
    let body = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},
            "vectorEmbeddingPolicy":{{"vectorEmbeddings":[{{"path":"/v","dimensions":{DIMENSIONS},"distanceFunction":"euclidean"}}]}},
            "indexingPolicy":{{"vectorIndexes":[{{"path":"/v","type":"{kind}"}}],"includedPaths":[{{"path":"/*"}}],"excludedPaths":[{{"path":"/v/*"}}]}}}}"#
    );
    let definition = ContainerDefinition::create(&json::parse(body.as_bytes()).unwrap()).unwrap();
    Schema::new(1, &definition, &ComputedDefinitions::default(), &[], SizeLimits::UNLIMITED)
}

/// A pseudo-random vector: the same seed gives the same vector.
fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 44) as f32 / 1024.0
    };
    (0..DIMENSIONS).map(|_| next()).collect()
}

struct World {
    schema: Schema,
    partition: Partition,
    vectors: BTreeMap<u64, Vec<f32>>,
}

impl World {
    async fn open(store: &Arc<AnyStore>, kind: &str) -> World {
        World { schema: vector_schema(kind), partition: open(store).await, vectors: BTreeMap::new() }
    }

    async fn put(&mut self, id: u64, seed: u64) {
        let v = Value::Array(vector(seed).iter().map(|e| Value::from(f64::from(*e))).collect());
        let body = Object::new().with("id", id.to_string()).with("pk", "a").with("v", v);
        let draft = draft(&self.schema, &id.to_string(), body.into());
        let written = self.partition.write(&self.schema, Verb::Upsert, &draft, &Precondition::None, 5).await;
        let docnum = written.unwrap().record.unwrap().docnum;
        self.vectors.insert(docnum, vector(seed));
    }

    async fn delete(&mut self, id: u64) {
        let key = key(&self.schema, "a", &id.to_string());
        let docnum = self.partition.read(&key, Expiry::NEVER).await.unwrap().unwrap().docnum;
        self.partition.delete(&self.schema, &key, &Precondition::None, 6).await.unwrap();
        self.vectors.remove(&docnum);
    }

    fn rule(&self) -> &VectorRule {
        self.schema.usable_index().vectors().next().unwrap()
    }

    async fn maintain(&self) {
        while self.partition.maintain_vector_indexes(&self.schema, usize::MAX, &mut || true).await.unwrap() {}
    }

    /// The recall of the ten nearest items of ANN searches.
    async fn recall(&self) -> f64 {
        let mut hits = 0;
        for seed in 0..30 {
            let to = vector(900_000 + seed);
            let query = VectorQuery { rule: self.rule(), function: DistanceFunction::Euclidean, vector: &to };
            let view = self.partition.snapshot(Blocking::Suspend).await.unwrap();
            let mut neighbors = self.partition.ann_search(&view, query, 100).await.unwrap().expect("an ANN index");
            for neighbor in &neighbors {
                let vector = &self.vectors[&neighbor.docnum];
                assert_eq!(Some(neighbor.distance), pleiad_vector::distance::distance(query.function, vector, &to));
            }
            neighbors.sort_by(|a, b| a.order(b, query.function));
            let mut all = view.distances_of_all(query).await.unwrap().unwrap();
            assert_eq!(all.len(), self.vectors.len());
            all.sort_by(|a, b| a.order(b, query.function));
            hits +=
                all.iter().take(10).filter(|neighbor| neighbors.iter().take(10).any(|got| got == *neighbor)).count();
        }
        hits as f64 / 300.0
    }
}

#[test]
fn encoding_matches_the_documented_layout() {
    assert_eq!(encode_neighbors(&[1, 2]), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(decode_neighbors(&encode_neighbors(&[7, 9])).collect::<Vec<_>>(), [7, 9]);
    assert_eq!(decode_neighbors(&[1, 2, 3]).count(), 0);
    let position = encode_position(812, DistanceFunction::Euclidean);
    assert_eq!(position, [0, 0, 0, 0, 0, 0, 3, 0x2c, 2]);
    assert_eq!(decode_position(&position, DistanceFunction::Euclidean).unwrap(), Some(812));
    assert_eq!(decode_position(&position, DistanceFunction::Cosine).unwrap(), None);
    assert!(decode_position(&[1, 2], DistanceFunction::Cosine).is_err());
}

#[tokio::test]
async fn few_vectors_need_no_ann_index() {
    let mut world = World::open(&memory(), "diskANN").await;
    for id in 1..INDEXED_VECTORS_MIN {
        world.put(id, id).await;
    }
    world.maintain().await;
    assert!(!world.partition.has_ann_index(world.rule()));
    world.put(INDEXED_VECTORS_MIN, 5).await;
    world.maintain().await;
    assert!(world.partition.has_ann_index(world.rule()));
    let flat = World { schema: vector_schema("flat"), ..world };
    flat.maintain().await;
    assert!(!flat.partition.has_ann_index(flat.rule()));
}

#[tokio::test]
async fn a_search_sees_every_write_immediately_and_no_deleted_item() {
    for kind in ["diskANN", "quantizedFlat"] {
        let store = memory();
        let mut world = World::open(&store, kind).await;
        for id in 1..=1_500 {
            world.put(id, id).await;
        }
        world.maintain().await;
        assert!(world.recall().await > 0.97);
        // No maintenance from here on.
        for id in 1..=200 {
            world.put(id, 5_000 + id).await;
            world.delete(1_000 + id).await;
            world.put(2_000 + id, 7_000 + id).await;
        }
        assert!(world.recall().await > 0.95);
        world.maintain().await;
        assert!(world.recall().await > 0.97);
        for id in 201..=700 {
            world.delete(id).await;
        }
        world.maintain().await;
        world.maintain().await;
        assert!(world.recall().await > 0.97);
        let report = world.partition.check(&world.schema).await.unwrap();
        assert_eq!(report.problems.count, 0, "{report:?}");

        // A restart loads the graph from its rows.
        world.put(9_999, 9_999).await;
        let again = World { schema: vector_schema(kind), partition: open(&store).await, vectors: world.vectors };
        let stops = &mut || kind == "quantizedFlat" || again.partition.lsn() == 0;
        let _ = again.partition.maintain_vector_indexes(&again.schema, usize::MAX, stops).await;
        again.maintain().await;
        assert!(again.partition.has_ann_index(again.rule()));
        assert!(again.recall().await > 0.97);
    }
}

#[tokio::test]
async fn a_policy_without_the_index_drops_the_graph_and_its_rows() {
    let store = memory();
    let mut world = World::open(&store, "diskANN").await;
    for id in 1..=1_100 {
        world.put(id, id).await;
    }
    world.maintain().await;
    world.maintain().await;
    let rule = world.rule().clone();
    assert!(world.partition.saved_lsn(&rule).await.unwrap().is_some());
    let world = World { schema: vector_schema("flat"), ..world };
    world.maintain().await;
    assert!(!world.partition.has_ann_index(&rule));
    assert_eq!(world.partition.saved_lsn(&rule).await.unwrap(), None);
}

#[tokio::test]
async fn nothing_is_built_when_cancelled_or_over_the_memory_budget() {
    let mut world = World::open(&memory(), "diskANN").await;
    for id in 1..=1_100 {
        world.put(id, id).await;
    }
    assert!(!world.partition.maintain_vector_indexes(&world.schema, usize::MAX, &mut || false).await.unwrap());
    assert!(!world.partition.has_ann_index(world.rule()));
    assert!(!world.partition.maintain_vector_indexes(&world.schema, 1_000, &mut || true).await.unwrap());
    assert!(!world.partition.has_ann_index(world.rule()));
}
