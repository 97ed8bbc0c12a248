//! Database copies: equal in everything but their `_rid`s, a consistent snapshot, or nothing at all.

use std::collections::BTreeMap;

use pleiad_model::Kind;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::{ItemRid, ScriptKind};
use pleiad_storage::{AnyStore, Memory};

use super::*;
use crate::Engine;
use crate::catalog::{NewContainer, PermissionGrant, PutMode, ScriptDefinition};
use crate::testing::*;
use crate::{Admitted, ContainerName, FeedRange, PageLimit, ThroughputRequest, Verb, WriteOptions};

/// The docnum of an item with a permission of its own.
const DOCNUM: u64 = 7;
const QUOTA: PageLimit = PageLimit { items: 10_000, bytes: 1 << 30 };

fn at(engine: &Engine, database: &str, container: &str) -> Admitted {
    at_container(engine, ContainerName::Named { database, container }).unwrap()
}

/// Items with their etags and times, by id.
async fn items(engine: &Engine, database: &str, container: &str) -> BTreeMap<String, (String, Vec<u8>)> {
    let at = at(engine, database, container);
    let page = engine.list_items(&at, &FeedRange::Container, None, QUOTA, None).await.result.unwrap();
    let shown = |record: &crate::Record| (record.id().to_owned(), (record.etag().to_string(), record.body().to_vec()));
    page.records.iter().map(shown).collect()
}

async fn put(engine: &Engine, database: &str, container: &str, id: &str) -> Result<()> {
    let body = parse(&format!(r#"{{"id":"{id}","pk":"{id}","email":"{id}@x"}}"#));
    let at = at(engine, database, container);
    let written = engine.create_item(&at, Some(&pk(id)), Verb::Create, body, &WriteOptions::default()).await;
    written.result.map(drop)
}

/// `db` with a container of four partitions that has unique keys, and a small one.
async fn shop(store: impl Into<AnyStore>) -> Arc<Engine> {
    let engine = open(store, LIMITS).await;
    let db = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":-1,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}}"#;
    let definition = ContainerDefinition::create(&parse(body)).unwrap();
    let new = NewContainer { definition, throughput: ThroughputRequest::Manual(400) };
    let c = engine.catalog.create_container(db.rid, new).await.unwrap();
    try_container(&engine, "db", "small", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
    for n in 0..60 {
        put(&engine, "db", "c", &n.to_string()).await.unwrap();
    }
    put(&engine, "db", "small", "1").await.unwrap();
    let script = parse(r#"{"id":"hello","body":"function f() {}"}"#);
    let script = ScriptDefinition::parse(ScriptKind::StoredProcedure, &script).unwrap();
    engine.catalog.put_script(c.rid, ScriptKind::StoredProcedure, script, PutMode::Create).await.unwrap();
    let user = engine.catalog.put_user(db.rid, "ann", PutMode::Create).await.unwrap().0;
    let grant =
        PermissionGrant { mode: "Read".into(), resource: format!("dbs/{}/colls/{}/", db.rid, c.rid), key: None };
    engine.catalog.put_permission(user.rid, "reads", grant, PutMode::Create).await.unwrap();
    let item = ItemRid { container: c.rid, docnum: DOCNUM };
    let resource = format!("dbs/{}/colls/{}/docs/{item}", db.rid, c.rid);
    let grant = PermissionGrant { mode: "All".into(), resource, key: None };
    engine.catalog.put_permission(user.rid, "one", grant, PutMode::Create).await.unwrap();
    engine
}

async fn run_copy(engine: &Engine, to: &str) -> JobOutcome {
    let job = engine.catalog.begin_copy("db", to).await.unwrap();
    engine.catalog.jobs().wait_ended(job).await.unwrap().outcome.unwrap()
}

#[tokio::test]
async fn a_copy_is_complete_and_independent() {
    let dir = tempfile::tempdir().unwrap();
    for store in [AnyStore::Memory(Memory::new()), AnyStore::Embedded(disk(dir.path()))] {
        let engine = shop(store).await;
        let job = engine
            .split(at_container(&engine, ContainerName::Named { database: "db", container: "c" }).unwrap(), None, None)
            .await
            .unwrap();
        engine.catalog.jobs().wait_ended(job).await.unwrap();
        assert_eq!(run_copy(&engine, "copy").await, JobOutcome::Done);
        for container in ["c", "small"] {
            assert_eq!(items(&engine, "copy", container).await, items(&engine, "db", container).await);
        }
        let (old, new) = (find_database(&engine, "db").unwrap(), find_database(&engine, "copy").unwrap());
        let (was, is) = (old.container("c").unwrap(), new.container("c").unwrap());
        assert_eq!(is.definition, was.definition);
        assert_eq!(items_per_partition(is), items_per_partition(was));
        assert!(is.rid != was.rid && is.rid.database == new.rid && is.database == "copy");
        assert_eq!(is.scripts.iter().map(|script| script.rid.container).collect::<Vec<_>>(), [is.rid]);
        let there = |rid: String| format!("dbs/{}/colls/{}{rid}", new.rid, is.rid);
        let item = ItemRid { container: is.rid, docnum: DOCNUM };
        assert_eq!(resources(&new), [there(String::new()), there(format!("/docs/{item}"))]);
        let tree = engine.catalog.tree();
        let reserved = |owner| tree.offer(crate::OfferOwner::Container(owner)).map(|offer| offer.throughput);
        assert!(reserved(is.rid).is_some() && reserved(is.rid) == reserved(was.rid));

        put(&engine, "copy", "c", "new").await.unwrap();
        assert!(!items(&engine, "db", "c").await.contains_key("new"));
        let twice = parse(r#"{"id":"other","pk":"7","email":"7@x"}"#);
        let (at, options) = (at(&engine, "copy", "c"), WriteOptions::default());
        let twice = engine.create_item(&at, Some(&pk("7")), Verb::Create, twice, &options).await;
        assert_eq!(kind(twice), Kind::Conflict, "unique constraints hold in the copy");
        engine.catalog.delete_database(old.rid).await.unwrap();
        assert_eq!(items(&engine, "copy", "c").await.len(), 61);
        assert_sound(&engine).await;
        engine.close().await;
    }
    let engine = open(disk(dir.path()), LIMITS).await;
    assert_eq!(items(&engine, "copy", "c").await.len(), 61);
}

fn resources(database: &crate::Database) -> Vec<String> {
    let permissions = database.users.values().flat_map(|user| user.permissions.values());
    permissions.map(|permission| permission.grant.resource.clone()).collect()
}

/// Grants on other databases are copied unchanged and give no access to the copy.
#[tokio::test]
async fn grants_on_other_databases_are_copied_unchanged() {
    let engine = shop(Memory::new()).await;
    let (db, away) = (
        find_database(&engine, "db").unwrap(),
        engine.catalog.create_database("away", ThroughputRequest::Unspecified).await.unwrap(),
    );
    try_container(&engine, "away", "c", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
    let far = find_database(&engine, "away").unwrap().container("c").unwrap().rid;
    let small = db.container("small").unwrap().rid;
    let written = [
        "dbs/away/colls/c".to_owned(),
        format!("dbs/{}/colls/{far}", away.rid),
        format!("dbs/away/colls/{small}"),
        format!("dbs/{}/colls/{small}/docs/what", db.rid),
        "/dbs/d%62/colls/c/docs/100%/".to_owned(),
        format!("dbs/{}/colls/{small}", db.rid),
    ];
    let user = engine.catalog.put_user(db.rid, "bob", PutMode::Create).await.unwrap().0;
    for (n, resource) in written.iter().enumerate() {
        let grant = PermissionGrant { mode: "Read".into(), resource: resource.clone(), key: None };
        engine.catalog.put_permission(user.rid, &n.to_string(), grant, PutMode::Create).await.unwrap();
    }
    assert_eq!(run_copy(&engine, "p%41q").await, JobOutcome::Done);
    let copy = find_database(&engine, "p%41q").unwrap();
    let granted = resources(&copy);
    let small = copy.container("small").unwrap().rid;
    assert_eq!(granted[2..6], written[..4], "grants on other databases or on missing resources");
    assert_eq!(granted[6..], ["dbs/p%2541q/colls/c/docs/100%".to_owned(), format!("dbs/{}/colls/{small}", copy.rid)]);
}

/// Meanwhile writers continue, the copy is invisible, and its name is taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_a_snapshot_and_becomes_visible_when_complete() {
    let engine = shop(Memory::new()).await;
    let before = items(&engine, "db", "c").await;
    engine.catalog.jobs().hold(JobStep::Copy);
    let job = engine.catalog.begin_copy("db", "copy").await.unwrap();
    engine.catalog.jobs().wait_held_at(JobStep::Copy).await;
    put(&engine, "db", "c", "later").await.unwrap();
    try_container(&engine, "db", "later", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
    assert!(find_database(&engine, "copy").is_err());
    let taken = engine.catalog.create_database("copy", ThroughputRequest::Unspecified).await;
    assert_eq!(taken.map(drop).unwrap_err().kind, Kind::Conflict);
    assert_eq!(engine.catalog.begin_copy("db", "copy").await.unwrap_err().kind, Kind::Conflict);
    engine.catalog.jobs().release(JobStep::Copy);
    assert_eq!(engine.catalog.jobs().wait_ended(job).await.unwrap().outcome, Some(JobOutcome::Done));
    assert_eq!(items(&engine, "copy", "c").await, before);
    assert_eq!(find_database(&engine, "copy").unwrap().containers.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_cancelled_or_loses_its_source_leaves_nothing() {
    for step in [JobStep::Prepare, JobStep::Copy, JobStep::Publish] {
        let engine = shop(Memory::new()).await;
        engine.catalog.jobs().hold(step);
        let job = engine.catalog.begin_copy("db", "copy").await.unwrap();
        engine.catalog.jobs().wait_held_at(step).await;
        assert_eq!(engine.catalog.jobs().cancel(job).await.unwrap().outcome, Some(JobOutcome::Cancelled), "{step}");
        engine.catalog.jobs().release(step);
        wait_until_shards_dropped(&engine).await;
        assert!(find_database(&engine, "copy").is_err() && engine.catalog.tree().copies.is_empty());
        assert_eq!(run_copy(&engine, "copy").await, JobOutcome::Done, "the name is free again");
        assert_sound(&engine).await;
    }
    let engine = shop(Memory::new()).await;
    engine.catalog.jobs().hold(JobStep::Copy);
    let job = engine.catalog.begin_copy("db", "copy").await.unwrap();
    engine.catalog.jobs().wait_held_at(JobStep::Copy).await;
    let rid = find_database(&engine, "db").unwrap().rid;
    engine.catalog.delete_database(rid).await.unwrap();
    engine.catalog.jobs().release(JobStep::Copy);
    assert!(matches!(engine.catalog.jobs().wait_ended(job).await.unwrap().outcome, Some(JobOutcome::Failed(_))));
    wait_until_shards_dropped(&engine).await;
    assert!(engine.catalog.tree().databases.is_empty());
    assert_sound(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_restarts_after_a_crash() {
    for step in [JobStep::Prepare, JobStep::Copy, JobStep::Publish] {
        let store = Arc::new(AnyStore::Memory(Memory::new()));
        let engine = reopen(store.clone(), LIMITS).await;
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        container(&engine, "c", &["/pk"], 4).await;
        put(&engine, "db", "c", "1").await.unwrap();
        engine.catalog.jobs().hold(step);
        let job = engine.catalog.begin_copy("db", "copy").await.unwrap();
        engine.catalog.jobs().wait_held_at(step).await;
        put(&engine, "db", "c", "2").await.unwrap();
        engine.close().await;
        drop(engine);
        let engine = reopen(store, LIMITS).await;
        assert_eq!(engine.catalog.jobs().wait_ended(job).await.unwrap().outcome, Some(JobOutcome::Done), "{step}");
        assert_eq!(items(&engine, "copy", "c").await.len(), 2, "{step}: the copy took a new snapshot");
        wait_until_shards_dropped(&engine).await;
        assert_sound(&engine).await;
    }
}

/// The throughput of the original was raised, but its partitions are not split yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_scaling_container_gets_its_partitions() {
    let engine = shop(Memory::new()).await;
    let offer = |database: &str| {
        let rid = find_database(&engine, database).unwrap().container("c").unwrap().rid;
        engine.catalog.tree().offer(crate::OfferOwner::Container(rid)).unwrap().clone()
    };
    engine.catalog.jobs().hold(JobStep::CatchUp);
    let raise = |ru| crate::OfferChange::To(ThroughputRequest::Manual(ru));
    engine.catalog.replace_offer(offer("db").rid, raise(60_000), None).await.unwrap();
    engine.catalog.jobs().wait_held_at(JobStep::CatchUp).await;
    assert_eq!(run_copy(&engine, "copy").await, JobOutcome::Done);
    assert_eq!(find_database(&engine, "copy").unwrap().container("c").unwrap().partitions.len(), 4, "not split yet");
    engine.catalog.jobs().release(JobStep::CatchUp);
    for database in ["db", "copy"] {
        while find_database(&engine, database).unwrap().container("c").unwrap().partitions.len() < 6 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        engine.catalog.replace_offer(offer(database).rid, raise(50_000), None).await.unwrap();
    }
    assert_eq!(items(&engine, "copy", "c").await, items(&engine, "db", "c").await);
}

#[tokio::test]
async fn names_of_copies_are_checked() {
    let engine = shop(Memory::new()).await;
    for wrong in ["", "a/b", "a?", &"n".repeat(256)] {
        assert_eq!(engine.catalog.begin_copy("db", wrong).await.unwrap_err().kind, Kind::Invalid, "{wrong:?}");
    }
    assert_eq!(engine.catalog.begin_copy("none", "copy").await.unwrap_err().kind, Kind::NotFound);
    assert_eq!(engine.catalog.begin_copy("db", "db").await.unwrap_err().kind, Kind::Conflict);
    assert_eq!(run_copy(&engine, &"n".repeat(255)).await, JobOutcome::Done);
}
