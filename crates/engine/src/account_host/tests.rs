//! Account snapshots: what they hold, what a restore brings back, and what stays valid for clients.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64};

use pleiad_model::Kind;
use pleiad_model::env::ManualEnv;
use pleiad_storage::Memory;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};

use super::*;
use crate::testing::*;
use crate::{
    ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, ContainerName, FeedRange, JobStep, PageLimit, SessionToken,
    Target, ThroughputRequest,
};

const QUOTA: PageLimit = PageLimit { items: 1000, bytes: 1 << 20 };
const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

/// An account with one container of four partitions, `c` in `db`.
async fn live(store: impl Into<AnyStore>) -> Arc<AccountHost> {
    let engine = open(store, LIMITS).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    container(&engine, "c", &["/pk"], 4).await;
    AccountHost::new(Arc::into_inner(engine).unwrap())
}

async fn fill(engine: &Engine, from: usize, to: usize) {
    let at = admit(engine, "c");
    for n in from..to {
        create(engine, &at, &n.to_string(), &n.to_string()).await.result.unwrap();
    }
}

/// The ids of all items, found by read feed and by point reads.
async fn ids(engine: &Engine) -> BTreeSet<usize> {
    let at = admit(engine, "c");
    let (mut ids, mut after) = (BTreeSet::new(), None);
    loop {
        let page = engine.list_items(&at, &FeedRange::Container, after, QUOTA, None).await.result.unwrap();
        ids.extend(page.records.iter().map(|record| record.id().parse::<usize>().unwrap()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for id in &ids {
        read(engine, &at, &id.to_string(), &id.to_string()).await.result.unwrap();
    }
    ids
}

async fn split(engine: &Engine) {
    let job = engine.split(C, None, None).await.unwrap();
    engine.job_ended(job).await.unwrap();
}

/// Makes changes of every kind that a restore must undo.
async fn wreck(engine: &Arc<Engine>) {
    fill(engine, 100, 120).await;
    delete(engine, &admit(engine, "c"), "3", "3").await.result.unwrap();
    split(engine).await;
    engine.catalog.create_database("other", ThroughputRequest::Unspecified).await.unwrap();
    try_container(engine, "other", "new", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
}

#[tokio::test]
async fn a_snapshot_is_restored_as_often_as_one_likes() {
    let dir = tempfile::tempdir().unwrap();
    for store in [AnyStore::Memory(Memory::new()), AnyStore::Embedded(disk(dir.path()))] {
        let live = live(store).await;
        fill(&live.engine(), 0, 20).await;
        let taken = live.take_snapshot("clean", false).await.unwrap();
        assert!(taken.name == "clean" && taken.bytes > 0 && taken.taken_ms > 0);
        for round in 0..5 {
            wreck(&live.engine()).await;
            if round == 3 {
                let rid = live.engine().find_database("db").unwrap().rid;
                live.engine().catalog.delete_database(rid).await.unwrap();
            }
            live.restore("clean").await.unwrap();
            let engine = live.engine();
            assert_eq!(ids(&engine).await, (0..20).collect(), "round {round}");
            assert_eq!(engine.catalog.tree().databases.len(), 1);
            assert_eq!(engine.partitions(C).unwrap().len(), 4);
            assert_sound(&engine).await;
        }
        live.close().await;
    }
    let live = AccountHost::new(Arc::into_inner(open(disk(dir.path()), LIMITS).await).unwrap());
    assert_eq!(ids(&live.engine()).await, (0..20).collect(), "after a restart");
    assert_eq!(live.snapshots().await.unwrap().len(), 1);
    live.close().await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4, "FORMAT, LIVE, one store, the snapshots");
}

#[tokio::test]
async fn names_are_checked_and_given_once() {
    let live = live(Memory::new()).await;
    let longest = "n".repeat(255);
    live.take_snapshot(&longest, false).await.unwrap();
    for wrong in ["", "a/b", "a?", "a#", "a\\b", "ends ", &"n".repeat(256)] {
        assert_eq!(live.take_snapshot(wrong, false).await.unwrap_err().kind, Kind::Invalid, "{wrong:?}");
    }
    assert_eq!(live.take_snapshot(&longest, false).await.unwrap_err().kind, Kind::Conflict);
    fill(&live.engine(), 0, 1).await;
    live.take_snapshot(&longest, true).await.unwrap();
    live.restore(&longest).await.unwrap();
    assert_eq!(ids(&live.engine()).await.len(), 1, "the later snapshot has replaced the earlier one");
    live.delete_snapshot(&longest).await.unwrap();
    for refused in [live.delete_snapshot(&longest).await, live.restore(&longest).await.map(drop)] {
        assert_eq!(refused.unwrap_err().kind, Kind::NotFound);
    }
    assert_eq!(ids(&live.engine()).await.len(), 1, "rejected requests change nothing");
}

/// Tokens, etags and `_rid`s that clients hold stay valid, or at least never mean something else.
#[tokio::test]
async fn nothing_that_was_given_is_given_again() {
    let live = live(Memory::new()).await;
    fill(&live.engine(), 0, 8).await;
    live.take_snapshot("clean", false).await.unwrap();
    let mut etags = BTreeSet::new();
    let mut rids = BTreeSet::new();
    let mut containers = BTreeSet::new();
    for _ in 0..3 {
        let engine = live.engine();
        let at = admit(&engine, "c");
        let made = create(&engine, &at, "new", "8").await;
        let place = made.place.unwrap();
        let record = made.result.unwrap().record.unwrap();
        assert!(etags.insert(record.etag().to_string()), "an etag was assigned twice");
        assert!(rids.insert(record.docnum), "a _rid was assigned twice");
        let other = container(&engine, "other", &["/pk"], 4).await;
        assert!(containers.insert(other.rid), "a container's _rid was assigned twice");
        live.restore("clean").await.unwrap();
        let engine = live.engine();
        let token = SessionToken(vec![(place.range, place.lsn)]);
        let read = engine.read_item(&admit(&engine, "c"), Some(&pk("1")), Target::Named("1"), Some(&token)).await;
        read.result.unwrap();
        let same = engine.read_item(&admit(&engine, "c"), Some(&pk("8")), Target::Named("new"), Some(&token)).await;
        assert_eq!(kind(same), Kind::NotFound, "not \"session not available\"");
    }
}

/// Clients hold session tokens also of a container that is deleted when its snapshot is restored.
#[tokio::test]
async fn sessions_with_a_dropped_container_go_on() {
    let live = live(Memory::new()).await;
    fill(&live.engine(), 0, 8).await;
    live.take_snapshot("clean", false).await.unwrap();
    let engine = live.engine();
    let at = admit(&engine, "c");
    fill(&engine, 8, 40).await;
    let seen: Vec<(u32, u64)> = engine.partitions(C).unwrap().iter().map(|one| (one.range.id, one.lsn)).collect();
    engine.catalog.delete_container(at.container().rid).await.unwrap();
    live.restore("clean").await.unwrap();
    let engine = live.engine();
    for n in 0..8usize {
        let (id, token) = (n.to_string(), SessionToken(seen.clone()));
        let read = engine.read_item(&admit(&engine, "c"), Some(&pk(&id)), Target::Named(&id), Some(&token)).await;
        read.result.unwrap();
    }
}

/// A container's high-water marks survive its deletion, and the restore of a snapshot that does not have the container.
#[tokio::test]
async fn a_container_that_one_snapshot_lacks_goes_on_in_the_next() {
    let live = live(Memory::new()).await;
    live.engine().catalog.create_database("keep", ThroughputRequest::Unspecified).await.unwrap();
    let rid = admit(&live.engine(), "c").container().rid;
    live.engine().catalog.delete_container(rid).await.unwrap();
    live.take_snapshot("without", false).await.unwrap();
    container(&live.engine(), "c", &["/pk"], 4).await;
    fill(&live.engine(), 0, 8).await;
    live.take_snapshot("with", false).await.unwrap();
    let engine = live.engine();
    let (mut etags, mut rids) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..40 {
        let at = admit(&engine, "c");
        let record = create(&engine, &at, "n", "1").await.result.unwrap().record.unwrap();
        assert!(etags.insert(record.etag().to_string()) && rids.insert(record.docnum));
        delete(&engine, &at, "n", "1").await.result.unwrap();
    }
    let seen: Vec<(u32, u64)> = engine.partitions(C).unwrap().iter().map(|one| (one.range.id, one.lsn)).collect();
    drop(engine);
    live.restore("without").await.unwrap();
    live.restore("with").await.unwrap();
    let engine = live.engine();
    let at = admit(&engine, "c");
    let token = SessionToken(seen.clone());
    engine.read_item(&at, Some(&pk("1")), Target::Named("1"), Some(&token)).await.result.unwrap();
    let made = create(&engine, &at, "n", "1").await;
    let place = made.place.unwrap();
    assert!(seen.iter().all(|(_, lsn)| *lsn < place.lsn), "a reader of the change feed would miss the write");
    let record = made.result.unwrap().record.unwrap();
    assert!(etags.insert(record.etag().to_string()) && rids.insert(record.docnum), "etag or _rid assigned twice");
}

/// Clients that have cached its ranges find them replaced, and the ids never mean other keys.
#[tokio::test]
async fn a_container_that_comes_back_gives_no_range_id_twice() {
    let live = live(Memory::new()).await;
    live.take_snapshot("clean", false).await.unwrap();
    let map = || admit(&live.engine(), "c").container().map.clone();
    let before = map();
    let mut known = vec![before.clone()];
    for _ in 0..3 {
        split(&live.engine()).await;
        known.push(map());
        let rid = admit(&live.engine(), "c").container().rid;
        live.engine().catalog.delete_container(rid).await.unwrap();
        live.restore("clean").await.unwrap();
        let now = map();
        for range in now.ranges() {
            assert!(known.iter().all(|map| map.by_id(range.id).is_none()), "a range id was reused");
        }
        for gone in known.iter().flat_map(|map| map.ranges()) {
            assert!(now.ranges().iter().any(|range| range.parents.contains(&gone.id)), "{} has no child", gone.id);
        }
        assert!(known.iter().all(|map| map.epoch < now.epoch), "the etag of the ranges would not change");
        known.push(now);
        fill(&live.engine(), 0, 8).await;
        assert_sound(&live.engine()).await;
    }
}

/// A reader of the change feed that had read beyond the snapshot gets every write after the restore.
#[tokio::test]
async fn the_change_feed_goes_on_behind_a_restore() {
    let live = live(Memory::new()).await;
    fill(&live.engine(), 0, 8).await;
    live.take_snapshot("clean", false).await.unwrap();
    fill(&live.engine(), 8, 40).await;
    split(&live.engine()).await;
    let read = async |engine: &Engine, from: ChangeFrom| {
        let (mut seen, mut from) = (Vec::new(), from);
        loop {
            let (mode, scope, quota) = (ChangeMode::LatestVersion, FeedRange::Container, QUOTA);
            let request = ChangeRequest { mode, scope, from, since_s: None, quota };
            let page = engine.change_feed(&admit(engine, "c"), &request, None).await.result.unwrap();
            let ChangedItems::Latest(records) = page.changes else { panic!("versions were not requested") };
            from = ChangeFrom::Stretches(page.next);
            if records.is_empty() {
                return (seen, from);
            }
            seen.extend(records.iter().map(|record| record.id().to_owned()));
        }
    };
    let (seen, place) = read(&live.engine(), ChangeFrom::Beginning).await;
    assert_eq!(seen.len(), 40);
    live.restore("clean").await.unwrap();
    let engine = live.engine();
    let (seen, place) = read(&engine, place).await;
    assert_eq!(seen, Vec::<String>::new(), "restored items are not changes");
    fill(&engine, 50, 60).await;
    assert_eq!(read(&engine, place).await.0.len(), 10);
}

/// Clients have cached the partitions of the account before the restore.
#[tokio::test]
async fn partitions_that_differ_come_back_as_children_of_those_that_were() {
    let live = live(Memory::new()).await;
    live.take_snapshot("clean", false).await.unwrap();
    live.restore("clean").await.unwrap();
    let map = || admit(&live.engine(), "c").container().map.clone();
    let before = map();
    assert_eq!(before.ranges().iter().map(|range| range.id).collect::<Vec<_>>(), [0, 1, 2, 3], "the ranges stay");
    split(&live.engine()).await;
    let between = map();
    live.restore("clean").await.unwrap();
    let after = map();
    assert!(after.epoch > between.epoch);
    for range in after.ranges() {
        assert!(before.by_id(range.id).or(between.by_id(range.id)).is_none(), "a range id was reused");
        assert_eq!(range.since, after.epoch);
    }
    for gone in before.ranges().iter().chain(between.ranges()) {
        assert!(after.ranges().iter().any(|range| range.parents.contains(&gone.id)), "{} has no child", gone.id);
        assert_eq!(after.keys_of(gone.id), Some(&gone.keys), "its EPK range is still known");
    }
    let again = split_and_restore(&live).await;
    assert!(again.ranges().iter().all(|range| after.by_id(range.id).is_none()));
}

async fn split_and_restore(live: &Arc<AccountHost>) -> pleiad_model::partition_map::PartitionMap {
    split(&live.engine()).await;
    live.restore("clean").await.unwrap();
    admit(&live.engine(), "c").container().map.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_that_was_under_way_goes_on_after_a_restore() {
    for step in [JobStep::Copy, JobStep::CatchUp, JobStep::Publish] {
        let live = live(Memory::new()).await;
        fill(&live.engine(), 0, 40).await;
        let engine = live.engine();
        engine.hold_jobs_at(step);
        engine.split(C, None, None).await.unwrap();
        engine.job_held_at(step).await;
        live.take_snapshot("in the middle", false).await.unwrap();
        engine.release_jobs_at(step);
        let job = engine.jobs().iter().map(|report| report.task.id()).max().unwrap();
        engine.job_ended(job).await.unwrap();
        split(&engine).await;
        let known = admit(&engine, "c").container().map.clone();
        drop(engine);
        live.restore("in the middle").await.unwrap();
        let engine = live.engine();
        engine.job_ended(job).await.unwrap();
        let now = admit(&engine, "c").container().map.clone();
        assert_eq!(now.ranges().len(), 5, "{step}");
        for gone in known.ranges() {
            let mut children = now.ranges().iter().filter(|range| range.keys.intersect(&gone.keys).is_some());
            assert!(children.all(|range| range.parents.contains(&gone.id)), "{step}: a child lacks parent {}", gone.id);
        }
        fill(&engine, 40, 60).await;
        assert_eq!(ids(&engine).await, (0..60).collect(), "{step}");
        assert_sound(&engine).await;
    }
}

/// A client that waits for a job of the replaced account gets an error, and retries with the current one.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_job_that_a_restore_has_stopped() {
    let live = live(Memory::new()).await;
    fill(&live.engine(), 0, 8).await;
    live.take_snapshot("clean", false).await.unwrap();
    let engine = live.engine();
    engine.hold_jobs_at(JobStep::Copy);
    let jobs = [engine.split(C, None, None).await.unwrap(), engine.copy_database("db", "other").await.unwrap()];
    engine.job_held_at(JobStep::Copy).await;
    let wait = |id| {
        let engine = engine.clone();
        tokio::spawn(async move { [engine.job_ended(id).await, engine.cancel_job(id).await] })
    };
    let waiting = jobs.map(wait);
    live.restore("clean").await.unwrap();
    for waited in waiting {
        for told in waited.await.unwrap() {
            assert_eq!(told.unwrap_err().kind, Kind::Unavailable);
        }
    }
    let retired = Arc::downgrade(&engine);
    drop(engine);
    live.closing.ended().await;
    assert!(retired.upgrade().is_none(), "the retired engine and its store are closed");
}

#[tokio::test]
async fn a_restore_that_fails_leaves_the_account_as_it_was() {
    for call in [FaultPoint::TakeOver, FaultPoint::Commit, FaultPoint::Read] {
        let script = FaultPlan::default();
        let store = AnyStore::Faulty(Faulty::new(Memory::new(), script.clone()));
        let live = live(store).await;
        fill(&live.engine(), 0, 4).await;
        live.take_snapshot("clean", false).await.unwrap();
        fill(&live.engine(), 4, 8).await;
        script.fail(call, 0);
        live.restore("clean").await.unwrap_err();
        script.restart();
        let engine = live.successor().await.unwrap();
        assert_eq!(ids(&engine).await, (0..8).collect(), "{call:?}");
        fill(&engine, 8, 10).await;
        live.restore("clean").await.unwrap();
        assert_eq!(ids(&live.engine()).await, (0..4).collect(), "{call:?}");
    }
}

/// Four writers that create items with unused ids until they are stopped. None may get a conflict: an unused id does
/// not exist.
struct Writers {
    next: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Writers {
    fn begin(live: &Arc<AccountHost>) -> Writers {
        let (next, stop) = (Arc::new(AtomicU64::new(100)), Arc::new(AtomicBool::new(false)));
        let tasks = (0..4).map(|_| tokio::spawn(Writers::write(live.clone(), next.clone(), stop.clone()))).collect();
        Writers { next, stop, tasks }
    }

    async fn write(live: Arc<AccountHost>, next: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
        while !stop.load(Ordering::Relaxed) {
            let id = next.fetch_add(1, Ordering::Relaxed).to_string();
            let mut engine = live.engine();
            loop {
                let written = create(&engine, &admit(&engine, "c"), &id, &id).await.result;
                let turned_away = matches!(&written, Err(error) if error.kind == Kind::Unavailable);
                match live.instead_of(&engine, turned_away).await.unwrap() {
                    Some(next) => engine = next,
                    None => break drop(written.unwrap()),
                }
            }
        }
    }

    /// The first id that was not used.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.next.load(Ordering::Relaxed) as usize
    }
}

async fn a_moment() {
    let _ = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await;
}

/// A write during a restore is done in the old account, or runs again in the new one.
#[tokio::test(flavor = "multi_thread")]
async fn writers_go_on_over_restores() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(disk(dir.path())).await;
    fill(&live.engine(), 0, 4).await;
    live.take_snapshot("clean", false).await.unwrap();
    let writers = Writers::begin(&live);
    for _ in 0..10 {
        a_moment().await;
        live.restore("clean").await.unwrap();
        assert!(ids(&live.engine()).await.is_superset(&(0..4).collect()));
    }
    writers.end().await;
    live.restore("clean").await.unwrap();
    assert_eq!(ids(&live.engine()).await, (0..4).collect());
    assert_sound(&live.engine()).await;
    live.close().await;
}

/// A write that was done while a restore failed stays, and does not run again.
#[tokio::test(flavor = "multi_thread")]
async fn writers_go_on_over_restores_that_fail() {
    let script = FaultPlan::default();
    let live = live(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone()))).await;
    live.take_snapshot("empty", false).await.unwrap();
    let writers = Writers::begin(&live);
    for _ in 0..40 {
        a_moment().await;
        script.fail(FaultPoint::TakeOver, 0);
        live.restore("empty").await.unwrap_err();
        script.restart();
    }
    let end = writers.end().await;
    assert_eq!(ids(&live.engine()).await, (100..end).collect());
    live.close().await;
}

/// The in-memory store records the engine's time with each snapshot.
#[tokio::test]
async fn snapshots_tell_when_they_were_taken() {
    let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
    let store = Arc::new(AnyStore::Memory(Memory::new()));
    let engine = reopen_at(store, LIMITS, env.clone()).await;
    let live = AccountHost::new(Arc::into_inner(engine).unwrap());
    live.take_snapshot("one", false).await.unwrap();
    env.advance_ms(5);
    live.take_snapshot("a later one", false).await.unwrap();
    let told: Vec<(String, u64)> =
        live.snapshots().await.unwrap().into_iter().map(|kept| (kept.name, kept.taken_ms)).collect();
    assert_eq!(told, [("a later one".to_owned(), 1_700_000_000_005), ("one".to_owned(), 1_700_000_000_000)]);
}
