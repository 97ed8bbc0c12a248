//! The kind of a container: it survives every change of the container, and only known kinds are opened.

use pleiad_model::env::ManualEnv;
use pleiad_storage::Durability;

use super::*;
use crate::catalog::NewContainer;
use crate::testing::{LIMITS, account, assert_sound, at_container, container, definition, find_database, load, reopen};
use crate::{ContainerName, Engine, SyncPolicy, ThroughputRequest};

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

/// The rows of all containers.
async fn stored(store: &AnyStore) -> Vec<(Bytes, Object)> {
    let object = |row: &[u8]| json::parse(row).unwrap().as_object().cloned().unwrap();
    scan(store, CONTAINER).await.unwrap().into_iter().map(|(key, row)| (key, object(&row))).collect()
}

async fn kinds(store: &AnyStore) -> Vec<Option<Value>> {
    stored(store).await.iter().map(|(_, row)| row.get("kind").cloned()).collect()
}

/// Changes the rows of all containers.
async fn rewrite(store: &AnyStore, change: impl Fn(&mut Object)) {
    let mut batch = Batch::new();
    for (key, mut row) in stored(store).await {
        change(&mut row);
        batch.put(key, json::to_string(&row.into()).into_bytes());
    }
    store.commit(&batch, Durability::Written).await.unwrap();
}

async fn open_error(store: Arc<AnyStore>) -> Error {
    let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
    Engine::open_on(store, SyncPolicy::Synced, LIMITS, env).await.err().expect("the account does not open")
}

async fn wait(engine: &Engine, job: Result<u64>) {
    engine.catalog.jobs().wait_ended(job.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_kind_survives_replace_split_merge_and_copy() {
    let engine = account().await;
    let (store, _) = engine.catalog.store_and_committer();
    let definition = ContainerDefinition { kind: ContainerKind::Table, ..definition("c", &["/pk"]) };
    let new = NewContainer { definition, throughput: ThroughputRequest::Unspecified };
    let rid = engine.catalog.create_container(find_database(&engine, "db").unwrap().rid, new).await.unwrap().rid;
    load(&engine, "c", 20, |n| n.to_string()).await;
    let table = Some(Value::from("table"));
    let same = |old: &ContainerDefinition| old.replace(&old.to_object().with("defaultTtl", -1i64).into());
    engine.catalog.replace_container(rid, same).await.unwrap();
    assert_eq!(kinds(&store).await, std::slice::from_ref(&table));
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await;
    wait(&engine, job).await;
    assert_eq!(kinds(&store).await, std::slice::from_ref(&table));
    let ids: Vec<u32> =
        at_container(&engine, C).unwrap().container().map.ranges().iter().map(|range| range.id).collect();
    let job = engine.merge(at_container(&engine, C).unwrap(), &ids[..2]).await;
    wait(&engine, job).await;
    assert_eq!(kinds(&store).await, std::slice::from_ref(&table));
    wait(&engine, engine.catalog.begin_copy("db", "copy").await).await;
    assert_eq!(kinds(&store).await, [table.clone(), table]);
    let tree = engine.catalog.tree();
    let containers = tree.databases.values().flat_map(|database| database.containers.values());
    assert!(containers.into_iter().all(|container| container.definition.kind == ContainerKind::Table));
    assert_sound(&engine).await;
}

#[tokio::test]
async fn a_kind_that_is_not_known_fails_the_open() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let (store, _) = engine.catalog.store_and_committer();
    assert_eq!(kinds(&store).await, [Some("nosql".into())]);
    engine.close().await;
    for kind in ["table", "graph", "mongo", "cassandra", "wide"] {
        rewrite(&store, |row| row.set("kind", kind)).await;
        let error = open_error(store.clone()).await;
        let wanted = format!("the container 'c' of the database 'db' has the kind '{kind}', which this Pleiad");
        assert!(error.to_string().starts_with(&wanted), "{error}");
    }
    rewrite(&store, |row| row.set("kind", 1i64)).await;
    assert!(open_error(store.clone()).await.to_string().contains("kind of a container"));
    rewrite(&store, |row| row.set("kind", "nosql")).await;
    reopen(store, LIMITS).await;
}

#[tokio::test]
async fn a_row_of_format_3_is_a_nosql_container_and_gets_its_kind_when_it_is_written() {
    let engine = account().await;
    let rid = container(&engine, "c", &["/pk"], 4).await.rid;
    container(&engine, "other", &["/pk"], 4).await;
    load(&engine, "c", 20, |n| n.to_string()).await;
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    rewrite(&store, |row| drop(row.remove("kind"))).await;
    let engine = reopen(store.clone(), LIMITS).await;
    assert_eq!(at_container(&engine, C).unwrap().container().definition.kind, ContainerKind::Nosql);
    assert_eq!(kinds(&store).await, [None, None]);
    let same = |old: &ContainerDefinition| old.replace(&old.to_object().with("defaultTtl", -1i64).into());
    engine.catalog.replace_container(rid, same).await.unwrap();
    assert_eq!(kinds(&store).await, [Some("nosql".into()), None]);
    engine.close().await;
    let engine = reopen(store, LIMITS).await;
    assert_eq!(at_container(&engine, C).unwrap().container().items(), 20);
    assert_sound(&engine).await;
}
