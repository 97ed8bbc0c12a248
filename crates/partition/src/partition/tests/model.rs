//! Linearizability test: concurrent writers against a naive model, in a container where no two items of a key have the
//! same `n`.
//!
//! The LSNs of the successful writes order them. Replayed in that order over a map, each of them must be allowed; each
//! rejected write must have a reason in some state between its request and its response; each read must return such a
//! state. Meanwhile the indexing policy changes; at the end every item has exactly the rows of the last policy.

use super::*;
use crate::commit::SyncPolicy;
use crate::testing::{unique_key, unique_schema};
use parking_lot::Mutex;
use pleiad_storage::testing::Mirror;
use pleiad_storage::{RocksOptions, RocksStore};
use std::collections::BTreeMap;
use std::time::Duration;

const TASKS: u64 = 6;
const KEYS: u64 = 3;
const IDS: u64 = 4;
/// Few enough to conflict.
const VALUES: u64 = 12;

/// An item: key and id.
type Name = (u64, u64);

#[derive(Clone, Debug)]
enum Operation {
    Write { verb: Verb, target: Name, id: u64, n: i64, condition: Precondition },
    Delete { target: Name, condition: Precondition },
    Read { target: Name },
}

#[derive(Debug)]
enum Outcome {
    Done { lsn: u64, created: bool, version: Option<Version> },
    Found(Option<Version>),
    Rejected(Kind),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    lsn: u64,
    etag: String,
    docnum: u64,
    n: i64,
}

#[derive(Debug)]
struct Event {
    operation: Operation,
    outcome: Outcome,
    /// The LSNs before the request and after the response.
    seen: (u64, u64),
}

type State = BTreeMap<Name, Version>;

fn version(record: &Record) -> Version {
    let n = json::parse(record.body()).unwrap().get("n").and_then(Value::as_i64).unwrap();
    Version { lsn: record.lsn, etag: record.etag().to_string(), docnum: record.docnum, n }
}

fn names((pk, id): Name) -> (String, String) {
    (format!("k{pk}"), format!("i{id}"))
}

/// What the partition must answer in this state: whether the write creates an item, or why it is rejected.
fn expected_outcome(state: &State, operation: &Operation) -> Result<bool, Kind> {
    let allowed = |target: &Name, condition: &Precondition| {
        let old = state.get(target).ok_or(Kind::NotFound)?;
        match condition {
            Precondition::IfMatch(etag) if *etag != old.etag => Err(Kind::PreconditionFailed),
            Precondition::IfAbsent => Err(Kind::PreconditionFailed),
            _ => Ok(false),
        }
    };
    match operation {
        Operation::Write { verb: Verb::Create, target, .. } if state.contains_key(target) => Err(Kind::Conflict),
        Operation::Write { verb: Verb::Create | Verb::Upsert, target, n, .. } if !state.contains_key(target) => {
            if is_taken(state, target, *n) {
                Err(Kind::Conflict)
            } else {
                Ok(true)
            }
        }
        Operation::Write { target, id, n, condition, .. } => {
            allowed(target, condition)?;
            let taken = *id != target.1 && state.contains_key(&(target.0, *id));
            if taken || is_taken(state, target, *n) { Err(Kind::Conflict) } else { Ok(false) }
        }
        Operation::Delete { target, condition } => allowed(target, condition),
        Operation::Read { .. } => Ok(false),
    }
}

/// Whether another item of the key has this value.
fn is_taken(state: &State, target: &Name, n: i64) -> bool {
    state.iter().any(|(name, version)| name.0 == target.0 && name != target && version.n == n)
}

fn apply(state: &State, operation: &Operation, lsn: u64, version: Option<&Version>) -> State {
    let mut next = state.clone();
    match operation {
        Operation::Write { target, id, n, .. } => {
            let version = version.unwrap();
            assert_eq!((version.lsn, version.n), (lsn, *n));
            match next.remove(target) {
                Some(old) => assert_eq!(old.docnum, version.docnum, "an item keeps its docnum"),
                None => {
                    assert!(state.values().all(|other| other.docnum < version.docnum), "a new docnum is the largest")
                }
            }
            next.insert((target.0, *id), version.clone());
        }
        Operation::Delete { target, .. } => drop(next.remove(target)),
        Operation::Read { .. } => unreachable!("reads have no LSN"),
    }
    next
}

/// All states, by LSN.
fn replay(events: &[Event]) -> Vec<State> {
    let mut done: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.outcome {
            Outcome::Done { lsn, created, version } => Some((*lsn, *created, version.as_ref(), &event.operation)),
            _ => None,
        })
        .collect();
    done.sort_by_key(|(lsn, ..)| *lsn);
    let mut states = vec![State::new()];
    for (lsn, created, version, operation) in done {
        assert_eq!(lsn, states.len() as u64, "LSNs have no gaps");
        let state = states.last().unwrap();
        assert_eq!(expected_outcome(state, operation), Ok(created), "{operation:?} at {lsn}");
        states.push(apply(state, operation, lsn, version));
    }
    states
}

fn check(events: &[Event], states: &[State]) {
    for Event { operation, outcome, seen: (from, to) } in events {
        let meanwhile = &states[*from as usize..=*to as usize];
        match (outcome, operation) {
            (Outcome::Done { lsn, .. }, _) => assert!(from < lsn && lsn <= to, "acknowledged before it was visible"),
            (Outcome::Rejected(kind), _) => {
                assert!(
                    meanwhile.iter().any(|state| expected_outcome(state, operation) == Err(*kind)),
                    "{operation:?} {kind:?}"
                );
            }
            (Outcome::Found(found), Operation::Read { target }) => {
                assert!(meanwhile.iter().any(|state| state.get(target) == found.as_ref()), "{operation:?} {found:?}");
            }
            _ => unreachable!("only reads find"),
        }
    }
}

/// The schema that writers use; it changes while they run.
type Shared = Arc<Mutex<Arc<Schema>>>;

struct Writer {
    partition: Arc<Partition>,
    schema: Shared,
    dice: Dice,
    /// Etags that this writer has seen, current or not.
    known: Vec<String>,
}

impl Writer {
    fn condition(&mut self) -> Precondition {
        match self.dice.below(8) {
            0 => Precondition::IfAny,
            1 => Precondition::IfAbsent,
            2..=4 if !self.known.is_empty() => {
                let at = self.known.len() - 1 - self.dice.below(self.known.len().min(4) as u64) as usize;
                Precondition::IfMatch(self.known[at].clone())
            }
            _ => Precondition::None,
        }
    }

    fn choose(&mut self) -> Operation {
        let target = (self.dice.below(KEYS), self.dice.below(IDS));
        let n = self.dice.below(VALUES) as i64;
        let (condition, rename) = (self.condition(), self.dice.below(IDS));
        match self.dice.below(10) {
            0..=1 => Operation::Write { verb: Verb::Create, target, id: target.1, n, condition },
            2..=3 => Operation::Write { verb: Verb::Upsert, target, id: target.1, n, condition },
            4..=5 => Operation::Write { verb: Verb::Replace, target, id: target.1, n, condition },
            6 => Operation::Write { verb: Verb::Replace, target, id: rename, n, condition },
            7 => Operation::Delete { target, condition },
            _ => Operation::Read { target },
        }
    }

    /// Like the engine: a write under an old schema is retried under the new one.
    async fn perform(&self, operation: &Operation) -> Outcome {
        loop {
            let schema = self.schema.lock().clone();
            match self.try_once(operation, &schema).await {
                Err(Outdated) => tokio::task::yield_now().await,
                Ok(outcome) => return outcome,
            }
        }
    }

    async fn try_once(&self, operation: &Operation, schema: &Schema) -> Result<Outcome, Outdated> {
        let partition = &*self.partition;
        let written = match operation {
            Operation::Read { target } => {
                let (pk, id) = names(*target);
                let found = partition.read(&key(schema, &pk, &id), Expiry::NEVER).await.unwrap();
                return Ok(Outcome::Found(found.as_ref().map(version)));
            }
            Operation::Delete { target, condition } => {
                let (pk, id) = names(*target);
                partition.delete(schema, &key(schema, &pk, &id), condition, 7).await
            }
            Operation::Write { verb, target, id, n, condition } => {
                let ((pk, old), (_, new)) = (names(*target), names((0, *id)));
                partition.write(schema, *verb, &draft(schema, &old, item(&pk, &new, *n)), condition, 7).await
            }
        };
        match written {
            Ok(Written { record, created, lsn, .. }) => {
                Ok(Outcome::Done { lsn, created, version: record.as_ref().map(version) })
            }
            Err(WriteError::Outdated) => Err(Outdated),
            Err(WriteError::Failed(rejected)) => Ok(Outcome::Rejected(rejected.error.kind)),
        }
    }

    async fn run(mut self, operations: usize) -> Vec<Event> {
        let mut events = Vec::with_capacity(operations);
        for _ in 0..operations {
            let operation = self.choose();
            let from = self.partition.lsn();
            let outcome = self.perform(&operation).await;
            if let Outcome::Done { version: Some(version), .. } | Outcome::Found(Some(version)) = &outcome {
                self.known.push(version.etag.clone());
            }
            // A commit is readable shortly before its LSN is published.
            let to =
                if let Outcome::Found(_) = outcome { self.partition.shard_state().lsn } else { self.partition.lsn() };
            events.push(Event { operation, outcome, seen: (from, to) });
        }
        events
    }
}

/// Each task has its own seed, so that a failure can be narrowed down.
async fn storm(partition: &Arc<Partition>, schema: &Shared, seed: u64, operations: usize) -> Vec<Event> {
    let writer = |task| Writer {
        partition: partition.clone(),
        schema: schema.clone(),
        dice: Dice(seed * TASKS + task + 1),
        known: Vec::new(),
    };
    let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(writer(task).run(operations))).collect();
    let mut events = Vec::new();
    for task in tasks {
        events.extend(task.await.unwrap());
    }
    events
}

/// Replaces the indexing policy repeatedly, sometimes before the last index transformation has run.
async fn change_policies(partition: Arc<Partition>, shared: Shared, seed: u64) {
    const POLICIES: [&str; 4] = [
        "{}",
        r#"{"includedPaths":[{"path":"/n/?"},{"path":"/m/?"}],"excludedPaths":[{"path":"/*"}]}"#,
        r#"{"indexingMode":"none","automatic":false}"#,
        r#"{"excludedPaths":[{"path":"/n/?"}],"includedPaths":[{"path":"/*"}],
            "compositeIndexes":[[{"path":"/n"},{"path":"/_ts","order":"descending"}]]}"#,
    ];
    let mut dice = Dice(seed + 77);
    let mut former = vec![POLICIES[0]];
    for version in 2..12 {
        let policy = POLICIES[dice.below(4) as usize];
        let next = Arc::new(unique(schema_with(&["/pk"], version, policy, &former)));
        // In this order: a write in between is rejected and retried.
        partition.require_schema(version);
        *shared.lock() = next.clone();
        former.push(policy);
        if version != 11 && dice.below(3) == 0 {
            continue;
        }
        partition.reindex(&next, |_| ()).await.unwrap();
        former = vec![policy];
        *shared.lock() = Arc::new(unique(schema_with(&["/pk"], version, policy, &[])));
    }
}

fn unique(schema: Schema) -> Schema {
    Schema { unique: unique_key("/n"), ..schema }
}

async fn examine(store: Arc<AnyStore>, policy: SyncPolicy, seed: u64, operations: usize) {
    let shared = Arc::new(Mutex::new(Arc::new(unique_schema("/n"))));
    let committer = Committer::start(store.clone(), policy).unwrap();
    let partition = Arc::new(Partition::open(range(7, 3), store.clone(), committer.clone()).await.unwrap());
    let changing = tokio::spawn(change_policies(partition.clone(), shared.clone(), seed));
    let events = storm(&partition, &shared, seed, operations).await;
    changing.await.unwrap();
    let schema = shared.lock().clone();
    let states = replay(&events);
    check(&events, &states);
    assert_eq!(partition.lsn() + 1, states.len() as u64);
    audit(&partition, &schema).await;

    committer.stop().await;
    let again = Partition::open(range(7, 3), store.clone(), Committer::start(store, policy).unwrap()).await.unwrap();
    assert_eq!((again.lsn(), again.shard_state()), (partition.lsn(), partition.shard_state()));
    for target in (0..KEYS).flat_map(|pk| (0..IDS).map(move |id| (pk, id))) {
        let (pk, id) = names(target);
        let found = again.read(&key(&schema, &pk, &id), Expiry::NEVER).await.unwrap().as_ref().map(version);
        assert_eq!(found.as_ref(), states.last().unwrap().get(&target));
    }
    audit(&again, &schema).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn writers_in_memory_agree_with_the_model() {
    for seed in 1..=8 {
        examine(memory(), LATER, seed, 300).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn writers_on_disk_agree_with_the_model_and_with_memory() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RocksStore::open(dir.path(), RocksOptions::default()).unwrap();
    examine(Arc::new(AnyStore::Embedded(disk)), SyncPolicy::SyncedWithin(Duration::from_millis(5)), 42, 300).await;
}

/// One task only: with concurrent writes the two stores would be read at different times.
#[tokio::test]
async fn the_same_writes_leave_the_same_rows_in_memory_and_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RocksStore::open(dir.path(), RocksOptions::default()).unwrap();
    let store = Arc::new(AnyStore::Mirror(Mirror(Memory::new(), disk)));
    let (partition, schema) = (Arc::new(open(&store).await), Arc::new(unique_schema("/n")));
    let shared = Arc::new(Mutex::new(schema.clone()));
    let writer = Writer { partition: partition.clone(), schema: shared, dice: Dice(99), known: Vec::new() };
    let events = writer.run(600).await;
    check(&events, &replay(&events));
    audit(&partition, &schema).await;
}
