//! In addition to the exam: the properties of a store on disk.

use std::fs;
use std::path::Path;

use pleiad_model::Kind;

use super::*;
use crate::blocking::{WouldBlock, try_inline};
use crate::store::{Checkpoints, Direction, Limit, Snapshot};
use crate::testing::block_on;

crate::exam!(exam, durable => open);

mod snapshot_reads; // snapshots and the row cache
mod checkpoints; // checkpoints on disk
mod damaged_log; // what is done about a damaged log

fn open(dir: &Path) -> RocksStore {
    RocksStore::open(dir, RocksOptions::default()).unwrap()
}

fn open_error(dir: &Path) -> Error {
    RocksStore::open(dir, RocksOptions::default()).err().expect("opening must fail")
}

fn put(store: &RocksStore, key: &str, durability: Durability) -> Result<()> {
    let mut batch = Batch::new();
    batch.put(key, "1");
    block_on(store.commit(&batch, durability))
}

#[test]
fn a_failed_write_stops_all_writes_but_no_reads() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "before", Durability::Synced).unwrap();
    // Any RocksDB error will do: here, a file where a directory is expected.
    let failure = DB::open_default(dir.path().join("FORMAT")).map(drop);
    let failed = store.engine.poison_on_error(failure);
    assert_eq!(failed.unwrap_err().kind, Kind::Unavailable);
    for durability in [Durability::Synced, Durability::Written] {
        let error = put(&store, "after", durability).unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(error.to_string().contains("see to the disk"), "{error}");
    }
    assert_eq!(block_on(store.sync()).unwrap_err().kind, Kind::Unavailable);
    assert_eq!(block_on(store.get(b"before")).unwrap(), Some("1".into()));
    // A copy takes over without a restart, while readers of the failed store go on.
    let copy = block_on(store.open_copy()).unwrap();
    put(&copy, "after", Durability::Synced).unwrap();
    block_on(copy.make_current()).unwrap();
    store.retire();
    assert_eq!(block_on(store.get(b"before")).unwrap(), Some("1".into()));
    drop((store, copy));
    let store = open(dir.path());
    put(&store, "later", Durability::Synced).unwrap();
    for key in ["before", "after", "later"] {
        assert_eq!(block_on(store.get(key.as_bytes())).unwrap(), Some("1".into()), "{key}");
    }
}

#[test]
fn a_directory_in_use_does_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let error = open_error(dir.path());
    assert!(error.to_string().contains("another Pleiad uses this directory"), "{error}");
    drop(first);
    open(dir.path());
}

#[test]
fn a_newer_format_is_rejected_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    assert_eq!(format_of(dir.path()), "5\n");
    fs::write(dir.path().join("FORMAT"), "6\n").unwrap();
    let error = open_error(dir.path());
    assert_eq!(error.kind, Kind::Invalid);
    assert!(error.to_string().contains("newer Pleiad (format 6; this one knows 5)"), "{error}");
    assert_eq!(format_of(dir.path()), "6\n");
    for nonsense in ["", "one", "0", "-1"] {
        fs::write(dir.path().join("FORMAT"), nonsense).unwrap();
        assert_eq!(open_error(dir.path()).kind, Kind::Invalid, "{nonsense:?}");
    }
}

#[test]
fn an_older_format_is_upgraded_unless_the_directory_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    for older in ["1\n", "2\n", "3\n", "4\n"] {
        let first = open(dir.path());
        fs::write(dir.path().join("FORMAT"), older).unwrap();
        open_error(dir.path());
        assert_eq!(format_of(dir.path()), older);
        drop(first);
        drop(open(dir.path()));
        assert_eq!(format_of(dir.path()), "5\n");
    }
}

fn format_of(dir: &Path) -> String {
    fs::read_to_string(dir.join("FORMAT")).unwrap()
}

#[test]
fn data_without_a_format_file_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    fs::remove_file(dir.path().join("FORMAT")).unwrap();
    assert!(open_error(dir.path()).to_string().contains("no FORMAT"));
}

#[test]
fn unrelated_files_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("FORMAT.new"), "half a").unwrap();
    fs::create_dir(dir.path().join("lost+found")).unwrap();
    drop(open(dir.path()));
    open(dir.path());
}

#[test]
fn an_unusable_path_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = open_error(&dir.path().join("file"));
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.to_string().contains("file"), "{error}");
}

/// A power failure truncates the last record, or leaves a page of it unwritten.
#[test]
fn a_torn_log_tail_loses_only_unsynced_writes() {
    for tear in [cut_short as fn(Vec<u8>, usize) -> Vec<u8>, zero_a_page] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        put(&store, "kept", Durability::Synced).unwrap();
        let synced_bytes = fs::metadata(log_file(dir.path())).unwrap().len() as usize;
        let mut batch = Batch::new();
        batch.put("torn", vec![7; 20_000]);
        block_on(store.commit(&batch, Durability::Written)).unwrap();
        drop(store);
        let log = log_file(dir.path());
        fs::write(&log, tear(fs::read(&log).unwrap(), synced_bytes)).unwrap();
        let store = open(dir.path());
        assert_eq!(block_on(store.get(b"kept")).unwrap(), Some("1".into()));
        assert_eq!(block_on(store.get(b"torn")).unwrap(), None);
        put(&store, "next", Durability::Synced).unwrap();
    }
}

fn cut_short(mut log: Vec<u8>, synced_bytes: usize) -> Vec<u8> {
    log.truncate(synced_bytes + 9_000);
    log
}

fn zero_a_page(mut log: Vec<u8>, synced_bytes: usize) -> Vec<u8> {
    log[synced_bytes + 4_096..][..4_096].fill(0);
    log
}

fn log_file(dir: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(dir.join("store")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("a log file")
}

#[test]
fn cache_misses_and_write_stalls_are_handled() {
    let dir = tempfile::tempdir().unwrap();
    let options = RocksOptions { block_cache_bytes: 64 << 10, write_buffer_bytes: 64 << 10, ..Default::default() };
    let store = RocksStore::open(dir.path(), options).unwrap();
    for n in 0..2_000u32 {
        let mut batch = Batch::new();
        batch.put(n.to_be_bytes(), vec![n as u8; 1_000]);
        block_on(store.commit(&batch, Durability::Written)).unwrap();
    }
    let keys: Vec<Bytes> = (0..2_000u32).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    let values = block_on(store.get_many(&keys)).unwrap();
    assert!(values.iter().enumerate().all(|(n, value)| value.as_deref() == Some(&vec![n as u8; 1_000])));
    assert_eq!(block_on(store.get(&keys[3])).unwrap().as_deref(), Some(&vec![3; 1_000][..]));
    assert!(block_on(store.size_bytes(&keys[0], &keys[1_999], Blocking::Suspend)).unwrap() > 0);
}

/// Rows on the disk, in a store that has just been opened: nothing of them is in memory.
#[test]
fn an_inline_read_of_a_row_on_disk_is_refused_and_reads_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let keys: Vec<Bytes> = (0..100u64).map(|docnum| crate::keyspace::doc(7, docnum)).collect();
    let mut batch = Batch::new();
    keys.iter().for_each(|key| batch.put(key, vec![1; 1_000]));
    block_on(store.commit(&batch, Durability::Synced)).unwrap();
    store.engine.db.flush().unwrap();
    drop(store);
    let store = open(dir.path());
    let (few, rows) = (&keys[..3], Limit::rows(3));
    let inline = block_on(store.snapshot(Blocking::Inline)).unwrap();
    for _ in 0..2 {
        assert_eq!(try_inline(inline.get_many(few)), Err(WouldBlock));
        assert_eq!(try_inline(inline.visit_many(few, &mut |_| panic!("a row was read"))), Err(WouldBlock));
        assert_eq!(try_inline(inline.scan(&keys[0], &keys[9], Direction::Forward, rows)), Err(WouldBlock));
        assert_eq!(try_inline(inline.visit(&keys[0], &keys[9], &mut |_, _| panic!("a row was read"))), Err(WouldBlock));
        assert_eq!(try_inline(store.size_bytes(&keys[0], &keys[9], Blocking::Inline)), Err(WouldBlock));
    }
    let thread = block_on(store.snapshot(Blocking::Thread)).unwrap();
    let chunk = try_inline(thread.scan(&keys[0], &keys[9], Direction::Forward, rows)).unwrap().unwrap();
    assert_eq!(chunk.pairs.len(), 3);
    let found = try_inline(thread.get_many(few)).unwrap().unwrap();
    assert!(found.iter().all(|value| value.as_deref() == Some(&[1; 1_000][..])));
    // The blocks are in memory now.
    assert_eq!(try_inline(inline.scan(&keys[0], &keys[9], Direction::Forward, rows)), Ok(Ok(chunk)));
    assert_eq!(try_inline(inline.get_many(few)), Ok(Ok(found)));
}

#[test]
fn a_dropped_range_frees_disk_space() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut noise = 1u64;
    for shard in 0..4u8 {
        let mut batch = Batch::new();
        for n in 0..2_000u32 {
            let value: Vec<u8> = (0..100).flat_map(|_| next_random(&mut noise).to_be_bytes()).collect();
            batch.put([&[shard][..], &n.to_be_bytes()].concat(), value);
        }
        block_on(store.commit(&batch, Durability::Synced)).unwrap();
    }
    store.engine.db.flush().unwrap();
    let before = table_bytes(dir.path());
    block_on(store.drop_range(&[1], &[3])).unwrap();
    let after = table_bytes(dir.path());
    assert!(after < before * 6 / 10, "{after} bytes of {before} are left, half was dropped");
    // Sizes are counted in blocks; the neighbors may share one.
    assert!(block_on(store.size_bytes(&[1], &[3], Blocking::Suspend)).unwrap() < 64 << 10);
}

/// Incompressible values, the same on every run.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
    *state ^ (*state >> 33)
}

fn table_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir.join("store")).unwrap().map(|file| file.unwrap());
    let tables = files.filter(|file| file.path().extension().is_some_and(|end| end == "sst"));
    tables.map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn a_snapshot_outlives_its_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Written).unwrap();
    let snapshot = block_on(store.snapshot(Blocking::Suspend)).unwrap();
    drop(store);
    let values = block_on(crate::Snapshot::get_many(&snapshot, &["a".into()])).unwrap();
    assert_eq!(values, [Some("1".into())]);
    drop(snapshot);
    open(dir.path());
}

/// One writer counts up in several rows; a reader must never see less than what was committed before its read began.
#[test]
fn cached_rows_are_never_older_than_a_returned_commit() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const ROWS: u64 = 4;
    const COUNT: u64 = 3_000;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let committed = AtomicU64::new(0);
    let read = |docnum| {
        let row = block_on(store.get(&crate::keyspace::doc(7, docnum))).unwrap();
        row.map_or(0, |row| u64::from_be_bytes(row.as_ref().try_into().unwrap()))
    };
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (committed, read) = (&committed, &read);
            scope.spawn(move || {
                while committed.load(Ordering::SeqCst) < COUNT {
                    let before = committed.load(Ordering::SeqCst);
                    let seen = read(if reader == 0 { 1 } else { 0 });
                    assert!(seen >= before, "saw {seen} after {before} was committed");
                }
            });
        }
        for count in 1..=COUNT {
            let mut batch = Batch::new();
            (0..ROWS).for_each(|docnum| batch.put(crate::keyspace::doc(7, docnum), count.to_be_bytes()));
            block_on(store.commit(&batch, Durability::Written)).unwrap();
            committed.store(count, Ordering::SeqCst);
        }
    });
    assert_eq!(read(0), COUNT);
}
