use super::*;
use crate::keyspace;

fn value(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn invalidate(rows: &Arc<RowCache>, key: &Bytes) -> InvalidationGuard {
    rows.invalidate([key.as_ref()].into_iter())
}

#[test]
fn only_items_ids_and_states_are_cached() {
    let cached = [keyspace::doc(7, 1), keyspace::id(7, b"e", &[1; 16]), keyspace::state(7)];
    assert!(cached.iter().all(|key| RowCache::is_cached_kind(key)));
    assert!(
        !RowCache::is_cached_kind(&keyspace::feed(7, 1, 1, 1))
            && !RowCache::is_cached_kind(&keyspace::member(7, b"e", 1))
            && !RowCache::is_cached_kind(b"")
    );
}

#[test]
fn a_commit_evicts_its_rows_before_it_writes() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    rows.insert(&key, &value("old"), rows.commit_seq());
    assert_eq!(rows.get(&key), Some(value("old")));
    let guard = invalidate(&rows, &key);
    assert_eq!(rows.get(&key), None);
    drop(guard);
    rows.insert(&key, &value("new"), rows.commit_seq());
    assert_eq!(rows.get(&key), Some(value("new")));
}

#[test]
fn a_reader_overtaken_by_a_commit_caches_nothing() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let seq = rows.commit_seq();
    drop(invalidate(&rows, &key));
    rows.insert(&key, &value("old"), seq);
    assert_eq!(rows.get(&key), None);
}

#[test]
fn a_reader_during_a_commit_caches_nothing() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let guard = invalidate(&rows, &key);
    rows.insert(&key, &value("old or new"), rows.commit_seq());
    assert_eq!(rows.get(&key), None);
    drop(guard);
}

#[test]
fn large_rows_are_not_cached_and_the_budget_holds() {
    let rows = RowCache::new(64 << 10);
    let large = Bytes::from(vec![0; VALUE_BYTES_MAX + 1]);
    let key = keyspace::doc(7, 1);
    rows.insert(&key, &large, rows.commit_seq());
    assert_eq!(rows.get(&key), None);
    for docnum in 0..1000 {
        let key = keyspace::doc(7, docnum);
        rows.insert(&key, &Bytes::from(vec![0; 1000]), rows.commit_seq());
    }
    assert!(rows.cache.weight() <= 64 << 10);
}

#[test]
fn invalidate_all_empties_the_cache() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let seq = rows.commit_seq();
    rows.insert(&key, &value("old"), seq);
    drop(rows.invalidate_all());
    assert_eq!(rows.get(&key), None);
    rows.insert(&key, &value("old"), seq);
    assert_eq!(rows.get(&key), None);
}

#[test]
fn a_snapshot_gets_only_rows_as_of_its_commit_seq() {
    let (rows, key) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1));
    let before = rows.commit_seq();
    drop(invalidate(&rows, &key));
    let after = rows.commit_seq();
    rows.insert(&key, &value("new"), after);
    assert_eq!((rows.get_at(&key, before), rows.get_at(&key, after)), (None, Some(value("new"))));
    // A row that an old snapshot read is not cached as the current one.
    drop(invalidate(&rows, &key));
    rows.insert(&key, &value("old"), before);
    assert_eq!((rows.get(&key), rows.get_at(&key, before)), (None, None));
}

#[test]
fn an_unchanged_row_is_returned_to_older_snapshots() {
    let (rows, key, other) = (Arc::new(RowCache::new(1 << 20)), keyspace::doc(7, 1), keyspace::doc(7, 2));
    let before = rows.commit_seq();
    drop(invalidate(&rows, &other));
    rows.insert(&key, &value("old"), rows.commit_seq());
    assert_eq!(rows.get_at(&key, before), Some(value("old")));
}
