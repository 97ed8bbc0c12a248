use super::*;
use pleiad_model::Number;
use proptest::prelude::*;
use std::cmp::Ordering;

fn hex(value: impl Into<Value>) -> String {
    encode_scalar(&value.into()).iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn encoding_matches_the_documented_layout() {
    assert_eq!(hex(Value::Null), "01");
    assert_eq!(hex(1i64), "05bff0000000000000");
    assert_eq!(hex("a\0b"), "086100ff620001");
    assert_eq!(hex(Value::Array(vec![1i64.into()])), "0a");
    assert_eq!(hex(pleiad_model::Object::new()), "0b");
    let one = components(&[Some(1i64.into()), Some(Value::Null)], &[false, true]);
    assert_eq!(one.iter().map(|b| format!("{b:02x}")).collect::<String>(), "05bff0000000000000fe");
}

fn components(values: &[Option<Value>], descending: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    let pairs = values.iter().zip(descending);
    pairs.for_each(|(value, descending)| encode_component(value.as_ref(), *descending, &mut out));
    out
}

#[test]
fn inexact_values_decode_as_inexact() {
    let decoded = |value: &Value| decode(&encode_scalar(value)).unwrap().0;
    assert_eq!(decoded(&Value::from("x".repeat(1001))), Decoded::Inexact(TermType::String));
    assert_eq!(decoded(&9007199254740993i64.into()), Decoded::Inexact(TermType::Number));
    assert_eq!(decoded(&Value::Array(vec![])), Decoded::Array);
    assert_eq!(decode(&encode_undefined()), Some((Decoded::Undefined, 1)));
    for junk in [&[][..], &[0x04], &[0x05, 1, 2], &[0x08, 0x61], &[0x08, 0x00, 0x03], &[0x08, 0x00, 0x02, 1]] {
        assert_eq!(decode(junk), None, "{junk:?}");
    }
}

/// The bounds are exact: no other value can be longer.
#[test]
fn the_longest_values_have_the_declared_lengths() {
    let zeros = Value::from("\0".repeat(5000));
    assert_eq!(encode_scalar(&zeros).len(), SCALAR_BYTES_MAX);
    for text in [zeros, "x".repeat(5000).into()] {
        assert_eq!(components(&vec![Some(text); 8], &[true; 8]).len(), COMPOSITE_BYTES_MAX);
    }
    let key = |value: Vec<u8>| keyspace::index(u64::MAX, u64::MAX, &value, u64::MAX).len();
    assert_eq!((key(vec![0; SCALAR_BYTES_MAX]), key(vec![0; COMPOSITE_BYTES_MAX])), (2_044, 2_577));
}

#[test]
fn s19_numbers_are_doubles_in_the_index() {
    assert_eq!(hex(9007199254740993i64), hex(9007199254740992i64));
    assert_eq!(hex(0i64), hex(-0.0));
    assert_eq!(hex(1i64), hex(1.0));
}

#[test]
fn long_strings_are_truncated_and_stay_distinct() {
    let stem = "x".repeat(STRING_BYTES_ORDERED);
    let (exact, a, b) = (hex(stem.as_str()), hex(format!("{stem}a")), hex(format!("{stem}b")));
    assert!(exact < a && exact < b && a != b);
    assert!(encode_scalar(&Value::String("\0".repeat(5000))).len() < 2100);
}

pub fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Number(Number::Int(n))),
        prop::num::f64::NORMAL.prop_map(|n| Value::Number(Number::Float(n))),
        "[a-b\\x00]{0,6}|\\PC{0,12}".prop_map(Value::String),
    ]
}

pub fn compare(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Number(_) => 2,
            _ => 3,
        }
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).unwrap(),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

proptest! {
    #[test]
    fn bytes_order_as_values_do(a in scalar(), b in scalar()) {
        prop_assert_eq!(encode_scalar(&a).cmp(&encode_scalar(&b)), compare(&a, &b));
    }

    #[test]
    fn values_round_trip(a in scalar(), b in scalar(), descending in any::<bool>()) {
        let mut bytes = encode_scalar(&a);
        bytes.extend_from_slice(&encode_scalar(&b));
        let (decoded, used) = decode(&bytes).unwrap();
        prop_assert_eq!(used, encode_scalar(&a).len());
        prop_assert!(matches!(decoded, Decoded::Inexact(TermType::Number)) || compare(&decode_scalar(&bytes).unwrap().0, &a).is_eq());
        let bytes = components(&[Some(a), Some(b.clone())], &[descending, !descending]);
        let (first, used) = decode_component(&bytes, descending).unwrap();
        prop_assert_eq!(first, decoded);
        let (second, rest) = decode_component(&bytes[used..], !descending).unwrap();
        prop_assert_eq!(second, decode(&encode_scalar(&b)).unwrap().0);
        prop_assert_eq!(used + rest, bytes.len());
    }

    /// Tuples compare by their first difference, each component in its direction.
    #[test]
    fn components_order_as_tuples_do(
        one in [prop::option::of(scalar()), prop::option::of(scalar())],
        other in [prop::option::of(scalar()), prop::option::of(scalar())],
        descending in [any::<bool>(), any::<bool>()],
    ) {
        let order = |at: usize| {
            let order = match (&one[at], &other[at]) {
                (Some(a), Some(b)) => compare(a, b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            };
            if descending[at] { order.reverse() } else { order }
        };
        prop_assert_eq!(components(&one, &descending).cmp(&components(&other, &descending)), order(0).then(order(1)));
    }

    #[test]
    fn truncated_strings_are_ordered_by_their_prefix(a in "[\\x00a]{295,305}", b in "[\\x00a]{145,305}") {
        let (one, other) = (components(&[Some(a.as_str().into())], &[false]), components(&[Some(b.as_str().into())], &[false]));
        let same_beginning = truncate_component(a.as_bytes()) == truncate_component(b.as_bytes());
        prop_assert!(same_beginning || one.cmp(&other) == a.cmp(&b));
        prop_assert_eq!(one == other, a == b);
    }

    /// Around the lengths at which strings are truncated.
    #[test]
    fn no_value_is_longer_than_declared(
        texts in prop::collection::vec("[\\x00a\u{20ac}]{0,4}|[\\x00a]{140,310}|[\\x00a\u{20ac}]{320,1010}", 8),
        descending in any::<[bool; 8]>(),
    ) {
        let values: Vec<Option<Value>> = texts.iter().map(|text| Some(text.as_str().into())).collect();
        prop_assert!(components(&values, &descending).len() <= COMPOSITE_BYTES_MAX);
        for value in values.into_iter().flatten() {
            prop_assert!(encode_scalar(&value).len() <= SCALAR_BYTES_MAX);
        }
    }

    #[test]
    fn no_encoding_is_a_prefix_of_another(a in scalar(), b in scalar()) {
        let (a, b) = (encode_scalar(&a), encode_scalar(&b));
        prop_assert!(a == b || !b.starts_with(&a));
    }
}
