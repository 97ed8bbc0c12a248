//! Checks of a whole account: the shards in the catalog against the rows in the store.

use std::sync::Arc;

use pleiad_model::env::ManualEnv;
use pleiad_model::json;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::policy::ContainerDefinition;
use pleiad_partition::commit::block_on;
use pleiad_storage::{AnyStore, Batch, Memory, keyspace};

use super::*;
use crate::catalog::NewContainer;
use crate::testing::{at_container, whole};
use crate::{ContainerName, PartitionLimits, SyncPolicy, ThroughputRequest, Verb, WriteOptions};

/// A database with a container of three partitions and a few items in each.
fn account() -> Engine {
    let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
    let store = AnyStore::Memory(Memory::default());
    let engine = block_on(Engine::open(store, SyncPolicy::Synced, PartitionLimits::default(), env)).unwrap();
    let database = block_on(engine.catalog.create_database("shop", ThroughputRequest::Unspecified)).unwrap();
    let body = r#"{"id":"orders","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let definition = ContainerDefinition::create(&json::parse(body.as_bytes()).unwrap()).unwrap();
    let new = NewContainer { definition, throughput: ThroughputRequest::Manual(30_000) };
    block_on(engine.catalog.create_container(database.rid, new)).unwrap();
    (0..30).for_each(|n| create(&engine, n));
    engine
}

fn create(engine: &Engine, n: i64) {
    let at = at_container(engine, ContainerName::Named { database: "shop", container: "orders" }).unwrap();
    let body = json::parse(format!(r#"{{"id":"i{n}","pk":{n}}}"#).as_bytes()).unwrap();
    let key = PartitionKey::parse(&format!("[{n}]")).unwrap();
    let options = WriteOptions::default();
    block_on(engine.create_item(&at, Some(&key), Verb::Create, body, &options)).result.unwrap();
}

fn put(engine: &Engine, row: &[u8]) {
    let mut batch = Batch::default();
    batch.put(row, []);
    block_on(engine.catalog.store_and_committer().1.commit(batch)).unwrap();
}

#[test]
fn a_consistent_account_is_reported_by_container() {
    let engine = account();
    let report = block_on(engine.check(&whole(&engine))).unwrap();
    assert_eq!(report.problem_count(), 0, "{report:?}");
    let [database] = report.databases.as_slice() else { panic!("{report:?}") };
    let [container] = database.containers.as_slice() else { panic!("{report:?}") };
    assert_eq!((database.id.as_str(), container.id.as_str()), ("shop", "orders"));
    assert_eq!((container.partitions.len(), container.items()), (3, 30));
}

#[test]
fn a_problem_of_one_partition_is_a_problem_of_the_account() {
    let engine = account();
    let shard = containers(&engine.catalog.tree()).next().unwrap().map.ranges()[1].shard;
    put(&engine, &keyspace::member(shard, &[0x44; 16], 77));
    assert_eq!(block_on(engine.check(&whole(&engine))).unwrap().problem_count(), 1);
}

#[test]
fn orphan_shard_rows_are_reported() {
    let engine = account();
    put(&engine, &keyspace::doc(4711, 1));
    put(&engine, &keyspace::doc(4711, 2));
    let report = block_on(engine.check(&whole(&engine))).unwrap();
    assert_eq!(report.problems.messages, ["shard 4711 has rows and belongs to no container"]);
}

#[test]
fn a_dropped_container_leaves_no_problems() {
    let engine = account();
    let rid = containers(&engine.catalog.tree()).next().unwrap().rid;
    block_on(engine.catalog.delete_container(rid)).unwrap();
    assert_eq!(block_on(engine.check(&whole(&engine))).unwrap().problem_count(), 0);
}

#[tokio::test]
async fn a_database_copy_in_progress_is_no_problem() {
    let engine = crate::testing::account().await;
    crate::testing::container(&engine, "c", &["/pk"], 4).await;
    crate::testing::load(&engine, "c", 30, |n| n.to_string()).await;
    engine.catalog.jobs().hold(crate::JobStep::Publish);
    let job = engine.catalog.begin_copy("db", "copy").await.unwrap();
    engine.catalog.jobs().wait_held_at(crate::JobStep::Publish).await;
    let report = engine.check(&whole(&engine)).await.unwrap();
    assert_eq!(report.problem_count(), 0, "{report:?}");
    engine.catalog.jobs().release(crate::JobStep::Publish);
    engine.catalog.jobs().wait_ended(job).await.unwrap();
}
