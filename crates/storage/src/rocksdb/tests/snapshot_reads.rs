//! Snapshots and the row cache: any sequence of writes and reads gives the results of a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::keyspace;
use crate::store::Snapshot;

#[derive(Clone, Debug)]
enum Step {
    Put(u64, u8),
    Delete(u64),
    TakeSnapshot,
    /// Through a snapshot, or the current rows.
    Read(Option<prop::sample::Index>),
}

/// Some of the keys share a stripe.
const DOCNUMS: [u64; 5] = [1, 2, 3, 1 + 1024, 2 + 1024];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let docnum = || prop::sample::select(DOCNUMS.to_vec());
    let step = prop_oneof![
        3 => (docnum(), any::<u8>()).prop_map(|(docnum, value)| Step::Put(docnum, value)),
        1 => docnum().prop_map(Step::Delete),
        1 => Just(Step::TakeSnapshot),
        4 => any::<Option<prop::sample::Index>>().prop_map(Step::Read),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_read_matches_its_snapshot(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let mut now: BTreeMap<u64, u8> = BTreeMap::new();
        let mut taken = Vec::new();
        for step in steps {
            let mut batch = Batch::new();
            match step {
                Step::Put(docnum, value) => {
                    now.insert(docnum, value);
                    batch.put(keyspace::doc(7, docnum), [value]);
                }
                Step::Delete(docnum) => {
                    now.remove(&docnum);
                    batch.delete(keyspace::doc(7, docnum));
                }
                Step::TakeSnapshot => taken.push((block_on(store.snapshot(Blocking::Suspend)).unwrap(), now.clone())),
                Step::Read(Some(at)) if !taken.is_empty() => {
                    let (snapshot, then) = at.get(&taken);
                    prop_assert_eq!(&visited_rows(snapshot), then);
                    prop_assert_eq!(&rows_in_snapshot(snapshot), then);
                }
                Step::Read(_) => prop_assert_eq!(&current_rows(&store), &now),
            }
            block_on(store.commit(&batch, Durability::Written)).unwrap();
        }
    }
}

fn visited_rows(snapshot: &RocksSnapshot) -> BTreeMap<u64, u8> {
    let keys = DOCNUMS.map(|docnum| keyspace::doc(7, docnum));
    let (mut rows, mut docnums) = (BTreeMap::new(), DOCNUMS.into_iter());
    let mut visit = |value: Option<&[u8]>| {
        if let (Some(docnum), Some([value])) = (docnums.next(), value) {
            rows.insert(docnum, *value);
        }
        true
    };
    block_on(snapshot.visit_many(&keys, &mut visit)).unwrap();
    rows
}

fn rows_in_snapshot(snapshot: &RocksSnapshot) -> BTreeMap<u64, u8> {
    let get = |docnum| block_on(snapshot.get_many(&[keyspace::doc(7, docnum)])).unwrap().pop().flatten();
    DOCNUMS.into_iter().filter_map(|docnum| Some((docnum, *get(docnum)?.first()?))).collect()
}

fn current_rows(store: &RocksStore) -> BTreeMap<u64, u8> {
    let get = |docnum| block_on(store.get(&keyspace::doc(7, docnum))).unwrap();
    DOCNUMS.into_iter().filter_map(|docnum| Some((docnum, *get(docnum)?.first()?))).collect()
}
