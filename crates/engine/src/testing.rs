//! Test support: accounts, containers and items for the tests of this crate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pleiad_model::env::ManualEnv;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Kind, Object, Result, Value, json};
use pleiad_storage::{AnyStore, Memory, RocksOptions, RocksStore, Store, keyspace};

use crate::catalog::{NewContainer, load_dropped_shards};
pub use crate::query::exam::LIMITS;
use crate::*;

const START_MS: u64 = 1_700_000_000_000;
const SYNC_LATER: SyncPolicy = SyncPolicy::SyncedWithin(Duration::from_secs(3600));

pub async fn open(store: impl Into<AnyStore>, limits: PartitionLimits) -> Arc<Engine> {
    open_at(store, limits, Arc::new(ManualEnv::at(START_MS, 1))).await
}

async fn open_at(store: impl Into<AnyStore>, limits: PartitionLimits, env: Arc<ManualEnv>) -> Arc<Engine> {
    let engine = Engine::open(store.into(), SYNC_LATER, limits, env).await.unwrap();
    engine.start_background_work().await.unwrap();
    Arc::new(engine)
}

/// An account that enforces provisioned throughput, and its clock. With a database named `db`.
pub async fn governed(governance: Governance) -> (Arc<Engine>, Arc<ManualEnv>) {
    let env = Arc::new(ManualEnv::at(START_MS, 1));
    let governance = Governance { enforced: true, ..governance };
    let engine = open_at(Memory::new(), PartitionLimits { governance, ..LIMITS }, env.clone()).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    (engine, env)
}

/// The account after a restart.
pub async fn reopen(store: Arc<AnyStore>, limits: PartitionLimits) -> Arc<Engine> {
    reopen_at(store, limits, Arc::new(ManualEnv::at(START_MS, 1))).await
}

pub async fn reopen_at(store: Arc<AnyStore>, limits: PartitionLimits, env: Arc<ManualEnv>) -> Arc<Engine> {
    let engine = Engine::open_on(store, SyncPolicy::Synced, limits, env).await.unwrap();
    let engine = Engine { query_permits: Arc::new(Semaphore::new(1)), ..engine };
    engine.start_background_work().await.unwrap();
    Arc::new(engine)
}

/// With a database named `db`.
pub async fn account() -> Arc<Engine> {
    let engine = open(Memory::new(), LIMITS).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    engine
}

pub fn disk(dir: &Path) -> RocksStore {
    RocksStore::open(dir, RocksOptions::default()).unwrap()
}

pub fn definition(id: &str, paths: &[&str]) -> ContainerDefinition {
    let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
    let paths = paths.iter().map(|path| Value::from(*path)).collect::<Vec<_>>();
    let key = Object::new().with("paths", paths).with("kind", kind).with("version", 2i64);
    ContainerDefinition::create(&Object::new().with("id", id).with("partitionKey", key).into()).unwrap()
}

/// A container in `db` with that many partitions, at least four.
pub async fn container(engine: &Engine, id: &str, paths: &[&str], partitions: i64) -> Arc<Container> {
    try_container(engine, "db", id, paths, ThroughputRequest::Manual(partitions * 100)).await.unwrap()
}

pub async fn try_container(
    engine: &Engine,
    database: &str,
    id: &str,
    paths: &[&str],
    throughput: ThroughputRequest,
) -> Result<Arc<Container>> {
    let database = find_database(engine, database)?.rid;
    let definition = definition(id, paths);
    engine.catalog.create_container(database, NewContainer { definition, throughput }).await
}

pub fn admit(engine: &Engine, container: &str) -> Admitted {
    let name = ContainerName::Named { database: "db", container };
    engine.authorize_container(&ServerAuthority, ActionSet::ALL, name, Addressed::Parent).unwrap()
}

/// The account, with all rights.
pub fn whole(engine: &Engine) -> Admitted<WholeAccount> {
    engine.authorize(&ServerAuthority, ActionSet::ALL).unwrap()
}

pub fn find_database(engine: &Engine, name: &str) -> Result<Arc<Database>> {
    let name = DatabaseName::Named(name);
    let at = engine.authorize_database(&ServerAuthority, ActionSet::ALL, name, Addressed::Itself)?;
    Ok(at.database().clone())
}

pub fn at_container(engine: &Engine, name: ContainerName<'_>) -> Result<Admitted> {
    engine.authorize_container(&ServerAuthority, ActionSet::ALL, name, Addressed::Itself)
}

pub fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

pub fn item(id: &str, pk: &str) -> Value {
    Object::new().with("id", id).with("pk", pk).into()
}

pub fn pk(value: &str) -> PartitionKey {
    PartitionKey::parse(&format!("[\"{value}\"]")).unwrap()
}

pub async fn create(engine: &Engine, at: &Admitted, id: &str, key: &str) -> EngineResponse<Written> {
    engine.create_item(at, Some(&pk(key)), Verb::Create, item(id, key), &WriteOptions::default()).await
}

pub async fn read(engine: &Engine, at: &Admitted, id: &str, key: &str) -> EngineResponse<Record> {
    let EngineResponse { result, served_by, charge_ru } =
        engine.read_item(at, Some(&pk(key)), Target::Named(id), None, None).await;
    EngineResponse { result: result.map(|read| read.record), served_by, charge_ru }
}

pub async fn delete(engine: &Engine, at: &Admitted, id: &str, key: &str) -> EngineResponse<Written> {
    engine.delete_item(at, Some(&pk(key)), Target::Named(id), &Precondition::None).await
}

pub fn kind<T: std::fmt::Debug>(answer: EngineResponse<T>) -> Kind {
    answer.result.unwrap_err().kind
}

/// Creates items `0..count`, many concurrently; `key` gives the partition key of each.
pub async fn load(engine: &Arc<Engine>, container: &'static str, count: usize, key: fn(usize) -> String) {
    const TASKS: usize = 64;
    let work = |task| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let at = admit(&engine, container);
            for n in (task..count).step_by(TASKS) {
                create(&engine, &at, &n.to_string(), &key(n)).await.result.unwrap();
            }
        })
    };
    for task in (0..TASKS).map(work).collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

/// Items in each partition, in the order of the hash space.
pub fn items_per_partition(container: &Container) -> Vec<u64> {
    container.partitions.iter().map(|partition| partition.shard_state().items).collect()
}

/// Waits until no rows of dropped containers are left.
pub async fn wait_until_shards_dropped(engine: &Engine) {
    let (store, _) = engine.catalog.store_and_committer();
    while !load_dropped_shards(&store).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

pub async fn shard_bytes(store: &impl Store, container: &Container) -> u64 {
    let mut bytes = 0;
    for range in container.map.ranges() {
        let (from, to) = keyspace::shard_range(range.shard);
        bytes += store.size_bytes(&from, &to, pleiad_storage::Blocking::Suspend).await.unwrap();
    }
    bytes
}

/// Waits until no byte of the container is on disk: a compaction of the store may still be reading a file.
pub async fn assert_space_reclaimed(store: &impl Store, container: &Container) {
    for _ in 0..1000 {
        if shard_bytes(store, container).await == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} bytes are left", shard_bytes(store, container).await);
}

pub async fn assert_sound(engine: &Engine) {
    let report = engine.check(&whole(engine)).await.unwrap();
    assert_eq!(report.problem_count(), 0, "{report:?}");
}
