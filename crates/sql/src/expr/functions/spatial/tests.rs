//! Calls spatial functions with values of items and queries; the samples are from the documentation.

use pleiad_model::json;
use proptest::prelude::*;

use super::*;
use crate::expr::functions::tests::with_context;

const SQUARE: &str = "{'type':'Polygon','coordinates':[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]}";
const POINT: &str = "{'type':'Point','coordinates':[31.9,-4.8]}";

fn value(text: &str) -> Option<Value> {
    (text != "undefined").then(|| json::parse(text.replace('\'', "\"").as_bytes()).unwrap())
}

fn call_function(name: &str, values: &[Option<Value>]) -> Option<Value> {
    let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
    let mut args = values.iter().map(|value| value.as_ref().map(Cow::Borrowed)).collect::<Vec<_>>();
    with_context(1 << 20, |cx| (function.call)(&mut args, cx).unwrap().map(Cow::into_owned))
}

#[track_caller]
fn check(name: &str, args: &[&str], want: &str) {
    let values = args.iter().map(|text| value(text)).collect::<Vec<_>>();
    let found = call_function(name, &values).map_or("undefined".to_owned(), |value| json::to_string(&value));
    assert_eq!(found.replace('"', "'"), want, "{name}({args:?})");
}

#[test]
fn relations() {
    check("ST_WITHIN", &[POINT, SQUARE], "true");
    check("_ST_WITHIN", &[SQUARE, POINT], "false");
    check("ST_INTERSECTS", &[SQUARE, POINT], "true");
    check("ST_DISTANCE", &[POINT, POINT], "0");
    check("_ST_DISTANCE", &[POINT, SQUARE], "0");
}

#[test]
fn points_and_lines_have_no_area() {
    check("ST_AREA", &[POINT], "0");
    check("ST_AREA", &["{'type':'LineString','coordinates':[[0,0],[1,1]]}"], "0");
}

#[test]
fn validity_has_a_reason() {
    let far = "{'type':'Point','coordinates':[31.9,-132.8]}";
    check("ST_ISVALID", &[far], "false");
    check("ST_ISVALIDDETAILED", &[POINT], "{'valid':true}");
    let reason = "{'valid':false,'reason':'Latitude values must be between -90 and 90 degrees.'}";
    check("ST_ISVALIDDETAILED", &[far], reason);
}

#[test]
fn invalid_geometries_are_undefined() {
    for other in ["undefined", "null", "1", "'Point'", "[31.9,-4.8]", "{}", "{'type':'Point','coordinates':[0,91]}"] {
        for name in ["ST_WITHIN", "ST_INTERSECTS", "ST_DISTANCE"] {
            check(name, &[SQUARE, other], "undefined");
            check(name, &[other, SQUARE], "undefined");
        }
        check("ST_AREA", &[other], "undefined");
    }
    check("ST_ISVALID", &["undefined"], "undefined");
    check("ST_ISVALIDDETAILED", &["undefined"], "undefined");
    check("ST_ISVALID", &["1"], "false");
}

/// Within 20 km of a point, as in the SDKs' tests.
#[test]
fn distances_are_metres() {
    let from = |x: f64| format!("{{'type':'Point','coordinates':[{x},0]}}");
    let metres = |x: f64| call_function("ST_DISTANCE", &[value(&from(0.0)), value(&from(x))]).unwrap();
    let metres = |x: f64| metres(x).as_number().unwrap().as_f64();
    assert!((metres(0.1) - 11_131.949).abs() < 0.001);
    assert!(metres(0.1) < 20_000.0 && metres(0.2) > 20_000.0);
}

#[test]
fn cached_geometries_are_not_confused() {
    for _ in 0..2 {
        check("ST_WITHIN", &[POINT, SQUARE], "true");
        check("ST_WITHIN", &[POINT, &SQUARE.replace("-4.7", "-4.9")], "false");
        check("ST_WITHIN", &[SQUARE, SQUARE], "true");
        check("ST_WITHIN", &[POINT, "{'type':'Polygon'}"], "undefined");
    }
}

fn anything() -> impl Strategy<Value = Option<Value>> {
    let leaf = prop_oneof![
        any::<f64>().prop_map(Value::from),
        (-100..100i64).prop_map(Value::from),
        Just(Value::Null),
        Just(Value::from("Polygon")),
    ];
    let nested = leaf.prop_recursive(4, 40, 5, |inner| {
        let kinds = prop::sample::select(vec!["Point", "LineString", "Polygon", "MultiPolygon"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            (kinds, inner).prop_map(|(kind, of)| Object::new().with("type", kind).with("coordinates", of).into()),
        ]
    });
    prop::option::weighted(0.95, nested)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_arguments_return(a in anything(), b in anything()) {
        for function in FUNCTIONS {
            call_function(function.name, &[a.clone(), b.clone()]);
        }
    }
}
