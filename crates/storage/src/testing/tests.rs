//! The test tools themselves, and the two stores compared with each other.

use bytes::Bytes;
use pleiad_model::Kind;

use super::*;
use crate::store::{Batch, Durability, Store};
use crate::{AnyStore, Blocking, Memory, Snapshot, WouldBlock, try_inline};

crate::exam!(faulty_without_faults => |_| Faulty::new(Memory::new(), FaultPlan::default()));
crate::exam!(any => |_| AnyStore::from(Memory::new()));

fn batch(key: &'static str) -> Batch {
    let mut batch = Batch::new();
    batch.put(key, "1");
    batch
}

#[test]
fn faulty_fails_as_planned_and_rejects_writes_until_restart() {
    let faults = FaultPlan::default();
    let store = Faulty::new(Memory::new(), faults.clone());
    let commit = |key| block_on(store.commit(&batch(key), Durability::Synced)).map_err(|error| error.kind);
    faults.fail(FaultPoint::Commit, 1);
    assert_eq!(commit("a"), Ok(()));
    assert_eq!(commit("b"), Err(Kind::Unavailable));
    assert_eq!(commit("c"), Err(Kind::Unavailable));
    assert_eq!(block_on(store.get(b"a")).unwrap(), Some("1".into()));
    assert_eq!(block_on(store.get(b"b")).unwrap(), None);
    faults.restart();
    faults.fail(FaultPoint::CommitApplied, 0);
    assert_eq!(commit("d"), Err(Kind::Unavailable));
    assert_eq!(block_on(store.get(b"d")).unwrap(), Some("1".into()));
    faults.restart();
    faults.fail(FaultPoint::Read, 0);
    faults.fail(FaultPoint::Sync, 0);
    assert_eq!(block_on(store.get(b"a")).unwrap_err().kind, Kind::Internal);
    assert_eq!(block_on(store.get(b"a")).unwrap(), Some(Bytes::from("1")));
    assert_eq!(block_on(store.sync()).unwrap_err().kind, Kind::Unavailable);
}

/// As those of a store behind a network.
#[test]
fn inline_reads_of_a_store_that_suspends_are_refused() {
    let faults = FaultPlan::default();
    let mirror = Mirror(Memory::new(), Faulty::new(Memory::new(), faults.clone()));
    block_on(mirror.commit(&batch("a"), Durability::Written)).unwrap();
    let snapshot = try_inline(mirror.snapshot(Blocking::Inline)).unwrap().unwrap();
    let keys = ["a".into()];
    let get = || snapshot.get_many(&keys);
    assert_eq!(try_inline(get()).unwrap().unwrap(), [Some("1".into())]);
    faults.suspend_reads();
    assert_eq!(try_inline(get()).unwrap_err(), WouldBlock);
    assert_eq!(block_on(get()).unwrap(), [Some("1".into())]);
}

#[test]
#[should_panic(expected = "disagree on what get gives")]
fn a_mirror_panics_when_its_stores_disagree() {
    let mirror = Mirror(Memory::new(), Memory::new());
    block_on(mirror.1.commit(&batch("a"), Durability::Written)).unwrap();
    let _ = block_on(mirror.get(b"a"));
}

#[cfg(feature = "embedded")]
mod side_by_side;
