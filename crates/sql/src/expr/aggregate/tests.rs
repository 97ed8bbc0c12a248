//! The result of each aggregate, computed at once and merged from parts.

use pleiad_model::{Kind, Number, Object, Value, json};
use proptest::prelude::*;

use super::*;
use crate::expr::functions::tests::with_context;

fn values(list: &str) -> Vec<Option<Value>> {
    let list = json::parse(list.replace('\'', "\"").as_bytes()).unwrap();
    let undefined = Value::from("undefined");
    list.as_array().unwrap().iter().map(|value| (*value != undefined).then(|| value.clone())).collect()
}

fn aggregate(kind: AggregateKind, values: &[Option<Value>]) -> Aggregator {
    let mut aggregator = Aggregator::new(kind);
    with_context(HELD_BYTES_MAX * 4, |cx| values.iter().try_for_each(|value| aggregator.add(value.as_ref(), cx)))
        .unwrap();
    aggregator
}

#[track_caller]
fn check(name: &str, list: &str, want: &str) {
    let answer = aggregate(AggregateKind::find(name).unwrap(), &values(list)).finish();
    assert_eq!(answer.as_ref().map_or("undefined".into(), json::to_string), want, "{name} over {list}");
}

#[test]
fn names() {
    for kind in AggregateKind::ALL {
        assert_eq!(AggregateKind::find(&kind.name().to_lowercase()), Some(kind));
    }
    let wire: Vec<_> = AggregateKind::ALL.map(AggregateKind::wire_name).into();
    assert_eq!(wire, ["Count", "Sum", "Average", "Min", "Max", "CountIf", "MakeList", "MakeSet"]);
    assert_eq!(AggregateKind::find("AVERAGE"), None);
    assert_eq!(AggregateKind::find("ABS"), None);
}

#[test]
fn over_no_values() {
    for (name, want) in [("COUNT", "0"), ("SUM", "0"), ("AVG", "undefined"), ("MIN", "undefined"), ("MAX", "undefined")]
    {
        check(name, "[]", want);
    }
    check("COUNTIF", "[]", "0");
    check("MAKELIST", "[]", "[]");
    check("MAKESET", "[]", "[]");
}

#[test]
fn over_undefined_only() {
    for (name, want) in [("COUNT", "0"), ("SUM", "0"), ("AVG", "undefined"), ("MIN", "undefined"), ("MAX", "undefined")]
    {
        check(name, "['undefined', 'undefined']", want);
    }
    check("MAKELIST", "['undefined']", "[]");
}

#[test]
fn counts() {
    check("COUNT", "[1, null, 'a', [], 'undefined', false]", "5");
    check("COUNTIF", "[true, false, true, null, 1, 'true', 'undefined']", "2");
}

#[test]
fn sums_are_exact_for_as_long_as_they_fit() {
    check("SUM", "[1, 2, 'undefined', 3]", "6");
    check("SUM", "[9007199254740993, 1]", "9007199254740994");
    check("SUM", "[9223372036854775806, 1]", "9223372036854775807");
    check("SUM", "[9223372036854775807, 1]", "9223372036854775808");
    check("SUM", "[0.1, 0.2]", "0.30000000000000004");
    check("SUM", "[1.5, 1]", "2.5");
    check("AVG", "[1, 2, 'undefined']", "1.5");
    for spoiler in ["null", "true", "'a'", "[]", "{}"] {
        check("SUM", &format!("[1, {spoiler}]"), "undefined");
        check("AVG", &format!("[1, {spoiler}, 2]"), "undefined");
    }
}

#[test]
fn extremes_mix_types_in_order() {
    check("MIN", "['a', 1, true, false, null]", "null");
    check("MIN", "['a', 1, true, false]", "false");
    check("MAX", "['a', 1, true, null, 'b']", r#""b""#);
    check("MAX", "[2, 10, true]", "10");
    check("MIN", "[2, 'undefined', 10]", "2");
    check("MIN", "[2, []]", "undefined");
    check("MAX", "[{}, 'z']", "undefined");
}

#[test]
fn collections() {
    check("MAKELIST", "[2, 1, 'undefined', 2, null, [1]]", "[2,1,2,null,[1]]");
    check("MAKESET", "['b', 2, 1.0, 1, 'a', 2, null]", r#"[null,1,2,"a","b"]"#);
}

#[test]
fn collected_values_are_limited() {
    let text = Some(Value::from("x".repeat(HELD_BYTES_MAX / 4)));
    let mut list = aggregate(AggregateKind::MakeList, &[text.clone(), text.clone(), text.clone()]);
    let full = with_context(HELD_BYTES_MAX * 4, |cx| list.add(text.as_ref(), cx)).unwrap_err();
    assert_eq!(full.kind, Kind::TooLarge);
    let half = aggregate(AggregateKind::MakeList, &[text.clone(), text.clone()]);
    assert_eq!(half.clone().merge(half).unwrap_err().kind, Kind::TooLarge);
    let set = aggregate(AggregateKind::MakeSet, &[text.clone(), text.clone(), text.clone(), text.clone(), text]);
    assert!(set.held_bytes() < HELD_BYTES_MAX / 2);
}

#[test]
fn different_aggregates_do_not_merge() {
    let error = Aggregator::new(AggregateKind::Min).merge(Aggregator::new(AggregateKind::Max)).unwrap_err();
    assert_eq!(error.kind, Kind::Internal);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-9i64..9).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-8i32..8).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        any::<f64>().prop_map(|n| Value::Number(Number::Float(n))),
        "[a-cä😀]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let object = |properties: Vec<(String, Value)>| {
            properties.into_iter().fold(Object::new(), |object, (name, value)| object.with(name, value)).into()
        };
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::vec(("[ab]{0,2}", inner), 0..3).prop_map(object),
        ]
    })
}

/// Mostly scalars, so that most results are defined; exact sums, so that they do not depend on the order.
fn any_input() -> impl Strategy<Value = Vec<Option<Value>>> {
    let plain =
        prop_oneof![(-99i64..99).prop_map(Value::from), (-8i32..8).prop_map(|n| Value::from(f64::from(n) / 2.0))];
    let plain = proptest::collection::vec(proptest::option::of(plain), 0..12);
    let no_fraction = |value: &Value| value.as_number().is_none_or(|n| n.as_f64().abs() < 1e6);
    prop_oneof![
        plain,
        proptest::collection::vec(proptest::option::of(any_value().prop_filter("sums", no_fraction)), 0..12)
    ]
}

fn any_kind() -> impl Strategy<Value = AggregateKind> {
    proptest::sample::select(AggregateKind::ALL.to_vec())
}

proptest! {
    #[test]
    fn parts_merge_to_the_whole(kind in any_kind(), input in any_input(), at in 0usize..12) {
        let (first, second) = input.split_at(at.min(input.len()));
        let mut merged = aggregate(kind, first);
        merged.merge(aggregate(kind, second)).unwrap();
        prop_assert_eq!(merged.finish().map(|v| json::to_string(&v)), aggregate(kind, &input).finish().map(|v| json::to_string(&v)));
    }

    #[test]
    fn total_order_is_a_total_order(a in any_value(), b in any_value(), c in any_value()) {
        prop_assert_eq!(total_order(&a, &b), total_order(&b, &a).reverse());
        prop_assert!(total_order(&a, &a).is_eq());
        if total_order(&a, &b).is_le() && total_order(&b, &c).is_le() {
            prop_assert!(total_order(&a, &c).is_le());
        }
        let equal = crate::expr::compare::same(&a, &b);
        prop_assert!(!equal || total_order(&a, &b).is_eq());
    }
}
