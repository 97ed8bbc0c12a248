use std::cmp::Ordering;

use pleiad_model::{Object, Value, json};
use proptest::prelude::*;

use super::{SortValue, encode, encode_key};
use crate::expr::compare::total_order;

fn bytes(value: Option<&Value>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

fn of(text: &str) -> Vec<u8> {
    bytes(Some(&json::parse(text.as_bytes()).unwrap()))
}

#[test]
fn values_sort_by_type_then_value() {
    let sorted = [
        "null",
        "false",
        "true",
        "-1e300",
        "-2",
        "-0.5",
        "0",
        "1",
        "2",
        "10",
        "\"\"",
        "\"\\u0000\"",
        "\"A\"",
        "\"a\"",
        "\"a\\u0000\"",
        "\"aa\"",
        "\"b\"",
        "[]",
        "[null]",
        "[1]",
        "[1,2]",
        "[2]",
        "{}",
        "{\"a\":1}",
        "{\"a\":1,\"b\":0}",
        "{\"a\":2}",
        "{\"b\":0}",
    ];
    assert!(bytes(None) < of("null"));
    for pair in sorted.windows(2) {
        assert!(of(pair[0]) < of(pair[1]), "{} < {}", pair[0], pair[1]);
    }
}

#[test]
fn equal_values_have_equal_bytes() {
    for (a, b) in [("1", "1.0"), ("0", "-0.0"), ("{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}"), ("1e2", "100")] {
        assert_eq!(of(a), of(b), "{a} = {b}");
    }
}

#[test]
fn a_worked_vector() {
    let hex: String = of("[1,\"a\"]").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "0a05bff0000000000000".to_owned() + "08610001" + "00");
}

#[test]
fn arrays_and_objects_sort_last_and_equal_ones_are_adjacent() {
    let key = |text: &str| {
        let mut out = Vec::new();
        encode_key(&SortValue::of(Some(&json::parse(text.as_bytes()).unwrap())), false, &mut out);
        out
    };
    assert_eq!(key("[1, 2.0]"), key("[1.0, 2]"));
    assert_eq!(key("{\"a\":1,\"b\":2}"), key("{\"b\":2,\"a\":1}"));
    assert!(key("\"z\"") < key("[]") && key("[{}]") < key("{}"));
    let hex: String = key("[1,\"a\"]").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "0af9dcea90144f1c2da14e5ad8d1c43906");
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        (-5i64..5).prop_map(Value::from),
        "[a\\x00\\xff]{0,3}".prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        let object = prop::collection::vec(("[ab]", inner.clone()), 0..3)
            .prop_map(|list| list.into_iter().fold(Object::new(), |object, (name, value)| object.with(name, value)));
        prop_oneof![prop::collection::vec(inner, 0..3).prop_map(Value::from), object.prop_map(Value::from)]
    })
}

proptest! {
    #[test]
    fn no_encoding_is_a_prefix_of_another(a in value(), b in value()) {
        let (a, b) = (bytes(Some(&a)), bytes(Some(&b)));
        prop_assert!(a == b || !b.starts_with(&a));
    }

    #[test]
    fn no_sort_key_is_a_prefix_of_another(a in value(), b in value()) {
        let [a, b] = [a, b].map(|value| {
            let mut out = Vec::new();
            encode_key(&SortValue::of(Some(&value)), false, &mut out);
            out
        });
        prop_assert!(a == b || !b.starts_with(&a));
    }

    #[test]
    fn descending_keys_sort_in_reverse(a in value(), b in value()) {
        let key = |value: &Value, descending| {
            let mut out = Vec::new();
            encode_key(&SortValue::of(Some(value)), descending, &mut out);
            out
        };
        prop_assert_eq!(key(&a, true).cmp(&key(&b, true)), key(&a, false).cmp(&key(&b, false)).reverse());
    }

    /// Comparing encodings gives the same order as comparing values.
    #[test]
    fn bytes_sort_as_values_compare(a in value(), b in value()) {
        prop_assert_eq!(bytes(Some(&a)).cmp(&bytes(Some(&b))), total_order(&a, &b));
    }

    #[test]
    fn numbers_sort_as_numbers(a in any::<f64>(), b in any::<f64>()) {
        prop_assume!(a.is_finite() && b.is_finite());
        let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
        prop_assert_eq!(bytes(Some(&a.into())).cmp(&bytes(Some(&b.into()))), order);
    }
}
