//! The exam: the conformance suite that every store passes.
//!
//! Each question is a plain function over a new store; `exam!` turns all of them into tests for a given store. The
//! questions test the contract of `Store`, and nothing that only one implementation could guarantee. Durable stores
//! are tested for reopening, too.

use std::path::Path;

use bytes::Bytes;
use pleiad_model::{Kind, Result};

use crate::blocking::{Blocking, try_inline};
use crate::store::{Batch, Checkpoints, Direction, Durability, Limit, Pair, Snapshot, Store};

/// Makes a module of tests that examine a store.
///
/// The expression is a closure from an empty directory to a store; `durable` means that opening the same directory
/// again must find the data.
///
/// ```text
/// exam!(memory => |_| Memory::new());
/// exam!(rocksdb, durable => |dir| RocksStore::open(dir, RocksOptions::default()).unwrap());
/// ```
#[macro_export]
macro_rules! exam {
    ($name:ident => $open:expr) => {
        mod $name {
            use super::*;
            $crate::exam!(@questions $open);
        }
    };
    ($name:ident, durable => $open:expr) => {
        mod $name {
            use super::*;
            $crate::exam!(@questions $open);
            #[test]
            fn acknowledged_commits_survive_reopening() {
                $crate::testing::exam::reopen($open);
            }
            #[test]
            fn the_current_store_is_found_after_reopening() {
                $crate::testing::exam::reopen_finds_current($open);
            }
        }
    };
    (@questions $open:expr) => {
        $crate::exam!(@each $open;
            an_empty_store_is_empty
            a_commit_applies_in_order
            a_commit_with_a_failed_guard_does_nothing
            guards_see_the_store_before_the_batch
            keys_are_ordered_both_ways
            chunks_add_up_to_the_whole_scan
            a_chunk_is_as_long_as_its_limit
            ranges_are_half_open
            inverted_ranges_are_empty
            a_snapshot_does_not_change
            delete_range_deletes_the_range
            odd_keys_and_values_survive
            drop_range_leaves_the_neighbors
            ingested_rows_behave_like_committed_rows
            ingest_rejects_unsorted_rows
            a_visit_returns_the_rows_of_a_scan
            all_blocking_modes_return_the_same_rows
            a_large_batch_is_atomic
            a_checkpoint_opens_as_it_was_taken
            an_opened_checkpoint_is_a_separate_store
            a_checkpoint_name_is_unique_and_can_be_deleted
        );
    };
    (@each $open:expr; $($question:ident)*) => {
        $(#[test]
        fn $question() {
            $crate::testing::exam::examine($open, $crate::testing::exam::$question);
        })*
    };
}

/// Runs one question on a new store.
pub fn examine<S: Store>(open: impl Fn(&Path) -> S, question: impl AsyncFn(&S)) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = open(dir.path());
    block_on(question(&store));
}

/// Runs a future to completion, in a runtime that has blocking threads.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

pub async fn an_empty_store_is_empty<S: Store>(store: &S) {
    assert_eq!(read(store, "a").await, None);
    assert_eq!(all(store).await, []);
    commit(store, |_| {}).await;
    store.sync().await.unwrap();
    assert_eq!(all(store).await, []);
}

pub async fn a_commit_applies_in_order<S: Store>(store: &S) {
    commit(store, |batch| {
        batch.put("a", "1");
        batch.delete("a");
        batch.put("b", "1");
        batch.put("b", "2");
        batch.put("c", "1");
        batch.delete_range("c", "d");
        batch.delete_range("e", "f");
        batch.put("e", "1");
    })
    .await;
    check(store, "b=2 e=1").await;
    let many = store.get_many(&["e".into(), "a".into(), "b".into(), "e".into()]).await.unwrap();
    assert_eq!(many, [Some("1".into()), None, Some("2".into()), Some("1".into())]);
}

pub async fn a_commit_with_a_failed_guard_does_nothing<S: Store>(store: &S) {
    commit(store, |batch| batch.put("epoch", "4")).await;
    let cases =
        [("epoch", Some("3")), ("epoch", None), ("epoch", Some("")), ("nothing", Some("4")), ("nothing", Some(""))];
    for (key, value) in cases {
        let mut batch = Batch::new();
        batch.put("a", "1");
        batch.delete("epoch");
        batch.expect("epoch", Some("4".into()));
        batch.expect(key, value.map(Bytes::from));
        let error = store.commit(&batch, Durability::Synced).await.unwrap_err();
        assert_eq!(error.kind, Kind::Moved { epoch: 0 }, "{key} {value:?}");
        check(store, "epoch=4").await;
    }
}

pub async fn guards_see_the_store_before_the_batch<S: Store>(store: &S) {
    commit(store, |batch| {
        batch.put("epoch", "1");
        batch.expect("epoch", None);
    })
    .await;
    commit(store, |batch| {
        batch.put("epoch", "2");
        batch.expect("epoch", Some("1".into()));
        batch.put("a", "1");
    })
    .await;
    commit(store, |batch| batch.expect("a", Some("1".into()))).await;
    check(store, "a=1 epoch=2").await;
}

pub async fn keys_are_ordered_both_ways<S: Store>(store: &S) {
    let ordered: [&[u8]; 8] = [b"\0", b"\0\0", b"\0\xFF", b"\x01", b"a", b"a\0", b"ab", b"\xFF\xFF"];
    commit(store, |batch| ordered.iter().rev().for_each(|key| batch.put(key, "v"))).await;
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    let forward = scan(&snapshot, b"", END, Direction::Forward).await;
    let mut backward = scan(&snapshot, b"", END, Direction::Backward).await;
    assert!(forward.iter().map(|(key, _)| key.as_ref()).eq(ordered));
    backward.reverse();
    assert_eq!(forward, backward);
}

pub async fn chunks_add_up_to_the_whole_scan<S: Store>(store: &S) {
    commit(store, |batch| (0..200u32).for_each(|n| batch.put(n.to_be_bytes(), n.to_le_bytes()))).await;
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    let whole = scan(&snapshot, b"", END, Direction::Forward).await;
    assert_eq!(whole.len(), 200);
    let by_rows = [0, 1, 7, 64, 65, 199, 200, 201].map(Limit::rows);
    // A pair is 8 bytes.
    let by_bytes = [0, 1, 8, 9, 511, 512, 1599, 1600, 1601].map(|bytes| Limit { rows: usize::MAX, bytes });
    for limit in by_rows.into_iter().chain(by_bytes).chain([Limit { rows: 10, bytes: 72 }]) {
        assert_eq!(in_chunks(&snapshot, Direction::Forward, limit).await, whole, "forward by {limit:?}");
        let mut backward = in_chunks(&snapshot, Direction::Backward, limit).await;
        backward.reverse();
        assert_eq!(backward, whole, "backward by {limit:?}");
    }
}

pub async fn a_chunk_is_as_long_as_its_limit<S: Store>(store: &S) {
    let value = |n: u8| vec![n; 99 * usize::from(n)];
    commit(store, |batch| (0..6u8).for_each(|n| batch.put([n], value(n)))).await;
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    for (rows, bytes, want) in [
        (0, 0, 1),
        (1, 9_999, 1),
        (6, 9_999, 6),
        (7, 9_999, 6),
        (9, 0, 1),
        (9, 101, 2),
        (9, 102, 3),
        (2, 102, 2),
        (9, 1_490, 6),
        (9, 1_491, 6),
    ] {
        let chunk = snapshot.scan(b"", END, Direction::Forward, Limit { rows, bytes }).await.unwrap();
        assert_eq!((chunk.pairs.len(), chunk.more), (want, want < 6), "{rows} rows, {bytes} bytes");
    }
    let backward = snapshot.scan(b"", END, Direction::Backward, Limit { rows: 9, bytes: 1 }).await.unwrap();
    assert_eq!((backward.pairs.len(), backward.more), (1, true));
    // Pairs outside the range do not count as more.
    let within = snapshot.scan(&[0], &[2], Direction::Forward, Limit::rows(2)).await.unwrap();
    assert_eq!((within.pairs.len(), within.more), (2, false));
}

pub async fn ranges_are_half_open<S: Store>(store: &S) {
    commit(store, |batch| ["a", "b", "b\0", "c", "d"].iter().for_each(|key| batch.put(key, "1"))).await;
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut pairs = scan(&snapshot, b"b", b"d", direction).await;
        pairs.sort();
        assert_eq!(show(&pairs), "b=1 b\\0=1 c=1");
    }
    let last = snapshot.scan(b"a", b"d", Direction::Backward, Limit::rows(2)).await.unwrap();
    assert_eq!((show(&last.pairs).as_str(), last.more), ("c=1 b\\0=1", true));
}

pub async fn inverted_ranges_are_empty<S: Store>(store: &S) {
    commit(store, |batch| ["a", "b", "c"].iter().for_each(|key| batch.put(key, "1"))).await;
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    for (from, to) in [("b", "b"), ("c", "a")] {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        assert_eq!(scan(&snapshot, from, to, Direction::Forward).await, []);
        assert_eq!(scan(&snapshot, from, to, Direction::Backward).await, []);
        assert_eq!(store.size_bytes(from, to, Blocking::Suspend).await.unwrap(), 0);
        commit(store, |batch| batch.delete_range(from, to)).await;
        store.drop_range(from, to).await.unwrap();
    }
    check(store, "a=1 b=1 c=1").await;
}

pub async fn a_snapshot_does_not_change<S: Store>(store: &S) {
    commit(store, |batch| ["a", "b", "c"].iter().for_each(|key| batch.put(key, "1"))).await;
    let before = store.snapshot(Blocking::Suspend).await.unwrap();
    commit(store, |batch| {
        batch.put("a", "2");
        batch.delete("b");
        batch.put("bb", "2");
        batch.delete_range("c", "d");
    })
    .await;
    assert_eq!(show(&scan(&before, b"", END, Direction::Forward).await), "a=1 b=1 c=1");
    let many = before.get_many(&["a".into(), "bb".into(), "c".into()]).await.unwrap();
    assert_eq!(many, [Some("1".into()), None, Some("1".into())]);
    check(store, "a=2 bb=2").await;
}

pub async fn delete_range_deletes_the_range<S: Store>(store: &S) {
    commit(store, |batch| ["a", "b", "c", "d"].iter().for_each(|key| batch.put(key, "1"))).await;
    commit(store, |batch| batch.delete_range("b", "d")).await;
    check(store, "a=1 d=1").await;
    assert_eq!(read(store, "c").await, None);
    commit(store, |batch| batch.put("c", "2")).await;
    check(store, "a=1 c=2 d=1").await;
}

pub async fn odd_keys_and_values_survive<S: Store>(store: &S) {
    let long_key = vec![0x61; 2_600];
    let long_value = vec![0x62; 3 << 20];
    commit(store, |batch| {
        batch.put("", "empty key");
        batch.put("empty value", "");
        batch.put(&long_key, "long key");
        batch.put("long value", &long_value);
    })
    .await;
    assert_eq!(read(store, "").await, Some("empty key".into()));
    assert_eq!(read(store, "empty value").await, Some(Bytes::new()));
    assert_eq!(read(store, &long_key).await, Some("long key".into()));
    assert_eq!(read(store, "long value").await, Some(Bytes::from(long_value)));
    assert_eq!(all(store).await.len(), 4);
}

pub async fn drop_range_leaves_the_neighbors<S: Store>(store: &S) {
    let rows = |from: u32, to: u32| (from..to).map(u32::to_be_bytes);
    for _ in 0..2 {
        commit(store, |batch| rows(0, 3_000).for_each(|key| batch.put(key, [7; 100]))).await;
        let full = store.size_bytes(&1_000u32.to_be_bytes(), &2_000u32.to_be_bytes(), Blocking::Suspend).await.unwrap();
        store.drop_range(&1_000u32.to_be_bytes(), &2_000u32.to_be_bytes()).await.unwrap();
        let left = store.size_bytes(&1_000u32.to_be_bytes(), &2_000u32.to_be_bytes(), Blocking::Suspend).await.unwrap();
        assert!(left <= full, "{left} bytes after, {full} before");
        let keys: Vec<Bytes> = all(store).await.into_iter().map(|(key, _)| key).collect();
        assert!(keys.iter().map(Bytes::as_ref).eq(rows(0, 1_000).chain(rows(2_000, 3_000))));
    }
}

pub async fn a_visit_returns_the_rows_of_a_scan<S: Store>(store: &S) {
    commit(store, |batch| (0..3_000u32).for_each(|n| batch.put(n.to_be_bytes(), vec![7; n as usize % 900]))).await;
    let snapshot = store.snapshot(Blocking::Suspend).await.unwrap();
    commit(store, |batch| batch.delete(5u32.to_be_bytes())).await;
    let (from, to) = (3u32.to_be_bytes(), 2_900u32.to_be_bytes());
    let mut seen: Vec<Pair> = Vec::new();
    let mut collect = |key: &[u8], value: &[u8]| {
        seen.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        true
    };
    assert!(!snapshot.visit(&from, &to, &mut collect).await.unwrap(), "the visitor never returned false");
    assert_eq!(seen, scan(&snapshot, &from, &to, Direction::Forward).await);
    let mut left = 7;
    let mut few = |_: &[u8], _: &[u8]| {
        left -= 1;
        left > 0
    };
    assert!(snapshot.visit(&from, &to, &mut few).await.unwrap(), "the visitor returned false");
    assert_eq!(left, 0);
    assert!(!snapshot.visit(&to, &from, &mut |_, _| false).await.unwrap(), "an inverted range is empty");
}

/// An inline read may be refused; if it is not, it returns what the other modes return.
pub async fn all_blocking_modes_return_the_same_rows<S: Store>(store: &S) {
    commit(store, |batch| (0..300u32).for_each(|n| batch.put(n.to_be_bytes(), n.to_le_bytes()))).await;
    let keys: Vec<Bytes> = [7u32, 299, 300].map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).into();
    let want: Vec<Option<Bytes>> =
        [Some(7u32), Some(299), None].map(|n| n.map(|n| Bytes::copy_from_slice(&n.to_le_bytes()))).into();
    for blocking in [Blocking::Suspend, Blocking::Thread, Blocking::Inline] {
        let Some(snapshot) = in_mode(blocking, store.snapshot(blocking)).await else { continue };
        if let Some(found) = in_mode(blocking, snapshot.get_many(&keys)).await {
            assert_eq!(found, want, "{blocking:?}");
        }
        let mut seen = Vec::new();
        let mut collect = |value: Option<&[u8]>| {
            seen.push(value.map(Bytes::copy_from_slice));
            true
        };
        match in_mode(blocking, snapshot.visit_many(&keys, &mut collect)).await {
            Some(stopped) => assert_eq!((stopped, seen), (false, want.clone()), "{blocking:?}"),
            None => assert!(want.starts_with(&seen), "{blocking:?}"),
        }
        for rows in [10, 100, 5_000] {
            let scan = snapshot.scan(b"", END, Direction::Backward, Limit::rows(rows));
            if let Some(chunk) = in_mode(blocking, scan).await {
                assert_eq!((chunk.pairs.len(), chunk.more), (rows.min(300), rows < 300), "{blocking:?}");
            }
        }
        let mut rows = 0;
        let mut count = |_: &[u8], _: &[u8]| {
            rows += 1;
            true
        };
        match in_mode(blocking, snapshot.visit(b"", END, &mut count)).await {
            Some(stopped) => assert_eq!((stopped, rows), (false, 300), "{blocking:?}"),
            None => assert_eq!(rows, 0, "a refused visit has visited nothing"),
        }
        in_mode(blocking, store.size_bytes(b"", END, blocking)).await;
    }
}

/// `None` if the read was refused, which happens inline only.
async fn in_mode<T>(blocking: Blocking, read: impl Future<Output = Result<T>>) -> Option<T> {
    match blocking {
        Blocking::Suspend | Blocking::Thread => Some(read.await.unwrap()),
        Blocking::Inline => try_inline(read).ok().map(Result::unwrap),
    }
}

pub async fn a_large_batch_is_atomic<S: Store>(store: &S) {
    commit(store, |batch| (0..5_000u32).for_each(|n| batch.put(n.to_be_bytes(), [1; 200]))).await;
    let before = store.snapshot(Blocking::Suspend).await.unwrap();
    commit(store, |batch| (0..5_000u32).for_each(|n| batch.put(n.to_be_bytes(), [2; 200]))).await;
    let values =
        |pairs: Vec<Pair>, of: u8| pairs.len() == 5_000 && pairs.iter().all(|(_, value)| value[..] == [of; 200]);
    assert!(values(scan(&before, b"", END, Direction::Forward).await, 1));
    assert!(values(all(store).await, 2));
}

pub async fn ingested_rows_behave_like_committed_rows<S: Store>(store: &S) {
    commit(store, |batch| {
        batch.put("a", "1");
        batch.put("z", "1");
    })
    .await;
    let before = store.snapshot(Blocking::Suspend).await.unwrap();
    ingest(store, &[("m1", "1"), ("m2", "2"), ("m3", "")]).await;
    ingest(store, &[]).await;
    assert_eq!(scan(&before, b"", END, Direction::Forward).await.len(), 2, "a snapshot does not change");
    check(store, "a=1 m1=1 m2=2 m3= z=1").await;
    commit(store, |batch| {
        batch.put("m2", "new");
        batch.delete("m1");
    })
    .await;
    check(store, "a=1 m2=new m3= z=1").await;
    assert_eq!(read(store, "m1").await, None);
    store.drop_range(b"m", b"n").await.unwrap();
    ingest(store, &[("m2", "again")]).await;
    check(store, "a=1 m2=again z=1").await;
}

pub async fn ingest_rejects_unsorted_rows<S: Store>(store: &S) {
    let mut twice = Batch::new();
    twice.put("a", "1");
    twice.put("a", "2");
    let mut back = Batch::new();
    back.put("b", "1");
    back.put("a", "1");
    let mut deleting = Batch::new();
    deleting.delete("a");
    for batch in [twice, back, deleting] {
        assert_eq!(store.ingest(&batch).await.unwrap_err().kind, Kind::Internal);
    }
    check(store, "").await;
}

async fn ingest<S: Store>(store: &S, rows: &[(&str, &str)]) {
    let mut batch = Batch::new();
    rows.iter().for_each(|(key, value)| batch.put(key, value));
    store.ingest(&batch).await.unwrap();
}

/// For durable stores.
pub fn reopen<S: Store>(open: impl Fn(&Path) -> S) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let put = |key: &'static str, durability| {
        let store = open(dir.path());
        let mut batch = Batch::new();
        batch.put(key, "1");
        batch.delete("gone");
        block_on(store.commit(&batch, durability)).unwrap();
    };
    put("gone", Durability::Synced);
    put("synced", Durability::Synced);
    put("written", Durability::Written);
    block_on(ingest(&open(dir.path()), &[("ingested", "1")]));
    block_on(check(&open(dir.path()), "ingested=1 synced=1 written=1"));
}

/// Above every key the exam uses.
const END: &[u8] = &[0xFF; 16];

async fn commit<S: Store>(store: &S, fill: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    fill(&mut batch);
    store.commit(&batch, Durability::Written).await.unwrap();
}

async fn read<S: Store>(store: &S, key: impl AsRef<[u8]>) -> Option<Bytes> {
    store.get(key.as_ref()).await.unwrap()
}

async fn all<S: Store>(store: &S) -> Vec<Pair> {
    scan(&store.snapshot(Blocking::Suspend).await.unwrap(), b"", END, Direction::Forward).await
}

/// The whole range in one chunk.
async fn scan<S: Snapshot>(snapshot: &S, from: &[u8], to: &[u8], direction: Direction) -> Vec<Pair> {
    let chunk = snapshot.scan(from, to, direction, Limit::NONE).await.unwrap();
    assert!(!chunk.more, "a scan without a limit must return the whole range");
    chunk.pairs
}

async fn in_chunks<S: Snapshot>(snapshot: &S, direction: Direction, limit: Limit) -> Vec<Pair> {
    let (mut from, mut to) = (Bytes::new(), Bytes::from_static(END));
    let mut pairs = Vec::new();
    loop {
        let chunk = snapshot.scan(&from, &to, direction, limit).await.unwrap();
        pairs.extend(chunk.pairs);
        let last = pairs.last().map(|(key, _)| key.clone()).unwrap();
        if !chunk.more {
            return pairs;
        }
        match direction {
            Direction::Forward => from = crate::keyspace::after(&last),
            Direction::Backward => to = last,
        }
    }
}

/// Compares the whole store, written as `key=value key=value`.
async fn check<S: Store>(store: &S, want: &str) {
    assert_eq!(show(&all(store).await), want);
}

fn show(pairs: &[Pair]) -> String {
    let show = |(key, value): &Pair| format!("{}={}", key.escape_ascii(), value.escape_ascii()).replace("\\x00", "\\0");
    pairs.iter().map(show).collect::<Vec<_>>().join(" ")
}

pub async fn a_checkpoint_opens_as_it_was_taken<S: Checkpoints>(store: &S) {
    write(store, &[("a", "1"), ("b", "1")]).await;
    store.drop_range(b"x", b"y").await.expect("drop the range");
    let checkpoint = store.create_checkpoint("clean", 7).await.expect("create a checkpoint");
    assert_eq!((checkpoint.name.as_str(), checkpoint.taken_ms, checkpoint.bytes > 0), ("clean", 7, true));
    for round in 0..3 {
        write(store, &[("a", "2"), ("c", "2")]).await;
        store.drop_range(b"b", b"bb").await.expect("drop the range");
        let opened =
            store.open_checkpoint("clean").await.expect("open the checkpoint").expect("a checkpoint of that name");
        assert_eq!(everything(&opened).await, [("a", "1"), ("b", "1")].map(pair), "round {round}");
        opened.retire();
    }
    assert_eq!(everything(store).await, [("a", "2"), ("c", "2")].map(pair));
    assert!(store.open_checkpoint("Clean").await.expect("look for the checkpoint").is_none());
}

/// Both stores have their own rows; checkpoints belong to both.
pub async fn an_opened_checkpoint_is_a_separate_store<S: Checkpoints>(store: &S) {
    write(store, &[("a", "1")]).await;
    store.create_checkpoint("one", 1).await.expect("create a checkpoint");
    let opened = store.open_checkpoint("one").await.expect("open the checkpoint").expect("a checkpoint of that name");
    write(store, &[("old", "1")]).await;
    write(&opened, &[("new", "1")]).await;
    let mut rows = Batch::new();
    rows.put("z", "1");
    opened.ingest(&rows).await.expect("ingest rows");
    store.ingest(&rows).await.expect("ingest rows");
    opened.make_current().await.expect("make the store current");
    store.retire();
    assert_eq!(everything(store).await, [("a", "1"), ("old", "1"), ("z", "1")].map(pair));
    opened.create_checkpoint("two", 2).await.expect("create a checkpoint");
    let again = opened.open_checkpoint("two").await.expect("open the checkpoint").expect("a checkpoint of that name");
    assert_eq!(everything(&again).await, [("a", "1"), ("new", "1"), ("z", "1")].map(pair));
    let names: Vec<String> = again
        .list_checkpoints()
        .await
        .expect("list the checkpoints")
        .into_iter()
        .map(|checkpoint| checkpoint.name)
        .collect();
    assert_eq!(names, ["one", "two"]);
}

pub async fn a_checkpoint_name_is_unique_and_can_be_deleted<S: Checkpoints>(store: &S) {
    for (round, name) in ["b/../é\n ", "a", "b/../é\n "].into_iter().enumerate() {
        write(store, &[("round", ["0", "1", "2"][round])]).await;
        store.create_checkpoint(name, round as u64).await.expect("create a checkpoint");
    }
    let checkpoints = store.list_checkpoints().await.expect("list the checkpoints");
    assert_eq!(
        checkpoints.iter().map(|checkpoint| (checkpoint.name.as_str(), checkpoint.taken_ms)).collect::<Vec<_>>(),
        [("a", 1), ("b/../é\n ", 2)]
    );
    let opened =
        store.open_checkpoint("b/../é\n ").await.expect("open the checkpoint").expect("a checkpoint of that name");
    assert_eq!(everything(&opened).await, [("round", "2")].map(pair));
    assert!(
        store.delete_checkpoint("a").await.expect("delete the checkpoint")
            && !store.delete_checkpoint("a").await.expect("delete the checkpoint")
    );
    assert_eq!(store.list_checkpoints().await.expect("list the checkpoints").len(), 1);
    assert!(store.open_checkpoint("a").await.expect("look for the checkpoint").is_none());
}

/// Opening the directory again finds the current store, complete, and every checkpoint.
pub fn reopen_finds_current<S: Checkpoints>(open: impl Fn(&Path) -> S) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = open(dir.path());
    block_on(async {
        write(&store, &[("a", "1")]).await;
        store.create_checkpoint("one", 1).await.expect("create a checkpoint");
        write(&store, &[("a", "2")]).await;
        drop(store.open_checkpoint("one").await.expect("open the checkpoint"));
    });
    drop(store);
    let store = open(dir.path());
    assert_eq!(block_on(everything(&store)), [("a", "2")].map(pair), "no other store was made current");
    let opened = block_on(async {
        let opened =
            store.open_checkpoint("one").await.expect("open the checkpoint").expect("a checkpoint of that name");
        write(&opened, &[("b", "3")]).await;
        opened.make_current().await.expect("make the store current");
        opened
    });
    drop((store, opened));
    let store = open(dir.path());
    assert_eq!(block_on(everything(&store)), [("a", "1"), ("b", "3")].map(pair));
    assert_eq!(block_on(store.list_checkpoints()).expect("list the checkpoints").len(), 1);
}

async fn write(store: &impl Store, rows: &[(&str, &str)]) {
    let mut batch = Batch::new();
    rows.iter().for_each(|(key, value)| batch.put(key, value));
    store.commit(&batch, Durability::Synced).await.expect("commit");
}

async fn everything(store: &impl Store) -> Vec<Pair> {
    let snapshot = store.snapshot(Blocking::Suspend).await.expect("take a snapshot");
    snapshot.scan(&[], &[0xFF; 8], Direction::Forward, Limit::NONE).await.expect("scan").pairs
}

fn pair((key, value): (&str, &str)) -> Pair {
    (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
}
