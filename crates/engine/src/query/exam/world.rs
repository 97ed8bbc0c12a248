//! Random worlds: items in an account, with random policies, partition keys and partitions.

use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pleiad_model::env::Env;
use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::policy::{ContainerDefinition, Geospatial};
use pleiad_model::{Object, Value, json};
use pleiad_sql::compile::BindContext;
use pleiad_sql::testing::{Choices, TestQuery, document, policy, scalar};
use pleiad_sql::{check, pruning};

use crate::catalog::NewContainer;
use crate::query::{PageSize, write_item};
use crate::*;

fn admit(engine: &Engine) -> Admitted {
    engine.authorize_container(&ServerAuthority, ActionSet::ALL, CONTAINER, Addressed::Parent).unwrap()
}

/// What a world is made of. The same case makes the same world.
#[derive(Clone)]
pub struct Case {
    pub keys: &'static [&'static str],
    pub partitions: u32,
    pub policy: Value,
    /// Computed properties, each equal to the stored property of its name, so that a scan of the items has their
    /// values.
    pub computed: Vec<&'static str>,
    /// Body, and the indexing directive of the write.
    pub items: Vec<(Value, Option<bool>)>,
    /// How far each reading of the clock advances it.
    pub step_ms: u64,
    pub parallelism: Parallelism,
    pub geospatial: Geospatial,
    /// Whether a partition is split during the last query.
    pub splits: bool,
}

/// One partition for every hundred RU/s, so that tests can have any number of partitions.
pub const LIMITS: PartitionLimits = PartitionLimits {
    partition_ru_max: 10_000,
    partition_ru_initial: 100,
    partition_bytes_max: 1 << 30,
    key_bytes_max: 1 << 28,
    ranges_initial: 1,
    governance: Governance {
        enforced: false,
        serverless: false,
        burst: false,
        serverless_partition_ru: 5_000,
        container_ru_min: 400,
        container_ru_max: 1_000_000,
    },
    copy_bytes_per_s: u64::MAX,
    parallelism: Parallelism::DEFAULT,
    cross_partition_page: PageReach::Partition,
};

const CONTAINER: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

/// Several threads run every page, however small, with a few items in a morsel.
pub const PARALLEL: Parallelism = Parallelism { serial_us_max: 0.0, docnums_per_morsel: 7, postings_per_morsel: 3 };

const KEYS: &[&[&str]] =
    &[&["/pk"], &["/pk"], &["/pk", "/n"], &["/pk", "/o/a"], &["/s"], &["/id"], &["/a", "/b", "/pk"]];

impl Case {
    pub fn random(chance: &mut Choices<'_>) -> Case {
        let keys = KEYS[chance.below(KEYS.len())];
        let partitions = [1, 1, 3, 4, 5][chance.below(5)];
        let mut policy = policy(chance);
        let geospatial = if chance.once_in(4) { Geospatial::Geometry } else { Geospatial::Geography };
        if geospatial == Geospatial::Geometry {
            add_bounding_box(&mut policy);
        }
        let excludes = chance.once_in(3);
        let mut items = chance.list(0, 40, |chance| {
            let indexed = if excludes && chance.once_in(8) { Some(false) } else { None };
            (random_item(chance, keys), indexed)
        });
        if chance.once_in(3) {
            let stem = "x".repeat([299, 1000, 1001][chance.below(3)]);
            items.iter_mut().for_each(|(item, _)| lengthen(item, &stem));
        }
        // Many items that match nothing make an index worth using.
        let fillers = [0, 60, 150][chance.below(3)];
        items.extend((0..fillers).map(|n| (filler(n), None)));
        for (at, (item, _)) in items.iter_mut().enumerate() {
            let Value::Object(object) = item else { unreachable!() };
            object.set("id", at.to_string());
        }
        let computed = computed(items.len() + partitions as usize, keys);
        let step_ms = [0, 0, 0, 700, 3_000][chance.below(5)];
        let parallelism = if items.len() % 2 == 1 { PARALLEL } else { Parallelism::DEFAULT };
        // With a clock that jumps, a split would not end.
        let splits = chance.once_in(3) && step_ms == 0;
        Case { keys, partitions, policy, computed, items, step_ms, parallelism, geospatial, splits }
    }

    /// A case without random parts.
    pub fn of(policy: Value, partitions: u32, items: Vec<(Value, Option<bool>)>) -> Case {
        let (computed, parallelism, geospatial) = (Vec::new(), Parallelism::DEFAULT, Geospatial::Geography);
        Case { keys: &["/pk"], partitions, policy, computed, items, step_ms: 0, parallelism, geospatial, splits: false }
    }

    pub fn without_index(&self) -> Case {
        let policy = Object::new().with("indexingMode", "none").with("automatic", false).into();
        Case { policy, ..self.clone() }
    }

    fn definition(&self) -> ContainerDefinition {
        let kind = if self.keys.len() == 1 { "Hash" } else { "MultiHash" };
        let paths = self.keys.iter().map(|path| Value::from(*path)).collect::<Vec<_>>();
        let key = Object::new().with("paths", paths).with("kind", kind).with("version", 2i64);
        let body = Object::new().with("id", "c").with("partitionKey", key).with("indexingPolicy", self.policy.clone());
        let computed = |name: &&str| -> Value {
            Object::new().with("name", *name).with("query", format!("SELECT VALUE c.{name} FROM c")).into()
        };
        let body = body.with("computedProperties", self.computed.iter().map(computed).collect::<Vec<_>>());
        let texts = Object::new().with("path", "/s").into();
        let texts = Object::new().with("defaultLanguage", "en-US").with("fullTextPaths", vec![texts]);
        let body = body.with("fullTextPolicy", texts);
        let geospatial = Object::new().with("type", self.geospatial.as_str());
        let body = body.with("geospatialConfig", geospatial);
        ContainerDefinition::create(&body.into()).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "partition key {:?}, {} partitions, {} ms per tick", self.keys, self.partitions, self.step_ms)?;
        writeln!(f, "indexing policy {}", json::to_string(&self.policy))?;
        writeln!(f, "computed properties {:?}, {:?}", self.computed, self.geospatial)?;
        for (item, indexed) in &self.items {
            let text = json::to_string(item);
            writeln!(f, "{}{text}", if indexed.is_some() { "(not indexed) " } else { "" })?;
        }
        Ok(())
    }
}

/// A planar spatial index needs a bounding box; some of the geometries lie outside.
fn add_bounding_box(policy: &mut Value) {
    let sides = Object::new().with("xmin", -20.0).with("ymin", -20.0).with("xmax", 20.0).with("ymax", 20.0);
    let Value::Object(policy) = policy else { return };
    let Some(Value::Array(indexes)) = policy.get("spatialIndexes") else { return };
    let bounded = |index: &Value| match index {
        Value::Object(index) => index.clone().with("boundingBox", sides.clone()).into(),
        other => other.clone(),
    };
    let indexes: Vec<Value> = indexes.iter().map(bounded).collect();
    policy.set("spatialIndexes", indexes);
}

const COMPUTED: &[&str] = &["a", "b", "n", "s", "t", "o", "loc"];

/// Some of the properties, in half of the cases; never a partition key.
fn computed(seed: usize, keys: &[&str]) -> Vec<&'static str> {
    let is_key = |name: &str| keys.iter().any(|key| key.split('/').nth(1) == Some(name));
    let chosen = COMPUTED.iter().enumerate().filter(|(at, _)| seed % 2 == 1 && (seed / 2 + at).is_multiple_of(3));
    chosen.map(|(_, name)| *name).filter(|name| !is_key(name)).collect()
}

/// Makes strings so long that an index stores only their beginning, which they all share.
fn lengthen(item: &mut Value, stem: &str) {
    if let Value::Object(object) = item
        && let Some(Value::String(text)) = object.get("s")
    {
        let long = format!("{stem}{text}");
        object.set("s", long);
    }
}

fn filler(n: usize) -> Value {
    Object::new().with("pk", (n % 17) as i64 + 100).with("z", n as i64).into()
}

/// A random document with a partition key from few values.
pub fn random_item(chance: &mut Choices<'_>, keys: &[&str]) -> Value {
    let mut item = document(chance);
    if !chance.once_in(8) {
        let key = match chance.below(6) {
            0 => Value::from(1i64),
            1 => Value::from("ab"),
            2 => scalar(chance),
            _ => Value::from("a"),
        };
        item.set("pk", key);
    }
    // A filter for 0 is routed to the key 0 and not to -0.0, as in the service; everywhere else they are equal.
    for name in keys.iter().filter_map(|key| key.strip_prefix('/')) {
        if item.get(name).and_then(Value::as_number).is_some_and(|n| n.as_f64() == 0.0) {
            item.set(name, 0i64);
        }
    }
    if let Some(Value::Object(inner)) = item.get("o")
        && inner.get("a").and_then(Value::as_number).is_some_and(|n| n.as_f64() == 0.0)
    {
        let inner = inner.clone().with("a", 0i64);
        item.set("o", inner);
    }
    item.into()
}

/// A clock that advances with each reading, so that pages end early.
struct SteppingClock {
    now_ms: AtomicU64,
    step_ms: u64,
}

impl Env for SteppingClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.fetch_add(self.step_ms, Ordering::Relaxed)
    }

    fn random_u64(&self) -> u64 {
        self.now_ms.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

pub struct QueryWorld {
    pub engine: Arc<Engine>,
    pub at: Admitted,
    /// In the order of partitions, then of insertion.
    pub records: Vec<Record>,
    /// The same items, as queries see them.
    pub documents: Vec<Value>,
    /// The documents that queries are made for: no fillers.
    pub known: Vec<Value>,
}

impl QueryWorld {
    pub async fn open(case: &Case) -> QueryWorld {
        let partition_ru_initial = if case.partitions == 1 { 10_000 } else { 400 };
        let limits = PartitionLimits { partition_ru_initial, parallelism: case.parallelism, ..LIMITS };
        let env = Arc::new(SteppingClock { now_ms: AtomicU64::new(1_700_000_000_000), step_ms: case.step_ms });
        let sync_policy = SyncPolicy::SyncedWithin(std::time::Duration::from_secs(3600));
        let engine = Engine::open(pleiad_storage::Memory::new().into(), sync_policy, limits, env).await.unwrap();
        let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap().rid;
        let throughput = ThroughputRequest::Manual(i64::from(case.partitions) * 400);
        let new = NewContainer { definition: case.definition(), throughput };
        engine.catalog.create_container(database, new).await.unwrap_or_else(|error| panic!("{error}\n{case}"));
        let at = admit(&engine);
        assert_eq!(at.container().partitions.len(), case.partitions as usize);
        let mut world =
            QueryWorld { engine: Arc::new(engine), at, records: Vec::new(), documents: Vec::new(), known: Vec::new() };
        for (item, indexed) in &case.items {
            world.write(item, *indexed).await;
        }
        let map = &world.at.container().map;
        world.records.sort_by_key(|record| map.locate(&record.epk));
        assert!(world.records.is_sorted_by_key(|record| record.docnum), "later partitions have larger docnums");
        world.documents = world.records.iter().map(|record| world.as_queried(record)).collect();
        world.known = world.documents.iter().filter(|document| document.get("z").is_none()).cloned().collect();
        world
    }

    async fn write(&mut self, item: &Value, indexed: Option<bool>) {
        let key = PartitionKey::extract(self.at.container().schema.key.as_ref().unwrap(), item);
        let options = WriteOptions { indexed, ..WriteOptions::default() };
        let written = self.engine.create_item(&self.at, Some(&key), Verb::Create, item.clone(), &options).await;
        // A few values are not allowed as partition keys.
        if let Ok(written) = written.result {
            self.records.push(written.record.unwrap());
        }
    }

    /// Replaces a random item by another one with the same id, or deletes it.
    pub async fn change_random_item(&self, chance: &mut Choices<'_>, case: &Case) {
        if self.records.is_empty() {
            return;
        }
        let record = &self.records[chance.below(self.records.len())];
        let old = json::parse(record.body()).unwrap();
        let definition = self.at.container().schema.key.as_ref().unwrap();
        let key = PartitionKey::extract(definition, &old);
        let id = old.get("id").and_then(Value::as_str).unwrap();
        if chance.once_in(2) {
            let _ = self.engine.delete_item(&self.at, Some(&key), Target::Named(id), &Precondition::None).await;
            return;
        }
        let Value::Object(mut item) = random_item(chance, case.keys) else { unreachable!() };
        item.set("id", id);
        let item = Value::from(item);
        let key = PartitionKey::extract(definition, &item);
        let options = WriteOptions::default();
        let _ = self.engine.create_item(&self.at, Some(&key), Verb::Upsert, item, &options).await;
    }

    /// A new request: the deadline of `at` has passed when a test's clock has moved far enough.
    pub fn new_request(&self) -> Admitted {
        admit(&self.engine)
    }

    /// Splits the largest partition, if it has more than one key. Later requests use the returned value.
    pub async fn split(&self) -> Admitted {
        self.engine.start_background_work().await.unwrap();
        if let Ok(job) = self.engine.split(admit(&self.engine), None, None).await {
            while self.engine.catalog.tree().jobs.contains_key(&job) {
                tokio::task::yield_now().await;
            }
        }
        admit(&self.engine)
    }

    fn as_queried(&self, record: &Record) -> Value {
        let mut text = Vec::new();
        write_item(self.at.container().rid, &record.view(), &mut text);
        json::parse(&text).unwrap()
    }

    /// A random scope, and the keys that it covers.
    pub fn scope(&self, chance: &mut Choices<'_>) -> (FeedRange, EpkRange) {
        let definition = self.at.container().schema.key.as_ref().unwrap();
        let ranges = self.at.container().map.ranges();
        let record = self.records.get(chance.below(self.records.len().min(256)));
        match (chance.below(12), record) {
            (0 | 1, Some(record)) => {
                let key = PartitionKey::extract(definition, &json::parse(record.body()).unwrap());
                let range = EpkRange::of_point(key.effective(definition));
                (FeedRange::PartitionKey(key), range)
            }
            (2, Some(record)) if definition.paths.len() > 1 => {
                let key = PartitionKey::extract(definition, &json::parse(record.body()).unwrap());
                let key = PartitionKey::new(key.components()[..1].to_vec());
                let range = EpkRange::of_prefix(key.effective(definition));
                (FeedRange::PartitionKey(key), range)
            }
            (3, _) => {
                let range = &ranges[chance.below(ranges.len())];
                (FeedRange::PartitionKeyRange(range.id), range.keys.clone())
            }
            (4, Some(record)) => {
                let range = EpkRange { min: record.epk.clone(), max: EpkRange::FULL.max };
                (FeedRange::EffectiveKeys(range.clone(), None), range)
            }
            _ => (FeedRange::Container, EpkRange::FULL),
        }
    }

    pub fn documents_in(&self, keys: &EpkRange) -> Vec<Value> {
        let pairs = self.records.iter().zip(&self.documents);
        pairs.filter(|(record, _)| keys.contains(&record.epk)).map(|(_, document)| document.clone()).collect()
    }
}

impl QueryWorld {
    /// In the order of the partition keys that a filter names, then of insertion.
    pub fn documents_by_key(&self, keys: &EpkRange, asked: &TestQuery) -> Vec<Value> {
        let definition = self.at.container().schema.key.as_ref().unwrap();
        let parameters = asked.parameters();
        let bind = BindContext {
            parameters: &parameters,
            geospatial: self.at.container().definition.geospatial,
            embeddings: &[],
            full_text: None,
            started_ms: Some(0),
        };
        let pruning::PrunedKeys::Keys(named) =
            pruning::prune(&check::parse_and_check(&asked.text).unwrap(), bind, definition)
        else {
            return self.documents_in(keys);
        };
        let range = |key: &PartitionKey| match key.matches_shape(definition) {
            true => EpkRange::of_point(key.effective(definition)),
            false => EpkRange::of_prefix(key.effective(definition)),
        };
        let mut ranges: Vec<EpkRange> = named.iter().map(range).collect();
        ranges.sort_by(|a, b| a.min.cmp(&b.min));
        let position = |record: &Record| ranges.iter().position(|range| range.contains(&record.epk));
        let mut pairs: Vec<_> = self.records.iter().zip(&self.documents).collect();
        pairs.sort_by_key(|(record, _)| position(record));
        pairs.into_iter().map(|(_, document)| document.clone()).collect()
    }
}

/// A page size that is small enough for many pages, but not for hundreds.
pub fn page_size(chance: &mut Choices<'_>, rows: usize) -> PageSize {
    let least = rows / 24 + 1;
    let bytes = if chance.once_in(4) && rows < 60 { 100 } else { 1 << 22 };
    PageSize { rows: least + [0, 0, 1, 2, 6, 1000][chance.below(6)], bytes }
}
