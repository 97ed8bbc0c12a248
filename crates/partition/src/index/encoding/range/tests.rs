//! A value is in exactly the ranges that select it.

use super::super::{STRING_BYTES_ORDERED, encode_component, encode_scalar};
use super::*;
use crate::index::encoding::tests::{compare, scalar};
use proptest::prelude::*;
use std::cmp::Ordering;

fn hex(range: &TermRange) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    format!("{}..{}", hex(&range.from), hex(&range.to))
}

fn has(range: &TermRange, value: &Value) -> bool {
    range.contains(&encode_scalar(value))
}

#[test]
fn ranges_match_the_documented_bytes() {
    assert_eq!(hex(&TermRange::exact(&1i64.into())), "05bff0000000000000..05bff0000000000001");
    assert_eq!(hex(&TermRange::range(Bound::Included(&"b".into()), Bound::Unbounded)), "08620001..09");
    assert_eq!(hex(&TermRange::prefix("ab")), "086162..086163");
    assert_eq!(hex(&TermRange::of_type(TermType::Boolean)), "02..04");
    assert_eq!(hex(&TermRange::defined()), "01..0c");
    let descending = TermRange::component_range(Bound::Included(&"b".into()), Bound::Unbounded, true);
    assert_eq!(hex(&descending), "f7..f79dffff");
}

#[test]
fn bounds_of_two_types_have_nothing_between_them() {
    let (one, a) = (Value::from(1i64), Value::from("a"));
    assert!(TermRange::range(Bound::Included(&one), Bound::Included(&a)).is_empty());
    assert!(TermRange::range(Bound::Included(&a), Bound::Excluded(&a)).is_empty());
    assert_eq!(TermRange::range(Bound::Unbounded, Bound::Unbounded), TermRange::defined());
}

#[test]
fn type_ranges_are_ordered_and_cover_all_values() {
    let ranges: Vec<TermRange> = TermType::ALL.map(TermRange::of_type).into();
    assert!(ranges.windows(2).all(|pair| pair[0].to <= pair[1].from));
    assert_eq!(ranges.first().map(|range| &range.from), Some(&TermRange::all().from));
    assert_eq!(ranges.last().map(|range| &range.to), Some(&TermRange::all().to));
    for value in [Value::Array(vec![]), Value::Object(Default::default())] {
        assert!(has(&TermRange::of_type(TermType::of(&value)), &value) && has(&TermRange::exact(&value), &value));
    }
}

#[test]
fn strings_truncated_to_the_same_prefix_are_not_missed() {
    let stem = "x".repeat(STRING_BYTES_ORDERED);
    let (stem, a, b) = (Value::from(stem.clone()), Value::from(format!("{stem}a")), Value::from(format!("{stem}b")));
    for bound in [Bound::Included(&b), Bound::Excluded(&b)] {
        assert!(has(&TermRange::range(Bound::Unbounded, bound), &a));
        assert!(has(&TermRange::range(Bound::Unbounded, bound), &stem));
        assert!(!has(&TermRange::range(bound, Bound::Unbounded), &stem));
    }
    assert!(has(&TermRange::range(Bound::Excluded(&a), Bound::Unbounded), &b));
    assert!(has(&TermRange::range(Bound::Excluded(&stem), Bound::Unbounded), &b));
    assert!(has(&TermRange::prefix(a.as_str().unwrap()), &a) && !has(&TermRange::prefix(a.as_str().unwrap()), &stem));
    assert!(!has(&TermRange::exact(&a), &b));
}

#[test]
fn a_prefix_of_ff_bytes_has_an_upper_bound() {
    let range = TermRange::starting_with(vec![0xFF; 3]);
    assert!(range.contains(&[vec![0xFF; 8], vec![0x0F; 8]].concat()));
}

proptest! {
    #[test]
    fn a_value_is_in_the_ranges_that_select_it(value in scalar(), low in scalar(), high in scalar()) {
        let same = TermType::of(&value) == TermType::of(&low);
        let (to_low, to_high) = (compare(&value, &low), compare(&value, &high));
        prop_assert_eq!(has(&TermRange::exact(&low), &value), to_low == Ordering::Equal);
        let range = |low, high| TermRange::range(low, high);
        let (open, low_in, low_ex) = (Bound::Unbounded, Bound::Included(&low), Bound::Excluded(&low));
        prop_assert_eq!(has(&range(low_in, open), &value), same && to_low.is_ge());
        prop_assert_eq!(has(&range(low_ex, open), &value), same && to_low.is_gt());
        prop_assert_eq!(has(&range(open, low_in), &value), same && to_low.is_le());
        prop_assert_eq!(has(&range(open, low_ex), &value), same && to_low.is_lt());
        let one_type = same && TermType::of(&low) == TermType::of(&high);
        prop_assert_eq!(has(&range(low_ex, Bound::Included(&high)), &value), one_type && to_low.is_gt() && to_high.is_le());
        for kind in TermType::ALL {
            prop_assert_eq!(has(&TermRange::of_type(kind), &value), TermType::of(&value) == kind);
        }
        prop_assert!(has(&TermRange::defined(), &value) && has(&TermRange::all(), &value));
        prop_assert!(!TermRange::defined().contains(&crate::index::encoding::encode_undefined()));
    }

    /// With any component before it and any bytes after it.
    #[test]
    fn a_component_is_in_the_ranges_that_select_it(
        value in scalar(), low in scalar(), descending: bool, before in scalar(), following: [u8; 8],
    ) {
        let (mut known, mut row) = (Vec::new(), Vec::new());
        encode_component(Some(&before), false, &mut known);
        row.extend_from_slice(&known);
        encode_component(Some(&value), descending, &mut row);
        row.extend_from_slice(&following);
        let has = |low, high| TermRange::component_range(low, high, descending).prefixed_by(&known).contains(&row);
        let (same, to_low) = (TermType::of(&value) == TermType::of(&low), compare(&value, &low));
        let (open, low_in, low_ex) = (Bound::Unbounded, Bound::Included(&low), Bound::Excluded(&low));
        prop_assert_eq!(has(low_in, open), same && to_low.is_ge());
        prop_assert_eq!(has(low_ex, open), same && to_low.is_gt());
        prop_assert_eq!(has(open, low_in), same && to_low.is_le());
        prop_assert_eq!(has(open, low_ex), same && to_low.is_lt());
        prop_assert_eq!(has(low_in, low_in), to_low.is_eq());
        if let (Some(text), Some(start)) = (value.as_str(), low.as_str()) {
            let range = TermRange::component_prefix(start, descending).prefixed_by(&known);
            prop_assert_eq!(range.contains(&row), text.starts_with(start));
        }
    }

    /// An index does not order truncated strings: no match is missed, and some other strings are in the range.
    #[test]
    fn a_truncated_component_is_not_missed(length in 297usize..303, a in "[a\\x00]{0,3}", b in "[a\\x00]{0,3}", descending: bool) {
        let stem = "x".repeat(length);
        let (value, low) = (Value::from(format!("{stem}{a}")), Value::from(format!("{stem}{b}")));
        let mut row = Vec::new();
        encode_component(Some(&value), descending, &mut row);
        let (open, low_in, low_ex) = (Bound::Unbounded, Bound::Included(&low), Bound::Excluded(&low));
        let has = |low, high| TermRange::component_range(low, high, descending).contains(&row);
        let order = compare(&value, &low);
        prop_assert!(has(low_in, open) || order.is_lt());
        prop_assert!(has(low_ex, open) || order.is_le());
        prop_assert!(has(open, low_in) || order.is_gt());
        prop_assert!(has(open, low_ex) || order.is_ge());
        let beginning = TermRange::component_prefix(low.as_str().unwrap(), descending);
        prop_assert!(beginning.contains(&row) || !value.as_str().unwrap().starts_with(low.as_str().unwrap()));
    }

    /// The same in the index of a path.
    #[test]
    fn a_truncated_string_is_not_missed(length in 997usize..1003, a in "[a\\x00]{0,3}", b in "[a\\x00]{0,3}") {
        let stem = "x".repeat(length);
        let (text, start) = (format!("{stem}{a}"), format!("{stem}{b}"));
        let (value, low) = (Value::from(text.as_str()), Value::from(start.as_str()));
        let (open, low_in, low_ex) = (Bound::Unbounded, Bound::Included(&low), Bound::Excluded(&low));
        let in_range = |low, high| has(&TermRange::range(low, high), &value);
        let order = compare(&value, &low);
        prop_assert!(in_range(low_in, open) || order.is_lt());
        prop_assert!(in_range(low_ex, open) || order.is_le());
        prop_assert!(in_range(open, low_in) || order.is_gt());
        prop_assert!(in_range(open, low_ex) || order.is_ge());
        prop_assert!(has(&TermRange::prefix(&start), &value) || !text.starts_with(&start));
        prop_assert_eq!(has(&TermRange::exact(&low), &value), order.is_eq());
    }

    #[test]
    fn a_string_is_in_the_ranges_of_its_prefixes(text in "[ab\\x00]{0,6}", start in "[ab\\x00]{0,3}") {
        let value = Value::from(text.as_str());
        prop_assert_eq!(has(&TermRange::prefix(&start), &value), text.starts_with(&start));
    }
}
