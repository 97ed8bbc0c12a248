//! Indexes converge to the projection of their source, through every kind of change, splits of either container, merges
//! and restarts. The expected items are computed from the source's current items.

use std::collections::BTreeMap;

use pleiad_model::Object;
use pleiad_model::env::ManualEnv;
use pleiad_model::policy::ContainerDefinition;
use pleiad_storage::Memory;

use super::*;
use crate::catalog::NewContainer;
use crate::jobs::{JobOutcome, PurgeScans, purge_account};
use crate::testing::*;
use crate::{
    Admitted, BatchAction, BatchOperation, ContainerName, Engine, FeedCursor, FeedRange, OfferChange, OfferOwner,
    PartitionLimits, Target, ThroughputRequest, WriteOptions,
};

/// Few initial partitions; the tests split them explicitly.
const FEW: PartitionLimits = PartitionLimits { partition_ru_initial: 10_000, ..LIMITS };

async fn shop() -> Arc<Engine> {
    let engine = open(Memory::new(), FEW).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    container(&engine, "orders", &["/pk"], 4).await;
    engine
}

fn index(id: &str, key: &str, definition: &str) -> ContainerDefinition {
    let key = Object::new().with("paths", vec![Value::from(key)]).with("kind", "Hash").with("version", 2i64);
    let view = Object::new().with("sourceCollectionId", "orders").with("definition", definition);
    let body = Object::new().with("id", id).with("partitionKey", key).with("materializedViewDefinition", view);
    ContainerDefinition::create(&body.into()).unwrap()
}

async fn try_add_index(
    engine: &Engine,
    definition: ContainerDefinition,
    throughput: ThroughputRequest,
) -> Result<Arc<Container>> {
    let database = find_database(engine, "db").unwrap().rid;
    engine.catalog.create_container(database, NewContainer { definition, throughput }).await
}

async fn add_index(engine: &Engine, id: &str, key: &str, definition: &str) -> Arc<Container> {
    try_add_index(engine, index(id, key, definition), ThroughputRequest::Unspecified).await.unwrap()
}

fn order(id: &str, pk: &str, city: &str, n: i64) -> Value {
    Object::new().with("id", id).with("pk", pk).with("city", city).with("n", n).into()
}

async fn put(engine: &Engine, item: Value) {
    let key = pk(item.get("pk").and_then(Value::as_str).unwrap());
    let at = admit(engine, "orders");
    engine.create_item(&at, Some(&key), Verb::Upsert, item, &WriteOptions::default()).await.result.unwrap();
}

/// Waits until the index has applied all changes of its source.
async fn wait_caught_up(engine: &Engine, name: &str) {
    for _ in 0..20_000 {
        let (index, source) = (admit(engine, name), admit(engine, "orders"));
        let cursors = index.container().progress.cursors();
        let seen = |partition: &Arc<Partition>| {
            cursors
                .iter()
                .filter(|cursor| cursor.keys.intersect(&partition.range.keys).is_some())
                .all(|cursor| cursor.build_until.is_none() && cursor.lsn >= partition.lsn())
        };
        if !cursors.is_empty() && source.container().partitions.iter().all(seen) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{name} does not catch up");
}

async fn items(engine: &Engine, at: &Admitted) -> Vec<Value> {
    let (mut found, mut from): (Vec<Value>, Option<FeedCursor>) = (Vec::new(), None);
    loop {
        let quota = PageLimit { items: 100, bytes: usize::MAX };
        let page = engine.list_items(at, &FeedRange::Container, from, quota, None).await.result.unwrap();
        found.extend(page.records.iter().map(|record| json::parse(record.body()).unwrap()));
        match page.next {
            Some(next) => from = Some(next),
            None => return found,
        }
    }
}

/// The items of an index by the source's id and key, without the id in the index.
async fn index_items(engine: &Engine, name: &str) -> BTreeMap<String, String> {
    let mut held = BTreeMap::new();
    for item in items(engine, &admit(engine, name)).await {
        let Value::Object(mut item) = item else { panic!() };
        assert!(item.remove("id").is_some());
        let named = format!("{:?}/{:?}", item.get("pk"), item.get("_id"));
        let twice = held.insert(named, json::to_string(&item.into()));
        assert_eq!(twice, None, "the index has an item twice");
    }
    held
}

/// The projection of the source's current items.
async fn expected_items(engine: &Engine, definition: &str) -> BTreeMap<String, String> {
    let projection = Projection::parse(definition).unwrap();
    let source = items(engine, &admit(engine, "orders")).await;
    let projected = source.iter().map(|item| projection.apply(item));
    projected
        .map(|item| (format!("{:?}/{:?}", item.get("pk"), item.get("_id")), json::to_string(&item.into())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_built_and_maintained_under_its_own_key() {
    let engine = shop().await;
    for n in 0..700 {
        put(&engine, order(&n.to_string(), &format!("p{}", n % 7), ["Rome", "Oslo"][n % 2], n as i64)).await;
    }
    let definition = "SELECT c.id, c.pk, c.city FROM c";
    let index = add_index(&engine, "by_city", "/city", definition).await;
    assert_eq!(
        index.definition.global_index.as_ref().unwrap().source_rid,
        Some(admit(&engine, "orders").container().rid)
    );
    wait_caught_up(&engine, "by_city").await;
    assert_eq!(index_items(&engine, "by_city").await, expected_items(&engine, definition).await);
    assert_eq!(admit(&engine, "by_city").container().index_status(), "Active");

    put(&engine, order("3", "p3", "Lima", 0)).await; // its key in the index changes
    put(&engine, Object::new().with("id", "4").with("pk", "p4").into()).await; // it has no key value any more
    delete(&engine, &admit(&engine, "orders"), "5", "p5").await.result.unwrap();
    wait_caught_up(&engine, "by_city").await;
    let now = index_items(&engine, "by_city").await;
    assert_eq!(now, expected_items(&engine, definition).await);
    assert_eq!(now.len(), 699);
    let at = admit(&engine, "by_city");
    let lima = engine
        .list_items(&at, &FeedRange::PartitionKey(pk("Lima")), None, PageLimit { items: 9, bytes: 1 << 20 }, None)
        .await;
    assert_eq!(lima.result.unwrap().records.len(), 1);
    assert_sound(&engine).await;
}

/// The versions of the intermediate states in a batch all have the same LSN.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_holds_the_final_state_of_a_batch() {
    let engine = shop().await;
    put(&engine, order("old", "p", "Rome", 1)).await;
    let definition = "SELECT c.id, c.pk, c.city FROM c";
    add_index(&engine, "by_city", "/city", definition).await;
    wait_caught_up(&engine, "by_city").await;
    let operation = |action, id: Option<&str>| {
        let (id, options) = (id.map(str::to_owned), WriteOptions::default());
        crate::BatchOperation { action: Ok(action), id, key: None, options, known_etag: None }
    };
    use crate::BatchAction::{Create, Delete, Replace, Upsert};
    let operations = [
        operation(Create(order("new", "p", "Oslo", 1)), None),
        operation(Replace(order("new", "p", "Lima", 2)), Some("new")),
        operation(Upsert(order("old", "p", "Bern", 2)), None),
        operation(Upsert(order("old", "p", "Rome", 3)), None),
        operation(Upsert(order("old", "p", "Bern", 4)), None),
        operation(Create(order("tmp", "p", "Rome", 1)), None),
        operation(Delete, Some("tmp")),
        operation(Create(order("tmp", "p", "Bern", 1)), None),
    ];
    let answers = engine.run_batch(&admit(&engine, "orders"), Some(&pk("p")), &operations, None).await;
    assert!(answers.result.unwrap().iter().all(|answer| answer.result.is_ok()));
    wait_caught_up(&engine, "by_city").await;
    let now = index_items(&engine, "by_city").await;
    assert_eq!((now.len(), now), (3, expected_items(&engine, definition).await));
    let nothing = [operation(Create(order("gone", "p", "Rome", 1)), None), operation(Delete, Some("gone"))];
    let answers = engine.run_batch(&admit(&engine, "orders"), Some(&pk("p")), &nothing, None).await;
    assert!(answers.result.unwrap().iter().all(|answer| answer.result.is_ok()));
    wait_caught_up(&engine, "by_city").await;
    assert_eq!(index_items(&engine, "by_city").await, expected_items(&engine, definition).await);
    assert_sound(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_write_to_an_index() {
    let engine = shop().await;
    put(&engine, order("1", "p", "Rome", 1)).await;
    add_index(&engine, "by_city", "/city", "SELECT * FROM c").await;
    wait_caught_up(&engine, "by_city").await;
    let at = admit(&engine, "by_city");
    let id = items(&engine, &at).await[0].get("id").and_then(Value::as_str).unwrap().to_owned();
    let body: Value = Object::new().with("id", "x").with("city", "Rome").into();
    let (key, options) = (pk("Rome"), WriteOptions::default());
    assert_eq!(kind(engine.create_item(&at, Some(&key), Verb::Upsert, body.clone(), &options).await), Kind::Forbidden);
    let one = Target::Named(&id);
    assert_eq!(kind(engine.replace_item(&at, Some(&key), one, body, &options).await), Kind::Forbidden);
    assert_eq!(kind(engine.delete_item(&at, Some(&key), one, &Precondition::None).await), Kind::Forbidden);
    assert_eq!(kind(engine.delete_by_partition_key(&at, Some(&key)).await), Kind::Forbidden);
    assert!(engine.read_item(&at, Some(&key), one, None, None).await.result.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_and_bulk_can_read_but_not_write_an_index() {
    let engine = shop().await;
    put(&engine, order("1", "p", "Rome", 1)).await;
    add_index(&engine, "by_city", "/city", "SELECT * FROM c").await;
    wait_caught_up(&engine, "by_city").await;
    let at = admit(&engine, "by_city");
    let id = items(&engine, &at).await[0].get("id").and_then(Value::as_str).unwrap().to_owned();
    let operation = |action, id: &str| {
        let (options, known_etag) = Default::default();
        BatchOperation { action: Ok(action), id: Some(id.to_owned()), key: None, options, known_etag }
    };
    let (read, delete) = (operation(BatchAction::Read, &id), operation(BatchAction::Delete, &id));
    let rome = pk("Rome");
    let all = engine.run_batch(&at, Some(&rome), std::slice::from_ref(&read), None).await.result.unwrap();
    assert!(all[0].result.is_ok());
    let both = [read, delete];
    assert_eq!(kind(engine.run_batch(&at, Some(&rome), &both, None).await), Kind::Forbidden);
    let each = engine.run_bulk(&at, Some(&rome), None, &both, true, None).await.result.unwrap();
    assert!(each[0].result.is_ok());
    assert_eq!(each[1].result.as_ref().unwrap_err().kind, Kind::Forbidden);
    assert_eq!(items(&engine, &at).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_keeps_autoscale_and_has_no_ttl_of_its_own() {
    let engine = shop().await;
    let lasting = ContainerDefinition { default_ttl: Some(-1), ..index("i", "/city", "SELECT * FROM c") };
    let refused = try_add_index(&engine, lasting, ThroughputRequest::Unspecified).await.map(drop);
    assert_eq!(refused.unwrap_err().kind, Kind::Invalid);
    let made = add_index(&engine, "i", "/city", "SELECT * FROM c").await;
    let replace = |old: &ContainerDefinition| Ok(ContainerDefinition { default_ttl: Some(10), ..old.clone() });
    assert_eq!(engine.catalog.replace_container(made.rid, replace).await.map(drop).unwrap_err().kind, Kind::Invalid);
    let offer = engine.catalog.tree().offer(OfferOwner::Container(made.rid)).unwrap().rid;
    let manual = || ThroughputRequest::Manual(400);
    for asked in [OfferChange::ToManual, OfferChange::To(manual()), OfferChange::ToEither(manual())] {
        let refused = engine.catalog.replace_offer(offer, asked, None).await.map(drop);
        assert_eq!(refused.unwrap_err().kind, Kind::Invalid);
    }
    let more = ThroughputRequest::Autoscale { max: 2000, increment_percent: None };
    engine.catalog.replace_offer(offer, OfferChange::To(more), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_needs_a_source_a_projection_and_autoscale() {
    let engine = shop().await;
    let refused = async |definition: ContainerDefinition, throughput| {
        try_add_index(&engine, definition, throughput).await.err().expect("the definition is invalid").kind
    };
    let unspecified = || ThroughputRequest::Unspecified;
    let mut nowhere = index("i", "/city", "SELECT * FROM c");
    nowhere.global_index.as_mut().unwrap().source = "nothing".to_owned();
    assert_eq!(refused(nowhere, unspecified()).await, Kind::Invalid);
    assert_eq!(refused(index("i", "/city", "SELECT * FROM c WHERE c.n > 1"), unspecified()).await, Kind::Invalid);
    assert_eq!(refused(index("i", "/city", "SELECT * FROM c"), ThroughputRequest::Manual(400)).await, Kind::Invalid);
    add_index(&engine, "i", "/city", "SELECT * FROM c").await;
    let mut second = index("j", "/city", "SELECT * FROM c");
    second.global_index.as_mut().unwrap().source = "i".to_owned();
    assert_eq!(refused(second, unspecified()).await, Kind::Invalid);
    for id in ["2", "3", "4", "5"] {
        add_index(&engine, id, "/city", "SELECT * FROM c").await;
    }
    assert_eq!(
        refused(index("6", "/city", "SELECT * FROM c"), unspecified()).await,
        Kind::Invalid,
        "five indexes are the maximum"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_with_an_index_cannot_be_deleted_and_retains_versions() {
    let engine = shop().await;
    let index = add_index(&engine, "by_city", "/city", "SELECT * FROM c").await;
    let source = admit(&engine, "orders").container().rid;
    let names = |engine: &Engine| {
        let at = admit(engine, "orders");
        at.container().definition.indexed_by.iter().map(|index| index.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&engine), ["by_city"]);
    assert_eq!(engine.catalog.delete_container(source).await.unwrap_err().kind, Kind::Invalid);
    put(&engine, order("1", "p", "Rome", 1)).await;
    wait_caught_up(&engine, "by_city").await;
    assert!(admit(&engine, "orders").container().schema.retains_versions);
    engine.catalog.delete_container(index.rid).await.unwrap();
    assert!(names(&engine).is_empty() && !admit(&engine, "orders").container().schema.retains_versions);
    put(&engine, order("2", "p", "Rome", 1)).await;
    // A new index is built from the existing items.
    add_index(&engine, "by_city", "/city", "SELECT * FROM c").await;
    wait_caught_up(&engine, "by_city").await;
    assert_eq!(index_items(&engine, "by_city").await.len(), 2);
    let again = admit(&engine, "by_city").container().rid;
    engine.catalog.delete_container(again).await.unwrap();
    engine.catalog.delete_container(source).await.unwrap();
}

/// A pseudo-random generator with the same numbers in every run.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

async fn split(engine: &Engine, name: &str) {
    let named = ContainerName::Named { database: "db", container: name };
    let Ok(job) = engine.split(at_container(engine, named).unwrap(), None, None).await else { return };
    engine.catalog.jobs().wait_ended(job).await.unwrap();
}

async fn merge(engine: &Engine, name: &str) {
    // The job waits for readers that hold its partitions; here none does.
    let ranges: Vec<u32> = admit(engine, name).container().partitions.iter().map(|one| one.range.id).take(2).collect();
    let named = ContainerName::Named { database: "db", container: name };
    let Ok(job) = engine.merge(at_container(engine, named).unwrap(), &ranges).await else { return };
    engine.catalog.jobs().wait_ended(job).await.unwrap();
}

async fn restart(engine: Arc<Engine>) -> Arc<Engine> {
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    drop(engine);
    reopen(store, FEW).await
}

async fn change(engine: &Engine, rng: &mut TestRng) {
    const CITIES: [&str; 5] = ["Rome", "Oslo", "Lima", "Cairo", "Quito"];
    let (id, key) = (rng.below(40).to_string(), format!("p{}", rng.below(6)));
    let city = CITIES[rng.below(5) as usize];
    let at = admit(engine, "orders");
    match rng.below(10) {
        0..6 => put(engine, order(&id, &key, city, rng.below(100) as i64)).await,
        // The item may not exist.
        6..8 => drop(delete(engine, &at, &id, &key).await),
        8 => {
            let (renamed, options) = (order(&rng.below(40).to_string(), &key, city, 0), WriteOptions::default());
            drop(engine.replace_item(&at, Some(&pk(&key)), Target::Named(&id), renamed, &options).await);
        }
        _ => put(engine, Object::new().with("id", id).with("pk", key).into()).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_converges_to_the_projection_of_its_source() {
    let indexes = [("by_city", "/city", "SELECT c.id, c.pk, c.city FROM c"), ("by_n", "/n", "SELECT * FROM c")];
    for seed in 0..20 {
        let (mut engine, mut rng) = (shop().await, TestRng(seed));
        for step in 0..400 {
            if step == 60 || step == 150 {
                let (id, key, definition) = indexes[usize::from(step == 150)];
                add_index(&engine, id, key, definition).await;
            }
            match rng.below(60) {
                0 => split(&engine, "orders").await,
                1 if step > 60 => split(&engine, "by_city").await,
                2 => merge(&engine, "orders").await,
                3 => engine = restart(engine).await,
                _ => change(&engine, &mut rng).await,
            }
        }
        for (name, _, definition) in indexes {
            wait_caught_up(&engine, name).await;
            assert_eq!(
                index_items(&engine, name).await,
                expected_items(&engine, definition).await,
                "{name}, seed {seed}"
            );
        }
        assert_sound(&engine).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_copied_database_an_index_follows_the_copied_source() {
    let engine = shop().await;
    let definition = "SELECT c.id, c.pk, c.city FROM c";
    add_index(&engine, "by_city", "/city", definition).await;
    for n in 0..50 {
        put(&engine, order(&n.to_string(), "p", ["Rome", "Oslo"][n % 2], 1)).await;
    }
    wait_caught_up(&engine, "by_city").await;
    for n in 50..60 {
        put(&engine, order(&n.to_string(), "p", "Rome", 1)).await;
    }
    // Copied there and back, at any progress of the index: part of it was built in the first database, under these ids.
    for (from, to) in [("db", "copy"), ("copy", "db")] {
        let job = engine.catalog.begin_copy(from, to).await.unwrap();
        assert_eq!(engine.catalog.jobs().wait_ended(job).await.unwrap().outcome, Some(JobOutcome::Done));
        let rid = find_database(&engine, from).unwrap().rid;
        engine.catalog.delete_database(rid).await.unwrap();
    }
    delete(&engine, &admit(&engine, "orders"), "7", "p").await.result.unwrap();
    put(&engine, order("8", "p", "Lima", 2)).await;
    wait_caught_up(&engine, "by_city").await;
    assert_eq!(index_items(&engine, "by_city").await, expected_items(&engine, definition).await);
    let (index, source) = (admit(&engine, "by_city"), admit(&engine, "orders"));
    assert_eq!(index.container().definition.global_index.as_ref().unwrap().source_rid, Some(source.container().rid));
    engine.catalog.delete_container(index.container().rid).await.unwrap();
    engine.catalog.delete_container(source.container().rid).await.unwrap();
    assert_sound(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_and_deleted_items_leave_the_index() {
    let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
    let engine = reopen_at(Arc::new(Memory::new().into()), FEW, env.clone()).await;
    let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let definition = ContainerDefinition { default_ttl: Some(-1), ..definition("orders", &["/pk"]) };
    let new = NewContainer { definition, throughput: ThroughputRequest::Manual(400) };
    engine.catalog.create_container(database.rid, new).await.unwrap();
    let definition = "SELECT c.id, c.pk, c.city FROM c";
    add_index(&engine, "by_city", "/city", definition).await;
    for n in 0..30 {
        let Value::Object(item) = order(&n.to_string(), &format!("p{}", n % 3), "Rome", 1) else { panic!() };
        put(&engine, if n % 2 == 0 { item.with("ttl", 10i64).into() } else { item.into() }).await;
    }
    wait_caught_up(&engine, "by_city").await;
    assert_eq!(index_items(&engine, "by_city").await.len(), 30);

    engine.delete_by_partition_key(&admit(&engine, "orders"), Some(&pk("p1"))).await.result.unwrap();
    env.advance_ms(11_000);
    purge_account(&engine.catalog.current().upgrade().unwrap(), &mut PurgeScans::default(), &*engine.env, async || {
        true
    })
    .await;
    wait_caught_up(&engine, "by_city").await;
    let left = index_items(&engine, "by_city").await;
    assert_eq!(left, expected_items(&engine, definition).await);
    assert_eq!(left.len(), 10, "the odd items of two keys");
    assert_sound(&engine).await;
}

/// Expiry is evaluated when an item is read: until it is purged, an expired item may become live again.
#[tokio::test(flavor = "multi_thread")]
async fn expired_items_are_built_and_revive_with_their_source() {
    let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
    let engine = reopen_at(Arc::new(Memory::new().into()), FEW, env.clone()).await;
    let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let lasting = ContainerDefinition { default_ttl: Some(1), ..definition("orders", &["/pk"]) };
    let new = NewContainer { definition: lasting, throughput: ThroughputRequest::Manual(400) };
    let source = engine.catalog.create_container(database.rid, new).await.unwrap();
    for n in 0..30 {
        put(&engine, order(&n.to_string(), "p", "Rome", 1)).await;
    }
    env.advance_ms(3000);
    let definition = "SELECT c.id, c.pk, c.city FROM c";
    add_index(&engine, "by_city", "/city", definition).await;
    wait_caught_up(&engine, "by_city").await;
    let forever = |old: &ContainerDefinition| Ok(ContainerDefinition { default_ttl: None, ..old.clone() });
    engine.catalog.replace_container(source.rid, forever).await.unwrap();
    wait_caught_up(&engine, "by_city").await;
    assert_eq!(index_items(&engine, "by_city").await, expected_items(&engine, definition).await);
}
