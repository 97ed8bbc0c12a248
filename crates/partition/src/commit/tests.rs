//! The committer's guarantees to writers. A gate pauses the committer where the order of events matters. The number of
//! batches that reach the store is shown by the one that is made to fail.

use super::*;
use crate::testing::{Gate, LATER, memory};
use pleiad_model::Kind;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{Blocking, Direction, Limit, Memory, Snapshot, keyspace};

type Outcome = oneshot::Receiver<Result<()>>;

fn faulty(policy: SyncPolicy) -> (Committer, Arc<AnyStore>, FaultPlan) {
    let script = FaultPlan::default();
    let store = Arc::new(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())));
    (Committer::start(store.clone(), policy).unwrap(), store, script)
}

fn put(committer: &Committer, key: &str, value: &str) -> Outcome {
    let mut batch = Batch::default();
    batch.put(key, value);
    enqueue(committer, batch)
}

/// An entry that is rejected immediately is reported like one that fails later.
fn enqueue(committer: &Committer, batch: Batch) -> Outcome {
    let (done, outcome) = oneshot::channel();
    match committer.enqueue(CommitEntry { batch, state: None, owner: None, done }) {
        Ok(()) => outcome,
        Err(error) => {
            let (done, refused) = oneshot::channel();
            done.send(Err(error)).unwrap();
            refused
        }
    }
}

async fn kind(outcome: Outcome) -> Option<Kind> {
    outcome.await.unwrap().err().map(|error| error.kind)
}

async fn all(store: &AnyStore) -> Vec<(String, String)> {
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    let rows = snapshot.scan(b"", &[0xFF], Direction::Forward, Limit::NONE).await.unwrap();
    rows.pairs.into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

#[tokio::test]
async fn later_entries_win_over_earlier_ones_in_one_group() {
    let store = memory();
    let committer = Committer::start(store.clone(), SyncPolicy::Synced).unwrap();
    let gate = Gate::close(&committer);
    let outcomes: Vec<Outcome> = (0..100).map(|n| put(&committer, "key", &n.to_string())).collect();
    drop(gate);
    for outcome in outcomes {
        assert_eq!(kind(outcome).await, None);
    }
    assert_eq!(all(&store).await, [("key".into(), "99".into())]);
}

#[tokio::test]
async fn nothing_is_acknowledged_or_visible_before_its_commit() {
    let store = memory();
    let committer = Committer::start(store.clone(), SyncPolicy::Synced).unwrap();
    let gate = Gate::close(&committer);
    let mut outcome = put(&committer, "key", "1");
    assert!(outcome.try_recv().is_err());
    assert_eq!(all(&store).await, []);
    drop(gate);
    assert_eq!(kind(outcome).await, None);
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test]
async fn lsns_are_published_in_order_and_before_the_acknowledgement() {
    struct PublishedLsns(Mutex<Vec<u64>>);
    impl Publish for PublishedLsns {
        fn published(&self, lsn: u64) {
            self.0.lock().push(lsn);
        }
    }
    let committer = Committer::start(memory(), SyncPolicy::Synced).unwrap();
    let published = Arc::new(PublishedLsns(Mutex::default()));
    let entry = |lsn| {
        let (done, outcome) = oneshot::channel();
        let owner: Arc<dyn Publish> = published.clone();
        committer
            .enqueue(CommitEntry { batch: Batch::default(), state: None, owner: Some((owner, lsn)), done })
            .unwrap();
        outcome
    };
    let outcomes: Vec<Outcome> = (1..=3000).map(entry).collect();
    for (lsn, outcome) in (1..).zip(outcomes) {
        assert_eq!(kind(outcome).await, None);
        assert!(published.0.lock().len() as u64 >= lsn, "acknowledged before it was published");
    }
    assert!(published.0.lock().iter().copied().eq(1..=3000));
}

#[tokio::test]
async fn queued_entries_are_committed_as_one_batch() {
    let (committer, store, script) = faulty(SyncPolicy::Synced);
    script.fail(FaultPoint::Commit, 2); // after the gate's batch and the queued entries' batch
    let gate = Gate::close(&committer);
    let waiting: Vec<Outcome> = (0..50).map(|n| put(&committer, &n.to_string(), "")).collect();
    drop(gate);
    for outcome in waiting {
        assert_eq!(kind(outcome).await, None);
    }
    assert_eq!(kind(put(&committer, "late", "")).await, Some(Kind::Unavailable));
    assert_eq!(all(&store).await.len(), 50);
}

#[tokio::test]
async fn the_last_state_of_a_shard_is_written_once_per_group() {
    let store = memory();
    let committer = Committer::start(store.clone(), SyncPolicy::Synced).unwrap();
    let gate = Gate::close(&committer);
    let entry = |shard: u64, value: &'static str| {
        let (done, outcome) = oneshot::channel();
        let state = Some((keyspace::state(shard), Bytes::from(value)));
        committer.enqueue(CommitEntry { batch: Batch::default(), state, owner: None, done }).unwrap();
        outcome
    };
    let outcomes = [entry(1, "a"), entry(2, "x"), entry(1, "b"), entry(2, "y"), entry(1, "c")];
    drop(gate);
    for outcome in outcomes {
        assert_eq!(kind(outcome).await, None);
    }
    let states = store.get_many(&[keyspace::state(1), keyspace::state(2)]).await.unwrap();
    assert_eq!(states, [Some(Bytes::from("c")), Some(Bytes::from("y"))]);
}

#[test]
fn a_group_is_bounded_in_entries_and_bytes_and_never_empty() {
    let take = |sizes: &[usize]| {
        let entry = |&bytes: &usize| {
            let mut batch = Batch::default();
            batch.put("k", vec![0; bytes - 1]);
            CommitEntry { batch, state: None, owner: None, done: oneshot::channel().0 }
        };
        let mut queue = Queue { waiting: sizes.iter().map(entry).collect(), ..Queue::default() };
        queue.take_group().len()
    };
    assert_eq!(take(&[1; GROUP_ENTRIES_MAX + 1]), GROUP_ENTRIES_MAX);
    assert_eq!(take(&[GROUP_BYTES_MAX / 2, GROUP_BYTES_MAX / 2, 1]), 2);
    assert_eq!(take(&[GROUP_BYTES_MAX * 2, 1]), 1);
}

#[tokio::test]
async fn a_failed_commit_fails_queued_and_later_entries() {
    let (committer, store, script) = faulty(SyncPolicy::Synced);
    assert_eq!(kind(put(&committer, "before", "")).await, None);
    let gate = Gate::close(&committer);
    script.fail(FaultPoint::Commit, 0);
    let outcomes: Vec<Outcome> = (0..GROUP_ENTRIES_MAX + 10).map(|n| put(&committer, &n.to_string(), "")).collect();
    drop(gate);
    for outcome in outcomes {
        assert_eq!(kind(outcome).await, Some(Kind::Unavailable));
    }
    script.restart(); // even if the store would accept writes again, there is a gap
    assert_eq!(kind(put(&committer, "after", "")).await, Some(Kind::Unavailable));
    assert_eq!(all(&store).await, [("before".into(), String::new())], "reads continue");
}

#[tokio::test]
async fn a_commit_reported_as_failed_is_not_acknowledged_although_it_was_stored() {
    let (committer, store, script) = faulty(SyncPolicy::Synced);
    script.fail(FaultPoint::CommitApplied, 0);
    assert_eq!(kind(put(&committer, "a", "")).await, Some(Kind::Unavailable));
    assert_eq!(kind(put(&committer, "b", "")).await, Some(Kind::Unavailable));
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test]
async fn stopping_commits_the_queue_and_rejects_new_entries() {
    let store = memory();
    let committer = Committer::start(store.clone(), LATER).unwrap();
    let gate = Gate::close(&committer);
    let queued: Vec<Outcome> = (0..3000).map(|n| put(&committer, &n.to_string(), "")).collect();
    let (one, two) = (committer.clone(), committer.clone());
    let stops = [tokio::spawn(async move { one.stop().await }), tokio::spawn(async move { two.stop().await })];
    while !committer.handle.shared.queue.lock().closed {
        tokio::task::yield_now().await;
    }
    assert_eq!(kind(put(&committer, "late", "")).await, Some(Kind::Unavailable));
    drop(gate);
    for stop in stops {
        stop.await.unwrap();
        assert_eq!(all(&store).await.len(), 3000, "every call of stop waits for the end");
    }
    for outcome in queued {
        assert_eq!(kind(outcome).await, None);
    }
    committer.stop().await; // a second stop has no effect
}

#[tokio::test]
async fn a_stopped_committer_holds_no_reference_to_the_store() {
    let store = memory();
    let committer = Committer::start(store.clone(), LATER).unwrap();
    committer.stop().await;
    drop(committer);
    assert_eq!(Arc::strong_count(&store), 1);
}

#[tokio::test]
async fn a_dropped_committer_commits_its_queue_and_ends() {
    let store = memory();
    let committer = Committer::start(store.clone(), LATER).unwrap();
    let outcome = put(&committer, "key", "");
    drop(committer);
    assert_eq!(kind(outcome).await, None);
    while Arc::strong_count(&store) > 1 {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn stopping_syncs_unsynced_writes() {
    let (committer, _store, script) = faulty(LATER);
    assert_eq!(kind(put(&committer, "key", "")).await, None);
    script.fail(FaultPoint::Sync, 0);
    committer.stop().await;
    assert!(committer.handle.shared.queue.lock().failed.is_some(), "the sync that should fail was not called");
}

#[tokio::test]
async fn an_idle_store_is_synced_after_the_delay_and_a_failed_sync_stops_all_writes() {
    let (committer, store, script) = faulty(SyncPolicy::SyncedWithin(Duration::from_millis(1)));
    script.fail(FaultPoint::Sync, 0);
    assert_eq!(kind(put(&committer, "key", "")).await, None);
    while committer.handle.shared.queue.lock().failed.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(kind(put(&committer, "late", "")).await, Some(Kind::Unavailable));
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test]
async fn a_busy_store_is_synced_within_the_delay() {
    let (committer, _store, script) = faulty(SyncPolicy::SyncedWithin(Duration::from_millis(20)));
    script.fail(FaultPoint::Sync, 0);
    while committer.commit(Batch::default()).await.is_ok() {}
}

#[tokio::test]
async fn waiting_writers_fail_when_the_committer_panics() {
    struct Broken;
    impl Publish for Broken {
        fn published(&self, _: u64) {
            panic!("planned panic: a bug below the committer");
        }
    }
    let committer = Committer::start(memory(), SyncPolicy::Synced).unwrap();
    let gate = Gate::close(&committer);
    let (done, first) = oneshot::channel();
    committer
        .enqueue(CommitEntry { batch: Batch::default(), state: None, owner: Some((Arc::new(Broken), 1)), done })
        .unwrap();
    let second = put(&committer, "key", "");
    drop(gate);
    assert!(first.await.is_err() && second.await.is_err());
    assert_eq!(committer.commit(Batch::default()).await.unwrap_err().kind, Kind::Unavailable);
    committer.stop().await;
}
