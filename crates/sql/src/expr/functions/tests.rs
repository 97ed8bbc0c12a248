//! Calls each function as a query does, with constants; the documented samples are in `vectors.tsv`.

mod arrays;
mod dates;
mod math;
mod regex;
mod strings;

use std::borrow::Cow;

use pleiad_model::env::ManualEnv;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Kind, Object, Result, Value, json};

use super::{ALIASES, BY_NAME, FAMILIES, Varies, find};
use crate::expr::aggregate::{AggregateKind, Aggregator};
use crate::expr::{Context, Datum, MemoryBudget, UserFunctions, arithmetic};
use crate::parse::ast::{AstStep, Expr, ExprKind, SelectSpec};

/// 2024-10-14T14:20:30.666Z: when the samples of `NOW` and `AGO` were taken.
const NOW_MS: u64 = 1_728_915_630_666;
const STARTED_MS: u64 = NOW_MS - 1000;
const BUDGET_BYTES: usize = 64 * 1024 * 1024;

pub fn with_context<T>(budget_bytes: usize, test: impl FnOnce(&Context<'_>) -> T) -> T {
    let env = ManualEnv::at(NOW_MS, 7);
    let user_functions: Option<&dyn UserFunctions> = None;
    test(&Context {
        env: &env,
        started_ms: STARTED_MS,
        geospatial: Geospatial::Geography,
        user_functions,
        memory: MemoryBudget::new(budget_bytes),
        interrupt: None,
    })
}

/// The scalar's value as JSON text, or `undefined`.
#[track_caller]
fn value_of(scalar: &str) -> String {
    let value = try_value_of(scalar).unwrap_or_else(|e| panic!("{scalar}: {e}"));
    value.as_ref().map_or("undefined".into(), json::to_string)
}

#[track_caller]
fn try_value_of(scalar: &str) -> Result<Option<Value>> {
    let select = crate::parse::parse(&format!("SELECT VALUE {scalar}")).unwrap_or_else(|e| panic!("{scalar}: {e:?}"));
    let SelectSpec::Value(item) = select.spec else { panic!("{scalar}") };
    with_context(BUDGET_BYTES, |cx| Ok(evaluate(&item.expr, cx)?.map(Cow::into_owned)))
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (scalar, want) in table {
        assert_eq!(value_of(scalar), *want, "{scalar}");
    }
}

/// Checks that each call is undefined.
#[track_caller]
fn check_undefined(scalars: &[&str]) {
    for scalar in scalars {
        assert_eq!(value_of(scalar), "undefined", "{scalar}");
    }
}

/// Checks that the call is undefined if any of its arguments is replaced by a wrong one.
#[track_caller]
fn check_wrong_types(call: &str, fitting: &[&str], wrong: &[&str]) {
    for position in 0..fitting.len() {
        for other in wrong {
            let arguments: Vec<_> =
                (0..fitting.len()).map(|i| if i == position { *other } else { fitting[i] }).collect();
            check_undefined(&[&format!("{call}({})", arguments.join(", "))]);
        }
    }
}

const NOT_STRINGS: [&str; 6] = ["undefined", "null", "1", "true", "['a']", "{}"];
const NOT_NUMBERS: [&str; 6] = ["undefined", "null", "'1'", "true", "[1]", "{}"];
const NOT_ARRAYS: [&str; 6] = ["undefined", "null", "1", "true", "'[]'", "{}"];

/// Evaluates constants only; `compile` handles everything else.
fn evaluate<'a>(expr: &'a Expr, cx: &Context<'_>) -> Result<Datum<'a>> {
    Ok(match &expr.kind {
        ExprKind::Undefined => None,
        ExprKind::Constant(value) => Some(Cow::Borrowed(value)),
        ExprKind::Unary { op, operand } => {
            evaluate(operand, cx)?.and_then(|v| v.as_number()).map(|n| Cow::Owned(arithmetic::unary(*op, n).into()))
        }
        ExprKind::Binary { first, rest } => {
            let mut left = evaluate(first, cx)?;
            for (op, right) in rest {
                left = arithmetic::apply(*op, &left, &evaluate(right, cx)?);
            }
            left
        }
        ExprKind::Array(items) => {
            let items = items.iter().map(|item| evaluate(item, cx)).collect::<Result<Vec<_>>>()?;
            Some(Cow::Owned(Value::Array(items.into_iter().flatten().map(Cow::into_owned).collect())))
        }
        ExprKind::Object(properties) => {
            let mut object = Object::new();
            for (name, value) in properties {
                evaluate(value, cx)?.into_iter().for_each(|value| object.set(name.as_str(), value.into_owned()));
            }
            Some(Cow::Owned(object.into()))
        }
        ExprKind::Access { base, steps } => {
            let mut value = evaluate(base, cx)?.map(Cow::into_owned);
            for step in steps {
                value = value.and_then(|v| v.get(step.property().unwrap()).cloned());
                assert!(matches!(step, AstStep::Property(_)));
            }
            value.map(Cow::Owned)
        }
        ExprKind::Call { function, arguments } => call(function, arguments, cx)?,
        other => panic!("{other:?}"),
    })
}

fn call<'a>(name: &str, arguments: &'a [Expr], cx: &Context<'_>) -> Result<Datum<'a>> {
    let mut arguments = arguments.iter().map(|argument| evaluate(argument, cx)).collect::<Result<Vec<_>>>()?;
    if let Some(kind) = AggregateKind::find(name) {
        let mut aggregator = Aggregator::new(kind);
        aggregator.add(arguments[0].as_deref(), cx)?;
        return Ok(aggregator.finish().map(Cow::Owned));
    }
    let function = find(name).unwrap_or_else(|| panic!("no function {name}"));
    assert!(function.arity.min <= arguments.len(), "{name}");
    assert!(function.arity.max.is_none_or(|max| arguments.len() <= max), "{name}");
    (function.call)(&mut arguments, cx)
}

/// Samples whose printed result contradicts the function's own description, with the result it should have.
const MISPRINTS: [(&str, &str); 1] = [(r#"CONTAINS_ALL_CS("Have a nice day!", "have", "nice", "day!")"#, "false")]; // "have" is not "Have"

/// Every documented sample. The test clock has millisecond resolution: samples with a finer one are truncated.
#[test]
fn documented_samples() {
    let mut count = 0;
    for line in include_str!("vectors.tsv").lines().skip(1) {
        let [function, scalar, want] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let want = MISPRINTS.iter().find(|(misprint, _)| *misprint == scalar).map_or(want, |(_, want)| want);
        let want = if matches!(function, "NOW" | "AGO") { want.replace("8888Z", "0000Z") } else { want.to_owned() };
        assert_eq!(value_of(scalar), want, "{scalar}");
        count += 1;
    }
    assert_eq!(count, 267);
}

#[test]
fn names_are_found_in_any_case_and_are_all_different() {
    let rows: usize = FAMILIES.iter().map(|family| family.len()).sum();
    assert_eq!(BY_NAME.len(), rows + ALIASES.len());
    for function in FAMILIES.into_iter().flatten() {
        assert_eq!(function.name, function.name.to_ascii_uppercase());
        assert_eq!(find(&function.name.to_ascii_lowercase()).unwrap().name, function.name);
    }
    for (alias, name) in ALIASES {
        assert_eq!(find(alias).unwrap().name, name);
    }
    for none in ["", "BADFUNC", "COUNT", "udf.x", "ÄBS", "ABS "] {
        assert!(find(none).is_none(), "{none}");
    }
}

#[test]
fn aliases_call_the_same_function() {
    check(&[
        ("IntBitwiseAnd(15, 25)", "9"),
        ("IntBitAnd(15, 25)", "9"),
        ("ContainsAllCi('AbC', 'a', 'c')", "true"),
        ("ContainsAnyCs('AbC', 'x', 'C')", "true"),
        ("_ObjectToArray({a: 1})", r#"[{"k":"a","v":1}]"#),
        ("_REGEX_MATCH('abc', 'B', 'i')", "true"),
        ("_TRY_ARRAY_CONTAINS([1, 2], 2)", "true"),
    ]);
}

#[test]
fn unsupported_functions_are_rejected_by_name() {
    for name in ["HASH", "_M_EVAL_EQ", "C_INT32"] {
        let error = try_value_of(&format!("{name}(1, 2)")).unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported, "{name}");
        assert!(error.to_string().contains(&name.to_uppercase()), "{error}");
    }
}

/// Every function tolerates any number and any types of arguments.
#[test]
fn any_arguments_of_any_type_are_safe() {
    let values =
        ["null", "true", "-1", "1.5", "9223372036854775807", "'2020-01-01'", "'dd'", "''", "[1, 'a']", "{\"a\": 1}"];
    let values: Vec<Option<Value>> =
        values.iter().map(|v| Some(json::parse(v.replace('\'', "\"").as_bytes()).unwrap())).chain([None]).collect();
    for function in FAMILIES.into_iter().flatten() {
        for count in 0..5 {
            for shift in 0..values.len() {
                let term = |i: usize| values[(i * (1 + shift % 3) + shift) % values.len()].as_ref().map(Cow::Borrowed);
                let mut arguments: Vec<Datum<'_>> = (0..count).map(term).collect();
                let answer = with_context(BUDGET_BYTES, |cx| (function.call)(&mut arguments, cx).map(drop));
                let is_unsupported = |e: &Error| e.kind == Kind::Unsupported;
                assert!(answer.as_ref().err().is_none_or(is_unsupported), "{}: {answer:?}", function.name);
            }
        }
    }
}

#[test]
fn only_clock_and_random_functions_vary() {
    let names_of =
        |varies| FAMILIES.into_iter().flatten().filter(|f| f.varies == varies).map(|f| f.name).collect::<Vec<_>>();
    let clocks = ["GETCURRENTDATETIME", "GETCURRENTTICKS", "GETCURRENTTIMESTAMP"];
    assert_eq!(names_of(Varies::PerCall), [&["RAND", "AGO", "NOW"], &clocks[..]].concat());
    assert_eq!(names_of(Varies::PerRun), clocks.map(|name| format!("{name}STATIC")));
}

#[test]
fn iif_and_documentid() {
    check(&[
        ("IIF(true, 1, 2)", "1"),
        ("IIF('true', 1, 2)", "2"),
        ("IIF(1, 1, 2)", "2"),
        ("IIF(undefined, 1, 2)", "2"),
        ("IIF(true, undefined, 2)", "undefined"),
        ("IIF(true, 1, undefined)", "1"),
        (r#"DOCUMENTID({"_rid": "36ZyAPW+uN8NAAAAAAAAAA=="})"#, "13"),
        (r#"DOCUMENTID({"_rid": "36ZyAA=="})"#, "undefined"),
        ("DOCUMENTID({})", "undefined"),
        ("DOCUMENTID(1)", "undefined"),
        ("DOCUMENTID(undefined)", "undefined"),
    ]);
}

#[test]
fn type_checks_never_return_undefined() {
    let rows = [
        ("undefined", [""; 1].as_slice()),
        ("null", &["NULL", "PRIMITIVE"]),
        ("false", &["BOOL", "PRIMITIVE"]),
        ("1", &["NUMBER", "FINITE_NUMBER", "INTEGER", "PRIMITIVE"]),
        ("1.0", &["NUMBER", "FINITE_NUMBER", "INTEGER", "PRIMITIVE"]),
        ("1.5", &["NUMBER", "FINITE_NUMBER", "PRIMITIVE"]),
        ("9223372036854775808", &["NUMBER", "FINITE_NUMBER", "PRIMITIVE"]),
        ("NaN", &["NUMBER", "PRIMITIVE"]),
        ("-Infinity", &["NUMBER", "PRIMITIVE"]),
        ("'x'", &["STRING", "PRIMITIVE"]),
        ("'2024-12-12'", &["STRING", "DATETIME", "PRIMITIVE"]),
        ("[]", &["ARRAY"]),
        ("{}", &["OBJECT"]),
    ];
    let kinds =
        ["ARRAY", "BOOL", "DATETIME", "FINITE_NUMBER", "INTEGER", "NULL", "NUMBER", "OBJECT", "PRIMITIVE", "STRING"];
    for (value, true_for) in rows {
        for kind in kinds {
            let want = if true_for.contains(&kind) { "true" } else { "false" };
            check(&[(&format!("IS_{kind}({value})"), want)]);
        }
        check(&[(&format!("IS_DEFINED({value})"), if value == "undefined" { "false" } else { "true" })]);
    }
}
