//! Model of the account: what was acknowledged to clients, compared with what the engine returns.

use std::collections::{BTreeMap, BTreeSet};

use pleiad_model::{Error, Kind, Object, Value};

use super::SeededRng;
use super::world::SimWorld;
use crate::testing::*;
use crate::{Engine, FeedRange, PageLimit, Precondition, Record, Target, Verb, WriteOptions};

const IDS: u64 = 400;
const KEYS: u64 = 70;

#[derive(Default)]
pub struct Model {
    /// The version of each existing item; `None` if it was deleted.
    items: BTreeMap<String, Option<i64>>,
    /// How often each item was deleted: created again, it is another item.
    deletions: BTreeMap<String, u64>,
    /// Writes that failed with an error that leaves open whether they were done.
    uncertain: BTreeMap<String, Option<i64>>,
    /// The items when the snapshot was taken.
    snapshot: Option<BTreeMap<String, Option<i64>>>,
    /// The value of `writes` at the last restore.
    restored_at: i64,
    pub writes: i64,
}

/// A write that is about to be sent.
struct ModelDraft {
    id: String,
    version: Option<i64>,
    text: usize,
}

pub fn key_of(id: &str) -> String {
    (id.parse::<u64>().unwrap_or(0) % KEYS).to_string()
}

/// The sort key, the same for every version of an item.
pub fn rank_of(id: &str) -> i64 {
    id.parse::<i64>().unwrap_or(0) * 7919 % 101
}

pub fn version_of(record: &Record) -> i64 {
    let body = parse(std::str::from_utf8(record.body()).unwrap());
    body.get("n").and_then(Value::as_i64).unwrap()
}

impl Model {
    /// The items that certainly exist, and how often each had been deleted before.
    pub fn live_items(&self) -> BTreeMap<String, u64> {
        let there = self.items.iter().filter(|(id, version)| version.is_some() && !self.uncertain.contains_key(*id));
        there.map(|(id, _)| (id.clone(), self.deletions(id))).collect()
    }

    pub fn versions(&self) -> impl Iterator<Item = (&String, i64)> {
        self.items.iter().filter_map(|(id, version)| version.map(|version| (id, version)))
    }

    /// Those that were written after the last restore: the change feed does not return the items that a restore brings
    /// back.
    pub fn versions_since_restored(&self) -> impl Iterator<Item = (&String, i64)> {
        self.versions().filter(|(_, version)| *version > self.restored_at)
    }

    pub fn take_snapshot(&mut self) {
        self.snapshot = Some(self.items.clone());
    }

    pub fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    pub fn restore(&mut self) {
        self.items = self.snapshot.clone().unwrap_or_default();
        self.restored_at = self.writes;
    }

    pub fn deletions(&self, id: &str) -> u64 {
        self.deletions.get(id).copied().unwrap_or(0)
    }

    /// Writes several different items concurrently.
    pub async fn write(&mut self, rng: &SeededRng, world: &mut SimWorld, count: usize) {
        if world.is_fenced() {
            return;
        }
        let mut drafts: BTreeMap<String, ModelDraft> = BTreeMap::new();
        for _ in 0..count {
            let draft = self.draft(rng);
            drafts.insert(draft.id.clone(), draft);
        }
        let begin = |draft: ModelDraft| {
            let engine = world.engine.clone();
            tokio::spawn(async move { (send(&engine, &draft).await, draft) })
        };
        for task in drafts.into_values().map(begin).collect::<Vec<_>>() {
            let (answer, draft) = task.await.unwrap();
            world.check_charge(&answer);
            self.record_result(draft, answer.result.map(|_| ()));
        }
    }

    fn draft(&mut self, rng: &SeededRng) -> ModelDraft {
        self.writes += 1;
        let id = rng.below(IDS).to_string();
        let is_there = self.items.get(&id).is_some_and(Option::is_some);
        let version = if is_there && rng.one_in(6) { None } else { Some(self.writes) };
        ModelDraft { id, version, text: usize::try_from(rng.below(300)).unwrap() }
    }

    fn record_result(&mut self, draft: ModelDraft, result: Result<(), Error>) {
        match result {
            Ok(()) => self.apply(draft.id, draft.version),
            Err(error) if matches!(error.kind, Kind::Throttled { .. }) => {}
            Err(error) if matches!(error.kind, Kind::Internal | Kind::Unavailable) => {
                self.uncertain.insert(draft.id, draft.version);
            }
            Err(error) => panic!("{}: {error:?}", draft.id),
        }
    }

    fn apply(&mut self, id: String, version: Option<i64>) {
        if version.is_none() {
            *self.deletions.entry(id.clone()).or_default() += 1;
        }
        self.items.insert(id, version);
    }

    /// Reads the items of all uncertain writes: each was done, or it was not.
    pub async fn resolve_uncertain(&mut self, world: &mut SimWorld) {
        while let Some((id, asked)) = self.uncertain.first_key_value().map(|(id, asked)| (id.clone(), *asked)) {
            let Ok(found) = self.read_version(world, &id).await else {
                world.restart().await; // the read failed or was throttled: try again
                continue;
            };
            let expected = self.items.get(&id).copied().flatten();
            assert!(
                found == expected || found == asked,
                "{id}: found {found:?}, acknowledged {expected:?}, requested {asked:?}"
            );
            self.uncertain.remove(&id);
            if found != expected {
                self.apply(id, found);
            }
        }
    }

    async fn read_version(&self, world: &SimWorld, id: &str) -> Result<Option<i64>, Error> {
        match read(&world.engine, &world.at(), id, &key_of(id)).await.result {
            Ok(record) => Ok(Some(version_of(&record))),
            Err(error) if error.kind == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn read(&self, rng: &SeededRng, world: &mut SimWorld) {
        let id = rng.below(IDS).to_string();
        let answer = read(&world.engine, &world.at(), &id, &key_of(&id)).await;
        world.check_charge(&answer);
        let expected = self.items.get(&id).copied().flatten();
        match answer.result {
            Ok(record) => assert_eq!(Some(version_of(&record)), expected, "{id}"),
            Err(error) if error.kind == Kind::NotFound => assert_eq!(None, expected, "{id}"),
            Err(error) => assert_tolerable(&error),
        }
    }

    /// Checks that the account has every acknowledged item once, in its last version, and no other.
    pub async fn check(&self, world: &SimWorld) {
        let at = world.at();
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        let mut from = None;
        loop {
            world.wait();
            let quota = PageLimit { items: 50, bytes: 1 << 20 };
            let page = world.engine.list_items(&at, &FeedRange::Container, from, quota, None).await.result.unwrap();
            for record in &page.records {
                let previous = found.insert(record.id().to_owned(), version_of(record));
                assert_eq!(previous, None, "{} was returned twice", record.id());
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let expected = self.versions().map(|(id, version)| (id.clone(), version));
        assert_eq!(found, expected.collect(), "items found, and items acknowledged");
        assert_eq!(at.container().items(), found.len() as u64);
        self.check_owners(world, found.keys().cloned().collect());
    }

    /// S28: exactly one partition of the map owns each key.
    fn check_owners(&self, world: &SimWorld, ids: BTreeSet<String>) {
        let at = world.at();
        let map = &at.container().map;
        let definition = at.container().schema.key.clone().unwrap();
        for id in ids {
            let epk = pk(&key_of(&id)).effective(&definition);
            let owners = map.ranges().iter().filter(|range| range.keys.contains(&epk)).count();
            assert_eq!(owners, 1, "{id} at epoch {}", map.epoch);
        }
    }
}

/// Checks that a client may get this error while the store fails, or when it exceeds the throughput.
#[track_caller]
pub fn assert_tolerable(error: &Error) {
    let known = matches!(error.kind, Kind::Throttled { .. } | Kind::Internal | Kind::Unavailable);
    assert!(known, "{error:?}");
}

async fn send(engine: &Engine, draft: &ModelDraft) -> crate::EngineResponse<crate::Written> {
    let (at, key) = (admit(engine, "c"), pk(&key_of(&draft.id)));
    let Some(version) = draft.version else {
        return engine.delete_item(&at, Some(&key), Target::Named(&draft.id), &Precondition::None).await;
    };
    let body = Object::new().with("id", &*draft.id).with("pk", key_of(&draft.id)).with("n", version);
    let body: Value = body.with("rank", rank_of(&draft.id)).with("text", "x".repeat(draft.text)).into();
    engine.create_item(&at, Some(&key), Verb::Upsert, body, &WriteOptions::default()).await
}
