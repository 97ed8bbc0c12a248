use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, want: &str) {
    let value = parse(text.as_bytes()).expect("valid JSON");
    assert_eq!(to_string(&value), want);
}

#[track_caller]
fn check_invalid(text: &[u8], part: &str) {
    let error = parse(text).expect_err("invalid JSON");
    assert_eq!(error.kind, crate::Kind::Invalid);
    assert!(error.to_string().contains(part), "{error} does not contain {part:?}");
}

#[test]
fn text_is_rewritten_compactly_in_property_order() {
    check(r#" { "b" : [ 1 , true , null ] , "a" : { } } "#, r#"{"b":[1,true,null],"a":{}}"#);
    check("\"x\"", "\"x\"");
    check("[]", "[]");
}

#[test]
fn numbers_are_exact_as_integers_and_shortest_as_doubles() {
    for exact in ["0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615"]
    {
        check(exact, exact);
    }
    check("105.00", "105");
    check("1e3", "1000");
    check("1e20", "100000000000000000000");
    check("1e21", "1e+21");
    check("-1.5e300", "-1.5e+300");
    check("0.1", "0.1");
    check("5.12312419050912359123", "5.123124190509124");
    check("-0.0", "-0.0");
    check("-0", "-0.0");
    check("18446744073709551616", "18446744073709551616");
    check("5e-324", "5e-324");
}

#[test]
fn write_doubles_marks_integral_doubles() {
    let weights = [2.0, 0.5, -1.0].map(Value::from).to_vec();
    let value = Object::new().with("weights", weights).with("take", Value::from(10u64));
    let mut out = Vec::new();
    write_doubles(&value.into(), &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"weights":[2.0,0.5,-1.0],"take":10}"#);
}

#[test]
fn numbers_beyond_f64_are_rejected() {
    check_invalid(b"1e400", "number out of range at line 1 column");
    check_invalid(b"[-1e999]", "number out of range");
    check_invalid(b"NaN", "line 1 column");
}

#[test]
fn a_computed_infinity_is_written_as_null() {
    assert_eq!(to_string(&Value::from(f64::INFINITY)), "null");
}

#[test]
fn only_required_characters_are_escaped() {
    check(
        r#""é \u65e5 \ud83d\ude00 \/ \" \\ \n \u0001 \u001f \u007f""#,
        "\"é 日 😀 / \\\" \\\\ \\n \\u0001 \\u001f \u{7f}\"",
    );
    check(r#"{"a\"b":"\b\f\r\t"}"#, r#"{"a\"b":"\b\f\r\t"}"#);
}

#[test]
fn a_duplicate_name_keeps_its_first_position_and_its_last_value() {
    check(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
    let many: Vec<String> = (0..100).map(|n| format!("\"p{}\":{n}", n % 50)).collect();
    let value = parse(format!("{{{}}}", many.join(",")).as_bytes()).expect("valid");
    let object = value.as_object().expect("object");
    assert_eq!(object.len(), 50);
    assert_eq!(object.iter().next(), Some(("p0", &Value::from(50_i64))));
    assert_eq!(object.get("p49"), Some(&Value::from(99_i64)));
}

#[test]
fn an_object_may_have_100_000_properties() {
    let many: Vec<String> = (0..100_000).map(|n| format!("\"p{n}\":{n}")).collect();
    let value = parse(format!("{{{}}}", many.join(",")).as_bytes()).expect("valid");
    assert_eq!(value.as_object().map(Object::len), Some(100_000));
}

#[test]
fn nesting_is_limited() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    check(&nested(NESTING_MAX), &nested(NESTING_MAX));
    check_invalid(nested(NESTING_MAX + 1).as_bytes(), "128 arrays and objects");
    check_invalid("[".repeat(1_000_000).as_bytes(), "128 arrays and objects");
    check_invalid("{\"a\":".repeat(129).as_bytes(), "128 arrays and objects");
}

#[test]
fn syntax_errors_are_reported_with_their_position() {
    check_invalid(b"", "line 1 column 0");
    check_invalid(b"{\n\"a\":}", "line 2 column 5");
    check_invalid(b"{} {}", "trailing characters at line 1 column 4");
    check_invalid(b"[1,]", "line 1");
    check_invalid(b"'a'", "line 1");
    check_invalid(b"\"\xff\"", "line 1");
    check_invalid(b"\"\n\"", "line");
    check_invalid(b"01", "line 1");
}

/// Values as a client can send them; floats are generated from their bits, so every exponent occurs.
pub fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<u64>().prop_map(f64::from_bits).prop_filter("JSON is finite", |n| n.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6).prop_map(|properties| {
                properties.into_iter().fold(Object::new(), |object, (name, value)| object.with(name, value)).into()
            }),
        ]
    })
}

/// The same shape and the same doubles; the spelling of an integral double may change.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().to_bits() == b.as_f64().to_bits(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((m, a), (n, b))| m == n && same(a, b))
        }
        _ => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn values_round_trip_through_text(value in values()) {
        let text = to_string(&value);
        let again = parse(text.as_bytes()).expect("text that `to_string` wrote is valid");
        prop_assert!(same(&value, &again), "{text}");
        prop_assert_eq!(to_string(&again), text);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn output_is_valid_for_serde_json(value in values()) {
        prop_assert!(serde_json::from_str::<serde_json::Value>(&to_string(&value)).is_ok());
    }
}
