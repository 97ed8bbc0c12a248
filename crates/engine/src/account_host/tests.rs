//! Account snapshots: what they hold, what a restore brings back, and what stays valid for clients.

use pleiad_model::{Fact, Kind};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64};

use pleiad_model::env::ManualEnv;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{Memory, Store};

use super::*;
use crate::testing::*;
use crate::{
    ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, ContainerName, FeedRange, JobStep, PageLimit, SessionToken,
    Target, ThroughputRequest,
};

const QUOTA: PageLimit = PageLimit { items: 1000, bytes: 1 << 20 };
const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

/// An account with one container of four partitions, `c` in `db`.
async fn new_host(store: impl Into<AnyStore>) -> Arc<AccountHost> {
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
    let job = engine.split(at_container(engine, C).unwrap(), None, None).await.unwrap();
    engine.catalog.jobs().wait_ended(job).await.unwrap();
}

/// Makes changes of every kind that a restore must undo.
async fn change_everything(engine: &Arc<Engine>) {
    fill(engine, 100, 120).await;
    delete(engine, &admit(engine, "c"), "3", "3").await.result.unwrap();
    split(engine).await;
    engine.catalog.create_database("other", ThroughputRequest::Unspecified).await.unwrap();
    try_container(engine, "other", "new", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
}

#[tokio::test]
async fn a_snapshot_can_be_restored_repeatedly() {
    let dir = tempfile::tempdir().unwrap();
    for store in [AnyStore::Memory(Memory::new()), AnyStore::Embedded(disk(dir.path()))] {
        let host = new_host(store).await;
        fill(&host.engine(), 0, 20).await;
        let taken = host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
        assert!(taken.name == "clean" && taken.bytes > 0 && taken.taken_ms > 0);
        for round in 0..5 {
            change_everything(&host.engine()).await;
            if round == 3 {
                let rid = find_database(&host.engine(), "db").unwrap().rid;
                host.engine().catalog.delete_database(rid).await.unwrap();
            }
            host.restore(&whole(&host.engine()), "clean").await.unwrap();
            let engine = host.engine();
            assert_eq!(ids(&engine).await, (0..20).collect(), "round {round}");
            assert_eq!(engine.catalog.tree().databases.len(), 1);
            assert_eq!(engine.partitions(&at_container(&engine, C).unwrap()).unwrap().len(), 4);
            assert_sound(&engine).await;
        }
        host.close().await;
    }
    let host = AccountHost::new(Arc::into_inner(open(disk(dir.path()), LIMITS).await).unwrap());
    assert_eq!(ids(&host.engine()).await, (0..20).collect(), "after a restart");
    assert_eq!(host.snapshots(&whole(&host.engine())).await.unwrap().len(), 1);
    host.close().await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5, "FORMAT, LIVE, SYNCED-N, one store, the snapshots");
}

#[tokio::test]
async fn snapshot_names_are_validated_and_unique() {
    let host = new_host(Memory::new()).await;
    let longest = "n".repeat(255);
    host.take_snapshot(&whole(&host.engine()), &longest, false).await.unwrap();
    for wrong in ["", "a/b", "a?", "a#", "a\\b", "ends ", &"n".repeat(256)] {
        assert_eq!(
            host.take_snapshot(&whole(&host.engine()), wrong, false).await.unwrap_err().kind,
            Kind::Invalid,
            "{wrong:?}"
        );
    }
    assert_eq!(host.take_snapshot(&whole(&host.engine()), &longest, false).await.unwrap_err().kind, Kind::Conflict);
    fill(&host.engine(), 0, 1).await;
    host.take_snapshot(&whole(&host.engine()), &longest, true).await.unwrap();
    host.restore(&whole(&host.engine()), &longest).await.unwrap();
    assert_eq!(ids(&host.engine()).await.len(), 1, "the later snapshot has replaced the earlier one");
    host.delete_snapshot(&whole(&host.engine()), &longest).await.unwrap();
    for rejected in [
        host.delete_snapshot(&whole(&host.engine()), &longest).await,
        host.restore(&whole(&host.engine()), &longest).await.map(drop),
    ] {
        assert_eq!(rejected.unwrap_err().kind, Kind::NotFound);
    }
    assert_eq!(ids(&host.engine()).await.len(), 1, "rejected requests change nothing");
}

/// Tokens, etags and `_rid`s that clients hold stay valid, or at least never mean something else.
#[tokio::test]
async fn etags_and_rids_are_not_reused_after_a_restore() {
    let host = new_host(Memory::new()).await;
    fill(&host.engine(), 0, 8).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    let mut etags = BTreeSet::new();
    let mut rids = BTreeSet::new();
    let mut containers = BTreeSet::new();
    for _ in 0..3 {
        let engine = host.engine();
        let at = admit(&engine, "c");
        let made = create(&engine, &at, "new", "8").await;
        let served_by = made.served_by.unwrap();
        let record = made.result.unwrap().record.unwrap();
        assert!(etags.insert(record.etag().to_string()), "an etag was assigned twice");
        assert!(rids.insert(record.docnum), "a _rid was assigned twice");
        let other = container(&engine, "other", &["/pk"], 4).await;
        assert!(containers.insert(other.rid), "a container's _rid was assigned twice");
        host.restore(&whole(&host.engine()), "clean").await.unwrap();
        let engine = host.engine();
        let token = SessionToken(vec![(served_by.range, served_by.lsn)]);
        let read = engine.read_item(&admit(&engine, "c"), Some(&pk("1")), Target::Named("1"), None, Some(&token)).await;
        read.result.unwrap();
        let same =
            engine.read_item(&admit(&engine, "c"), Some(&pk("8")), Target::Named("new"), None, Some(&token)).await;
        assert_eq!(kind(same), Kind::NotFound, "not \"session not available\"");
    }
}

/// Clients hold session tokens also of a container that is deleted when its snapshot is restored.
#[tokio::test]
async fn session_tokens_stay_valid_for_a_dropped_and_restored_container() {
    let host = new_host(Memory::new()).await;
    fill(&host.engine(), 0, 8).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    let engine = host.engine();
    let at = admit(&engine, "c");
    fill(&engine, 8, 40).await;
    let seen: Vec<(u32, u64)> = engine
        .partitions(&at_container(&engine, C).unwrap())
        .unwrap()
        .iter()
        .map(|one| (one.range.id, one.lsn))
        .collect();
    engine.catalog.delete_container(at.container().rid).await.unwrap();
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    let engine = host.engine();
    for n in 0..8usize {
        let (id, token) = (n.to_string(), SessionToken(seen.clone()));
        let read = engine.read_item(&admit(&engine, "c"), Some(&pk(&id)), Target::Named(&id), None, Some(&token)).await;
        read.result.unwrap();
    }
}

/// A container's high-water marks survive its deletion, and the restore of a snapshot that does not have the container.
#[tokio::test]
async fn high_water_marks_survive_a_snapshot_without_the_container() {
    let host = new_host(Memory::new()).await;
    host.engine().catalog.create_database("keep", ThroughputRequest::Unspecified).await.unwrap();
    let rid = admit(&host.engine(), "c").container().rid;
    host.engine().catalog.delete_container(rid).await.unwrap();
    host.take_snapshot(&whole(&host.engine()), "without", false).await.unwrap();
    container(&host.engine(), "c", &["/pk"], 4).await;
    fill(&host.engine(), 0, 8).await;
    host.take_snapshot(&whole(&host.engine()), "with", false).await.unwrap();
    let engine = host.engine();
    let (mut etags, mut rids) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..40 {
        let at = admit(&engine, "c");
        let record = create(&engine, &at, "n", "1").await.result.unwrap().record.unwrap();
        assert!(etags.insert(record.etag().to_string()) && rids.insert(record.docnum));
        delete(&engine, &at, "n", "1").await.result.unwrap();
    }
    let seen: Vec<(u32, u64)> = engine
        .partitions(&at_container(&engine, C).unwrap())
        .unwrap()
        .iter()
        .map(|one| (one.range.id, one.lsn))
        .collect();
    drop(engine);
    host.restore(&whole(&host.engine()), "without").await.unwrap();
    host.restore(&whole(&host.engine()), "with").await.unwrap();
    let engine = host.engine();
    let at = admit(&engine, "c");
    let token = SessionToken(seen.clone());
    engine.read_item(&at, Some(&pk("1")), Target::Named("1"), None, Some(&token)).await.result.unwrap();
    let made = create(&engine, &at, "n", "1").await;
    let served_by = made.served_by.unwrap();
    assert!(seen.iter().all(|(_, lsn)| *lsn < served_by.lsn), "a reader of the change feed would miss the write");
    let record = made.result.unwrap().record.unwrap();
    assert!(etags.insert(record.etag().to_string()) && rids.insert(record.docnum), "etag or _rid assigned twice");
}

/// Clients that have cached its ranges find them replaced, and the ids never mean other keys.
#[tokio::test]
async fn a_restored_container_reuses_no_range_id() {
    let host = new_host(Memory::new()).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    let map = || admit(&host.engine(), "c").container().map.clone();
    let before = map();
    let mut known = vec![before.clone()];
    for _ in 0..3 {
        split(&host.engine()).await;
        known.push(map());
        let rid = admit(&host.engine(), "c").container().rid;
        host.engine().catalog.delete_container(rid).await.unwrap();
        host.restore(&whole(&host.engine()), "clean").await.unwrap();
        let now = map();
        for range in now.ranges() {
            assert!(known.iter().all(|map| map.by_id(range.id).is_none()), "a range id was reused");
        }
        for replaced in known.iter().flat_map(|map| map.ranges()) {
            assert!(
                now.ranges().iter().any(|range| range.parents.contains(&replaced.id)),
                "{} has no child",
                replaced.id
            );
        }
        assert!(known.iter().all(|map| map.epoch < now.epoch), "the etag of the ranges would not change");
        known.push(now);
        fill(&host.engine(), 0, 8).await;
        assert_sound(&host.engine()).await;
    }
}

/// A reader of the change feed that had read beyond the snapshot gets every write after the restore.
#[tokio::test]
async fn the_change_feed_continues_after_a_restore() {
    let host = new_host(Memory::new()).await;
    fill(&host.engine(), 0, 8).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    fill(&host.engine(), 8, 40).await;
    split(&host.engine()).await;
    let read = async |engine: &Engine, from: ChangeFrom| {
        let (mut seen, mut from) = (Vec::new(), from);
        loop {
            let (mode, scope, quota) = (ChangeMode::LatestVersion, FeedRange::Container, QUOTA);
            let request = ChangeRequest { mode, scope, from, since_s: None, filter: None, limit: quota };
            let page = engine.change_feed(&admit(engine, "c"), &request, None).await.result.unwrap();
            let ChangedItems::Latest(records) = page.changes else { panic!("versions were not requested") };
            from = ChangeFrom::Cursors(page.next);
            if records.is_empty() {
                return (seen, from);
            }
            seen.extend(records.iter().map(|record| record.id().to_owned()));
        }
    };
    let (seen, position) = read(&host.engine(), ChangeFrom::Beginning).await;
    assert_eq!(seen.len(), 40);
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    let engine = host.engine();
    let (seen, position) = read(&engine, position).await;
    assert_eq!(seen, Vec::<String>::new(), "restored items are not changes");
    fill(&engine, 50, 60).await;
    assert_eq!(read(&engine, position).await.0.len(), 10);
}

/// Clients have cached the partitions of the account before the restore.
#[tokio::test]
async fn restored_partitions_are_children_of_those_they_replace() {
    let host = new_host(Memory::new()).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    let map = || admit(&host.engine(), "c").container().map.clone();
    let before = map();
    assert_eq!(before.ranges().iter().map(|range| range.id).collect::<Vec<_>>(), [0, 1, 2, 3], "the ranges stay");
    split(&host.engine()).await;
    let between = map();
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    let after = map();
    assert!(after.epoch > between.epoch);
    for range in after.ranges() {
        assert!(before.by_id(range.id).or(between.by_id(range.id)).is_none(), "a range id was reused");
        assert_eq!(range.since, after.epoch);
    }
    for replaced in before.ranges().iter().chain(between.ranges()) {
        assert!(
            after.ranges().iter().any(|range| range.parents.contains(&replaced.id)),
            "{} has no child",
            replaced.id
        );
        assert_eq!(after.keys_of(replaced.id), Some(&replaced.keys), "its EPK range is still known");
    }
    let again = split_and_restore(&host).await;
    assert!(again.ranges().iter().all(|range| after.by_id(range.id).is_none()));
}

async fn split_and_restore(host: &Arc<AccountHost>) -> pleiad_model::partition_map::PartitionMap {
    split(&host.engine()).await;
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    admit(&host.engine(), "c").container().map.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_in_progress_continues_after_a_restore() {
    for step in [JobStep::Copy, JobStep::CatchUp, JobStep::Publish] {
        let host = new_host(Memory::new()).await;
        fill(&host.engine(), 0, 40).await;
        let engine = host.engine();
        engine.catalog.jobs().hold(step);
        engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
        engine.catalog.jobs().wait_held_at(step).await;
        host.take_snapshot(&whole(&host.engine()), "in the middle", false).await.unwrap();
        engine.catalog.jobs().release(step);
        let job = engine.catalog.jobs().reports().iter().map(|report| report.task.id()).max().unwrap();
        engine.catalog.jobs().wait_ended(job).await.unwrap();
        split(&engine).await;
        let known = admit(&engine, "c").container().map.clone();
        drop(engine);
        host.restore(&whole(&host.engine()), "in the middle").await.unwrap();
        let engine = host.engine();
        engine.catalog.jobs().wait_ended(job).await.unwrap();
        let now = admit(&engine, "c").container().map.clone();
        assert_eq!(now.ranges().len(), 5, "{step}");
        for replaced in known.ranges() {
            let mut children = now.ranges().iter().filter(|range| range.keys.intersect(&replaced.keys).is_some());
            assert!(
                children.all(|range| range.parents.contains(&replaced.id)),
                "{step}: a child lacks parent {}",
                replaced.id
            );
        }
        fill(&engine, 40, 60).await;
        assert_eq!(ids(&engine).await, (0..60).collect(), "{step}");
        assert_sound(&engine).await;
    }
}

/// A client that waits for a job of the replaced account gets an error, and retries with the current one.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_job_fails_when_a_restore_stops_it() {
    let host = new_host(Memory::new()).await;
    fill(&host.engine(), 0, 8).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    let engine = host.engine();
    engine.catalog.jobs().hold(JobStep::Copy);
    let jobs = [
        engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap(),
        engine.catalog.begin_copy("db", "other").await.unwrap(),
    ];
    engine.catalog.jobs().wait_held_at(JobStep::Copy).await;
    let wait = |id| {
        let engine = engine.clone();
        tokio::spawn(
            async move { [engine.catalog.jobs().wait_ended(id).await, engine.catalog.jobs().cancel(id).await] },
        )
    };
    let waiting = jobs.map(wait);
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    for waited in waiting {
        for result in waited.await.unwrap() {
            assert_eq!(result.unwrap_err().kind, Kind::Unavailable);
        }
    }
    let retired = Arc::downgrade(&engine);
    drop(engine);
    host.closing.wait_idle().await;
    assert!(retired.upgrade().is_none(), "the retired engine and its store are closed");
}

#[tokio::test]
async fn a_failed_restore_leaves_the_account_unchanged() {
    for call in [FaultPoint::MakeCurrent, FaultPoint::Commit, FaultPoint::Read] {
        let script = FaultPlan::default();
        let store = AnyStore::Faulty(Faulty::new(Memory::new(), script.clone()));
        let host = new_host(store).await;
        fill(&host.engine(), 0, 4).await;
        host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
        fill(&host.engine(), 4, 8).await;
        script.fail(call, 0);
        host.restore(&whole(&host.engine()), "clean").await.unwrap_err();
        script.restart();
        let engine = host.current_engine().await.unwrap();
        assert_eq!(ids(&engine).await, (0..8).collect(), "{call:?}");
        fill(&engine, 8, 10).await;
        host.restore(&whole(&host.engine()), "clean").await.unwrap();
        assert_eq!(ids(&host.engine()).await, (0..4).collect(), "{call:?}");
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
    fn begin(host: &Arc<AccountHost>) -> Writers {
        let (next, stop) = (Arc::new(AtomicU64::new(100)), Arc::new(AtomicBool::new(false)));
        let tasks = (0..4).map(|_| tokio::spawn(Writers::write(host.clone(), next.clone(), stop.clone()))).collect();
        Writers { next, stop, tasks }
    }

    async fn write(host: Arc<AccountHost>, next: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
        while !stop.load(Ordering::Relaxed) {
            let id = next.fetch_add(1, Ordering::Relaxed).to_string();
            let mut engine = host.engine();
            loop {
                let written = create(&engine, &admit(&engine, "c"), &id, &id).await.result;
                let is_declined = written.as_ref().is_err_and(|error| error.fact() == Some(&Fact::Stopping));
                match host.replacement_for(&engine, is_declined).await.unwrap() {
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

async fn short_pause() {
    let _ = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await;
}

/// A write during a restore is done in the old account, or runs again in the new one.
#[tokio::test(flavor = "multi_thread")]
async fn writers_continue_across_restores() {
    let dir = tempfile::tempdir().unwrap();
    let host = new_host(disk(dir.path())).await;
    fill(&host.engine(), 0, 4).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    let writers = Writers::begin(&host);
    for _ in 0..10 {
        short_pause().await;
        host.restore(&whole(&host.engine()), "clean").await.unwrap();
        assert!(ids(&host.engine()).await.is_superset(&(0..4).collect()));
    }
    writers.end().await;
    host.restore(&whole(&host.engine()), "clean").await.unwrap();
    assert_eq!(ids(&host.engine()).await, (0..4).collect());
    assert_sound(&host.engine()).await;
    host.close().await;
}

/// A write that was done while a restore failed stays, and does not run again.
#[tokio::test(flavor = "multi_thread")]
async fn writers_continue_across_failed_restores() {
    let script = FaultPlan::default();
    let host = new_host(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone()))).await;
    host.take_snapshot(&whole(&host.engine()), "empty", false).await.unwrap();
    let writers = Writers::begin(&host);
    for _ in 0..40 {
        short_pause().await;
        script.fail(FaultPoint::MakeCurrent, 0);
        host.restore(&whole(&host.engine()), "empty").await.unwrap_err();
        script.restart();
    }
    let end = writers.end().await;
    assert_eq!(ids(&host.engine()).await, (100..end).collect());
    host.close().await;
}

/// The in-memory store records the engine's time with each snapshot.
#[tokio::test]
async fn snapshots_report_when_they_were_taken() {
    let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
    let store = Arc::new(AnyStore::Memory(Memory::new()));
    let engine = reopen_at(store, LIMITS, env.clone()).await;
    let host = AccountHost::new(Arc::into_inner(engine).unwrap());
    host.take_snapshot(&whole(&host.engine()), "one", false).await.unwrap();
    env.advance_ms(5);
    host.take_snapshot(&whole(&host.engine()), "a later one", false).await.unwrap();
    let reported: Vec<(String, u64)> = host
        .snapshots(&whole(&host.engine()))
        .await
        .unwrap()
        .into_iter()
        .map(|info| (info.name, info.taken_ms))
        .collect();
    assert_eq!(reported, [("a later one".to_owned(), 1_700_000_000_005), ("one".to_owned(), 1_700_000_000_000)]);
}

/// Clients hold session tokens of containers that are created again after a restore.
#[tokio::test]
async fn lsns_of_a_new_container_continue_after_those_that_a_restore_deletes() {
    let host = new_host(Memory::new()).await;
    host.take_snapshot(&whole(&host.engine()), "clean", false).await.unwrap();
    let mut reached = 0;
    for round in 0..6 {
        let engine = host.engine();
        let new = container(&engine, "new", &["/pk"], 4).await;
        assert!(new.partitions.iter().all(|partition| partition.lsn() > reached), "round {round}");
        let at = admit(&engine, "new");
        for n in 0..5usize {
            reached = create(&engine, &at, &n.to_string(), "one").await.result.unwrap().lsn;
        }
        match round % 3 {
            0 => {} // the restore deletes it
            1 => engine.catalog.delete_container(new.rid).await.unwrap(),
            _ => engine.catalog.delete_database(new.rid.database).await.unwrap(),
        }
        drop((engine, at));
        host.restore(&whole(&host.engine()), "clean").await.unwrap();
    }
}

/// Whether the failed commit is in the store or not, the account agrees with what is.
#[tokio::test]
async fn writes_continue_when_a_disk_that_has_failed_works_again() {
    for point in [FaultPoint::Commit, FaultPoint::CommitApplied, FaultPoint::Sync] {
        let faults = FaultPlan::default();
        let host = new_host(AnyStore::Faulty(Faulty::new(Memory::new(), faults.clone()))).await;
        fill(&host.engine(), 0, 20).await;
        assert!(!host.recover().await.unwrap(), "nothing has failed");
        let failed_engine = host.engine();
        faults.fail(point, 0);
        if point == FaultPoint::Sync {
            failed_engine.catalog.store_and_committer().0.sync().await.unwrap_err();
        }
        let at = admit(&failed_engine, "c");
        for n in ["100", "101"] {
            let error = create(&failed_engine, &at, n, n).await.result.unwrap_err();
            assert_eq!(error.kind, Kind::Unavailable, "{point:?}");
        }
        host.recover().await.unwrap_err();
        assert!(Arc::ptr_eq(&host.engine(), &failed_engine), "the disk still fails");
        assert_eq!(ids(&host.engine()).await.range(..20).count(), 20);
        faults.restart();
        assert!(host.recover().await.unwrap());
        let engine = host.engine();
        let expected: BTreeSet<usize> = (0..20).chain((point == FaultPoint::CommitApplied).then_some(100)).collect();
        assert_eq!(ids(&engine).await, expected, "{point:?}");
        fill(&engine, 200, 220).await;
        assert_eq!(engine.check(&whole(&engine)).await.unwrap().problem_count(), 0);
        assert!(host.replacement_for(&failed_engine, false).await.unwrap().is_none(), "its answers count");
        assert!(host.replacement_for(&failed_engine, true).await.unwrap().is_some(), "declined requests run again");
        host.close().await;
    }
}
