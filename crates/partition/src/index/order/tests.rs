use super::*;
use pleiad_model::Number;
use proptest::prelude::*;
use std::cmp::Ordering;

fn hex(value: impl Into<Value>) -> String {
    encode_scalar(&value.into()).iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn the_drawing_in_the_header_is_true() {
    assert_eq!(hex(Value::Null), "01");
    assert_eq!(hex(1i64), "05bff0000000000000");
    assert_eq!(hex("a\0b"), "086100ff620001");
}

#[test]
fn s19_numbers_are_doubles_in_the_index() {
    assert_eq!(hex(9007199254740993i64), hex(9007199254740992i64));
    assert_eq!(hex(0i64), hex(-0.0));
    assert_eq!(hex(1i64), hex(1.0));
}

#[test]
fn long_strings_are_cut_and_still_told_apart() {
    let stem = "x".repeat(STRING_BYTES_ORDERED);
    let (exact, a, b) = (hex(stem.as_str()), hex(format!("{stem}a")), hex(format!("{stem}b")));
    assert!(exact < a && exact < b && a != b);
    assert!(encode_scalar(&Value::String("\0".repeat(5000))).len() < 2100);
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Number(Number::Int(n))),
        prop::num::f64::NORMAL.prop_map(|n| Value::Number(Number::Float(n))),
        "[a-b\\x00]{0,6}|\\PC{0,12}".prop_map(Value::String),
    ]
}

fn compare(a: &Value, b: &Value) -> Ordering {
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
    fn no_encoding_is_a_prefix_of_another(a in scalar(), b in scalar()) {
        let (a, b) = (encode_scalar(&a), encode_scalar(&b));
        prop_assert!(a == b || !b.starts_with(&a));
    }
}
