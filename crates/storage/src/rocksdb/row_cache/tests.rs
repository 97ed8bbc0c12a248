use super::*;
use crate::keyspace;

fn value(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn change(rows: &Arc<RowCache>, key: &Bytes) -> InvalidationGuard {
    rows.change([key.as_ref()].into_iter())
}

#[test]
fn items_ids_and_states_are_kept_and_nothing_else() {
    let kept = [keyspace::doc(7, 1), keyspace::id(7, b"e", &[1; 16]), keyspace::state(7)];
    assert!(kept.iter().all(|key| RowCache::keeps(key)));
    assert!(
        !RowCache::keeps(&keyspace::feed(7, 1, 1, 1))
            && !RowCache::keeps(&keyspace::member(7, b"e", 1))
            && !RowCache::keeps(b"")
    );
}

#[test]
fn a_row_that_changes_is_gone_from_the_start_of_its_commit() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    rows.keep(&key, &value("old"), rows.moment());
    assert_eq!(rows.get(&key), Some(value("old")));
    let changing = change(&rows, &key);
    assert_eq!(rows.get(&key), None);
    drop(changing);
    rows.keep(&key, &value("new"), rows.moment());
    assert_eq!(rows.get(&key), Some(value("new")));
}

#[test]
fn a_reader_that_was_overtaken_keeps_nothing() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let noted = rows.moment();
    drop(change(&rows, &key));
    rows.keep(&key, &value("old"), noted);
    assert_eq!(rows.get(&key), None);
}

#[test]
fn a_reader_within_a_commit_keeps_nothing() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let changing = change(&rows, &key);
    rows.keep(&key, &value("old or new"), rows.moment());
    assert_eq!(rows.get(&key), None);
    drop(changing);
}

#[test]
fn large_rows_are_left_to_the_engine_and_the_budget_holds() {
    let rows = RowCache::new(64 << 10);
    let large = Bytes::from(vec![0; VALUE_BYTES_MAX + 1]);
    let key = keyspace::doc(7, 1);
    rows.keep(&key, &large, rows.moment());
    assert_eq!(rows.get(&key), None);
    for docnum in 0..1000 {
        let key = keyspace::doc(7, docnum);
        rows.keep(&key, &Bytes::from(vec![0; 1000]), rows.moment());
    }
    assert!(rows.kept.weight() <= 64 << 10);
}

#[test]
fn everything_goes_at_once() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let noted = rows.moment();
    rows.keep(&key, &value("old"), noted);
    drop(rows.change_all());
    assert_eq!(rows.get(&key), None);
    rows.keep(&key, &value("old"), noted);
    assert_eq!(rows.get(&key), None);
}

#[test]
fn a_snapshot_sees_what_was_there_when_it_was_taken() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let before = rows.moment();
    drop(change(&rows, &key));
    let after = rows.moment();
    rows.keep(&key, &value("new"), after);
    assert_eq!((rows.get_at(&key, before), rows.get_at(&key, after)), (None, Some(value("new"))));
    // A row that an old snapshot read is not cached as the current one.
    drop(change(&rows, &key));
    rows.keep(&key, &value("old"), before);
    assert_eq!((rows.get(&key), rows.get_at(&key, before)), (None, None));
}

#[test]
fn a_row_that_has_not_changed_is_shown_to_older_snapshots_too() {
    let (rows, key, other) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1), keyspace::doc(7, 2));
    let before = rows.moment();
    drop(change(&rows, &other));
    rows.keep(&key, &value("old"), rows.moment());
    assert_eq!(rows.get_at(&key, before), Some(value("old")));
}
