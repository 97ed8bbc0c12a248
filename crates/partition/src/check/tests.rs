//! A consistent shard has no problems; every row that is deleted, added or changed causes one.

use std::sync::Arc;

use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Value, json};
use pleiad_storage::{AnyStore, Batch, Blocking, Durability, Memory};

use super::*;
use crate::commit::{Committer, SyncPolicy, block_on};
use crate::key::ItemKey;
use crate::{Draft, Precondition, Verb};

const SHARD: u64 = 7;

struct World {
    store: Arc<AnyStore>,
    partition: Partition,
    schema: Schema,
}

impl World {
    fn empty() -> World {
        let store = Arc::new(AnyStore::Memory(Memory::default()));
        let committer = Committer::start(store.clone(), SyncPolicy::Synced).unwrap();
        let range =
            PartitionKeyRange { id: 0, shard: SHARD, prefix: 3, keys: EpkRange::FULL, parents: vec![], since: 1 };
        let partition = block_on(Partition::open(range, store.clone(), committer)).unwrap();
        World { store, partition, schema: schema() }
    }

    /// Three logical partitions that have seen every kind of write.
    fn populated() -> World {
        let world = World::empty();
        for n in 0..40 {
            world.write(Verb::Create, &format!("i{n}"), &item(&format!("i{n}"), n % 3, n), true);
        }
        world.write(Verb::Replace, "i3", &item("i3", 0, 300), true);
        world.write(Verb::Replace, "i4", &item("renamed", 1, 4), true);
        world.write(Verb::Upsert, "i5", &item("i5", 2, 500), false);
        world.write(Verb::Create, "gone", &item("gone", 9, 9), true);
        for (id, pk) in [("gone", 9), ("i0", 0), ("i1", 1)] {
            let key = world.key(id, pk);
            let deleted = world.partition.delete(&world.schema, &key, &Precondition::None, 7);
            block_on(deleted).unwrap();
        }
        world
    }

    fn key(&self, id: &str, pk: i64) -> ItemKey {
        ItemKey::new(self.schema.key.as_ref(), &PartitionKey::parse(&format!("[{pk}]")).unwrap(), id)
    }

    fn write(&self, verb: Verb, target: &str, body: &str, indexed: bool) {
        let body = json::parse(body.as_bytes()).unwrap();
        let id = body.get("id").and_then(Value::as_str).unwrap().to_owned();
        let target = self.key(target, body.get("pk").and_then(Value::as_i64).unwrap());
        let text = json::to_string(&body).into_bytes();
        let draft = Draft { target, id, body, text, indexed };
        block_on(self.partition.write(&self.schema, verb, &draft, &Precondition::None, 1_700_000_000)).unwrap();
    }

    fn rows(&self) -> Vec<Pair> {
        let (from, to) = keyspace::shard_range(SHARD);
        let snapshot = block_on(self.store.snapshot(Blocking::Suspend)).unwrap();
        block_on(snapshot.scan(&from, &to, Direction::Forward, Limit::NONE)).unwrap().pairs
    }

    fn put(&self, row: &[u8], value: &[u8]) {
        let mut batch = Batch::default();
        batch.put(row, value);
        block_on(self.store.commit(&batch, Durability::Synced)).unwrap();
    }

    fn delete(&self, row: &[u8]) {
        let mut batch = Batch::default();
        batch.delete(row);
        block_on(self.store.commit(&batch, Durability::Synced)).unwrap();
    }

    fn check(&self) -> CheckReport {
        block_on(self.partition.check(&self.schema)).unwrap()
    }

    #[track_caller]
    fn check_finds(&self, says: &str) {
        let problems = self.check().problems;
        assert!(
            problems.messages.iter().any(|message| message.contains(says)),
            "{says:?} is not reported: {:?}",
            problems.messages
        );
    }
}

fn schema() -> Schema {
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
                   "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]},{"paths":["/deep/text","/id"]}]}}"#;
    let definition = ContainerDefinition::create(&json::parse(body.as_bytes()).unwrap()).unwrap();
    Schema::new(1, &definition, &Default::default(), &[], crate::SizeLimits::UNLIMITED)
}

fn item(id: &str, pk: i64, n: i64) -> String {
    format!(r#"{{"id":"{id}","pk":{pk},"n":{n},"deep":{{"list":[1,2,{n}],"text":"t{n}"}}}}"#)
}

#[test]
fn a_shard_written_by_the_partition_has_no_problems() {
    let report = World::populated().check();
    assert_eq!(report.problems, Problems::default());
    assert_eq!((report.items, report.keys, report.lsn), (38, 3, 47));
}

#[test]
fn an_empty_shard_has_no_problems() {
    assert_eq!(World::empty().check(), CheckReport::default());
}

#[test]
fn every_deleted_row_is_reported() {
    let world = World::populated();
    for (row, value) in world.rows() {
        world.delete(&row);
        assert_ne!(world.check().problems.count, 0, "the deletion of row {} was not reported", hex(&row));
        world.put(&row, &value);
    }
    assert_eq!(world.check().problems, Problems::default());
}

#[test]
fn every_changed_pointer_or_counter_row_is_reported() {
    let world = World::populated();
    for (row, value) in world.rows().into_iter().filter(|(row, _)| tag_of(row) != Some(Tag::Doc as u8)) {
        let changed = value.split_last().map_or(vec![1], |(last, rest)| [rest, &[last ^ 1]].concat());
        world.put(&row, &changed);
        assert_ne!(world.check().problems.count, 0, "the change of row {} was not reported", hex(&row));
        world.put(&row, &value);
    }
}

/// During an index transformation, rows that both policies produce must exist, and rows that neither produces must not.
#[test]
fn index_transformations_allow_rows_of_either_policy_and_no_others() {
    let new = r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/deep/*"}],
                  "compositeIndexes":[[{"path":"/n"},{"path":"/pk"}]]}"#;
    let transition = Schema { unique: schema().unique, ..crate::testing::schema_with(&["/pk"], 2, new, &["{}"]) };
    let world = World { schema: transition, ..World::populated() };
    assert_eq!(world.check().problems, Problems::default());
    let path = |name| crate::index::PathHash::ROOT.property(name).finish();
    let index = world.rows().into_iter().filter(|(row, _)| tag_of(row) == Some(Tag::Index as u8));
    let of = |name| index.clone().find(|(row, _)| keyspace::decode_index(row).unwrap().0 == path(name)).unwrap().0;
    world.delete(&of("deep"));
    assert_eq!(world.check().problems, Problems::default(), "only the old policy produces it");
    let both = of("n");
    let (_, value, docnum) = keyspace::decode_index(&both).unwrap();
    world.put(&keyspace::index(SHARD, path("z"), value, docnum), &[]);
    world.check_finds("belongs to no item");
    world.delete(&both);
    world.check_finds("lacks its index row");
}

#[test]
fn orphan_rows_are_reported() {
    let epk = world_key().logical.epk;
    let number = 3 << DOCNUM_COUNTER_BITS | 999_u64;
    let strays = [
        (keyspace::id(SHARD, epk.as_bytes(), &[9; 16]), number.to_be_bytes().to_vec(), "the id row"),
        (keyspace::member(SHARD, epk.as_bytes(), number), vec![], "the member row"),
        (keyspace::feed(SHARD, 999, 0, number), epk.as_bytes().to_vec(), "the feed row"),
        (keyspace::index(SHARD, 5, &[1], number), vec![], "the index row"),
        (keyspace::unique(SHARD, 5, epk.as_bytes(), &[9; 16]), number.to_be_bytes().to_vec(), "the unique row"),
        (keyspace::key_stats(SHARD, &[0x11; 16], &[9; 16]), vec![0; 16], "without items"),
        (keyspace::ttl(SHARD, 5, number), vec![], "of a kind that items do not have"),
    ];
    for (row, value, says) in strays {
        let world = World::populated();
        world.put(&row, &value);
        world.check_finds(says);
        assert_eq!(world.check().problems.count, 1, "{:?}", world.check().problems.messages);
    }
}

/// No version writes such a row; the check does not depend on that.
#[test]
fn a_key_that_is_too_long_is_reported() {
    let row = |bytes: usize| {
        let start = keyspace::index(SHARD, 5, &[], 3 << DOCNUM_COUNTER_BITS | 1);
        let (before, docnum) = start.split_at(start.len() - 8);
        [before, &vec![b'x'; bytes - start.len()], docnum].concat()
    };
    let says = "has a key of 2693 bytes, the limit is 2692";
    let world = World::populated();
    world.put(&row(keyspace::KEY_BYTES_MAX + 1), &[]);
    world.check_finds(says);
    let world = World::populated();
    world.put(&row(keyspace::KEY_BYTES_MAX), &[]);
    assert!(world.check().problems.messages.iter().all(|message| !message.contains("the limit is")));
}

fn world_key() -> ItemKey {
    World::empty().key("i3", 0)
}

#[test]
fn a_damaged_item_is_reported_and_the_check_continues() {
    let world = World::populated();
    let (row, value) = world.rows().into_iter().find(|(row, _)| tag_of(row) == Some(Tag::Doc as u8)).unwrap();
    world.put(&row, &value[..value.len() - 1]);
    world.check_finds("not valid JSON");
    world.put(&row, &value[..20]);
    world.check_finds("cut short");
}

#[test]
fn an_item_outside_the_partitions_range_is_reported() {
    let world = World::populated();
    let mut range = world.partition.range.clone();
    range.keys.max = world_key().logical.epk;
    let committer = Committer::start(world.store.clone(), SyncPolicy::Synced).unwrap();
    let partition = block_on(Partition::open(range, world.store.clone(), committer)).unwrap();
    World { partition, ..world }.check_finds("outside the partition's range");
}

#[test]
fn problems_after_the_first_hundred_are_only_counted() {
    let world = World::empty();
    (0..150).for_each(|n| world.put(&keyspace::feed(SHARD, n, 0, n), &[]));
    let problems = world.check().problems;
    assert_eq!((problems.messages.len(), problems.count), (PROBLEMS_REPORTED_MAX, 150));
}
