//! Which functions are translated, which are not, and that SQL and JavaScript agree.

use pleiad_model::{Number, Object, Value, json};
use proptest::prelude::*;

use super::js::Lambda;
use super::lower::{LambdaScope, condition, projection};
use super::sql::{Comparison, PathKey, Sql};
use super::translate_prefix;
use crate::testing::{TestHost, parse, procedure, runtime};

#[track_caller]
fn check_query(stages: &[(&str, &str)], want: &str) {
    let stages: Vec<_> =
        stages.iter().map(|(verb, text)| vec![Some((*verb).to_owned()), Some((*text).to_owned())]).collect();
    assert_eq!(translate_prefix(&stages), [want.to_owned(), stages.len().to_string()]);
}

#[track_caller]
fn check_untranslated(text: &str) {
    let stage = vec![Some("filter".to_owned()), Some(text.to_owned())];
    assert_eq!(translate_prefix(&[stage]), ["SELECT VALUE r FROM r", "0"], "{text}");
}

#[test]
fn filters_are_translated() {
    check_query(&[("filter", "d => d.a === 1")], r#"SELECT VALUE r FROM r WHERE (r["a"] = 1)"#);
    check_query(
        &[("filter", "function (d) { return d.a.b >= -1.5; }")],
        r#"SELECT VALUE r FROM r WHERE (r["a"]["b"] >= -1.5)"#,
    );
    check_query(
        &[("filter", "function f(doc) { /* c */ return doc['a b'] < 'x' // d\n}")],
        r#"SELECT VALUE r FROM r WHERE (r["a b"] < "x")"#,
    );
    check_query(
        &[("filter", "(d) => { return d.a == null }")],
        r#"SELECT VALUE r FROM r WHERE ((NOT (IS_DEFINED(r["a"]) ?? false)) OR IS_NULL(r["a"]))"#,
    );
    check_query(
        &[("filter", "d => d.s.startsWith(\"a\\\"b\") && d.t[0] !== 'x'")],
        r#"SELECT VALUE r FROM r WHERE (STARTSWITH(r["s"], "a\"b") AND (NOT ((r["t"][0] = "x") ?? false)))"#,
    );
    check_query(&[("filter", "d => d.n % 2 === 0")], r#"SELECT VALUE r FROM r WHERE ((r["n"] % 2) = 0)"#);
    check_query(
        &[("filter", "d => d.s.toLowerCase() === 'x' || typeof d.x === 'undefined'")],
        r#"SELECT VALUE r FROM r WHERE ((LOWER(r["s"]) = "x") OR (NOT (IS_DEFINED(r["x"]) ?? false)))"#,
    );
    check_query(&[("filter", "d => true")], "SELECT VALUE r FROM r WHERE true");
}

#[test]
fn chains_are_translated() {
    check_query(
        &[("filter", "d => d.age < 30"), ("sortBy", "d => d.name"), ("pluck", "name")],
        r#"SELECT VALUE r["name"] FROM r WHERE (r["age"] < 30) ORDER BY r["name"]"#,
    );
    check_query(
        &[
            ("map", "d => ({ name: d.n, more: { old: d.age > 60 } })"),
            ("filter", "x => x.name === 'a'"),
            ("filter", "x => x.more.z === 1"),
        ][..2],
        r#"SELECT VALUE {"name": r["n"], "more": {"old": ((r["age"] > 60) ?? false)}} FROM r WHERE (r["n"] = "a")"#,
    );
    let unwind = |text: &str, result: Option<&str>| {
        vec![Some("unwind".to_owned()), Some(text.to_owned()), result.map(str::to_owned)]
    };
    let family = [
        unwind("c => c.kids", Some("(c, k) => { return { customer: c, kid: k } }")),
        unwind("ck => ck.kid.pets", Some("(ck, p) => ({ name: ck.customer.name, pet: p.name })")),
    ];
    let want =
        r#"SELECT VALUE {"name": r["name"], "pet": x1["name"]} FROM r JOIN x0 IN r["kids"] JOIN x1 IN x0["pets"]"#;
    assert_eq!(translate_prefix(&family), [want, "2"]);
    assert_eq!(
        translate_prefix(&[unwind("c => c.kids", None)]),
        [r#"SELECT VALUE x0 FROM r JOIN x0 IN r["kids"]"#, "1"]
    );
}

#[test]
fn untranslatable_functions_stay_in_javascript() {
    for text in [
        "d => d.a === b",
        "d => d.a === d.b",
        "d => { if (d.a) return true }",
        "d => { return\n d.a }",
        "d => d.list.length > 1",
        "d => d.constructor === 1",
        "d => f(d.a)",
        "d => d.a ? 1 : 0",
        "d => d.a & 1",
        "d => d.a / 0 > 1",
        "d => d.a + d.b > 1",
        "d => d.a > 0x10",
        "d => d.a > 1n",
        "d => `x` === d.a",
        "d => d[d.k] === 1",
        "d => d.a === 1, 2",
        "(d, e) => d.a === 1",
        "({ a }) => a === 1",
        "(d = 1) => d.a === 1",
        "async d => d.a === 1",
        "function* (d) { return d.a === 1 }",
        "function () { [native code] }",
        "d => ({ a: 1, a: 2 }).a === 1",
        "d => /x/.test(d.a)",
        "d => d.a === '\\u0041'",
        "d => d.a === 010",
        "d",
        "",
        "d =>",
        "d => d.",
        "d => (d.a === 1",
    ] {
        check_untranslated(text);
    }
    check_untranslated(&format!("d => {}d.a{}", "(".repeat(5000), ")".repeat(5000)));
    check_untranslated(&format!("d => {}d.a", "!".repeat(5000)));
    check_untranslated(&format!("d => d{} === 1", ".a".repeat(500_000)));
    check_untranslated(&format!("d => d.a{}", " && d.a".repeat(500_000)));
}

#[test]
fn query_size_is_bounded() {
    let stage = |verb: &str, text: &str| vec![Some(verb.to_owned()), Some(text.to_owned())];
    let doubling = vec![stage("map", "d => ({ a: d, b: d })"); 40];
    let [sql, taken] = &translate_prefix(&doubling)[..] else { panic!("not a pair") };
    assert!((1..10).contains(&taken.parse::<usize>().unwrap()) && sql.len() < 20_000, "{taken}");
    let filters = vec![stage("filter", "d => d.a === 1"); 1000];
    assert!(translate_prefix(&filters)[0].len() < 20_000);
}

// ---- SQL and JavaScript agree ----

/// Evaluates the SQL for a row; None is undefined.
fn eval(sql: &Sql, row: &Value) -> Option<Value> {
    let flag = |sql: &Sql| eval(sql, row).and_then(|value| value.as_bool());
    match sql {
        Sql::Path { keys, .. } => keys
            .iter()
            .try_fold(row, |at, key| match key {
                PathKey::Name(name) => at.get(name),
                PathKey::Index(n) => at.as_array()?.get(*n as usize),
            })
            .cloned(),
        Sql::Literal(value) => Some(value.clone()),
        Sql::Object(properties) => {
            let mut made = Object::new();
            for (name, value) in properties {
                if let Some(value) = eval(value, row) {
                    made.set(name.as_str(), value)
                }
            }
            Some(Value::Object(made))
        }
        Sql::Compare(comparison, sides) => compare_values(*comparison, &eval(&sides.0, row)?, &eval(&sides.1, row)?),
        Sql::Arithmetic(operator, sides) => {
            let (a, b) = (eval(&sides.0, row)?.as_number()?.as_f64(), eval(&sides.1, row)?.as_number()?.as_f64());
            Some(Value::from(match *operator {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "/" => a / b,
                _ => a % b,
            }))
        }
        Sql::And(sides) => match (flag(&sides.0), flag(&sides.1)) {
            (Some(false), _) | (_, Some(false)) => Some(Value::Bool(false)),
            (Some(true), Some(true)) => Some(Value::Bool(true)),
            _ => None,
        },
        Sql::Or(sides) => match (flag(&sides.0), flag(&sides.1)) {
            (Some(true), _) | (_, Some(true)) => Some(Value::Bool(true)),
            (Some(false), Some(false)) => Some(Value::Bool(false)),
            _ => None,
        },
        Sql::Not(inner) => flag(inner).map(|flag| Value::Bool(!flag)),
        Sql::OrFalse(inner) => Some(eval(inner, row).unwrap_or(Value::Bool(false))),
        Sql::Truthy(inner) => Some(Value::Bool(eval(inner, row).is_some_and(|value| is_truthy(&value)))),
        Sql::Call(name, arguments) => call_function(name, &arguments.iter().map(|a| eval(a, row)).collect::<Vec<_>>()),
    }
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(n) => n.as_f64() != 0.0,
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn compare_values(comparison: Comparison, a: &Value, b: &Value) -> Option<Value> {
    let order = match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64())?,
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => return None,
    };
    Some(Value::Bool(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }))
}

fn call_function(name: &str, arguments: &[Option<Value>]) -> Option<Value> {
    let first = arguments.first()?.as_ref();
    if name == "IS_DEFINED" {
        return Some(Value::Bool(first.is_some()));
    }
    let text = |at: usize| arguments.get(at)?.as_ref()?.as_str();
    let flag = match name {
        "IS_NULL" => matches!(first?, Value::Null),
        "IS_STRING" => matches!(first?, Value::String(_)),
        "IS_NUMBER" => matches!(first?, Value::Number(_)),
        "IS_BOOL" => matches!(first?, Value::Bool(_)),
        "STARTSWITH" => text(0)?.starts_with(text(1)?),
        "ENDSWITH" => text(0)?.ends_with(text(1)?),
        "CONTAINS" => text(0)?.contains(text(1)?),
        "ARRAY_CONTAINS" => first?.as_array()?.contains(arguments.get(1)?.as_ref()?),
        "LOWER" => return Some(Value::from(text(0)?.to_lowercase())),
        "UPPER" => return Some(Value::from(text(0)?.to_uppercase())),
        _ => panic!("no translation uses {name}"),
    };
    Some(Value::Bool(flag))
}

/// Documents with a string `s`, an array of strings `t`, an optional number `n` and an optional `x` of any type.
fn document() -> impl Strategy<Value = Value> {
    let small = prop_oneof![Just(-1i64), Just(0), Just(1), Just(2), Just(7)];
    let word = || prop::sample::select(vec!["", "a", "ab", "B", "1"]);
    let anything = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        small.clone().prop_map(Value::from),
        word().prop_map(Value::from),
        Just(parse("[]")),
        Just(parse(r#"{"n":1}"#)),
    ];
    let tags = prop::collection::vec(word().prop_map(Value::from), 0..3);
    (prop::option::of(small), word(), prop::option::of(anything), tags).prop_map(|(n, s, x, t)| {
        let mut made = Object::new().with("s", s).with("t", t);
        if let Some(n) = n {
            made.set("n", n)
        }
        if let Some(x) = x {
            made.set("x", x)
        }
        Value::Object(made)
    })
}

/// Predicates over such documents, where JavaScript compares values of one type.
fn predicate() -> impl Strategy<Value = String> {
    let number = || prop::sample::select(vec!["0", "1", "-1", "2.5", "7"]);
    let text = || prop::sample::select(vec!["''", "'a'", "\"ab\"", "'B'"]);
    let order = || prop::sample::select(vec!["<", "<=", ">", ">="]);
    let equals = || prop::sample::select(vec!["===", "!=="]);
    let loose = || prop::sample::select(vec!["===", "!==", "==", "!="]);
    let leaf = prop_oneof![
        (order(), number()).prop_map(|(o, n)| format!("d.n {o} {n}")),
        (order(), number()).prop_map(|(o, n)| format!("{n} {o} d.n")),
        (order(), text()).prop_map(|(o, t)| format!("d.s {o} {t}")),
        (equals(), number()).prop_map(|(o, n)| format!("d.x {o} {n}")),
        (equals(), text()).prop_map(|(o, t)| format!("{t} {o} d['x']")),
        (equals(), number()).prop_map(|(o, n)| format!("d.n {o} {n}")),
        (loose(), prop::sample::select(vec!["null", "undefined"])).prop_map(|(o, l)| format!("d.x {o} {l}")),
        equals().prop_map(|o| format!("d.x {o} true")),
        equals().prop_map(|o| format!("d.t[0] {o} 'a'")),
        prop::sample::select(vec!["string", "number", "boolean", "undefined"])
            .prop_map(|t| format!("typeof d.x === '{t}'")),
        prop::sample::select(vec!["d.x", "d.n", "d.s", "d.missing", "true", "false"]).prop_map(str::to_owned),
        text().prop_map(|t| format!("d.s.startsWith({t})")),
        text().prop_map(|t| format!("d.s.includes({t})")),
        text().prop_map(|t| format!("d.t.includes({t})")),
        text().prop_map(|t| format!("d.s.toUpperCase() === {t}")),
        (prop::sample::select(vec!["+ 1", "- 1", "* 2", "% 2", "/ 2"]), order(), number())
            .prop_map(|(a, o, n)| format!("d.n {a} {o} {n}")),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|p| format!("!({p})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) || ({b})")),
        ]
    })
}

/// The function's results for the documents, computed in JavaScript.
fn run_in_javascript(function: &str, documents: &[Value]) -> Vec<Value> {
    let source = format!("function (docs) {{ let f = {function}; __.response.setBody(docs.map(d => f(d))) }}");
    let documents = json::to_string(&Value::Array(documents.to_vec()));
    let outcome = TestHost::default().run(&mut runtime(), &source, procedure(&[&documents]));
    assert_eq!(outcome.error, None, "{function}");
    parse(&outcome.response_body.unwrap()).as_array().unwrap().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_translated_predicate_and_the_function_agree(text in predicate(), documents in prop::collection::vec(document(), 1..12)) {
        let function = format!("d => ({text})");
        let lambda = Lambda::parse(&function).unwrap();
        let sql = condition(&lambda.body, &LambdaScope::of(&lambda.parameters, [Sql::root("r")]).unwrap());
        let sql = sql.unwrap_or_else(|| panic!("no SQL for {text}"));
        let here = run_in_javascript(&function, &documents);
        for (document, here) in documents.iter().zip(here) {
            let there = eval(&sql, document) == Some(Value::Bool(true));
            prop_assert_eq!(there, is_truthy(&here), "{} of {} as {}", text, json::to_string(document), sql);
        }
    }

    #[test]
    fn a_translated_projection_and_the_function_agree(text in predicate(), documents in prop::collection::vec(document(), 1..12)) {
        let function = format!("d => ({{ a: d.x, b: !({text}), c: {{ 'd e': d.t, f: 'g', h: -1 }} }})");
        let lambda = Lambda::parse(&function).unwrap();
        let sql = projection(&lambda.body, &LambdaScope::of(&lambda.parameters, [Sql::root("r")]).unwrap()).unwrap();
        for (document, here) in documents.iter().zip(run_in_javascript(&function, &documents)) {
            let there = eval(&sql, document).unwrap();
            prop_assert_eq!(doubles(&there), doubles(&here));
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,60}", verb in "filter|map|sortBy|unwind|pluck|x") {
        translate_prefix(&[vec![Some(verb), Some(text.clone()), Some(text)], vec![], vec![None]]);
    }
}

/// Numbers as doubles: `7` from JavaScript is an integer, from arithmetic a float.
fn doubles(value: &Value) -> Value {
    match value {
        Value::Number(n) => Value::Number(Number::Float(n.as_f64())),
        Value::Array(items) => Value::Array(items.iter().map(doubles).collect()),
        Value::Object(object) => {
            let mut made = Object::new();
            object.iter().for_each(|(name, value)| made.set(name, doubles(value)));
            Value::Object(made)
        }
        other => other.clone(),
    }
}
