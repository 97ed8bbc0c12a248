//! The index converges to the policy, with concurrent writes, further policies and crashes.

use std::sync::atomic::{AtomicBool, Ordering};

use pleiad_model::policy::PathStep;
use pleiad_model::{Kind, Value, json};
use pleiad_partition::IndexingConfig;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Batch, Durability as Stored, Memory};

use super::*;
use crate::testing::*;
use crate::{Engine, Target, Verb, WriteOptions};

const NONE: &str = r#"{"indexingMode":"none","automatic":false}"#;
const NAMED: &str = r#"{"includedPaths":[{"path":"/pk/?"},{"path":"/missing/?"}],"excludedPaths":[{"path":"/*"}]}"#;
const WIDE: &str = r#"{"compositeIndexes":[[{"path":"/pk"},{"path":"/_ts","order":"descending"}]]}"#;

async fn replace(engine: &Engine, policy: &str) -> Result<Arc<Container>> {
    let rid = admit(engine, "c").container().rid;
    let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let body = parse(&format!(r#"{{"id":"c","partitionKey":{key},"indexingPolicy":{policy}}}"#));
    engine.catalog.replace_container(rid, |old| old.replace(&body)).await
}

fn indexes(engine: &Engine, name: &str) -> bool {
    admit(engine, "c").container().schema.usable_index().indexes(&[PathStep::Property(name.to_owned())])
}

async fn wait_reindexed(engine: &Engine) {
    while admit(engine, "c").container().index_transformation.is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn existing_items_get_the_new_index() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 600, |n| (n % 50).to_string()).await;
    for policy in [NAMED, WIDE, NONE, "{}"] {
        let etag = replace(&engine, policy).await.unwrap().version;
        assert_sound(&engine).await;
        wait_reindexed(&engine).await;
        let now = admit(&engine, "c").container().clone();
        assert_eq!((now.version, now.index_percent()), (etag, 100), "{policy}");
        assert_eq!(indexes(&engine, "pk"), policy != NONE);
        assert_eq!(now.schema.usable_index().composites().len(), usize::from(policy == WIDE));
        assert_sound(&engine).await;
    }
}

#[tokio::test]
async fn an_empty_container_has_its_new_index_immediately() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let replaced = replace(&engine, NAMED).await.unwrap();
    assert!(replaced.index_transformation.is_none() && indexes(&engine, "missing") && !indexes(&engine, "other"));
    create(&engine, &admit(&engine, "c"), "1", "a").await.result.unwrap();
    assert_sound(&engine).await;
}

#[tokio::test]
async fn a_policy_that_asks_for_the_same_rows_rebuilds_nothing() {
    let engine = account().await;
    let before = container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 10, |n| n.to_string()).await;
    assert!(replace(&engine, "{}").await.unwrap().schema.version == before.schema.version);
    let manual = replace(&engine, r#"{"automatic":false}"#).await.unwrap();
    assert!(manual.index_transformation.is_none() && !manual.schema.automatic);
    create(&engine, &admit(&engine, "c"), "u", "a").await.result.unwrap();
    assert_sound(&engine).await;
}

/// A writer that creates, replaces and deletes until `stop` is set; no request may fail.
async fn write_until_stopped(engine: Arc<Engine>, task: usize, stop: Arc<AtomicBool>) {
    let old = admit(&engine, "c");
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (id, key) = (format!("{task}-{}", n % 40), (n % 40).to_string());
        let body: Value = json::parse(format!(r#"{{"id":"{id}","pk":"{key}","n":{n}}}"#).as_bytes()).unwrap();
        // Every other request uses the container version from before all changes.
        let newest = admit(&engine, "c");
        let at = if n % 2 == 0 { &newest } else { &old };
        let (pk, options) = (pk(&key), WriteOptions::default());
        engine.create_item(at, Some(&pk), Verb::Upsert, body, &options).await.result.unwrap();
        if n % 3 == 0 {
            engine.delete_item(at, Some(&pk), Target::Named(&id), &options.condition).await.result.unwrap();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn writes_succeed_during_policy_changes_and_the_rows_converge() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 1000, |n| n.to_string()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..4).map(|task| tokio::spawn(write_until_stopped(engine.clone(), task, stop.clone()))).collect();
    for (round, policy) in [NAMED, "{}", NONE, WIDE, NAMED, WIDE].into_iter().enumerate() {
        replace(&engine, policy).await.unwrap();
        if round % 2 == 1 {
            wait_reindexed(&engine).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    wait_reindexed(&engine).await;
    assert!(indexes(&engine, "pk") && indexes(&engine, "n"));
    assert_sound(&engine).await;
}

#[tokio::test]
async fn reindexing_resumes_after_a_crash_at_any_commit() {
    for (step, call) in (0..14).zip([FaultPoint::Commit, FaultPoint::CommitApplied].into_iter().cycle()) {
        let script = FaultPlan::default();
        let engine = open(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())), LIMITS).await;
        engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
        container(&engine, "c", &["/pk"], 4).await;
        load(&engine, "c", 200, |n| n.to_string()).await;
        script.fail(call, step);
        let replaced = replace(&engine, NAMED).await;
        engine.catalog.tasks().wait_idle().await;
        let (store, _) = engine.catalog.store_and_committer();
        engine.close().await;
        drop(engine);
        script.restart();
        let engine = reopen(store, LIMITS).await;
        assert_sound(&engine).await;
        wait_reindexed(&engine).await;
        assert!(indexes(&engine, "missing") || replaced.is_err(), "step {step}");
        assert_sound(&engine).await;
        create(&engine, &admit(&engine, "c"), "new", "new").await.result.unwrap();
        assert_sound(&engine).await;
    }
}

/// Containers from before schemas were numbered have index rows in an unreadable layout.
#[tokio::test]
async fn an_index_of_an_older_layout_is_rebuilt() {
    let engine = account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 100, |n| n.to_string()).await;
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    let rest = [c.rid.database.0.to_be_bytes(), c.rid.number.to_be_bytes()].concat();
    let row = keyspace::catalog(b'c', &rest);
    let mut value = json::parse(&store.get(&row).await.unwrap().unwrap()).unwrap();
    let Value::Object(object) = &mut value else { panic!("a row is an object") };
    object.remove("schema").unwrap();
    let mut batch = Batch::default();
    batch.put(&row, json::to_string(&value));
    batch.put(keyspace::index(c.map.ranges()[0].shard, 99, &[1], 1), []);
    store.commit(&batch, Stored::Synced).await.unwrap();

    let engine = reopen(store, LIMITS).await;
    create(&engine, &admit(&engine, "c"), "new", "new").await.result.unwrap();
    wait_reindexed(&engine).await;
    assert!(indexes(&engine, "pk"));
    assert_sound(&engine).await;
}

#[test]
fn too_many_policy_changes_during_a_rebuild_are_rejected() {
    let indexing = |n: usize| {
        let policy = format!(r#"{{"excludedPaths":[{{"path":"/x{n}/?"}}],"includedPaths":[{{"path":"/*"}}]}}"#);
        let mut definition = definition("c", &["/pk"]);
        definition.indexing = pleiad_model::policy::IndexingPolicy::parse(Some(&parse(&policy))).unwrap();
        IndexingConfig::of(&definition, Default::default())
    };
    let mut transformation: Option<IndexTransformation> = None;
    for n in 0..8 {
        transformation = IndexTransformation::next(transformation.as_ref(), indexing(n), &indexing(n + 1)).unwrap();
        assert_eq!(transformation.as_ref().unwrap().from.len(), n + 1);
    }
    let stored = IndexTransformation::from_value(&transformation.as_ref().unwrap().to_value()).unwrap();
    assert_eq!(stored.from, transformation.as_ref().unwrap().from);
    let back = IndexTransformation::next(transformation.as_ref(), indexing(8), &indexing(3)).unwrap().unwrap();
    assert_eq!(back.from.len(), 8, "the policy that is current again is not a former one");
    let next = IndexTransformation::next(transformation.as_ref(), indexing(8), &indexing(9));
    assert_eq!(next.unwrap_err().kind, Kind::Locked);
}
