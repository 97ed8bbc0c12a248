//! Single-item operations, one after the other and concurrently.

use super::*;
use crate::change_feed::ChangeQuery;
use crate::feed::{KeyScope, PageLimit};
use crate::shard_state::DOCNUM_COUNTER_BITS;
use crate::testing::{Dice, Gate, LATER, audit, draft, item, key, memory, open, range, rows, schema, schema_with};
use pleiad_model::{Fact, Kind, json};
use pleiad_storage::Memory;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};

mod model; // concurrent writers against a naive model
mod reindex; // index rows after a policy change
mod unique; // unique constraints

async fn create(partition: &Partition, schema: &Schema, pk: &str, id: &str, n: i64) -> Result<Written, Kind> {
    write(partition, schema, Verb::Create, id, item(pk, id, n), Precondition::None).await
}

async fn write(
    partition: &Partition,
    schema: &Schema,
    verb: Verb,
    target: &str,
    body: Value,
    condition: Precondition,
) -> Result<Written, Kind> {
    let draft = draft(schema, target, body);
    partition.write(schema, verb, &draft, &condition, 7).await.map_err(|error| error.failed().error.kind)
}

async fn delete(partition: &Partition, schema: &Schema, pk: &str, id: &str) -> Result<Written, Kind> {
    let done = partition.delete(schema, &key(schema, pk, id), &Precondition::None, 7).await;
    done.map_err(|error| error.failed().error.kind)
}

async fn n_of(partition: &Partition, schema: &Schema, pk: &str, id: &str) -> Option<i64> {
    let record = partition.read(&key(schema, pk, id), Expiry::NEVER).await.unwrap()?;
    json::parse(record.body()).unwrap().get("n").and_then(Value::as_i64)
}

fn docnum(written: &Written) -> u64 {
    written.record.as_ref().unwrap().docnum
}

#[tokio::test]
async fn every_write_raises_the_lsn_by_one_and_reads_raise_nothing() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    assert_eq!(partition.lsn(), 0);
    let lsn = |outcome: Result<Written, Kind>| outcome.unwrap().lsn;
    assert_eq!(lsn(create(&partition, &schema, "a", "1", 0).await), 1);
    assert_eq!(lsn(write(&partition, &schema, Verb::Replace, "1", item("a", "1", 1), Precondition::None).await), 2);
    assert_eq!(lsn(write(&partition, &schema, Verb::Upsert, "2", item("a", "2", 2), Precondition::None).await), 3);
    assert_eq!(n_of(&partition, &schema, "a", "1").await, Some(1));
    assert_eq!(create(&partition, &schema, "a", "1", 9).await.unwrap_err(), Kind::Conflict);
    assert_eq!(partition.lsn(), 3);
    assert_eq!(lsn(delete(&partition, &schema, "a", "1").await), 4);
    assert_eq!(partition.lsn(), 4);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn rejected_writes_change_nothing() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let first = create(&partition, &schema, "a", "1", 0).await.unwrap();
    create(&partition, &schema, "a", "2", 0).await.unwrap();
    let before = (rows(&store, 7).await, partition.shard_state());
    let old = Precondition::IfMatch(first.record.unwrap().etag().to_string().replace('1', "2"));
    let body = || item("a", "1", 9);
    let rejected = [
        create(&partition, &schema, "a", "1", 9).await,
        write(&partition, &schema, Verb::Replace, "1", body(), old.clone()).await,
        write(&partition, &schema, Verb::Upsert, "1", body(), old).await,
        write(&partition, &schema, Verb::Upsert, "1", body(), Precondition::IfAbsent).await,
        write(&partition, &schema, Verb::Replace, "3", item("a", "3", 9), Precondition::None).await,
        write(&partition, &schema, Verb::Replace, "1", item("a", "2", 9), Precondition::None).await,
        delete(&partition, &schema, "b", "1").await,
    ];
    let (taken, stale, absent) = (Kind::Conflict, Kind::PreconditionFailed, Kind::NotFound);
    assert_eq!(rejected.map(|outcome| outcome.unwrap_err()), [taken, stale, stale, stale, absent, taken, absent]);
    assert_eq!((rows(&store, 7).await, partition.shard_state()), before);
}

#[tokio::test]
async fn docnums_are_never_reused() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    let first = docnum(&create(&partition, &schema, "a", "1", 0).await.unwrap());
    assert_eq!(first >> DOCNUM_COUNTER_BITS, 3, "the prefix of the partition key range");
    delete(&partition, &schema, "a", "1").await.unwrap();
    let second = docnum(&create(&partition, &schema, "a", "1", 0).await.unwrap());
    delete(&partition, &schema, "a", "1").await.unwrap();
    let third = docnum(&create(&open(&store).await, &schema, "a", "1", 0).await.unwrap());
    assert!(first < second && second < third);
}

#[tokio::test]
async fn a_renamed_item_keeps_its_docnum_and_frees_its_old_id() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let old = create(&partition, &schema, "a", "old", 1).await.unwrap();
    let new = write(&partition, &schema, Verb::Replace, "old", item("a", "new", 2), Precondition::None).await.unwrap();
    assert_eq!(docnum(&old), docnum(&new));
    assert_eq!(n_of(&partition, &schema, "a", "old").await, None);
    assert_eq!(n_of(&partition, &schema, "a", "new").await, Some(2));
    create(&partition, &schema, "a", "old", 3).await.unwrap();
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn s12_the_same_id_exists_once_per_partition_key() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    for (n, pk) in (0..).zip(["a", "b", "c"]) {
        create(&partition, &schema, pk, "1", n).await.unwrap();
    }
    assert_eq!(n_of(&partition, &schema, "b", "1").await, Some(1));
    assert_eq!(partition.count_keys().await.unwrap(), 3);
    delete(&partition, &schema, "b", "1").await.unwrap();
    assert_eq!(partition.count_keys().await.unwrap(), 2);
    assert_eq!(n_of(&partition, &schema, "c", "1").await, Some(2));
}

#[tokio::test]
async fn s30_deleting_the_last_item_removes_its_logical_partition() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let partition = open(&store).await;
    for id in ["1", "2"] {
        create(&partition, &schema, "a", id, 0).await.unwrap();
    }
    for id in ["1", "2"] {
        delete(&partition, &schema, "a", id).await.unwrap();
    }
    let remaining: Vec<Bytes> = rows(&store, 7).await.into_keys().collect();
    assert_eq!(remaining, [keyspace::state(7)], "its storage is reclaimed");
    assert_eq!((partition.shard_state().items, partition.shard_state().item_bytes), (0, 0));
    create(&partition, &schema, "a", "1", 0).await.unwrap();
    assert_eq!(partition.count_keys().await.unwrap(), 1);
}

#[tokio::test]
async fn an_item_without_index_entries_is_replaced_and_deleted_cleanly() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let unindexed = Draft { indexed: false, ..draft(&schema, "1", item("a", "1", 0)) };
    let written = partition.write(&schema, Verb::Create, &unindexed, &Precondition::None, 7).await.unwrap();
    assert_eq!(written.record.unwrap().terms, 1);
    audit(&partition, &schema).await;
    write(&partition, &schema, Verb::Replace, "1", item("a", "1", 1), Precondition::None).await.unwrap();
    audit(&partition, &schema).await;
    delete(&partition, &schema, "a", "1").await.unwrap();
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn writers_see_what_is_queued_and_readers_only_what_is_durable() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    create(&partition, &schema, "a", "1", 1).await.unwrap();
    let gate = Gate::close(&partition.committer);
    let open = async {
        assert_eq!(n_of(&partition, &schema, "a", "1").await, Some(1));
        assert_eq!(n_of(&partition, &schema, "a", "2").await, None);
        assert_eq!((partition.lsn(), partition.shard_state().lsn), (1, 5), "four writes are queued, none is visible");
        drop(gate);
    };
    // Polled in this order: each operation decides on what the ones before it have queued.
    let (replaced, created, doubled, deleted, missing, again, ()) = tokio::join!(
        biased;
        write(&partition, &schema, Verb::Replace, "1", item("a", "1", 2), Precondition::None),
        create(&partition, &schema, "a", "2", 1),
        create(&partition, &schema, "a", "2", 9),
        delete(&partition, &schema, "a", "1"),
        write(&partition, &schema, Verb::Replace, "1", item("a", "1", 9), Precondition::None),
        create(&partition, &schema, "a", "1", 3),
        open,
    );
    assert_eq!([replaced, created, deleted, again].map(|outcome| outcome.unwrap().lsn), [2, 3, 4, 5]);
    assert_eq!([doubled, missing].map(|outcome| outcome.unwrap_err()), [Kind::Conflict, Kind::NotFound]);
    assert_eq!(n_of(&partition, &schema, "a", "1").await, Some(3));
    assert!(partition.sequencer.state.lock().pending.is_empty(), "no pending rows are left");
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn a_conflict_is_reported_only_after_the_conflicting_write_is_durable() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let gate = Gate::close(&partition.committer);
    let mut first = std::pin::pin!(create(&partition, &schema, "a", "1", 1));
    let mut second = std::pin::pin!(create(&partition, &schema, "a", "1", 2));
    assert!(is_pending_after_one_poll(first.as_mut()).await);
    assert!(is_pending_after_one_poll(second.as_mut()).await, "rejected because of a write that may still be lost");
    drop(gate);
    assert_eq!(second.await.unwrap_err(), Kind::Conflict);
    assert_eq!(n_of(&partition, &schema, "a", "1").await, Some(1), "an item that caused a conflict can be read");
    assert!(first.await.is_ok());
}

#[tokio::test]
async fn after_a_failed_commit_no_response_depends_on_lost_writes() {
    let script = FaultPlan::default();
    let store = Arc::new(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())));
    let (partition, schema) = (open(&store).await, schema(&["/pk"]));
    create(&partition, &schema, "a", "1", 1).await.unwrap();
    script.fail(FaultPoint::Commit, 0);
    let lost = Kind::Unavailable;
    let (first, second) =
        tokio::join!(create(&partition, &schema, "a", "2", 1), create(&partition, &schema, "b", "1", 1));
    assert_eq!([first.unwrap_err(), second.unwrap_err()], [lost, lost]);
    assert_eq!(create(&partition, &schema, "a", "2", 1).await.unwrap_err(), lost, "not a conflict with a lost write");
    assert_eq!(create(&partition, &schema, "a", "1", 1).await.unwrap_err(), lost);
    assert_eq!(n_of(&partition, &schema, "a", "1").await, Some(1), "reads continue");
    assert_eq!((n_of(&partition, &schema, "a", "2").await, partition.lsn()), (None, 1));

    script.restart();
    let partition = open(&store).await;
    assert_eq!(create(&partition, &schema, "a", "2", 2).await.unwrap().lsn, 2);
    audit(&partition, &schema).await;
}

#[tokio::test]
async fn a_cancelled_write_is_applied_completely_or_not_at_all() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let gate = Gate::close(&partition.committer);
    {
        let mut cancelled = std::pin::pin!(create(&partition, &schema, "a", "1", 1));
        assert!(is_pending_after_one_poll(cancelled.as_mut()).await);
    }
    drop(gate);
    assert_eq!(create(&partition, &schema, "a", "1", 2).await.unwrap_err(), Kind::Conflict);
    assert_eq!(n_of(&partition, &schema, "a", "1").await, Some(1));
    audit(&partition, &schema).await;
}

async fn is_pending_after_one_poll(future: std::pin::Pin<&mut impl Future>) -> bool {
    let mut future = future;
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn a_closed_partition_rejects_writes() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    create(&partition, &schema, "a", "1", 1).await.unwrap();
    partition.close();
    assert_eq!(create(&partition, &schema, "a", "2", 1).await.unwrap_err(), Kind::OwnerNotFound);
    assert_eq!(delete(&partition, &schema, "a", "1").await.unwrap_err(), Kind::OwnerNotFound);
    assert_eq!(partition.shard_state().lsn, 1);
}

#[tokio::test]
async fn exhausted_docnums_are_rejected_and_use_no_lsn() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    partition.sequencer.state.lock().shard.last_item = (1 << DOCNUM_COUNTER_BITS) - 2;
    create(&partition, &schema, "a", "1", 1).await.unwrap();
    assert_eq!(create(&partition, &schema, "a", "2", 1).await.unwrap_err(), Kind::QuotaExceeded);
    assert_eq!(partition.shard_state().lsn, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn reads_during_renames_return_the_right_item_or_none() {
    let (partition, schema) = (Arc::new(open(&memory()).await), Arc::new(schema(&["/pk"])));
    create(&partition, &schema, "a", "x", 0).await.unwrap();
    let (writer_partition, schema_) = (partition.clone(), schema.clone());
    let renamer = tokio::spawn(async move {
        for n in 0..2000 {
            let (from, to) = if n % 2 == 0 { ("x", "y") } else { ("y", "x") };
            write(&writer_partition, &schema_, Verb::Replace, from, item("a", to, n), Precondition::None)
                .await
                .unwrap();
        }
    });
    while !renamer.is_finished() {
        for id in ["x", "y"] {
            let found = partition.read(&key(&schema, "a", id), Expiry::NEVER).await.unwrap();
            assert!(found.is_none_or(|record| record.id() == id));
        }
    }
    renamer.await.unwrap();
}

#[tokio::test]
async fn an_expired_item_is_dead_for_every_reader() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let schema = Schema { default_ttl: Some(10), ..schema };
    create(&partition, &schema, "a", "1", 1).await.unwrap();
    let (one, scope) = (key(&schema, "a", "1"), KeyScope::Keys(pleiad_model::partition_key::EpkRange::FULL));
    let limit = PageLimit { items: 10, bytes: 1 << 20 };
    for (now_s, items) in [(17, 1), (18, 0)] {
        let expiry = schema.expiry(now_s);
        let listed = partition.page(&scope, 0, limit, expiry).await.unwrap().records.len();
        let query = ChangeQuery { scope: scope.clone(), after: 0, since_s: 0, expiry };
        let changed = partition.changes(&query, limit).await.unwrap().records.len();
        let tx = partition.begin_latched(&schema, one.logical.clone(), now_s).await;
        let read = partition.read(&one, expiry).await.unwrap();
        let read_again = partition.read_in_snapshot(&one, expiry).await.unwrap();
        let found = [read, read_again, tx.read(&one).await.unwrap()].map(|found| usize::from(found.is_some()));
        assert_eq!((found, listed, changed), ([items; 3], items, items), "at {now_s}");
    }
}

#[tokio::test]
async fn a_queued_write_completes_although_its_caller_is_gone() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let gate = Gate::close(&partition.committer);
    let draft = draft(&schema, "1", item("a", "1", 1));
    let queued = partition.enqueue_write(&schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    let charge_ru = queued.written().charge_ru;
    assert!(charge_ru > 0.0 && partition.lsn() == 0, "decided and not durable");
    drop((queued, gate));
    assert_eq!(create(&partition, &schema, "a", "1", 2).await.unwrap_err(), Kind::Conflict);
    assert_eq!((n_of(&partition, &schema, "a", "1").await, partition.lsn()), (Some(1), 1));
}
