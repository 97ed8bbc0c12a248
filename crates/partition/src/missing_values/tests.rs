//! Proves: every item of a snapshot without a value at the path is a candidate, whichever snapshots were queried
//! before, and however often a scan was interrupted.

use std::collections::BTreeSet;

use pleiad_model::{Object, json};
use pleiad_storage::{Blocking, WouldBlock, try_inline};
use proptest::prelude::*;

use super::*;
use crate::partition::{Precondition, Verb};
use crate::testing::{draft, key, memory, open, schema};

fn path() -> Vec<PathStep> {
    vec![PathStep::Property("v".to_owned())]
}

fn is_missing(record: RecordView<'_>) -> Result<bool> {
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

    async fn candidates(&self, view: &PartitionSnapshot, is_missing: IsMissing<'_>) -> Result<Option<Candidates>> {
        self.partition.missing_candidates(view, &self.schema, &path(), is_missing).await
    }

    async fn check(&self, view: &PartitionSnapshot) -> Result<(), TestCaseError> {
        let Some(candidates) = self.candidates(view, &mut is_missing).await.unwrap() else {
            prop_assert!(view.lsn() < self.partition.lsn(), "a current snapshot always gets candidates");
            return Ok(());
        };
        let mut missing = BTreeSet::new();
        let collect = &mut |record: Result<RecordView<'_>>| {
            let record = record.unwrap();
            if is_missing(record).unwrap() {
                missing.insert(record.docnum);
            }
            true
        };
        view.visit(0, u64::MAX, collect).await.unwrap();
        let returned = candidates.next(0, u64::MAX, false, usize::MAX);
        prop_assert!(
            missing.iter().all(|docnum| returned.binary_search(docnum).is_ok()),
            "{missing:?} in {returned:?}"
        );
        let mut back = candidates.next(0, u64::MAX, true, usize::MAX);
        back.reverse();
        prop_assert_eq!(&back, &returned);
        // Two at a time, from either end.
        let at = |position: usize| returned.get(position).copied().unwrap_or(7);
        for (from, upto) in [(2, 5), (at(1), at(4)), (0, at(3)), (at(2), u64::MAX), (at(4), at(1))] {
            let within: Vec<u64> = returned.iter().copied().filter(|docnum| (from..=upto).contains(docnum)).collect();
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
    Query(usize),
    /// Queries a new snapshot and fails after this many items.
    Interrupted(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u8..12, any::<bool>()).prop_map(|(id, has_it)| Act::Put(id, has_it)),
        2 => (0u8..12).prop_map(Act::Delete),
        2 => Just(Act::View),
        3 => (0usize..8).prop_map(Act::Query),
        1 => (0usize..6).prop_map(Act::Interrupted),
    ]
}

async fn run(acts: Vec<Act>) -> Result<(), TestCaseError> {
    let world = World::open().await;
    let mut views = Vec::new();
    for act in acts {
        match act {
            Act::Put(id, has_it) => world.put(id, has_it).await,
            Act::Delete(id) => world.delete(id).await,
            Act::View => views.push(world.partition.snapshot(Blocking::Suspend).await.unwrap()),
            Act::Query(at) => match views.get(at) {
                Some(view) => world.check(view).await?,
                None => world.check(&world.partition.snapshot(Blocking::Suspend).await.unwrap()).await?,
            },
            Act::Interrupted(at) => {
                let (view, mut left) = (world.partition.snapshot(Blocking::Suspend).await.unwrap(), at);
                let stopped = &mut |record: RecordView<'_>| {
                    left = left.checked_sub(1).ok_or_else(|| Error::unavailable("nobody waits"))?;
                    is_missing(record)
                };
                let _ = world.candidates(&view, stopped).await;
            }
        }
    }
    for view in &views {
        world.check(view).await?;
    }
    world.check(&world.partition.snapshot(Blocking::Suspend).await.unwrap()).await
}

proptest! {
    #[test]
    fn every_item_without_the_value_is_a_candidate(acts in prop::collection::vec(act(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(acts))?;
    }
}

/// The number of items that a query checks.
async fn count_checks(world: &World) -> usize {
    let (view, mut checks) = (world.partition.snapshot(Blocking::Suspend).await.unwrap(), 0);
    let counted = &mut |record: RecordView<'_>| {
        checks += 1;
        is_missing(record)
    };
    world.candidates(&view, counted).await.unwrap();
    checks
}

#[tokio::test]
async fn items_are_checked_once_and_again_only_after_a_change() {
    let world = World::open().await;
    for id in 0..100 {
        world.put(id, id % 10 > 0).await;
    }
    assert_eq!(count_checks(&world).await, 100);
    assert_eq!(count_checks(&world).await, 0);
    world.put(3, false).await;
    world.put(200, true).await;
    world.delete(10).await;
    assert_eq!(count_checks(&world).await, 2);
    let view = world.partition.snapshot(Blocking::Suspend).await.unwrap();
    let candidates = world.candidates(&view, &mut is_missing).await.unwrap().unwrap();
    assert_eq!(candidates.next(0, u64::MAX, false, usize::MAX).len(), 11, "including a deleted one");
}

#[tokio::test]
async fn an_inline_query_catches_up_over_few_changes_and_leaves_the_scan_to_a_thread() {
    let world = World::open().await;
    for id in 0..100 {
        world.put(id, id % 10 > 0).await;
    }
    let inline = world.partition.snapshot(Blocking::Inline).await.unwrap();
    let mut check_none = |_: RecordView<'_>| panic!("an item was read");
    assert_eq!(try_inline(world.candidates(&inline, &mut check_none)).err(), Some(WouldBlock));
    assert_eq!(count_checks(&world).await, 100, "the refused scan has left no progress");
    world.put(3, false).await;
    let inline = world.partition.snapshot(Blocking::Inline).await.unwrap();
    let candidates = try_inline(world.candidates(&inline, &mut is_missing)).unwrap().unwrap().unwrap();
    assert_eq!(candidates.next(0, u64::MAX, false, usize::MAX).len(), 11);
}

#[tokio::test]
async fn stale_candidates_are_dropped_by_a_new_scan() {
    let world = World::open().await;
    world.put(1, false).await;
    let view = world.partition.snapshot(Blocking::Suspend).await.unwrap();
    let reading = world.candidates(&view, &mut is_missing).await.unwrap().unwrap();
    for _ in 0..=ADDED_BEFORE_RESCAN_MIN {
        world.put(1, false).await;
        count_checks(&world).await;
    }
    world.put(1, true).await;
    count_checks(&world).await;
    let view = world.partition.snapshot(Blocking::Suspend).await.unwrap();
    let candidates = world.candidates(&view, &mut is_missing).await.unwrap().unwrap();
    assert!(candidates.next(0, u64::MAX, false, usize::MAX).is_empty());
    assert_eq!(reading.next(0, u64::MAX, false, usize::MAX).len(), 1, "a reader keeps its candidates");
}

#[tokio::test]
async fn an_old_snapshot_gets_its_candidates_after_many_later_queries() {
    let world = World::open().await;
    world.put(1, false).await;
    count_checks(&world).await;
    let mut views = Vec::new();
    for n in 0..600 {
        world.put(2, n % 3 == 0).await;
        views.push(world.partition.snapshot(Blocking::Suspend).await.unwrap());
        count_checks(&world).await;
    }
    assert!(world.partition.missing_values.0.lock()[0].1.state.read().complete_lsns.len() <= COMPLETE_LSNS_MAX);
    for (n, view) in views.iter().enumerate() {
        let candidates = world.candidates(view, &mut is_missing).await.unwrap().unwrap();
        assert!(candidates.next(0, u64::MAX, false, usize::MAX).len() > usize::from(n % 3 > 0), "{n}");
    }
}

#[tokio::test]
async fn the_number_of_cached_paths_is_bounded() {
    let world = World::open().await;
    world.put(1, false).await;
    let view = world.partition.snapshot(Blocking::Suspend).await.unwrap();
    for n in 0..2 * PATHS_MAX {
        let path = [PathStep::Property(n.to_string())];
        world.partition.missing_candidates(&view, &world.schema, &path, &mut is_missing).await.unwrap();
    }
    assert_eq!(world.partition.missing_values.0.lock().len(), PATHS_MAX);
}
