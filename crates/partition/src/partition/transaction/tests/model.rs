//! Isolation test: random transactions, batches and single writes of one logical partition against a model that stores
//! whole states. Anomalies are reported by their names in the literature.
//!
//! Snapshot isolation rules out dirty reads, non-repeatable reads, read skew, phantoms and lost updates. It allows
//! write skew: two transactions that read the same items and write different ones both succeed. A separate test shows
//! it.

use std::collections::BTreeMap;

use super::*;
use crate::testing::Dice;

const IDS: [&str; 5] = ["a", "b", "c", "d", "e"];
const SEEDS: u64 = 12;
const STEPS: usize = 250;
const OPEN_MAX: usize = 4;

/// An item's value, and the commit that wrote it.
type State = BTreeMap<&'static str, (i64, u64)>;

/// One transaction, with the state that it should see.
struct Shadow<'a> {
    tx: Transaction<'a>,
    snapshot: State,
    own: BTreeMap<&'static str, Option<i64>>,
}

impl Shadow<'_> {
    fn sees(&self, id: &str) -> Option<i64> {
        match self.own.get(id) {
            Some(own) => *own,
            None => self.snapshot.get(id).map(|(n, _)| *n),
        }
    }

    fn sees_all(&self) -> Vec<i64> {
        let mut all: Vec<i64> = IDS.iter().filter_map(|id| self.sees(id)).collect();
        all.sort_unstable();
        all
    }

    /// Another commit has changed an item that this transaction has written.
    fn must_fail(&self, committed: &State) -> bool {
        let version = |state: &State, id: &str| state.get(id).map(|(_, commit)| *commit);
        self.own.keys().any(|id| version(&self.snapshot, id) != version(committed, id))
    }
}

struct World<'a> {
    seed: u64,
    partition: &'a Partition,
    schema: &'a Schema,
    dice: Dice,
    committed: State,
    commits: u64,
    next: i64,
    open: Vec<Shadow<'a>>,
    failed: usize,
}

impl<'a> World<'a> {
    #[track_caller]
    fn report(&self, anomaly: &str, detail: String) -> ! {
        panic!("{anomaly}: {detail}; seed {}", self.seed)
    }

    fn id(&mut self) -> &'static str {
        IDS[self.dice.below(IDS.len() as u64) as usize]
    }

    fn value(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    async fn step(&mut self) {
        match self.dice.below(10) {
            0..=1 if self.open.len() < OPEN_MAX => self.begin().await,
            0..=4 if !self.open.is_empty() => self.write_inside().await,
            5..=6 if !self.open.is_empty() => self.read_inside().await,
            7 if !self.open.is_empty() => self.end().await,
            8 => self.batch().await,
            _ => self.single().await,
        }
    }

    async fn begin(&mut self) {
        let tx = self.partition.begin(self.schema, logical(self.schema, "p"), NOW_S).await.unwrap();
        self.open.push(Shadow { tx, snapshot: self.committed.clone(), own: BTreeMap::new() });
    }

    fn any_open(&mut self) -> usize {
        self.dice.below(self.open.len() as u64) as usize
    }

    async fn write_inside(&mut self) {
        let (at, id, n) = (self.any_open(), self.id(), self.value());
        let (verb, schema) = ([Verb::Create, Verb::Replace, Verb::Upsert][self.dice.below(3) as usize], self.schema);
        let deletes = self.dice.below(4) == 0;
        let shadow = &mut self.open[at];
        let there = shadow.sees(id).is_some();
        let (outcome, possible) = match deletes {
            true => (shadow.tx.delete(&key(schema, "p", id), &Precondition::None).await, there),
            false => (put(&mut shadow.tx, schema, verb, id, n).await, admits(verb, there)),
        };
        if outcome.is_ok() {
            shadow.own.insert(id, (!deletes).then_some(n));
        }
        if outcome.is_ok() != possible {
            self.report("wrong decision", format!("{verb:?} (delete: {deletes}) of {id}, there: {there}: {outcome:?}"));
        }
    }

    async fn read_inside(&mut self) {
        let (at, id) = (self.any_open(), self.id());
        let shadow = &self.open[at];
        let (saw, should) = (read_in(&shadow.tx, self.schema, id).await, shadow.sees(id));
        if saw != should {
            self.report(self.name_anomaly(at, id, saw), format!("{id} is {saw:?}, not {should:?}"));
        }
        let mut saw: Vec<i64> = shadow.tx.items(0, ALL).await.unwrap().records.iter().map(n_of).collect();
        saw.sort_unstable();
        if saw != shadow.sees_all() {
            self.report("phantom or read skew", format!("{saw:?}, not {:?}", shadow.sees_all()));
        }
    }

    /// The name of the anomaly depends on the origin of the wrong value.
    fn name_anomaly(&self, reader: usize, id: &str, saw: Option<i64>) -> &'static str {
        let others = self.open.iter().enumerate().filter(|(at, _)| *at != reader);
        if others.clone().any(|(_, other)| other.own.get(id) == Some(&saw)) {
            return "dirty read";
        }
        match self.committed.get(id).map(|(n, _)| *n) == saw {
            true if self.open[reader].own.contains_key(id) => "own write lost",
            true => "non-repeatable read",
            false => "read of a value that never existed",
        }
    }

    async fn end(&mut self) {
        let at = self.any_open();
        let shadow = self.open.swap_remove(at);
        let must_fail = shadow.must_fail(&self.committed);
        let Shadow { tx, own, .. } = shadow;
        if self.dice.below(5) == 0 {
            return drop(tx);
        }
        match tx.commit().await {
            Ok(_) if must_fail => self.report("lost update", format!("{own:?} over {:?}", self.committed)),
            Ok(_) => self.apply(own),
            Err(WriteError::Outdated) => self.report("wrong refusal", "outdated".to_owned()),
            Err(WriteError::Failed(refusal)) if refusal.error.fact() != Some(&Fact::ConflictingWrite) => {
                self.report("wrong refusal", refusal.error.to_string())
            }
            Err(_) if !must_fail => self.report("needless conflict", format!("{own:?}")),
            Err(_) => self.failed += 1,
        }
    }

    fn apply(&mut self, own: BTreeMap<&'static str, Option<i64>>) {
        self.commits += 1;
        for (id, n) in own {
            match n {
                Some(n) => drop(self.committed.insert(id, (n, self.commits))),
                None => drop(self.committed.remove(id)),
            }
        }
    }

    /// A latched transaction with several writes.
    async fn batch(&mut self) {
        let mut tx = self.partition.begin_latched(self.schema, logical(self.schema, "p"), NOW_S).await;
        let mut own = BTreeMap::new();
        for _ in 0..1 + self.dice.below(4) {
            let (id, n) = (self.id(), self.value());
            put(&mut tx, self.schema, Verb::Upsert, id, n).await.unwrap();
            own.insert(id, Some(n));
        }
        match self.dice.below(4) {
            0 => drop(tx),
            _ => {
                tx.commit().await.unwrap();
                self.apply(own);
            }
        }
    }

    async fn single(&mut self) {
        let (id, n) = (self.id(), self.value());
        let draft = draft(self.schema, id, item("p", id, n));
        self.partition.write(self.schema, Verb::Upsert, &draft, &Precondition::None, NOW_S).await.unwrap();
        self.apply(BTreeMap::from([(id, Some(n))]));
    }

    /// The committed state, as other readers see it.
    async fn check(&self) {
        for id in IDS {
            let (saw, should) = (read(self.partition, self.schema, id).await, self.committed.get(id).map(|(n, _)| *n));
            if saw != should {
                let mut others = self.open.iter().filter_map(|open| open.own.get(id));
                let name = if others.any(|own| *own == saw) { "dirty read" } else { "lost write" };
                self.report(name, format!("{id} is {saw:?}, not {should:?}"));
            }
        }
    }
}

fn admits(verb: Verb, there: bool) -> bool {
    match verb {
        Verb::Create => !there,
        Verb::Replace => there,
        Verb::Upsert => true,
    }
}

#[tokio::test]
async fn s117_no_anomaly_but_write_skew() {
    let mut failed = 0;
    for seed in 1..=SEEDS {
        let (store, schema) = (memory(), schema(&["/pk"]));
        let partition = open(&store).await;
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (committed, commits, next, open) = Default::default();
        let (partition_ref, schema_ref) = (&partition, &schema);
        let mut world = World {
            seed,
            partition: partition_ref,
            schema: schema_ref,
            dice,
            committed,
            commits,
            next,
            open,
            failed: 0,
        };
        for _ in 0..STEPS {
            world.step().await;
            world.check().await;
        }
        failed += world.failed;
        drop(world);
        audit(&partition, &schema).await;
    }
    assert!(failed > 20, "the random steps must produce conflicts: {failed}");
}

#[tokio::test]
async fn s117_write_skew_is_possible() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    create(&partition, &schema, "a", 1).await;
    create(&partition, &schema, "b", 1).await;
    let mut first = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    let mut second = partition.begin(&schema, logical(&schema, "p"), NOW_S).await.unwrap();
    // Each transaction keeps the sum of the values that it sees above zero.
    assert_eq!(read_in(&first, &schema, "b").await, Some(1));
    put(&mut first, &schema, Verb::Replace, "a", 0).await.unwrap();
    assert_eq!(read_in(&second, &schema, "a").await, Some(1));
    put(&mut second, &schema, Verb::Replace, "b", 0).await.unwrap();
    first.commit().await.unwrap();
    second.commit().await.unwrap();
    assert_eq!((read(&partition, &schema, "a").await, read(&partition, &schema, "b").await), (Some(0), Some(0)));
}
