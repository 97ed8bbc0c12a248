//! Shared test helpers of this crate: schemas, items to write, and a gate that pauses the committer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::path::PropertyPath;
use pleiad_model::policy::{ContainerDefinition, UniqueKey};
use pleiad_model::{Object, Value, json};
use pleiad_storage::{AnyStore, Batch, Blocking, Direction, Limit, Memory, Snapshot, Store, keyspace};
use tokio::sync::oneshot;

use crate::commit::{CommitEntry, Committer, Publish, SyncPolicy};
use crate::index::ComputedDefinitions;
use crate::key::ItemKey;
use crate::partition::{Draft, Partition};
use crate::schema::{IndexingConfig, Schema, SizeLimits};
use crate::unique::UniqueKeys;
use pleiad_model::partition_map::PartitionKeyRange;

/// A delay long enough that no sync happens during a test.
pub const LATER: SyncPolicy = SyncPolicy::SyncedWithin(Duration::from_secs(3600));

pub fn schema(paths: &[&str]) -> Schema {
    schema_with(paths, 1, "{}", &[])
}

/// With an indexing policy, and the earlier policies whose terms may still exist.
pub fn schema_with(paths: &[&str], version: u64, policy: &str, former: &[&str]) -> Schema {
    let definition = |policy: &str| {
        let paths = paths.iter().map(|path| Value::from(*path)).collect::<Vec<_>>();
        let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
        let key = Object::new().with("paths", paths).with("kind", kind).with("version", 2i64);
        let body = Object::new().with("id", "c").with("partitionKey", key);
        let policy = json::parse(policy.as_bytes()).unwrap();
        ContainerDefinition::create(&body.with("indexingPolicy", policy).into()).unwrap()
    };
    let former: Vec<IndexingConfig> =
        former.iter().map(|policy| IndexingConfig::of(&definition(policy), ComputedDefinitions::default())).collect();
    Schema::new(version, &definition(policy), &ComputedDefinitions::default(), &former, SizeLimits::UNLIMITED)
}

/// Partition key in `/pk`, and one unique key.
pub fn unique_schema(path: &str) -> Schema {
    Schema { unique: unique_key(path), ..schema(&["/pk"]) }
}

pub fn unique_key(path: &str) -> UniqueKeys {
    UniqueKeys::new(&[UniqueKey { paths: vec![PropertyPath::parse(path).unwrap()] }])
}

pub fn range(shard: u64, prefix: u32) -> PartitionKeyRange {
    PartitionKeyRange { id: prefix, shard, prefix, keys: EpkRange::FULL, parents: vec![], since: 1 }
}

pub fn memory() -> Arc<AnyStore> {
    Arc::new(Memory::new().into())
}

pub async fn open(store: &Arc<AnyStore>) -> Partition {
    let committer = Committer::start(store.clone(), LATER).unwrap();
    Partition::open(range(7, 3), store.clone(), committer).await.unwrap()
}

/// An item with its partition key in `pk` and an indexed number in `n`.
pub fn item(pk: &str, id: &str, n: i64) -> Value {
    Object::new().with("id", id).with("pk", pk).with("n", n).into()
}

pub fn key(schema: &Schema, pk: &str, id: &str) -> ItemKey {
    let pk = PartitionKey::extract(schema.key.as_ref().unwrap(), &item(pk, id, 0));
    ItemKey::new(schema.key.as_ref(), &pk, id)
}

pub fn draft(schema: &Schema, target: &str, body: Value) -> Draft {
    let pk = PartitionKey::extract(schema.key.as_ref().unwrap(), &body);
    let id = body.get("id").and_then(Value::as_str).unwrap().to_owned();
    let text = json::to_string(&body).into_bytes();
    Draft { target: ItemKey::new(schema.key.as_ref(), &pk, target), id, body, text, indexed: true }
}

/// While it exists, the committer is paused: it blocks while acknowledging the gate's entry.
pub struct Gate {
    _open: Sender<()>,
}

struct HeldCommit {
    entered: Sender<()>,
    open: Mutex<Receiver<()>>,
}

impl Publish for HeldCommit {
    fn published(&self, _: u64) {
        self.entered.send(()).unwrap();
        let _ = self.open.lock().recv(); // returns an error when the gate is dropped: continue
    }
}

impl Gate {
    pub fn close(committer: &Committer) -> Gate {
        let (entered, has_entered) = channel();
        let (open, opened) = channel();
        let held = Arc::new(HeldCommit { entered, open: Mutex::new(opened) });
        let (done, _) = oneshot::channel();
        committer.enqueue(CommitEntry { batch: Batch::default(), state: None, owner: Some((held, 0)), done }).unwrap();
        has_entered.recv().unwrap();
        Gate { _open: open }
    }
}

pub async fn rows(store: &AnyStore, shard: u64) -> BTreeMap<Bytes, Bytes> {
    let (from, to) = keyspace::shard_range(shard);
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    snapshot.scan(&from, &to, Direction::Forward, Limit::NONE).await.unwrap().pairs.into_iter().collect()
}

/// Asserts that every keyspace agrees with the items, and the state in memory with the stored one.
pub async fn audit(partition: &Partition, schema: &Schema) {
    let report = partition.check(schema).await.unwrap();
    assert_eq!(report.problems.messages, Vec::<String>::new());
    let state = partition.shard_state();
    assert_eq!((report.lsn, report.items, report.item_bytes), (state.lsn, state.items, state.item_bytes));
}

/// Seeded random numbers: xorshift64.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}
