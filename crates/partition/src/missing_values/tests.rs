//! Proves: every item of a snapshot without a value at the path is a candidate, whichever snapshots were queried
//! before, and however often a scan was interrupted.

use std::collections::BTreeSet;

use pleiad_model::{Object, json};
use proptest::prelude::*;

use super::*;
use crate::partition::{Precondition, Verb};
use crate::testing::{draft, key, memory, open, schema};

fn path() -> Vec<PathStep> {
    vec![PathStep::Property("v".to_owned())]
}

fn lacks(record: RecordView<'_>) -> Result<bool> {
    Ok(json::parse(record.body())?.get("v").is_none())
}

struct World {
    schema: Schema,
    partition: Partition,
}

impl World {
    async fn open() -> World {
        World { schema: schema(&["/pk"]), partition: open(&memory()).await }
    }

    async fn put(&self, id: u8, has_it: bool) {
        let body = Object::new().with("id", id.to_string()).with("pk", "a");
        let body = if has_it { body.with("v", 1i64) } else { body };
        let draft = draft(&self.schema, &id.to_string(), body.into());
        self.partition.write(&self.schema, Verb::Upsert, &draft, &Precondition::None, 5).await.unwrap();
    }

    async fn delete(&self, id: u8) {
        let key = key(&self.schema, "a", &id.to_string());
        // The item may not exist.
        let _ = self.partition.delete(&self.schema, &key, &Precondition::None, 6).await;
    }

    async fn ask(&self, view: &PartitionSnapshot, lacks: IsMissing<'_>) -> Result<Option<Candidates>> {
        self.partition.lacking(view, &self.schema, &path(), lacks).await
    }

    async fn check(&self, view: &PartitionSnapshot) -> Result<(), TestCaseError> {
        let Some(candidates) = self.ask(view, &mut lacks).await.unwrap() else {
            prop_assert!(view.lsn() < self.partition.lsn(), "a current snapshot always gets candidates");
            return Ok(());
        };
        let mut missing = BTreeSet::new();
        let see = &mut |record: Result<RecordView<'_>>| {
            let record = record.unwrap();
            if lacks(record).unwrap() {
                missing.insert(record.docnum);
            }
            true
        };
        view.visit(0, u64::MAX, see).await.unwrap();
        let told = candidates.next(0, u64::MAX, false, usize::MAX);
        prop_assert!(missing.iter().all(|docnum| told.binary_search(docnum).is_ok()), "{missing:?} in {told:?}");
        let mut back = candidates.next(0, u64::MAX, true, usize::MAX);
        back.reverse();
        prop_assert_eq!(&back, &told);
        // Two at a time, from either end.
        let at = |place: usize| told.get(place).copied().unwrap_or(7);
        for (from, upto) in [(2, 5), (at(1), at(4)), (0, at(3)), (at(2), u64::MAX), (at(4), at(1))] {
            let within: Vec<u64> = told.iter().copied().filter(|docnum| (from..=upto).contains(docnum)).collect();
            let first: Vec<u64> = within.iter().copied().take(2).collect();
            let last: Vec<u64> = within.iter().rev().copied().take(2).collect();
            prop_assert_eq!(candidates.next(from, upto, false, 2), first);
            prop_assert_eq!(candidates.next(from, upto, true, 2), last);
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Act {
    Put(u8, bool),
    Delete(u8),
    /// Opens a snapshot for a later query.
    View,
    /// Queries the snapshot with this index, or a new one.
    Ask(usize),
    /// Queries a new snapshot and fails after this many items.
    Stopped(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u8..12, any::<bool>()).prop_map(|(id, has_it)| Act::Put(id, has_it)),
        2 => (0u8..12).prop_map(Act::Delete),
        2 => Just(Act::View),
        3 => (0usize..8).prop_map(Act::Ask),
        1 => (0usize..6).prop_map(Act::Stopped),
    ]
}

async fn run(acts: Vec<Act>) -> Result<(), TestCaseError> {
    let world = World::open().await;
    let mut views = Vec::new();
    for act in acts {
        match act {
            Act::Put(id, has_it) => world.put(id, has_it).await,
            Act::Delete(id) => world.delete(id).await,
            Act::View => views.push(world.partition.view().await.unwrap()),
            Act::Ask(at) => match views.get(at) {
                Some(view) => world.check(view).await?,
                None => world.check(&world.partition.view().await.unwrap()).await?,
            },
            Act::Stopped(at) => {
                let (view, mut left) = (world.partition.view().await.unwrap(), at);
                let stopped = &mut |record: RecordView<'_>| {
                    left = left.checked_sub(1).ok_or_else(|| Error::unavailable("nobody waits"))?;
                    lacks(record)
                };
                let _ = world.ask(&view, stopped).await;
            }
        }
    }
    for view in &views {
        world.check(view).await?;
    }
    world.check(&world.partition.view().await.unwrap()).await
}

proptest! {
    #[test]
    fn whoever_lacks_it_is_a_candidate(acts in prop::collection::vec(act(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(acts))?;
    }
}

/// The number of items that a query checks.
async fn looks(world: &World) -> usize {
    let (view, mut looks) = (world.partition.view().await.unwrap(), 0);
    let counted = &mut |record: RecordView<'_>| {
        looks += 1;
        lacks(record)
    };
    world.ask(&view, counted).await.unwrap();
    looks
}

#[tokio::test]
async fn items_are_looked_at_once_and_then_when_they_change() {
    let world = World::open().await;
    for id in 0..100 {
        world.put(id, id % 10 > 0).await;
    }
    assert_eq!(looks(&world).await, 100);
    assert_eq!(looks(&world).await, 0);
    world.put(3, false).await;
    world.put(200, true).await;
    world.delete(10).await;
    assert_eq!(looks(&world).await, 2);
    let view = world.partition.view().await.unwrap();
    let candidates = world.ask(&view, &mut lacks).await.unwrap().unwrap();
    assert_eq!(candidates.next(0, u64::MAX, false, usize::MAX).len(), 11, "including a deleted one");
}

#[tokio::test]
async fn what_was_added_in_vain_is_forgotten() {
    let world = World::open().await;
    world.put(1, false).await;
    let view = world.partition.view().await.unwrap();
    let reading = world.ask(&view, &mut lacks).await.unwrap().unwrap();
    for _ in 0..=ADDED_MIN {
        world.put(1, false).await;
        looks(&world).await;
    }
    world.put(1, true).await;
    looks(&world).await;
    let view = world.partition.view().await.unwrap();
    let candidates = world.ask(&view, &mut lacks).await.unwrap().unwrap();
    assert!(candidates.next(0, u64::MAX, false, usize::MAX).is_empty());
    assert_eq!(reading.next(0, u64::MAX, false, usize::MAX).len(), 1, "a reader keeps its candidates");
}

#[tokio::test]
async fn a_view_is_told_however_many_have_asked_since() {
    let world = World::open().await;
    world.put(1, false).await;
    looks(&world).await;
    let mut views = Vec::new();
    for n in 0..600 {
        world.put(2, n % 3 == 0).await;
        views.push(world.partition.view().await.unwrap());
        looks(&world).await;
    }
    assert!(world.partition.lacking.0.lock()[0].1.known.read().moments.len() <= MOMENTS_MAX);
    for (n, view) in views.iter().enumerate() {
        let candidates = world.ask(view, &mut lacks).await.unwrap().unwrap();
        assert!(candidates.next(0, u64::MAX, false, usize::MAX).len() > usize::from(n % 3 > 0), "{n}");
    }
}

#[tokio::test]
async fn few_paths_are_remembered() {
    let world = World::open().await;
    world.put(1, false).await;
    let view = world.partition.view().await.unwrap();
    for n in 0..2 * PATHS_MAX {
        let path = [PathStep::Property(n.to_string())];
        world.partition.lacking(&view, &world.schema, &path, &mut lacks).await.unwrap();
    }
    assert_eq!(world.partition.lacking.0.lock().len(), PATHS_MAX);
}
