//! Values claim the same row exactly if they are equal.

use pleiad_model::json;
use pleiad_model::partition_key::{KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition};
use proptest::prelude::*;

use super::*;

fn keys(paths: &[&[&str]]) -> UniqueKeys {
    let path = |text: &&str| PropertyPath::parse(text).unwrap();
    let key = |paths: &&[&str]| UniqueKey { paths: paths.iter().map(path).collect() };
    UniqueKeys::new(&paths.iter().map(key).collect::<Vec<_>>())
}

fn logical(pk: &str) -> LogicalKey {
    let paths = vec![PropertyPath::parse("/pk").unwrap()];
    let definition = PartitionKeyDefinition { paths, kind: KeyKind::Hash, version: KeyVersion::V2, system_key: false };
    LogicalKey::new(Some(&definition), &PartitionKey::parse(&format!("[\"{pk}\"]")).unwrap())
}

fn claim(paths: &[&str], body: &str) -> Claim {
    keys(&[paths]).claims(&logical("p"), &json::parse(body.as_bytes()).unwrap())[0]
}

#[track_caller]
fn check_same(paths: &[&str], one: &str, other: &str) {
    assert_eq!(claim(paths, one), claim(paths, other), "{one} and {other}");
}

#[track_caller]
fn check_different(paths: &[&str], one: &str, other: &str) {
    assert_ne!(claim(paths, one), claim(paths, other), "{one} and {other}");
}

#[test]
fn encoding_matches_the_documented_layout() {
    let mut out = Vec::new();
    encode(&json::parse(br#"["a",1]"#).unwrap(), &mut out);
    let documented =
        [[5].as_slice(), &2u64.to_be_bytes(), &[4], &1u64.to_be_bytes(), b"a", &[3, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0]];
    assert_eq!(out, documented.concat());
}

#[test]
fn a_missing_property_counts_as_null() {
    check_same(&["/mail"], r#"{"mail":null}"#, "{}");
    check_same(&["/a/b"], r#"{"a":7}"#, r#"{"a":{"b":null}}"#);
    check_same(&["/a", "/b"], r#"{"a":1}"#, r#"{"b":null,"a":1}"#);
    check_different(&["/a", "/b"], r#"{"a":1}"#, r#"{"b":1}"#);
}

#[test]
fn numbers_compare_as_doubles_strings_with_case_and_objects_without_order() {
    check_same(&["/a"], r#"{"a":1}"#, r#"{"a":1.0}"#);
    check_same(&["/a"], r#"{"a":0}"#, r#"{"a":-0.0}"#);
    check_different(&["/a"], r#"{"a":1}"#, r#"{"a":"1"}"#);
    check_different(&["/a"], r#"{"a":"x"}"#, r#"{"a":"X"}"#);
    check_same(&["/a"], r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#);
    check_different(&["/a"], r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#);
}

#[test]
fn adjacent_values_are_never_confused() {
    check_different(&["/a", "/b"], r#"{"a":"x","b":"yz"}"#, r#"{"a":"xy","b":"z"}"#);
    check_different(&["/a"], r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#);
    check_different(&["/a"], r#"{"a":{"b":"c"}}"#, r#"{"a":{"bc":""}}"#);
}

#[test]
fn s12_a_claim_is_of_one_logical_partition_and_one_unique_key() {
    let body = json::parse(br#"{"a":1,"b":1}"#).unwrap();
    let keys = keys(&[&["/a"], &["/b"], &["/a", "/b"], &["/b", "/a"]]);
    let (here, there) = (keys.claims(&logical("p"), &body), keys.claims(&logical("q"), &body));
    let rows = |claims: &[Claim]| claims.iter().map(|claim| claim.row(7, &[0x7F])).collect::<Vec<_>>();
    let mut all = [rows(&here), rows(&there)].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8, "no two claims share a row");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2i64..3).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::btree_map("[ab]", inner, 0..3).prop_map(|all| Value::Object(
                all.into_iter().fold(Object::new(), |o, (name, value)| o.with(name, value))
            )),
        ]
    })
}

proptest! {
    #[test]
    fn claims_are_equal_exactly_when_values_are(one in value(), other in value()) {
        let (a, b) = (Object::new().with("a", one.clone()).into(), Object::new().with("a", other.clone()).into());
        let claims = |body: &Value| keys(&[&["/a"]]).claims(&logical("p"), body);
        prop_assert_eq!(claims(&a) == claims(&b), one == other);
    }
}
