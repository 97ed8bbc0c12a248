//! Rows of this version and of earlier ones, and malformed rows.

use super::*;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use proptest::prelude::*;

fn merged(low: u64, high: u64) -> RetentionWatermark {
    let at = EffectiveKey::from_bytes(&[0x80]);
    let halves = [EpkRange { min: EffectiveKey::MIN, max: at.clone() }, EpkRange { min: at, max: EffectiveKey::MAX }];
    RetentionWatermark::merged(halves.iter().zip([RetentionWatermark::at(low), RetentionWatermark::at(high)]))
}

#[test]
fn rows_of_earlier_versions_are_read() {
    let state = ShardState { lsn: 812, last_item: 9, items: 4, item_bytes: 4096, ..ShardState::default() };
    let with_versions = ShardState { versions_from: Some(RetentionWatermark::at(7)), merged_lsn: 3, ..state.clone() };
    let (row, row_with_versions) = (state.encode(), with_versions.encode());
    let third = [&[3], &row_with_versions[1..49]].concat();
    assert_eq!(ShardState::decode(&third).unwrap(), with_versions);
    for version in [1, 2] {
        let former = [&[version], &row[1..17], &row[33..49]].concat();
        assert_eq!(ShardState::decode(&former).unwrap(), state);
    }
    assert!(!ShardState::is_outdated(&row) && ShardState::is_outdated(&[1]));
}

#[test]
fn malformed_rows_are_rejected() {
    let row = ShardState::default().encode();
    let long = [&row[..], &[0]].concat();
    for bytes in [&[][..], &row[..32], &row[..49], &long, &[3; 33], &[4; 49], &[5; 50]] {
        assert!(ShardState::decode(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn versions_are_complete_from_the_first_write_that_leaves_one() {
    let mut state = ShardState { lsn: 4, ..ShardState::default() };
    state.advance(false);
    assert_eq!(state.versions_from, None);
    state.advance(true);
    state.advance(true);
    assert_eq!((state.lsn, state.versions_from.clone()), (7, Some(RetentionWatermark::at(5))));
    state.advance(false);
    assert_eq!(state.versions_from, Some(RetentionWatermark::at(8)), "the version of this change is missing");
}

proptest! {
    #[test]
    fn states_round_trip(fields: (u64, u64, u64, u64, u64), kept in proptest::option::of((0u64..9, 0u64..9))) {
        let (lsn, last_item, items, item_bytes, merged_lsn) = fields;
        let versions_from = kept.map(|(low, high)| merged(low, high));
        let state = ShardState { lsn, last_item, items, item_bytes, versions_from, merged_lsn };
        prop_assert_eq!(ShardState::decode(&state.encode()).unwrap(), state);
    }

    #[test]
    fn any_bytes_decode_or_are_reported(version in 0u8..6, bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = ShardState::decode(&[&[version], &bytes[..]].concat());
    }
}
