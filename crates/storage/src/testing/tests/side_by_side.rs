//! Memory and RocksDB give the same results for any sequence of calls.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::store::{Batch, Direction, Durability, Limit, Snapshot, Store};
use crate::testing::{Mirror, block_on};
use crate::{Blocking, Memory, RocksOptions, RocksStore};

crate::exam!(mirror => |dir| Mirror(Memory::new(), RocksStore::open(dir, RocksOptions::default()).unwrap()));

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Change>, Durability),
    Get(Vec<Bytes>),
    Scan(Bytes, Bytes, Direction, Limit),
    TakeSnapshot,
    Drop(Bytes, Bytes),
}

#[derive(Clone, Debug)]
enum Change {
    Put(Bytes, Bytes),
    Delete(Bytes),
    DeleteRange(Bytes, Bytes),
    Expect(Bytes, Option<Bytes>),
}

/// Few keys, so that they collide; some are of items, which the RocksDB store also caches.
fn key() -> impl Strategy<Value = Bytes> {
    let plain = vec(prop_oneof![Just(0u8), Just(7), Just(0xFF)], 0..4).prop_map(Bytes::from);
    prop_oneof![plain, (0..4u64).prop_map(|docnum| crate::keyspace::doc(7, docnum))]
}

fn value() -> impl Strategy<Value = Bytes> {
    vec(0..3u8, 0..2).prop_map(Bytes::from)
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        12 => (key(), value()).prop_map(|(key, value)| Change::Put(key, value)),
        3 => key().prop_map(Change::Delete),
        1 => (key(), key()).prop_map(|(from, to)| Change::DeleteRange(from, to)),
        1 => (key(), proptest::option::of(value())).prop_map(|(key, value)| Change::Expect(key, value)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    let limit = (0..20usize, 0..60usize).prop_map(|(rows, bytes)| Limit { rows, bytes });
    let durability = prop_oneof![9 => Just(Durability::Written), 1 => Just(Durability::Synced)];
    prop_oneof![
        8 => (vec(change(), 0..6), durability).prop_map(|(changes, durability)| Step::Commit(changes, durability)),
        3 => vec(key(), 0..4).prop_map(Step::Get),
        6 => (key(), key(), direction, limit).prop_map(|(from, to, direction, limit)| Step::Scan(from, to, direction, limit)),
        2 => Just(Step::TakeSnapshot),
        1 => (key(), key()).prop_map(|(from, to)| Step::Drop(from, to)),
    ]
}

fn batch(changes: Vec<Change>) -> Batch {
    let mut batch = Batch::new();
    for change in changes {
        match change {
            Change::Put(key, value) => batch.put(key, value),
            Change::Delete(key) => batch.delete(key),
            Change::DeleteRange(from, to) => batch.delete_range(from, to),
            Change::Expect(key, value) => batch.expect(key, value),
        }
    }
    batch
}

/// `Mirror` compares every result; a failed guard is a result, too.
async fn run_steps(steps: Vec<Step>, store: Mirror<Memory, RocksStore>) {
    let mut snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    for step in steps {
        match step {
            Step::Commit(changes, durability) => drop(store.commit(&batch(changes), durability).await),
            Step::Get(keys) => {
                store.get_many(&keys).await.unwrap();
                for key in &keys {
                    // Twice: the second read may be served from the row cache.
                    store.get(key).await.unwrap();
                    store.get(key).await.unwrap();
                }
                snapshot.get_many(&keys).await.unwrap();
            }
            Step::Scan(from, to, direction, limit) => drop(snapshot.scan(&from, &to, direction, limit).await.unwrap()),
            Step::TakeSnapshot => snapshot = store.snapshot(Blocking::Suspend).await.unwrap(),
            // A snapshot need not survive this, so a new one is taken.
            Step::Drop(from, to) => {
                store.drop_range(&from, &to).await.unwrap();
                snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
            }
        }
    }
    let all = store.snapshot(Blocking::Suspend).await.unwrap();
    all.scan(b"", &[0xFF; 9], Direction::Forward, Limit::NONE).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn memory_and_rocksdb_agree(steps in vec(step(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let rocksdb = RocksStore::open(dir.path(), RocksOptions::default()).unwrap();
        block_on(run_steps(steps, Mirror(Memory::new(), rocksdb)));
    }
}
