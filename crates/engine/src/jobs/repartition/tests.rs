//! Partitions split and merge under concurrent clients, restarts, crashes, policy changes and deletes.

mod transactions; // batches and delete by partition key meanwhile
mod unique; // unique constraints meanwhile

use pleiad_model::{Kind, Object, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pleiad_model::partition_key::{EpkRange, midpoint};
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Memory};

use super::*;
use crate::jobs::registry::JobOutcome;
use crate::testing::*;
use crate::{
    ContainerName, Engine, FeedRange, JobReport, PartitionLimits, Precondition, SessionToken, Target,
    ThroughputRequest, Verb, WriteOptions,
};

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };
/// Containers start with one partition.
const ONE: PartitionLimits = PartitionLimits { partition_ru_initial: 10_000, ..LIMITS };

async fn one_partition() -> Arc<Engine> {
    let engine = open(Memory::new(), ONE).await;
    prepare(&engine).await;
    engine
}

async fn prepare(engine: &Arc<Engine>) {
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    try_container(engine, "db", "c", &["/pk"], ThroughputRequest::Manual(400)).await.unwrap();
    load(engine, "c", 600, |n| (n % 90).to_string()).await;
}

async fn wait_done(engine: &Engine, job: u64) -> JobReport {
    let report = engine.catalog.jobs().wait_ended(job).await.unwrap();
    assert_eq!(report.outcome, Some(JobOutcome::Done));
    report
}

/// Waits until the new map is published. The job has not ended while readers hold the old partitions.
async fn wait_published(engine: &Engine, job: u64) {
    while engine.catalog.tree().jobs.contains_key(&job) {
        tokio::task::yield_now().await;
    }
    assert!(
        engine
            .catalog
            .jobs()
            .reports()
            .iter()
            .all(|report| report.outcome.as_ref().is_none_or(|outcome| *outcome == JobOutcome::Done))
    );
}

fn ids(engine: &Engine) -> Vec<u32> {
    admit(engine, "c").container().map.ranges().iter().map(|range| range.id).collect()
}

/// Clients that remember the responses they got. No request may fail.
struct Clients {
    stop: Arc<AtomicBool>,
    writes: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<BTreeMap<String, Option<i64>>>>,
}

impl Clients {
    fn start(engine: &Arc<Engine>) -> Clients {
        let (stop, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let task = |n| tokio::spawn(client(engine.clone(), n, stop.clone(), writes.clone()));
        Clients { tasks: (0..4).map(task).collect(), stop, writes }
    }

    /// Waits until the clients have written some more.
    async fn wait_for_writes(&self) {
        let until = self.writes.load(Ordering::Relaxed) + 200;
        while self.writes.load(Ordering::Relaxed) < until {
            tokio::task::yield_now().await;
        }
    }

    async fn stop(self) -> BTreeMap<String, Option<i64>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut known = BTreeMap::new();
        for task in self.tasks {
            known.extend(task.await.unwrap());
        }
        known
    }
}

fn key_of(id: &str) -> String {
    id.rsplit('-').next().unwrap().to_owned()
}

async fn client(
    engine: Arc<Engine>,
    task: u64,
    stop: Arc<AtomicBool>,
    writes: Arc<AtomicU64>,
) -> BTreeMap<String, Option<i64>> {
    let (old, mut known, mut session) = (admit(&engine, "c"), BTreeMap::new(), SessionToken::default());
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let id = format!("{task}-{}", n % 60);
        let key = pk(&key_of(&id));
        // Every other request uses the container version from before all changes.
        let newest = admit(&engine, "c");
        let at = if n % 2 == 0 { &newest } else { &old };
        let served_by = if n % 5 == 0 && known.get(&id).is_some_and(Option::is_some) {
            let deleted = engine.delete_item(at, Some(&key), Target::Named(&id), &Precondition::None).await;
            deleted.result.unwrap();
            known.insert(id.clone(), None);
            deleted.served_by
        } else {
            let body: Value = Object::new().with("id", &*id).with("pk", key_of(&id)).with("n", n).into();
            let written = engine.create_item(at, Some(&key), Verb::Upsert, body, &WriteOptions::default()).await;
            written.result.unwrap();
            known.insert(id.clone(), Some(n));
            written.served_by
        };
        // As an SDK does: the newest token of every range that a response named.
        let place = served_by.unwrap();
        session.0.retain(|(range, _)| *range != place.range);
        session.0.push((place.range, place.lsn));
        let found = engine.read_item(&admit(&engine, "c"), Some(&key), Target::Named(&id), None, Some(&session)).await;
        match (known[&id], found.result) {
            (Some(n), Ok(read)) => {
                assert!(std::str::from_utf8(read.record.body()).unwrap().contains(&format!("\"n\":{n}")))
            }
            (None, Err(error)) => assert_eq!(error.kind, Kind::NotFound),
            (known, found) => panic!("{id}: the response said {known:?}, the read found {found:?}"),
        }
        writes.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    known
}

/// The container has the items that clients wrote and those from before, and no others.
async fn check_items(engine: &Arc<Engine>, known: &BTreeMap<String, Option<i64>>) {
    let at = admit(engine, "c");
    for (id, n) in known {
        assert_eq!(read(engine, &at, id, &key_of(id)).await.result.is_ok(), n.is_some(), "{id}");
    }
    for n in 0..600 {
        read(engine, &at, &n.to_string(), &(n % 90).to_string()).await.result.unwrap();
    }
    let live = known.values().flatten().count() as u64;
    assert_eq!(at.container().items(), 600 + live);
    engine.catalog.tasks().wait_idle().await;
    assert_sound(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s48_s49_splits_and_merges_are_invisible_to_clients() {
    let engine = one_partition().await;
    let clients = Clients::start(&engine);
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    wait_published(&engine, job).await;
    assert_eq!(ids(&engine), [1, 2]);
    clients.wait_for_writes().await;
    let job = engine.split(at_container(&engine, C).unwrap(), Some(2), None).await.unwrap();
    wait_published(&engine, job).await;
    assert_eq!(ids(&engine), [1, 3, 4]);
    clients.wait_for_writes().await;
    let job = engine.merge(at_container(&engine, C).unwrap(), &[1, 3]).await.unwrap();
    wait_published(&engine, job).await;
    assert_eq!(ids(&engine), [5, 4]);
    clients.wait_for_writes().await;
    let known = clients.stop().await;
    let map = admit(&engine, "c").container().map.clone();
    assert_eq!(
        (map.epoch, &map.ranges()[0].parents[..], &map.ranges()[1].parents[..]),
        (4, &[0, 1, 2, 3][..], &[0, 2][..])
    );
    check_items(&engine, &known).await;
    let reports = engine.catalog.jobs().reports();
    assert!(reports.len() == 3 && reports.iter().all(|report| report.fence_ms.is_some() && report.figures.items > 0));
}

#[tokio::test]
async fn s45_s46_s47_a_split_halves_and_keeps_every_key_whole() {
    let engine = one_partition().await;
    let before = admit(&engine, "c");
    let mut etags = Vec::new();
    for n in 0..600 {
        etags.push(read(&engine, &before, &n.to_string(), &(n % 90).to_string()).await.result.unwrap());
    }
    let job = engine.split(at_container(&engine, C).unwrap(), Some(0), None).await.unwrap();
    wait_published(&engine, job).await;
    let at = admit(&engine, "c");
    let [lower, upper] = at.container().map.ranges() else { panic!("two ranges") };
    assert_eq!((&lower.parents[..], &upper.parents[..]), (&[0][..], &[0][..]));
    let middle = (lower.keys.max.clone(), upper.keys.min.clone());
    assert!(middle.0 == middle.1 && lower.keys.min == before.container().map.ranges()[0].keys.min);
    for (n, was) in etags.iter().enumerate() {
        let now = read(&engine, &at, &n.to_string(), &(n % 90).to_string()).await.result.unwrap();
        assert_eq!(now, *was, "the same item, docnum, LSN and etag");
    }
    let lsn = before.container().partitions[0].lsn();
    assert!(at.container().partitions.iter().all(|partition| partition.lsn() == lsn));
    assert_eq!(at.container().version, before.container().version, "the container's etag stays");
}

#[tokio::test]
async fn session_tokens_of_a_parent_are_valid_at_its_children() {
    let engine = one_partition().await;
    let served_by = create(&engine, &admit(&engine, "c"), "x", "x").await.served_by.unwrap();
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    wait_published(&engine, job).await;
    let at = admit(&engine, "c");
    let read = async |token: (u32, u64)| {
        engine.read_item(&at, Some(&pk("x")), Target::Named("x"), None, Some(&SessionToken(vec![token]))).await.result
    };
    assert!(read((0, served_by.lsn)).await.is_ok());
    assert_eq!(read((0, served_by.lsn + 1)).await.unwrap_err().kind, Kind::SessionNotAvailable);
    let next = create(&engine, &at, "y", "x").await.served_by.unwrap();
    assert_eq!(next.lsn, served_by.lsn + 1, "children continue from the parent's LSN");
    let ids = ids(&engine);
    let job = engine.merge(at_container(&engine, C).unwrap(), &ids).await.unwrap();
    wait_published(&engine, job).await;
    let merged = create(&engine, &admit(&engine, "c"), "z", "x").await.served_by.unwrap();
    assert_eq!(merged.lsn, next.lsn + 2, "a merged partition begins after all LSNs of its parents");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn writers_wait_at_the_fence_and_readers_do_not() {
    let engine = one_partition().await;
    for step in [JobStep::Fence, JobStep::Publish] {
        engine.catalog.jobs().hold(step);
        let owner =
            create(&engine, &admit(&engine, "c"), &format!("before {step}"), "w").await.served_by.unwrap().range;
        let job = engine.split(at_container(&engine, C).unwrap(), Some(owner), None).await.unwrap();
        engine.catalog.jobs().wait_held_at(step).await;
        let at = admit(&engine, "c");
        let writer = tokio::spawn({
            let engine = engine.clone();
            async move { create(&engine, &admit(&engine, "c"), &format!("at {step}"), "w").await.served_by.unwrap() }
        });
        assert!(read(&engine, &at, "5", "5").await.result.is_ok());
        assert!(!writer.is_finished());
        engine.catalog.jobs().release(step);
        let served_by = writer.await.unwrap();
        drop(at);
        wait_done(&engine, job).await;
        assert!(ids(&engine).contains(&served_by.range), "the item was written to a child");
    }
    engine.catalog.tasks().wait_idle().await;
    assert_sound(&engine).await;
}

#[tokio::test]
async fn the_parent_is_dropped_after_its_readers_finish() {
    let engine = one_partition().await;
    let old = admit(&engine, "c");
    engine.catalog.jobs().hold(JobStep::Drop);
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    engine.catalog.jobs().wait_held_at(JobStep::Drop).await;
    engine.catalog.jobs().release(JobStep::Drop);
    for n in 0..600 {
        assert!(read(&engine, &old, &n.to_string(), &(n % 90).to_string()).await.result.is_ok());
    }
    assert!(
        engine.catalog.jobs().reports().iter().all(|report| report.outcome.is_none()),
        "the job waits for this reader"
    );
    drop(old);
    wait_done(&engine, job).await;
    wait_until_shards_dropped(&engine).await;
}

const STEPS: [JobStep; 6] =
    [JobStep::Prepare, JobStep::Copy, JobStep::CatchUp, JobStep::Fence, JobStep::Publish, JobStep::Drop];

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s59_a_job_resumes_after_a_stop_at_any_step() {
    for (step, merge) in STEPS.into_iter().flat_map(|step| [(step, false), (step, true)]) {
        let engine = one_partition().await;
        if merge {
            let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
            wait_done(&engine, job).await;
        }
        let clients = Clients::start(&engine);
        engine.catalog.jobs().hold(step);
        let ids_before = ids(&engine);
        match merge {
            true => engine.merge(at_container(&engine, C).unwrap(), &ids_before).await.unwrap(),
            false => engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap(),
        };
        engine.catalog.jobs().wait_held_at(step).await;
        if step < JobStep::Fence {
            clients.wait_for_writes().await;
        }
        clients.stop.store(true, Ordering::Relaxed);
        let (store, _) = engine.catalog.store_and_committer();
        let closing = tokio::spawn({
            let engine = engine.clone();
            async move {
                // Writers at the fence continue when the job releases the catalog lock.
                engine.catalog.jobs().close();
                engine.catalog.tasks().wait_idle().await;
            }
        });
        closing.await.unwrap();
        let known = clients.stop().await;
        engine.close().await;
        drop(engine);

        let engine = reopen(store, ONE).await;
        let clients = Clients::start(&engine);
        while !engine.catalog.tree().jobs.is_empty() {
            tokio::task::yield_now().await;
        }
        let mut all = known;
        all.extend(clients.stop().await);
        assert_eq!(ids(&engine).len(), if merge { 1 } else { 2 }, "{step}");
        check_items(&engine, &all).await;
        wait_until_shards_dropped(&engine).await;
    }
}

/// Restarts the engine on a store without faults and waits until its jobs are done.
async fn restarted(engine: Arc<Engine>, script: &FaultPlan) -> Arc<Engine> {
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    drop(engine);
    script.restart();
    let engine = reopen(store, ONE).await;
    engine.catalog.tasks().wait_idle().await;
    engine
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_crash_at_any_commit_loses_nothing() {
    for (at, call) in (0..16).zip([FaultPoint::Commit, FaultPoint::CommitApplied].into_iter().cycle()) {
        let script = FaultPlan::default();
        let engine = open(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())), ONE).await;
        prepare(&engine).await;
        script.fail(call, at / 2);
        let begun = engine.split(at_container(&engine, C).unwrap(), None, None).await;
        engine.catalog.tasks().wait_idle().await;
        let engine = restarted(engine, &script).await;
        assert!(begun.is_err() || ids(&engine) == [1, 2], "{at}");
        check_items(&engine, &BTreeMap::new()).await;
        create(&engine, &admit(&engine, "c"), "new", "new").await.result.unwrap();
        assert_sound(&engine).await;
    }
}

/// The process ends before the abort of a job is durable: the next process resumes the job with its change log.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_crash_while_a_job_is_aborted_loses_nothing() {
    for at in 0..4 {
        let script = FaultPlan::default();
        let engine = open(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())), ONE).await;
        prepare(&engine).await;
        engine.catalog.jobs().hold(JobStep::CatchUp);
        engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
        engine.catalog.jobs().wait_held_at(JobStep::CatchUp).await;
        create(&engine, &admit(&engine, "c"), "new", "new").await.result.unwrap();
        script.fail(FaultPoint::Read, 0);
        script.fail(FaultPoint::Commit, at);
        engine.catalog.jobs().release(JobStep::CatchUp);
        engine.catalog.tasks().wait_idle().await;
        let engine = restarted(engine, &script).await;
        read(&engine, &admit(&engine, "c"), "new", "new").await.result.unwrap();
        assert_eq!(admit(&engine, "c").container().items(), 601, "{at}");
        assert_sound(&engine).await;
    }
}

#[tokio::test]
async fn a_failed_job_leaves_the_partitions_as_they_were() {
    let script = FaultPlan::default();
    let engine = open(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())), ONE).await;
    prepare(&engine).await;
    script.fail(FaultPoint::Ingest, 0);
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    let report = engine.catalog.jobs().wait_ended(job).await.unwrap();
    assert!(matches!(report.outcome, Some(JobOutcome::Failed(_))));
    assert_eq!((ids(&engine), engine.catalog.tree().jobs.len()), (vec![0], 0));
    check_items(&engine, &BTreeMap::new()).await;
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    wait_done(&engine, job).await;
    check_items(&engine, &BTreeMap::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_new_indexing_policy_restarts_the_copy() {
    const NAMED: &str = r#"{"includedPaths":[{"path":"/pk/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    for step in [JobStep::Prepare, JobStep::Copy, JobStep::CatchUp] {
        let engine = one_partition().await;
        let clients = Clients::start(&engine);
        engine.catalog.jobs().hold(step);
        let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
        engine.catalog.jobs().wait_held_at(step).await;
        let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
        let body = parse(&format!(r#"{{"id":"c","partitionKey":{key},"indexingPolicy":{NAMED}}}"#));
        let rid = admit(&engine, "c").container().rid;
        engine.catalog.replace_container(rid, |old| old.replace(&body)).await.unwrap();
        engine.catalog.jobs().release(step);
        wait_published(&engine, job).await;
        assert!(admit(&engine, "c").container().index_transformation.is_none());
        check_items(&engine, &clients.stop().await).await;
    }
}

#[tokio::test]
async fn deleting_a_container_ends_its_jobs() {
    for step in [JobStep::Prepare, JobStep::Copy, JobStep::CatchUp] {
        let engine = one_partition().await;
        engine.catalog.jobs().hold(step);
        let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
        engine.catalog.jobs().wait_held_at(step).await;
        let gone = admit(&engine, "c").container().clone();
        engine.catalog.delete_container(gone.rid).await.unwrap();
        engine.catalog.jobs().release(step);
        assert!(matches!(engine.catalog.jobs().wait_ended(job).await.unwrap().outcome, Some(JobOutcome::Failed(_))));
        engine.catalog.tasks().wait_idle().await;
        wait_until_shards_dropped(&engine).await;
        assert_sound(&engine).await;
    }
}

#[tokio::test]
async fn a_paused_job_waits() {
    let engine = one_partition().await;
    engine.catalog.jobs().hold(JobStep::Copy);
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    engine.catalog.jobs().wait_held_at(JobStep::Copy).await;
    engine.catalog.jobs().pause(job, true).unwrap();
    engine.catalog.jobs().release(JobStep::Copy);
    while !engine.catalog.jobs().reports().iter().any(|report| report.held && report.figures.rows > 0) {
        tokio::task::yield_now().await;
    }
    assert!(engine.catalog.jobs().reports()[0].paused && engine.catalog.jobs().reports()[0].figures.percent() < 100);
    engine.catalog.jobs().pause(job, false).unwrap();
    wait_done(&engine, job).await;
    assert!(engine.catalog.jobs().pause(job, true).is_err() && engine.catalog.jobs().pause(77, true).is_err());
}

#[tokio::test]
async fn invalid_splits_and_merges_are_rejected() {
    let engine = one_partition().await;
    let kind = |outcome: Result<u64>| outcome.unwrap_err().kind;
    assert_eq!(kind(engine.split(at_container(&engine, C).unwrap(), Some(9), None).await), Kind::Moved { epoch: 1 });
    for outside in ["", "FF"] {
        let at = pleiad_model::partition_key::EffectiveKey::parse(outside).unwrap();
        assert_eq!(kind(engine.split(at_container(&engine, C).unwrap(), None, Some(at)).await), Kind::Invalid);
    }
    assert_eq!(kind(engine.merge(at_container(&engine, C).unwrap(), &[0]).await), Kind::Invalid);
    assert_eq!(kind(engine.merge(at_container(&engine, C).unwrap(), &[0, 1]).await), Kind::Invalid);
    engine.catalog.jobs().hold(JobStep::Copy);
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    assert_eq!(kind(engine.split(at_container(&engine, C).unwrap(), None, None).await), Kind::Locked);
    engine.catalog.jobs().release(JobStep::Copy);
    wait_done(&engine, job).await;
}

/// All ids, in small pages; `between` is called after every page.
async fn list_in_pages(engine: &Engine, scope: &FeedRange, between: &mut impl AsyncFnMut(usize)) -> Vec<String> {
    let (mut ids, mut from) = (Vec::new(), None);
    for page in 0.. {
        let quota = crate::PageLimit { items: 17, bytes: 1 << 20 };
        let answer = engine.list_items(&admit(engine, "c"), scope, from, quota, None).await.result.unwrap();
        ids.extend(answer.records.iter().map(|record| record.id().to_owned()));
        from = answer.next;
        if from.is_none() {
            break;
        }
        between(page).await;
    }
    ids
}

async fn query_in_pages(engine: &Engine, scope: &FeedRange, between: &mut impl AsyncFnMut(usize)) -> Vec<String> {
    let (mut ids, mut from) = (Vec::new(), None);
    for page in 0.. {
        let query = crate::ItemQuery {
            text: "SELECT VALUE c.id FROM c".to_owned(),
            parameters: crate::Parameters::default(),
            scope: scope.clone(),
            cross_partition: crate::CrossPartition::ByServer,
            size: crate::PageSize { rows: 17, bytes: 1 << 20 },
            from,
            resume: None,
            report: crate::ReportOptions::default(),
            enable_scan: true,
        };
        let answer = engine.query_items(&admit(engine, "c"), query, None).await.result.unwrap();
        ids.extend(answer.rows.iter().map(|row| String::from_utf8_lossy(row).trim_matches('"').to_owned()));
        from = answer.next;
        if from.is_none() {
            break;
        }
        between(page).await;
    }
    ids
}

#[tokio::test]
async fn s48_pagination_continues_across_splits_and_merges() {
    for reader in 0..2 {
        let engine = one_partition().await;
        let mut between = async |page: usize| {
            let ids = ids(&engine);
            let job = match page % 4 {
                1 if ids.len() > 2 => {
                    engine.merge(at_container(&engine, C).unwrap(), &ids[ids.len() - 2..]).await.unwrap()
                }
                3 if ids.len() > 1 => engine.merge(at_container(&engine, C).unwrap(), &ids[..2]).await.unwrap(),
                _ => engine.split(at_container(&engine, C).unwrap(), Some(ids[page % ids.len()]), None).await.unwrap(),
            };
            wait_done(&engine, job).await;
        };
        let definition = admit(&engine, "c").container().schema.key.clone().unwrap();
        let middle = midpoint(&definition, &EpkRange::FULL).unwrap();
        let halves = [EpkRange { max: middle.clone(), ..EpkRange::FULL }, EpkRange { min: middle, ..EpkRange::FULL }];
        for scopes in [vec![FeedRange::Container], halves.map(|keys| FeedRange::EffectiveKeys(keys, None)).to_vec()] {
            let mut found = Vec::new();
            for scope in &scopes {
                found.extend(match reader {
                    0 => list_in_pages(&engine, scope, &mut between).await,
                    _ => query_in_pages(&engine, scope, &mut between).await,
                });
            }
            found.sort_by_key(|id| id.parse::<u32>().unwrap());
            assert_eq!(found, (0..600).map(|n| n.to_string()).collect::<Vec<_>>(), "reader {reader}, {scopes:?}");
        }
    }
}

/// As SDKs do when a range was split: they send its continuation to each of its children.
#[tokio::test]
async fn a_continuation_of_a_parent_is_valid_at_its_children() {
    let engine = one_partition().await;
    let quota = crate::PageLimit { items: 100, bytes: 1 << 20 };
    let first = engine
        .list_items(&admit(&engine, "c"), &FeedRange::PartitionKeyRange(0), None, quota, None)
        .await
        .result
        .unwrap();
    let job = engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap();
    wait_done(&engine, job).await;
    let mut found: Vec<u64> = first.records.iter().map(|record| record.docnum).collect();
    for child in [1, 2] {
        let mut from = first.next.clone();
        while let Some(position) = from {
            let at = admit(&engine, "c");
            let page = engine.list_items(&at, &FeedRange::PartitionKeyRange(child), Some(position), quota, None).await;
            let page = page.result.unwrap();
            found.extend(page.records.iter().map(|record| record.docnum));
            from = page.next;
        }
    }
    assert_eq!(found.len(), 600, "no item twice");
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 600, "no item missing");
}

async fn in_one_page(engine: &Engine, at: &crate::Admitted, range: u32, text: &str) -> Vec<String> {
    let query = crate::ItemQuery {
        text: text.to_owned(),
        parameters: crate::Parameters::default(),
        scope: FeedRange::PartitionKeyRange(range),
        cross_partition: crate::CrossPartition::ByClient(crate::PageReach::Partition),
        size: crate::PageSize { rows: 1000, bytes: 1 << 20 },
        from: None,
        resume: None,
        report: crate::ReportOptions::default(),
        enable_scan: false,
    };
    let rows = engine.query_items(at, query, None).await.result.unwrap().rows;
    rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

#[tokio::test]
async fn s48_a_replaced_range_can_still_be_listed_and_queried_by_its_id() {
    let engine = one_partition().await;
    for at in [0, 1] {
        let job = engine.split(at_container(&engine, C).unwrap(), Some(at), None).await.unwrap();
        wait_published(&engine, job).await;
    }
    let job = engine.merge(at_container(&engine, C).unwrap(), &[4, 2]).await.unwrap();
    wait_published(&engine, job).await;
    let at = admit(&engine, "c");
    assert_eq!(ids(&engine), [3, 5]);
    let listed = async |id: u32| {
        let quota = crate::PageLimit { items: 1000, bytes: usize::MAX };
        let page = engine.list_items(&at, &FeedRange::PartitionKeyRange(id), None, quota, None).await.result;
        page.map(|page| page.records.len())
    };
    let [one, three, four, two] =
        [listed(1).await, listed(3).await, listed(4).await, listed(2).await].map(Result::unwrap);
    assert_eq!(listed(0).await.unwrap(), 600);
    assert_eq!((one + two, three + four), (600, one), "each id returns exactly what its range covered");
    assert!(two < listed(5).await.unwrap() && matches!(listed(6).await.unwrap_err().kind, Kind::Moved { .. }));
    let ordered = in_one_page(&engine, &at, 0, "SELECT VALUE c.id FROM c ORDER BY c.id").await;
    assert!(ordered.len() == 600 && ordered.is_sorted());
}
