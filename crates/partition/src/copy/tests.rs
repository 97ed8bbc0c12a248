//! Copies that are made during concurrent writes equal their parents at the fence, row by row.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use pleiad_model::Value;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_storage::keyspace::{RowPlacement, Tag};
use pleiad_storage::testing::Mirror;
use pleiad_storage::{Memory, RocksOptions, RocksStore};

use super::*;
use crate::change_feed::ChangeQuery;
use crate::feed::{KeyScope, PageLimit};
use crate::key::ItemKey;
use crate::partition::{Precondition, Verb, WriteError};
use crate::record::RecordView;
use crate::testing::{Dice, LATER, audit, draft, item, key, memory, rows, schema, unique_schema};
use crate::ttl::Expiry;

const KEYS: u64 = 9;
const IDS: u64 = 14;

struct World {
    store: Arc<AnyStore>,
    committer: Committer,
    schema: Arc<Schema>,
}

fn range(shard: u64, keys: EpkRange) -> PartitionKeyRange {
    let id = u32::try_from(shard).unwrap();
    PartitionKeyRange { id, shard, prefix: id, keys, parents: vec![], since: 1 }
}

/// Concurrent writers, each with its own seed, until the fence stops them.
struct Storm {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<u64>>,
}

impl World {
    fn new(store: Arc<AnyStore>) -> World {
        let committer = Committer::start(store.clone(), LATER).unwrap();
        World { store, committer, schema: Arc::new(Schema { retains_versions: true, ..unique_schema("/n") }) }
    }

    async fn open(&self, range: &PartitionKeyRange) -> Arc<Partition> {
        Arc::new(Partition::open(range.clone(), self.store.clone(), self.committer.clone()).await.unwrap())
    }

    /// One random write; false when the fence is up.
    async fn write(&self, partitions: &[Arc<Partition>], dice: &mut Dice) -> bool {
        let (pk, id, other) = (dice.below(KEYS), dice.below(IDS), dice.below(IDS));
        let (pk, id, other) = (format!("p{pk}"), format!("i{id}"), format!("i{other}"));
        let key: ItemKey = key(&self.schema, &pk, &id);
        let at = partitions.iter().find(|partition| partition.range.keys.contains(&key.logical.epk)).unwrap();
        let schema = &self.schema;
        let body: Value = item(&pk, &id, dice.below(50) as i64);
        let condition = Precondition::None;
        let outcome = match dice.below(20) {
            0..=7 => at.write(schema, Verb::Upsert, &draft(schema, &id, body), &condition, 7).await.map(drop),
            8..=10 => at.write(schema, Verb::Create, &draft(schema, &id, body), &condition, 7).await.map(drop),
            11..=12 => at.write(schema, Verb::Replace, &draft(schema, &id, body), &condition, 8).await.map(drop),
            13..=14 => {
                let renamed = draft(schema, &id, item(&pk, &other, 1));
                at.write(schema, Verb::Replace, &renamed, &condition, 9).await.map(drop)
            }
            15 => at.delete_by_partition_key(schema, &key.logical, 7).await.map(drop),
            16 => at.purge_deleted_keys(schema, 7).await.map(drop).map_err(WriteError::from),
            _ => at.delete(schema, &key, &condition, 7).await.map(drop),
        };
        !outcome.is_err_and(|error| error.is_outdated())
    }

    async fn writes(&self, partitions: &[Arc<Partition>], seed: u64, count: usize) {
        let mut dice = Dice(seed);
        for _ in 0..count {
            assert!(self.write(partitions, &mut dice).await);
        }
    }

    fn storm(self: &Arc<Self>, partitions: &[Arc<Partition>], seed: u64) -> Storm {
        let stop = Arc::new(AtomicBool::new(false));
        let task = |n| {
            let (world, partitions, stop) = (self.clone(), partitions.to_vec(), stop.clone());
            tokio::spawn(async move {
                let (mut dice, mut count) = (Dice(seed * 10 + n), 0);
                while !stop.load(Ordering::Relaxed) && world.write(&partitions, &mut dice).await {
                    count += 1;
                }
                count
            })
        };
        Storm { tasks: (1..4).map(task).collect(), stop }
    }

    fn copy(&self, parents: &[Arc<Partition>], children: &[PartitionKeyRange]) -> Copy {
        let (store, committer) = (self.store.clone(), self.committer.clone());
        Copy::new(1, parents.to_vec(), children.to_vec(), self.schema.clone(), store, committer)
    }

    async fn commit(&self, batch: Batch) {
        self.committer.commit(batch).await.unwrap();
    }

    /// Runs every step of a copy; some are first started and aborted.
    async fn run_copy(
        &self,
        parents: &[Arc<Partition>],
        children: &[PartitionKeyRange],
        dice: &mut Dice,
    ) -> Vec<Arc<Partition>> {
        while dice.below(2) == 0 {
            let mut left = dice.below(6);
            let _ = self.copy(parents, children).run(&mut failing_after(&mut left)).await;
        }
        let mut copy = self.copy(parents, children);
        let done = copy.run(&mut no_progress).await.unwrap();
        self.commit(done).await;
        for _ in 0..3 {
            tokio::task::yield_now().await;
            let round = copy.catch_up(&mut no_progress).await.unwrap();
            self.commit(round.batch).await;
            while dice.below(3) == 0 {
                let mut left = dice.below(3);
                let mut again = self.copy(parents, children);
                again.resume().await.unwrap();
                if let Ok(round) = again.catch_up(&mut failing_after(&mut left)).await {
                    self.commit(round.batch).await;
                }
                copy = self.copy(parents, children);
                copy.resume().await.unwrap();
            }
        }
        parents.iter().for_each(|parent| parent.fence());
        self.commit(Batch::default()).await;
        let mut batch = copy.catch_up(&mut no_progress).await.unwrap().batch;
        for (child, state) in children.iter().zip(copy.initial_states()) {
            batch.put(keyspace::state(child.shard), state.encode());
        }
        self.commit(batch).await;
        let mut opened = Vec::new();
        for child in children {
            opened.push(self.open(child).await);
        }
        opened
    }

    /// The rows of all items in a key range, without their shard prefix.
    async fn rows_in(&self, partitions: &[Arc<Partition>], keys: &EpkRange) -> BTreeMap<Bytes, Bytes> {
        let mut found = BTreeMap::new();
        for partition in partitions {
            let rows = rows(&self.store, partition.range.shard).await;
            for (row, value) in &rows {
                let tag = Tag::try_from(row[8]).unwrap();
                if !keyspace::COPIED_TAGS.contains(&tag) {
                    continue;
                }
                let epk = match keyspace::placement(tag, row).unwrap() {
                    RowPlacement::AtEpk(epk) => epk,
                    RowPlacement::WithItem(docnum) => {
                        let doc = &rows[&keyspace::doc(partition.range.shard, docnum)];
                        RecordView::read(doc).unwrap().epk.to_vec()
                    }
                    RowPlacement::InValue if tag == Tag::Doc => RecordView::read(value).unwrap().epk.to_vec(),
                    RowPlacement::InValue if tag == Tag::Version => crate::version_row::epk_of(value).unwrap().to_vec(),
                    RowPlacement::InValue => value.to_vec(),
                };
                if keys.contains(&EffectiveKey::from_bytes(&epk)) {
                    found.insert(row.slice(8..), value.clone());
                }
            }
        }
        found
    }

    async fn check(&self, parents: &[Arc<Partition>], children: &[Arc<Partition>]) {
        let lsn = parents.iter().map(|parent| parent.shard_state().lsn).max().unwrap() + u64::from(parents.len() > 1);
        for child in children {
            audit(child, &self.schema).await;
            assert_eq!(child.lsn(), lsn);
            let keys = &child.range.keys;
            let (parent_rows, child_rows) =
                (self.rows_in(parents, keys).await, self.rows_in(std::slice::from_ref(child), &EpkRange::FULL).await);
            assert_eq!(child_rows, parent_rows, "child {}", child.range.id);
        }
    }
}

async fn no_progress(_: &CopyFigures) -> Result<()> {
    Ok(())
}

fn failing_after(left: &mut u64) -> impl AsyncFnMut(&CopyFigures) -> Result<()> {
    async move |_| {
        *left = left.checked_sub(1).ok_or_else(|| Error::unavailable("stopped, as planned"))?;
        Ok(())
    }
}

/// A copy spends its time on bytes, and large items are copied before their small index rows.
#[tokio::test]
async fn copy_progress_follows_the_copied_bytes() {
    let world = World { schema: Arc::new(schema(&["/pk"])), ..World::new(memory()) };
    let parent = [world.open(&range(7, EpkRange::FULL)).await];
    for n in 0..2000 {
        let Value::Object(body) = item("p", &n.to_string(), n) else { panic!() };
        let body = body.with("text", "x".repeat(2000)).into();
        let draft = draft(&world.schema, &n.to_string(), body);
        parent[0].write(&world.schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }
    let mut reports = Vec::new();
    let mut watch = async |figures: &CopyFigures| -> Result<()> {
        reports.push(*figures);
        Ok(())
    };
    world.copy(&parent, &[range(8, EpkRange::FULL)]).run(&mut watch).await.unwrap();
    let total = reports.last().unwrap().bytes;
    assert!(reports.len() > 3);
    for figures in reports {
        let (says, is) = (figures.percent(), figures.bytes * 100 / total);
        assert!(says.abs_diff(is) <= 20, "reported {says} percent at {is} percent");
    }
}

fn halves(at: &EffectiveKey, shard: u64) -> [PartitionKeyRange; 2] {
    let (min, max) = (EffectiveKey::MIN, EffectiveKey::MAX);
    [range(shard, EpkRange { min, max: at.clone() }), range(shard + 1, EpkRange { min: at.clone(), max })]
}

async fn examine(store: Arc<AnyStore>, seed: u64, live: bool) {
    let world = Arc::new(World::new(store));
    let mut dice = Dice(seed);
    let parent = [world.open(&range(7, EpkRange::FULL)).await];
    world.writes(&parent, seed, 150).await;
    let at = parent[0].split_point().await.unwrap().unwrap();

    let storm = live.then(|| world.storm(&parent, seed));
    let children = world.run_copy(&parent, &halves(&at, 8), &mut dice).await;
    stop_storm(storm).await;
    world.check(&parent, &children).await;

    // Both halves accept writes of their own, then they are merged.
    world.writes(&children, seed + 1, 100).await;
    let storm = live.then(|| world.storm(&children, seed + 2));
    let merged = world.run_copy(&children, &[range(20, EpkRange::FULL)], &mut dice).await;
    stop_storm(storm).await;
    world.check(&children, &merged).await;
    world.writes(&merged, seed + 3, 50).await;
    audit(&merged[0], &world.schema).await;
}

async fn stop_storm(storm: Option<Storm>) {
    let Some(storm) = storm else { return };
    storm.stop.store(true, Ordering::Relaxed);
    for task in storm.tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s28_s47_a_split_copies_every_row_and_a_merge_joins_them() {
    for seed in 1..=12 {
        examine(memory(), seed, true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn copies_on_disk_equal_copies_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RocksStore::open(dir.path(), RocksOptions::default()).unwrap();
    examine(Arc::new(AnyStore::Embedded(disk)), 42, true).await;
    let dir = tempfile::tempdir().unwrap();
    let disk = RocksStore::open(dir.path(), RocksOptions::default()).unwrap();
    examine(Arc::new(AnyStore::Mirror(Mirror(Memory::new(), disk))), 43, false).await;
}

#[tokio::test]
async fn s46_the_split_point_halves_the_bytes_and_divides_no_key() {
    let world = World::new(memory());
    let partition = world.open(&range(7, EpkRange::FULL)).await;
    assert_eq!(partition.split_point().await.unwrap(), None, "nothing to split");
    for n in 0..400 {
        let draft = draft(&world.schema, &n.to_string(), item(&format!("p{}", n % 200), &n.to_string(), n));
        partition.write(&world.schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }
    let at = partition.split_point().await.unwrap().unwrap();
    let children = world.run_copy(std::slice::from_ref(&partition), &halves(&at, 8), &mut Dice(1)).await;
    let bytes: Vec<u64> = children.iter().map(|child| child.shard_state().item_bytes).collect();
    assert!(bytes[0].abs_diff(bytes[1]) * 20 < bytes[0] + bytes[1], "{bytes:?}");
}

#[tokio::test]
async fn a_single_key_has_no_split_point() {
    let world = World::new(memory());
    let partition = world.open(&range(7, EpkRange::FULL)).await;
    for n in 0..20 {
        let draft = draft(&world.schema, &n.to_string(), item("one", &n.to_string(), n));
        partition.write(&world.schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }
    assert_eq!(partition.split_point().await.unwrap(), None);
}

/// The tombstone is made after the bulk copy and before the fence, and purged between two rounds or not at all.
#[tokio::test]
async fn a_key_deleted_during_a_copy_is_deleted_in_its_child() {
    for is_purged in [false, true] {
        let world = World::new(memory());
        let parent = world.open(&range(7, EpkRange::FULL)).await;
        let parents = std::slice::from_ref(&parent);
        let ranges = halves(&EffectiveKey::from_bytes(&[0x20]), 8);
        let [deleted, kept] = [world.key_in(&ranges[0].keys), world.key_in(&ranges[1].keys)];
        for n in 0..20 {
            world.put(parents, &world.schema, if n % 2 == 0 { &deleted } else { &kept }, n).await;
        }
        let mut copy = world.copy(parents, &ranges);
        world.commit(copy.run(&mut no_progress).await.unwrap()).await;
        let logical = key(&world.schema, &deleted, "").logical;
        parent.delete_by_partition_key(&world.schema, &logical, 7).await.unwrap();
        world.commit(copy.catch_up(&mut no_progress).await.unwrap().batch).await;
        world.put(parents, &world.schema, &deleted, 20).await;
        while is_purged && parent.purge_deleted_keys(&world.schema, 7).await.unwrap() {}
        parent.fence();
        world.commit(Batch::default()).await;
        let mut batch = copy.catch_up(&mut no_progress).await.unwrap().batch;
        for (child, state) in ranges.iter().zip(copy.initial_states()) {
            batch.put(keyspace::state(child.shard), state.encode());
        }
        world.commit(batch).await;
        let children = [world.open(&ranges[0]).await, world.open(&ranges[1]).await];
        for (n, is_there) in [(0, false), (18, false), (20, true)] {
            let found = children[0].read(&key(&world.schema, &deleted, &n.to_string()), Expiry::NEVER).await.unwrap();
            assert_eq!(found.is_some(), is_there, "{n}");
        }
        assert!(children[1].read(&key(&world.schema, &kept, "1"), Expiry::NEVER).await.unwrap().is_some());
        world.check(parents, &children).await;
    }
}

/// A job that is aborted late must not end the log of the job after it.
#[tokio::test]
async fn a_log_is_ended_only_by_its_own_job() {
    let world = World::new(memory());
    let parent = world.open(&range(1, EpkRange::FULL)).await;
    parent.begin_log(1).unwrap();
    parent.begin_log(2).unwrap();
    parent.end_log(1).unwrap();
    world.writes(std::slice::from_ref(&parent), 5, 20).await;
    let logged = |rows: BTreeMap<Bytes, Bytes>| rows.keys().filter(|row| row.get(8) == Some(&(Tag::Log as u8))).count();
    assert!(logged(rows(&world.store, 1).await) > 0);
    parent.end_log(2).unwrap();
    world.commit(Batch::default()).await;
    assert_eq!(logged(rows(&world.store, 1).await), 0);
}

impl World {
    async fn put(&self, partitions: &[Arc<Partition>], schema: &Schema, pk: &str, n: i64) {
        let draft = draft(schema, &n.to_string(), item(pk, &n.to_string(), n));
        let at = partitions.iter().find(|partition| partition.range.keys.contains(&draft.target.logical.epk)).unwrap();
        at.write(schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }

    /// A partition key value in a key range.
    fn key_in(&self, keys: &EpkRange) -> String {
        let is_in_range = |pk: &String| keys.contains(&key(&self.schema, pk, "").logical.epk);
        (0..).map(|n| format!("p{n}")).find(is_in_range).unwrap()
    }
}

/// The number of versions of a key range after an LSN; an error if some are no longer retained.
async fn versions(partitions: &[Arc<Partition>], keys: &EpkRange, after: u64) -> Result<usize> {
    let at = partitions.iter().find(|partition| partition.range.keys.contains(&keys.min)).unwrap();
    let (scope, expiry) = (KeyScope::Keys(keys.clone()), Expiry::new(None, 7));
    let page =
        at.versions(&ChangeQuery { scope, after, since_s: 0, expiry }, PageLimit { items: 99, bytes: 1 << 20 }).await?;
    Ok(page.versions.len())
}

/// One parent has many LSNs, most of them from before versions were retained. Readers that have read all versions of
/// their own parent can continue after the merge, even if nothing was written since.
#[tokio::test]
async fn after_a_merge_each_key_range_keeps_its_retention_watermark() {
    for written_since in [true, false] {
        let world = World::new(memory());
        let without_versions = Schema { retains_versions: false, ..unique_schema("/n") };
        let ranges = halves(&EffectiveKey::from_bytes(&[0x20]), 8);
        let parents = [world.open(&ranges[0]).await, world.open(&ranges[1]).await];
        let [low, high] = ranges.map(|range| range.keys);
        let pks = [world.key_in(&low), world.key_in(&high)];
        for n in 0..30 {
            world.put(&parents, &without_versions, &pks[usize::from(n > 0)], n).await;
        }
        for pk in pks.iter().filter(|_| written_since) {
            world.put(&parents, &world.schema, pk, 30).await;
        }
        let seen = [parents[0].lsn(), parents[1].lsn()];
        let merged = world.run_copy(&parents, &[range(20, EpkRange::FULL)], &mut Dice(1)).await;
        world.put(&merged, &world.schema, &pks[0], 31).await;
        world.put(&merged, &world.schema, &pks[1], 32).await;
        let check = async |partitions: &[Arc<Partition>]| {
            assert_eq!(versions(partitions, &low, seen[0]).await.unwrap(), 1);
            assert_eq!(versions(partitions, &high, seen[1]).await.unwrap(), 1);
            assert!(
                versions(partitions, &low, 0).await.is_err() && versions(partitions, &high, seen[0]).await.is_err()
            );
            audit(&partitions[0], &world.schema).await;
        };
        check(&merged).await;
        check(&world.run_copy(&merged, &halves(&EffectiveKey::from_bytes(&[0x20]), 30), &mut Dice(1)).await).await;
    }
}
