//! Changes and guards are returned in order, after any number of appends.

use super::*;

fn put_delete_expect() -> Batch {
    let mut batch = Batch::new();
    batch.put("a", "1");
    batch.delete("b");
    batch.expect("epoch", Some("4".into()));
    batch
}

#[test]
fn ops_come_back_in_order() {
    let mut batch = put_delete_expect();
    batch.delete_range("c", "d");
    batch.put("", "");
    let ops: Vec<BatchWrite> = batch.ops().collect();
    assert_eq!(
        ops,
        [
            BatchWrite::Put { key: b"a", value: b"1" },
            BatchWrite::Delete { key: b"b" },
            BatchWrite::DeleteRange { from: b"c", to: b"d" },
            BatchWrite::Put { key: b"", value: b"" },
        ]
    );
    assert_eq!(batch.op_count(), 4);
    assert_eq!(batch.bytes(), 5);
}

#[test]
fn guards_are_separate_and_distinguish_none_from_empty() {
    let mut batch = put_delete_expect();
    batch.expect("free", None);
    batch.expect("empty", Some(Bytes::new()));
    let guards: Vec<BatchWrite> = batch.guards().collect();
    assert_eq!(
        guards,
        [
            BatchWrite::Expect { key: b"epoch", value: Some(b"4") },
            BatchWrite::Expect { key: b"free", value: None },
            BatchWrite::Expect { key: b"empty", value: Some(b"") },
        ]
    );
}

#[test]
fn append_moves_changes_and_guards() {
    let mut group = Batch::new();
    for _ in 0..3 {
        let mut one = put_delete_expect();
        group.append(&mut one);
        assert!(one.is_empty());
    }
    assert_eq!(group.ops().count(), 6);
    assert_eq!(group.guards().count(), 3);
    assert_eq!(group.ops().last(), Some(BatchWrite::Delete { key: b"b" }));
    group.clear();
    assert!(group.is_empty());
    assert_eq!(group.ops().count(), 0);
}

#[test]
fn a_batch_with_only_a_guard_is_not_empty() {
    let mut batch = Batch::new();
    batch.expect("epoch", Some("4".into()));
    assert!(!batch.is_empty());
    assert_eq!(batch.op_count(), 0);
}
