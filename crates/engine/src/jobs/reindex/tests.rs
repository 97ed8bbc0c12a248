//! The index converges to the policy, with concurrent writes, further policies and crashes.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use pleiad_model::env::ManualEnv;
use pleiad_model::policy::{ContainerDefinition, Language, PathStep};
use pleiad_model::{Kind, Value, json};
use pleiad_partition::IndexingConfig;
use pleiad_partition::index::full_text::TextRule;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Batch, Blocking, Direction, Durability as Stored, Limit, Memory, Snapshot};

use super::*;
use crate::catalog::NewContainer;
use crate::query::{CrossPartition, ItemQuery, PageSize, Parameters, ReportOptions};
use crate::testing::*;
use crate::{Engine, FeedRange, SyncPolicy, Target, Verb, WriteOptions};

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

const TEXTS: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
    "fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/text"}]},
    "indexingPolicy":{"includedPaths":[{"path":"/*"}],"fullTextIndexes":[{"path":"/text"}]}}"#;

fn text_rule() -> TextRule {
    TextRule { steps: vec![PathStep::Property("text".to_owned())], language: Language::ENGLISH }
}

async fn write_text(engine: &Engine, n: usize) {
    let (id, key) = (n.to_string(), pk(&n.to_string()));
    let item = parse(&format!(r#"{{"id":"{id}","pk":"{id}","text":"The first word{n} of the texts"}}"#));
    engine
        .create_item(&admit(engine, "c"), Some(&key), Verb::Upsert, item, &WriteOptions::default())
        .await
        .result
        .unwrap();
}

/// The number of words in all texts. Full-text statistics answer it if there is an index.
async fn count_words(engine: &Engine) -> String {
    let query = ItemQuery {
        text: "SELECT VALUE SUM(_FullTextWordCount(c.text)) FROM c".to_owned(),
        parameters: Parameters::default(),
        scope: FeedRange::Container,
        cross_partition: CrossPartition::ByServer,
        size: PageSize { rows: 10, bytes: 1 << 20 },
        from: None,
        resume: None,
        enable_scan: false,
        report: ReportOptions { indexes: false, times: false, advice: false },
    };
    let page = engine.query_items(&admit(engine, "c"), query, None).await.result.unwrap();
    page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

async fn index_rows(store: &AnyStore, shard: u64, path: u64) -> Vec<Bytes> {
    let (from, to) = keyspace::index_range(shard, path, &[]);
    let rows = store.snapshot(Blocking::Suspend).await.unwrap().scan(&from, &to, Direction::Forward, Limit::NONE).await;
    rows.unwrap().pairs.into_iter().map(|(row, _)| row).collect()
}

/// Gives a container the rows that version 1 of the analyzer would have written: under its path hash, with other words.
async fn downgrade(store: &AnyStore, c: &Container) {
    let (now, before) = (text_rule().id(), text_rule().obsolete_ids().next().unwrap());
    let mut batch = Batch::default();
    for range in c.map.ranges() {
        for row in index_rows(store, range.shard, now).await {
            let (_, value, docnum) = keyspace::decode_index(&row).unwrap();
            batch.put(keyspace::index(range.shard, before, value, docnum), []);
            batch.put(keyspace::index(range.shard, before, b"first\0\0\0\0\x01", docnum), []);
            batch.delete(&row);
        }
    }
    let rest = [c.rid.database.0.to_be_bytes(), c.rid.number.to_be_bytes()].concat();
    let row = keyspace::catalog(b'c', &rest);
    let mut value = json::parse(&store.get(&row).await.unwrap().unwrap()).unwrap();
    let Value::Object(object) = &mut value else { panic!("a row is an object") };
    object.remove("analyzer").unwrap();
    batch.put(&row, json::to_string(&value));
    store.commit(&batch, Stored::Synced).await.unwrap();
}

async fn open_without_jobs(store: &Arc<AnyStore>) -> Result<Engine> {
    Engine::open_on(store.clone(), SyncPolicy::Synced, LIMITS, Arc::new(ManualEnv::at(1_700_000_000_000, 1))).await
}

/// Wherever a crash interrupts it, and with correct answers at every moment.
#[tokio::test]
async fn a_full_text_index_of_an_earlier_analyzer_is_rebuilt() {
    for (step, call) in (0..10).zip([FaultPoint::Commit, FaultPoint::CommitApplied].into_iter().cycle()) {
        let script = FaultPlan::default();
        let engine = open(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())), LIMITS).await;
        let database = engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap().rid;
        let definition = ContainerDefinition::create(&parse(TEXTS)).unwrap();
        let new = NewContainer { definition, throughput: crate::ThroughputRequest::Manual(400) };
        let c = engine.catalog.create_container(database, new).await.unwrap();
        for n in 0..30 {
            write_text(&engine, n).await;
        }
        assert_eq!(count_words(&engine).await, "60");
        let (store, _) = engine.catalog.store_and_committer();
        engine.close().await;
        drop(engine);
        downgrade(&store, &c).await;
        // Readers that start no jobs find no damage, and answer from the items.
        let reader = open_without_jobs(&store).await.unwrap();
        assert_eq!(count_words(&reader).await, "60");
        assert_sound(&reader).await;
        reader.close().await;
        drop(reader);

        script.fail(call, step);
        if let Ok(engine) = open_without_jobs(&store).await {
            let _ = engine.start_background_work().await; // it may fail, as a crash
            engine.catalog.tasks().wait_idle().await;
            engine.close().await;
        }
        script.restart();
        let engine = reopen(store.clone(), LIMITS).await;
        assert_eq!(count_words(&engine).await, "60", "step {step}");
        write_text(&engine, 30).await;
        assert_eq!(count_words(&engine).await, "62", "step {step}");
        wait_reindexed(&engine).await;
        let container = admit(&engine, "c").container().clone();
        assert_eq!(container.schema.usable_index().full_text(&text_rule().steps), Some(Language::ENGLISH));
        assert_eq!(count_words(&engine).await, "62", "step {step}");
        for range in container.map.ranges() {
            assert!(index_rows(&store, range.shard, text_rule().obsolete_ids().next().unwrap()).await.is_empty());
        }
        assert_sound(&engine).await;
        // The next start has nothing to rebuild.
        engine.close().await;
        drop(engine);
        let engine = open_without_jobs(&store).await.unwrap();
        assert!(admit(&engine, "c").container().index_transformation.is_none());
    }
}

/// A policy that drops the full-text index while another one is under way leaves no row behind.
#[test]
fn the_rows_of_former_full_text_indexes_are_obsolete_as_well() {
    let config =
        |body: &str| IndexingConfig::of(&ContainerDefinition::create(&parse(body)).unwrap(), Default::default());
    let plain = TEXTS.replace(r#""fullTextIndexes":[{"path":"/text"}]"#, r#""excludedPaths":[]"#);
    let (texts, plain) = (config(TEXTS), config(&plain));
    let dropping = IndexTransformation::next(None, texts.clone(), &plain).unwrap();
    let reanalyzed = IndexTransformation::reanalyze(dropping, &plain);
    assert!(reanalyzed.from.is_empty(), "no item has text rows any more");
    let adding = IndexTransformation::next(None, plain.clone(), &texts).unwrap();
    let reanalyzed = IndexTransformation::reanalyze(adding, &texts);
    assert_eq!(reanalyzed.from.len(), 1);
    assert!(IndexTransformation::reanalyze(None, &texts).from[0].rules().texts().is_empty());
}

#[tokio::test]
async fn a_container_without_full_text_index_has_nothing_to_rebuild() {
    let engine = account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 10, |n| n.to_string()).await;
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    downgrade(&store, &c).await;
    let engine = reopen(store, LIMITS).await;
    assert!(admit(&engine, "c").container().index_transformation.is_none());
    assert_sound(&engine).await;
}
