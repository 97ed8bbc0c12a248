//! Reads of a snapshot against the items that were written.

use std::collections::BTreeMap;

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Object, Value, json};
use proptest::prelude::*;

use super::*;
use crate::index::{PathHash, TermRange};
use crate::partition::{Precondition, Verb};
use crate::schema::Schema;
use crate::testing::{draft, memory, open, schema};

const WIDE: Limit = Limit::NONE;
const SMALL: [Limit; 4] = [
    Limit { rows: 1, bytes: usize::MAX },
    Limit { rows: 7, bytes: usize::MAX },
    Limit { rows: usize::MAX, bytes: 1 },
    Limit { rows: usize::MAX, bytes: 700 },
];

/// Items of five keys, every fourth of them deleted again.
async fn filled() -> (Partition, Schema, Vec<Record>) {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let mut records = Vec::new();
    for n in 0..80i64 {
        let id = n.to_string();
        let text = "x".repeat((n as usize * 37) % 300);
        let body = Object::new().with("id", &*id).with("pk", n % 5).with("n", n / 3).with("text", text);
        let draft = draft(&schema, &id, body.into());
        let written = partition.write(&schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
        match n % 4 {
            3 => drop(partition.delete(&schema, &draft.target, &Precondition::None, 7).await.unwrap()),
            _ => records.push(written.record.unwrap()),
        }
    }
    (partition, schema, records)
}

fn epk(schema: &Schema, pk: i64) -> EffectiveKey {
    PartitionKey::parse(&format!("[{pk}]")).unwrap().effective(schema.key.as_ref().unwrap())
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.docnum).collect()
}

fn n_of(record: &Record) -> i64 {
    json::parse(record.body()).unwrap().get("n").and_then(Value::as_i64).unwrap()
}

#[tokio::test]
async fn docs_returns_all_items_in_docnum_order_for_every_limit() {
    let (partition, _, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    assert_eq!((view.items(), view.lsn()), (all.len() as u64, partition.lsn()));
    assert_eq!(view.docs(0, WIDE).await.unwrap(), (all.clone(), false));
    for limit in SMALL {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let (records, more) = view.docs(after, limit).await.unwrap();
            after = records.last().unwrap().docnum;
            found.extend(records);
            if !more {
                break;
            }
        }
        assert_eq!(found, all);
    }
}

#[tokio::test]
async fn members_returns_the_items_of_one_key_in_docnum_order() {
    let (partition, schema, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    for pk in 0..6 {
        let key = epk(&schema, pk);
        let want: Vec<u64> = all.iter().filter(|record| record.epk == key).map(|record| record.docnum).collect();
        assert_eq!(view.members(&key, 0, WIDE).await.unwrap(), (want.clone(), false));
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let (docnums, more) = view.members(&key, after, SMALL[1]).await.unwrap();
            found.extend(docnums);
            after = found.last().copied().unwrap_or(0);
            if !more {
                break;
            }
        }
        assert_eq!(found, want);
    }
}

#[tokio::test]
async fn members_of_an_epk_range_are_collected_up_to_a_bound() {
    let (partition, schema, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    for (low, high) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)] {
        let (low, high) = (epk(&schema, low), epk(&schema, high));
        let keys = EpkRange { min: Ord::min(&low, &high).clone(), max: low.max(high) };
        let want: Vec<Record> = all.iter().filter(|record| keys.contains(&record.epk)).cloned().collect();
        let found = view.members_in(&keys, want.len()).await.unwrap();
        assert_eq!(found, Some(numbers(&want)));
        assert_eq!(view.members_in(&keys, want.len() - 1).await.unwrap(), None);
        assert!(!view.is_within(&keys));
    }
    assert!(view.is_within(&EpkRange::FULL));
    assert_eq!(view.members_in(&EpkRange::FULL, 1000).await.unwrap(), Some(numbers(&all)));
}

#[tokio::test]
async fn items_are_read_by_docnum_and_loaded_up_to_a_size() {
    let (partition, _, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    let wanted = [all[9].docnum, all[3].docnum + 1_000_000, all[2].docnum];
    let found = view.get(&wanted).await.unwrap();
    assert_eq!(found, [Some(all[9].clone()), None, Some(all[2].clone())]);
    assert_eq!(view.load(&numbers(&all), usize::MAX).await.unwrap(), all);
    assert_eq!(view.load(&[], 10).await.unwrap(), []);
    for count in 1..all.len() {
        let bytes: usize = all[..count].iter().map(|record| record.bytes().len()).sum();
        assert_eq!(view.load(&numbers(&all), bytes).await.unwrap().len(), count);
        assert_eq!(view.load(&numbers(&all), bytes - 1).await.unwrap().len(), count);
    }
    assert!(view.load(&wanted, usize::MAX).await.is_err());
}

#[tokio::test]
async fn index_entries_are_in_value_order_in_both_directions() {
    let (partition, _, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    let path = PathHash::ROOT.property("n").finish();
    let mut want: Vec<(i64, u64)> = all.iter().map(|record| (n_of(record), record.docnum)).collect();
    want.sort_unstable();
    let of: BTreeMap<u64, i64> = want.iter().map(|&(n, docnum)| (docnum, n)).collect();
    let range = TermRange::defined();
    for direction in [Direction::Forward, Direction::Backward] {
        for limit in SMALL.into_iter().chain([WIDE]) {
            let (mut from, mut to, mut found) = (range.from.clone(), range.to.clone(), Vec::new());
            loop {
                let (entries, more) = view.index_entries(path, &from, &to, direction, limit).await.unwrap();
                let next = resume_after(entries.last().unwrap(), direction);
                match direction {
                    Direction::Forward => from = next,
                    Direction::Backward => to = next,
                }
                found.extend(entries.iter().map(|(_, docnum)| (of[docnum], *docnum)));
                if !more {
                    break;
                }
            }
            if direction == Direction::Backward {
                found.reverse();
            }
            assert_eq!(found, want, "{direction:?} {limit:?}");
        }
    }
    let exact = TermRange::exact(&Value::from(5i64));
    let (entries, _) = view.index_entries(path, &exact.from, &exact.to, Direction::Forward, WIDE).await.unwrap();
    assert!(entries.iter().map(|(_, docnum)| *docnum).eq(want.iter().filter(|(n, _)| *n == 5).map(|(_, d)| *d)));
    assert!(entries.iter().all(|(value, _)| *value == exact.from));
    let other = PathHash::ROOT.property("nobody").finish();
    assert_eq!(
        view.index_entries(other, &range.from, &range.to, Direction::Forward, WIDE).await.unwrap(),
        (vec![], false)
    );
}

#[tokio::test]
async fn an_estimate_is_near_the_count() {
    let (partition, _, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    let path = PathHash::ROOT.property("n").finish();
    let range = TermRange::defined();
    let estimate = view.estimate(path, &range.from, &range.to).await.unwrap();
    assert!((all.len() as u64 / 4..all.len() as u64 * 4).contains(&estimate), "{estimate} for {}", all.len());
    assert_eq!(view.estimate(path, &range.to, &range.from).await.unwrap(), 0);
}

#[tokio::test]
async fn a_snapshot_does_not_see_later_writes() {
    let (partition, schema, all) = filled().await;
    let view = partition.snapshot(Blocking::Suspend).await.unwrap();
    let lsn = view.lsn();
    let late = Object::new().with("id", "late").with("pk", 1i64).with("n", 1i64);
    let late = draft(&schema, "late", late.into());
    partition.write(&schema, Verb::Create, &late, &Precondition::None, 7).await.unwrap();
    let deleted = Object::new().with("id", "0").with("pk", 0i64).into();
    partition.delete(&schema, &draft(&schema, "0", deleted).target, &Precondition::None, 7).await.unwrap();
    assert_eq!(view.docs(0, WIDE).await.unwrap(), (all.clone(), false));
    assert_eq!(view.members_in(&EpkRange::FULL, 1000).await.unwrap(), Some(numbers(&all)));
    assert_eq!((view.lsn(), view.items()), (lsn, all.len() as u64));
    let now = partition.snapshot(Blocking::Suspend).await.unwrap();
    assert_eq!((now.lsn(), now.items()), (lsn + 2, all.len() as u64));
}

proptest! {
    #[test]
    fn scans_resume_after_an_entry_without_gap_or_overlap(value in prop::collection::vec(any::<u8>(), 0..12), docnum in 1..u64::MAX - 1) {
        let row = |docnum: u64| keyspace::index(7, 9, &value, docnum);
        let entry = decode_index_entry(row(docnum)).unwrap();
        let at = |direction| keyspace::index_range(7, 9, &resume_after(&entry, direction)).0;
        prop_assert!(at(Direction::Forward) > row(docnum) && at(Direction::Forward) <= row(docnum + 1));
        prop_assert!(at(Direction::Backward) <= row(docnum) && at(Direction::Backward) > row(docnum - 1));
    }
}
