//! The write-ahead log as a crash, a disk or an operator may leave it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::rocksdb::synced_position::SyncedPosition;

const WRITES: u32 = 60;

/// A store with `WRITES` synced rows of 1,000 bytes in its log, and closed.
fn closed_store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fill(&open(dir.path()), 0..WRITES);
    dir
}

fn fill(store: &RocksStore, rows: std::ops::Range<u32>) {
    for n in rows {
        let mut batch = Batch::new();
        batch.put(n.to_be_bytes(), vec![n as u8; 1_000]);
        block_on(store.commit(&batch, Durability::Synced)).unwrap();
    }
}

fn rows(store: &RocksStore) -> Vec<u32> {
    let keys: Vec<Bytes> = (0..2 * WRITES).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    let found = block_on(store.get_many(&keys)).unwrap();
    (0..).zip(found).filter_map(|(n, value)| value.map(|_| n)).collect()
}

/// The contents of every file below the directory.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.insert(entry.clone(), fs::read(&entry).unwrap());
        }
    }
    found
}

fn accepting_loss() -> RocksOptions {
    RocksOptions { accept_data_loss: true, ..RocksOptions::default() }
}

fn change_log(dir: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let log = log_file(dir);
    let mut bytes = fs::read(&log).unwrap();
    change(&mut bytes);
    fs::write(log, bytes).unwrap();
}

type Damage = (&'static str, fn(&Path));

/// The middle of the log is lost in three ways.
const DAMAGE: [Damage; 3] = [
    ("cannot be read, from byte", |dir| change_log(dir, |log| log[30_000] ^= 1)),
    ("cannot be read, from byte", |dir| change_log(dir, |log| log.truncate(30_000))),
    ("is missing", |dir| fs::remove_file(log_file(dir)).unwrap()),
];

#[test]
fn synced_writes_that_are_lost_keep_the_store_closed_and_its_files_unchanged() {
    for (sentence, damage) in DAMAGE {
        let dir = closed_store();
        let log = log_file(dir.path());
        damage(dir.path());
        let before = files(dir.path());
        for _ in 0..2 {
            let error = open_error(dir.path()).to_string();
            let name = log.file_name().unwrap().to_str().unwrap();
            for part in [name, sentence, "--accept-data-loss", "pleiad salvage"] {
                assert!(error.contains(part), "no {part:?} in: {error}");
            }
            assert_eq!(files(dir.path()), before);
        }
    }
}

#[test]
fn an_accepted_loss_opens_the_readable_beginning_and_keeps_the_log() {
    for (sentence, damage) in DAMAGE {
        let dir = closed_store();
        damage(dir.path());
        let log = fs::read(log_file_or_none(dir.path())).unwrap_or_default();
        let store = RocksStore::open(dir.path(), accepting_loss()).unwrap();
        let kept = rows(&store);
        assert!(kept.len() < 31 && kept.iter().copied().eq(0..kept.len() as u32), "{kept:?}");
        assert!(store.has_unsettled_loss());
        assert!(fs::read_to_string(dir.path().join("LOSS")).unwrap().contains(sentence));
        let aside = files(&dir.path().join("damaged-1"));
        assert!(aside.keys().any(|path| path.ends_with("SYNCED")), "{aside:?}");
        assert!(log.is_empty() || aside.values().any(|bytes| *bytes == log));
        fill(&store, WRITES..WRITES + 3);
        drop(store);
        // The loss is accepted once; what is written afterwards is protected again.
        let store = open(dir.path());
        assert_eq!(rows(&store).len(), kept.len() + 3);
        assert!(store.has_unsettled_loss(), "until it is settled");
        store.settle_loss().unwrap();
        assert!(!store.has_unsettled_loss());
        fill(&store, WRITES + 3..WRITES + 6);
        drop(store);
        change_log(dir.path(), |log| log.truncate(0));
        open_error(dir.path());
    }
}

fn log_file_or_none(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir.join("store")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().unwrap_or_default()
}

#[test]
fn a_sound_store_accepts_no_loss() {
    let dir = closed_store();
    let store = RocksStore::open(dir.path(), accepting_loss()).unwrap();
    assert_eq!(rows(&store).len(), WRITES as usize);
    assert!(!store.has_unsettled_loss() && !dir.path().join("damaged-1").exists());
}

/// RocksDB's own bytes are read: the first record is the one that the header of `log_file` draws.
#[test]
fn the_log_is_read_as_rocksdb_writes_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut batch = Batch::new();
    batch.put("k", "v");
    block_on(store.commit(&batch, Durability::Synced)).unwrap();
    batch = Batch::new();
    batch.put("large", vec![7; 100_000]);
    block_on(store.commit(&batch, Durability::Synced)).unwrap();
    drop(store);
    let log = fs::read(log_file(dir.path())).unwrap();
    let salvaged = log_file::salvage_records(&log);
    assert_eq!(salvaged.records[0], b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x01k\x01v");
    assert_eq!((salvaged.records.len(), salvaged.skipped_bytes), (2, 0));
    assert_eq!(log_file::readable_bytes(&log), log.len());
    assert_eq!(log_file::write_log(&salvaged.records), log);
}

/// The file is behind after a crash; what the log has lost beyond it counts as a torn tail.
#[test]
fn damage_behind_the_synced_position_is_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..10);
    drop(store);
    let synced = fs::read(dir.path().join("SYNCED")).unwrap();
    let log = fs::read(log_file(dir.path())).unwrap();
    let name = log_file(dir.path());
    // The same log, longer: as if the process had gone on and its file had not reached the disk.
    let salvaged = log_file::salvage_records(&log);
    let more: Vec<Vec<u8>> = salvaged.records.iter().chain(&salvaged.records[..1]).cloned().collect();
    let mut longer = log_file::write_log(&more);
    longer.truncate(longer.len() - 5);
    fs::write(&name, longer).unwrap();
    fs::write(dir.path().join("SYNCED"), synced).unwrap();
    assert_eq!(rows(&open(dir.path())).len(), 10);
}

#[test]
fn a_log_whose_rows_are_in_tables_may_be_missing_or_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fill(&store, 0..20);
    let (log, bytes) = (log_file(dir.path()), fs::read(log_file(dir.path())).unwrap());
    store.engine.db.flush().unwrap();
    drop(store);
    let _ = fs::remove_file(&log); // if RocksDB has not deleted it yet
    assert_eq!(rows(&open(dir.path())).len(), 20);
    fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(rows(&open(dir.path())).len(), 20);
}

/// A store with its rows in two logs, both synced.
fn store_with_two_logs() -> (tempfile::TempDir, PathBuf) {
    let dir = closed_store();
    let (first, db_dir) = (log_file(dir.path()), dir.path().join("store"));
    let records = log_file::salvage_records(&fs::read(&first).unwrap()).records;
    let (before, after) = records.split_at(records.len() / 2);
    let position = SyncedPosition {
        log: synced_position::log_numbers(&db_dir).unwrap()[0] + 100,
        bytes: log_file::write_log(after).len() as u64,
    };
    fs::write(&first, log_file::write_log(before)).unwrap();
    fs::write(synced_position::log_path(&db_dir, position.log), log_file::write_log(after)).unwrap();
    drop(SyncedFileWriter::start(&dir.path().join("SYNCED"), position).unwrap());
    (dir, first)
}

#[test]
fn an_earlier_log_is_checked_to_its_end() {
    let (dir, _) = store_with_two_logs();
    assert_eq!(rows(&open(dir.path())).len(), WRITES as usize);
    for change in [|log: &mut Vec<u8>| log[9_000] ^= 1, |log: &mut Vec<u8>| log.truncate(log.len() - 1)] {
        let (dir, first) = store_with_two_logs();
        let mut bytes = fs::read(&first).unwrap();
        change(&mut bytes);
        fs::write(&first, bytes).unwrap();
        let error = open_error(dir.path()).to_string();
        assert!(error.contains(first.file_name().unwrap().to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_damaged_position_file_is_reported() {
    let dir = closed_store();
    fs::write(dir.path().join("SYNCED"), "nonsense").unwrap();
    let error = open_error(dir.path()).to_string();
    assert!(error.contains("SYNCED is damaged"), "{error}");
    assert_eq!(rows(&RocksStore::open(dir.path(), accepting_loss()).unwrap()).len(), WRITES as usize);
    assert_eq!(rows(&open(dir.path())).len(), WRITES as usize);
}

/// An earlier Pleiad wrote no such file.
#[test]
fn a_directory_without_a_position_opens() {
    let dir = closed_store();
    fs::remove_file(dir.path().join("SYNCED")).unwrap();
    assert_eq!(rows(&open(dir.path())).len(), WRITES as usize);
    assert!(dir.path().join("SYNCED").exists());
}

#[test]
fn a_read_only_store_changes_no_file_and_tells_of_damage() {
    let dir = closed_store();
    for (problems, damage) in [(0, None), (1, Some(DAMAGE[0].1))] {
        damage.iter().for_each(|damage| damage(dir.path()));
        let before = files(dir.path());
        let opened = RocksStore::open_read_only(dir.path(), RocksOptions::default()).unwrap();
        assert_eq!(opened.problems.len(), problems, "{:?}", opened.problems);
        let expected = if problems == 0 { WRITES as usize } else { 29 };
        assert_eq!(rows(&opened.store).len(), expected, "rows of 1,027 bytes, damage at 30,000");
        assert_eq!(put(&opened.store, "a", Durability::Synced).unwrap_err().kind, Kind::Unavailable);
        assert!(RocksStore::open(dir.path(), RocksOptions::default()).is_err(), "locked");
        drop(opened);
        assert_eq!(files(dir.path()), before);
    }
    assert!(RocksStore::open_read_only(dir.path().join("missing"), RocksOptions::default()).is_err());
}

#[test]
fn a_salvaged_store_has_what_is_behind_the_damage() {
    let dir = closed_store();
    DAMAGE[0].1(dir.path());
    let before = files(dir.path());
    let copy = tempfile::tempdir().unwrap();
    let salvaged = RocksStore::open_salvaged(dir.path(), &copy.path().join("copy"), RocksOptions::default()).unwrap();
    let found = rows(&salvaged.store);
    assert!(found.len() > 50 && found.contains(&(WRITES - 1)), "{found:?}");
    assert!(salvaged.skipped_bytes > 0 && salvaged.skipped_bytes < 33_000);
    assert_eq!(salvaged.problems.len(), 1);
    assert_eq!(files(dir.path()), before);
}

#[test]
fn a_directory_that_has_lost_its_store_is_rejected() {
    let dir = closed_store();
    for lost in ["store", "every file"] {
        fs::remove_dir_all(dir.path().join("store")).unwrap();
        if lost == "every file" {
            fs::create_dir(dir.path().join("store")).unwrap();
        }
        let error = open_error(dir.path());
        assert!(error.to_string().contains("has lost its data"), "{error}");
        assert!(directory::entries(&dir.path().join("store")).unwrap().is_empty());
        fs::create_dir_all(dir.path().join("store")).unwrap();
    }
}

/// A start that was interrupted before there was any data.
#[test]
fn a_directory_that_never_had_data_opens() {
    for stage in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("certificates")).unwrap();
        if stage > 0 {
            fs::create_dir(dir.path().join("store")).unwrap();
        }
        if stage > 1 {
            fs::write(dir.path().join("FORMAT"), "4\n").unwrap();
        }
        open(dir.path());
    }
}

#[test]
fn a_directory_of_another_program_is_rejected_and_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.txt"), "").unwrap();
    let error = open_error(dir.path());
    assert!(error.to_string().contains("contains \"thesis.txt\""), "{error}");
    assert_eq!(directory::entries(dir.path()).unwrap(), ["thesis.txt"]);
}

#[test]
fn a_removed_lock_file_lets_no_second_store_in() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fs::remove_file(dir.path().join("store/LOCK")).unwrap();
    let error = open_error(dir.path());
    assert!(error.to_string().contains("another Pleiad uses this directory"), "{error}");
    put(&store, "a", Durability::Synced).unwrap();
}

/// With `written`, the last writes before a power failure may be lost; their numbers must be skipped.
#[test]
fn a_power_failure_before_a_sync_is_marked_as_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Written).unwrap();
    drop(store);
    let store = open(dir.path());
    assert!(!store.has_unsettled_loss(), "a process that ends loses nothing");
    put(&store, "b", Durability::Written).unwrap();
    drop(store);
    synced_position::tests::write_earlier_boot(&dir.path().join("SYNCED"));
    let store = open(dir.path());
    assert!(store.has_unsettled_loss());
    store.settle_loss().unwrap();
    drop(store);
    assert!(!open(dir.path()).has_unsettled_loss());
}
