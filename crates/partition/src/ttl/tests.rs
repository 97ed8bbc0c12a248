//! When an item is expired.

use super::*;
use crate::record::{Contents, FieldOffsets, Record};
use pleiad_model::partition_key::EffectiveKey;
use proptest::prelude::*;

fn record(ts_s: u32, ttl: &str) -> Record {
    let body = format!(r#"{{"id":"a"{ttl}}}"#);
    let (docnum, terms, indexed, id, epk) = (9, 0, true, "a", EffectiveKey::MIN);
    let fields = FieldOffsets::of(body.as_bytes());
    let contents = Contents {
        docnum,
        ts_s,
        terms,
        indexed,
        etag_source: None,
        epk: &epk,
        id,
        fields: &fields,
        body: body.as_bytes(),
    };
    Record::encode(&contents, 1, 0).unwrap()
}

/// The first second in which the item is expired.
fn expires_at(default_s: Option<i32>, record: &Record) -> Option<u32> {
    (record.ts_s..record.ts_s + 100).find(|now_s| Expiry::new(default_s, *now_s).is_expired(&record.view()))
}

#[test]
fn the_table_in_the_header_holds() {
    let items = ["", r#","ttl":-1"#, r#","ttl":5"#].map(|ttl| record(1000, ttl));
    let expiries = |default_s| [0, 1, 2].map(|at: usize| expires_at(default_s, &items[at]));
    assert_eq!(expiries(None), [None, None, None]);
    assert_eq!(expiries(Some(-1)), [None, None, Some(1006)]);
    assert_eq!(expiries(Some(20)), [Some(1021), None, Some(1006)]);
}

#[test]
fn an_invalid_ttl_is_ignored() {
    for ttl in [r#","ttl":"5""#, r#","ttl":null"#, r#","ttl":5000000000"#] {
        assert_eq!(expires_at(Some(20), &record(1000, ttl)), Some(1021), "{ttl}");
    }
}

proptest! {
    #[test]
    fn no_item_expires_early(ts_s in 0u32..u32::MAX / 2, ttl in 1i32..=i32::MAX, later: u32) {
        let expired = Expiry::new(Some(ttl), ts_s.saturating_add(later)).is_expired(&record(ts_s, "").view());
        prop_assert_eq!(expired, u64::from(ts_s.saturating_add(later)) > u64::from(ts_s) + ttl as u64);
    }
}
