//! Proves: an ANN search returns existing items with their true distances; a graph is loaded from its rows.

use std::collections::BTreeMap;

use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Object, Value, json};
use pleiad_storage::AnyStore;

use super::persist::{decode_neighbours, decode_place, encode_neighbours, encode_place};
use super::*;
use crate::index::ComputedDefinitions;
use crate::partition::{Precondition, Verb};
use crate::schema::{Schema, SizeLimits};
use crate::testing::*;

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
        let docnum = self.partition.read(&key).await.unwrap().unwrap().docnum;
        self.partition.delete(&self.schema, &key, &Precondition::None, 6).await.unwrap();
        self.vectors.remove(&docnum);
    }

    fn rule(&self) -> &VectorRule {
        self.schema.usable_index().vectors().next().unwrap()
    }

    async fn tend(&self) {
        while self.partition.tend_sketches(&self.schema, usize::MAX, &mut || true).await.unwrap() {}
    }

    /// The recall of the ten nearest items of ANN searches.
    async fn recall(&self) -> f64 {
        let mut hits = 0;
        for seed in 0..30 {
            let to = vector(900_000 + seed);
            let wanted = VectorQuery { rule: self.rule(), function: DistanceFunction::Euclidean, to: &to };
            let view = self.partition.view().await.unwrap();
            let mut nears = self.partition.nearest_about(&view, wanted, 100).await.unwrap().expect("an ANN index");
            for near in &nears {
                let vector = &self.vectors[&near.docnum];
                assert_eq!(Some(near.distance), pleiad_vector::distance::distance(wanted.function, vector, &to));
            }
            nears.sort_by(|a, b| a.order(b, wanted.function));
            let mut all = view.nearest_of_all(wanted).await.unwrap().unwrap();
            assert_eq!(all.len(), self.vectors.len());
            all.sort_by(|a, b| a.order(b, wanted.function));
            hits += all.iter().take(10).filter(|near| nears.iter().take(10).any(|got| got == *near)).count();
        }
        hits as f64 / 300.0
    }
}

#[test]
fn rows_are_as_drawn() {
    assert_eq!(encode_neighbours(&[1, 2]), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(decode_neighbours(&encode_neighbours(&[7, 9])).collect::<Vec<_>>(), [7, 9]);
    assert_eq!(decode_neighbours(&[1, 2, 3]).count(), 0);
    let place = encode_place(812, DistanceFunction::Euclidean);
    assert_eq!(place, [0, 0, 0, 0, 0, 0, 3, 0x2c, 2]);
    assert_eq!(decode_place(&place, DistanceFunction::Euclidean).unwrap(), Some(812));
    assert_eq!(decode_place(&place, DistanceFunction::Cosine).unwrap(), None);
    assert!(decode_place(&[1, 2], DistanceFunction::Cosine).is_err());
}

#[tokio::test]
async fn few_vectors_need_no_sketch() {
    let mut world = World::open(&memory(), "diskANN").await;
    for id in 1..SKETCHED_ITEMS_MIN {
        world.put(id, id).await;
    }
    world.tend().await;
    assert!(!world.partition.has_sketch(world.rule()));
    world.put(SKETCHED_ITEMS_MIN, 5).await;
    world.tend().await;
    assert!(world.partition.has_sketch(world.rule()));
    let flat = World { schema: vector_schema("flat"), ..world };
    flat.tend().await;
    assert!(!flat.partition.has_sketch(flat.rule()));
}

#[tokio::test]
async fn a_sketch_sees_every_write_at_once_and_nothing_that_is_gone() {
    for kind in ["diskANN", "quantizedFlat"] {
        let store = memory();
        let mut world = World::open(&store, kind).await;
        for id in 1..=1_500 {
            world.put(id, id).await;
        }
        world.tend().await;
        assert!(world.recall().await > 0.97);
        // No maintenance from here on.
        for id in 1..=200 {
            world.put(id, 5_000 + id).await;
            world.delete(1_000 + id).await;
            world.put(2_000 + id, 7_000 + id).await;
        }
        assert!(world.recall().await > 0.95);
        world.tend().await;
        assert!(world.recall().await > 0.97);
        for id in 201..=700 {
            world.delete(id).await;
        }
        world.tend().await;
        world.tend().await;
        assert!(world.recall().await > 0.97);
        let report = world.partition.check(&world.schema).await.unwrap();
        assert_eq!(report.problems.count, 0, "{report:?}");

        // A restart loads the graph from its rows.
        world.put(9_999, 9_999).await;
        let again = World { schema: vector_schema(kind), partition: open(&store).await, vectors: world.vectors };
        let stops = &mut || kind == "quantizedFlat" || again.partition.lsn() == 0;
        let _ = again.partition.tend_sketches(&again.schema, usize::MAX, stops).await;
        again.tend().await;
        assert!(again.partition.has_sketch(again.rule()));
        assert!(again.recall().await > 0.97);
    }
}

#[tokio::test]
async fn a_policy_without_it_drops_a_graph_and_its_rows() {
    let store = memory();
    let mut world = World::open(&store, "diskANN").await;
    for id in 1..=1_100 {
        world.put(id, id).await;
    }
    world.tend().await;
    world.tend().await;
    let rule = world.rule().clone();
    assert!(world.partition.saved_lsn(&rule).await.unwrap().is_some());
    let world = World { schema: vector_schema("flat"), ..world };
    world.tend().await;
    assert!(!world.partition.has_sketch(&rule));
    assert_eq!(world.partition.saved_lsn(&rule).await.unwrap(), None);
}

#[tokio::test]
async fn who_is_told_to_stop_or_has_no_room_begins_nothing() {
    let mut world = World::open(&memory(), "diskANN").await;
    for id in 1..=1_100 {
        world.put(id, id).await;
    }
    assert!(!world.partition.tend_sketches(&world.schema, usize::MAX, &mut || false).await.unwrap());
    assert!(!world.partition.has_sketch(world.rule()));
    assert!(!world.partition.tend_sketches(&world.schema, 1_000, &mut || true).await.unwrap());
    assert!(!world.partition.has_sketch(world.rule()));
}
