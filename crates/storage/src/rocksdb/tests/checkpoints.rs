//! Checkpoints on disk: leftovers of a crash, damaged entries, and when space is freed.

use super::*;
use crate::store::Checkpoints;

fn names(dir: &Path) -> Vec<String> {
    let mut names = directory::entries(dir).unwrap();
    names.sort_unstable();
    names
}

fn checkpoint_names(store: &RocksStore) -> Vec<String> {
    block_on(store.list_checkpoints()).unwrap().into_iter().map(|checkpoint| checkpoint.name).collect()
}

#[test]
fn leftovers_of_a_crash_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Synced).unwrap();
    block_on(store.create_checkpoint("one", 1)).unwrap();
    drop(store);
    for left in ["store-7", "ingest-9", "snapshots/2/store", "snapshots/3", "store-x", "ingest"] {
        fs::create_dir_all(dir.path().join(left)).unwrap();
        fs::write(dir.path().join(left).join("file"), "").unwrap();
    }
    let store = open(dir.path());
    assert_eq!(checkpoint_names(&store), ["one"]);
    assert_eq!(names(&dir.path().join("snapshots")), ["1"]);
    assert_eq!(names(dir.path()), ["FORMAT", "SYNCED", "snapshots", "store", "store-x"], "unrelated entries stay");
}

/// While a checkpoint is replaced, there are two with its name.
#[test]
fn the_later_of_two_checkpoints_with_one_name_counts() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Synced).unwrap();
    block_on(store.create_checkpoint("one", 1)).unwrap();
    block_on(store.create_checkpoint("other", 2)).unwrap();
    let label = dir.path().join("snapshots/2/KEPT");
    fs::write(&label, "2\none").unwrap();
    assert_eq!(
        block_on(store.list_checkpoints()).unwrap().iter().map(|checkpoint| checkpoint.taken_ms).collect::<Vec<_>>(),
        [2]
    );
    drop(store);
    let store = open(dir.path());
    assert_eq!(
        (checkpoint_names(&store), names(&dir.path().join("snapshots"))),
        (vec!["one".to_owned()], vec!["2".to_owned()])
    );
}

#[test]
fn a_damaged_checkpoint_is_skipped_and_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Synced).unwrap();
    for name in ["no label", "no text", "no store", "sound"] {
        block_on(store.create_checkpoint(name, 1)).unwrap();
    }
    drop(store);
    let checkpoints_dir = dir.path().join("snapshots");
    fs::write(checkpoints_dir.join("1/KEPT"), "").unwrap();
    fs::write(checkpoints_dir.join("2/KEPT"), b"1\n\xff").unwrap();
    fs::remove_dir_all(checkpoints_dir.join("3/store")).unwrap();
    fs::write(checkpoints_dir.join("7"), "nobody's").unwrap();
    let store = open(dir.path());
    assert_eq!((checkpoint_names(&store), names(&checkpoints_dir).len()), (vec!["sound".to_owned()], 5));
    block_on(store.create_checkpoint("new", 2)).unwrap();
    assert!(block_on(store.open_checkpoint("no store")).unwrap().is_none());
    drop(block_on(store.open_checkpoint("sound")).unwrap().unwrap());
    fs::write(checkpoints_dir.join("1/KEPT"), "1\nmended").unwrap();
    assert_eq!(checkpoint_names(&store), ["mended", "new", "sound"]);
}

/// A disk that renames a file and then fails to sync the directory.
#[test]
fn a_failed_make_current_leaves_the_live_file_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let write_then_fail = |dir: &Path, name: &str, text: &str| {
        directory::write_atomically(dir, name, text)?;
        Err(std::io::Error::other("as scripted"))
    };
    for before in [0, 2] {
        let store_dir = directory::StoreDir { dir: dir.path().to_owned(), number: before };
        fs::create_dir_all(store_dir.db_dir()).unwrap();
        store_dir.declare_live().unwrap();
        let next = store_dir.next_unused().unwrap();
        fs::create_dir_all(next.db_dir()).unwrap();
        next.declare_live_with(write_then_fail).unwrap_err();
        assert_eq!(fs::read_to_string(dir.path().join("LIVE")).unwrap(), format!("{before}\n"));
    }
}

#[test]
fn a_retired_store_is_deleted_with_its_last_reader() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Synced).unwrap();
    block_on(store.create_checkpoint("one", 1)).unwrap();
    let opened = block_on(store.open_checkpoint("one")).unwrap().unwrap();
    block_on(opened.make_current()).unwrap();
    store.retire();
    let reader = block_on(store.snapshot(Blocking::Suspend)).unwrap();
    drop(store);
    assert!(dir.path().join("store").exists());
    assert_eq!(block_on(crate::Snapshot::get_many(&reader, &["a".into()])).unwrap(), [Some("1".into())]);
    drop(reader);
    assert_eq!(names(dir.path()), ["FORMAT", "LIVE", "SYNCED-1", "snapshots", "store-1"]);
    assert!(open_error(dir.path()).to_string().contains("another Pleiad uses this directory"));
    put(&opened, "b", Durability::Synced).unwrap();
    drop(opened);
    assert_eq!(block_on(open(dir.path()).get(b"b")).unwrap(), Some("1".into()));
}

#[test]
fn a_directory_without_its_live_store_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    for (live, why) in [("3\n", "not there"), ("three", "must be a number")] {
        fs::write(dir.path().join("LIVE"), live).unwrap();
        let error = open_error(dir.path());
        assert!(error.kind == Kind::Invalid && error.to_string().contains(why), "{error}");
    }
}

/// Table files that a checkpoint shares with the store take no extra space.
#[test]
fn checkpoints_share_table_files_by_hard_links() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", Durability::Synced).unwrap();
    block_on(store.create_checkpoint("one", 1)).unwrap();
    let opened = block_on(store.open_checkpoint("one")).unwrap().unwrap();
    let tables = |of: &str| -> Vec<fs::Metadata> {
        let files = fs::read_dir(dir.path().join(of)).unwrap().map(|file| file.unwrap());
        let tables = files.filter(|file| file.path().extension().is_some_and(|end| end == "sst"));
        tables.map(|file| file.metadata().unwrap()).collect()
    };
    for of in ["store", "snapshots/1/store", "store-1"] {
        assert_eq!(tables(of).len(), 1, "{of}");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&tables(of)[0]), 3, "{of}");
    }
    drop(opened);
}
