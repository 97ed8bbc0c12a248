//! Random items that are nearly equal.

use pleiad_model::{Object, Value, json};

use super::Choices;

/// The top-level names of documents, and how a query writes them after an alias.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("a", ".a"),
    ("b", ".b"),
    ("n", ".n"),
    ("s", ".s"),
    ("t", ".t"),
    ("o", ".o"),
    ("", "[\"\"]"),
    ("é x", "[\"é x\"]"),
];

/// Names in nested objects.
const INNER: &[&str] = &["a", "b", "n"];

const STRINGS: &[&str] = &[
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "abc ab, the Abc",
    "B ab abc",
    "b",
    "A",
    "aB",
    "aé",
    "aę",
    "a%b",
    "a_b",
    "a-b",
    "[a]",
    "a[b",
    "a\\b",
    "\"a\"",
    "\0",
    "a\0",
    "a\0b",
    "a\u{10FFFF}",
    "\u{FFFF}",
    "1",
    "true",
    "ﬀ",
    "ß",
];

/// Lengths around those at which an index truncates strings.
const LONG: &[usize] = &[300, 300, 999, 1000, 1001, 1001];

/// The rounding of sums depends on the order of the rows; without large numbers of both signs it stays small.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "1.0",
    "-1",
    "-0.0",
    "0.5",
    "2",
    "3",
    "1e0",
    "-2.5",
    "9007199254740992",
    "9007199254740993",
    "9007199254740994",
    "18446744073709551615",
    "1e300",
    "5e-324",
    "10",
];

const SHAPES: &[&str] = &[
    r#"{"type":"Point","coordinates":[0,0]}"#,
    r#"{"type":"Point","coordinates":[0.001,0]}"#,
    r#"{"type":"Point","coordinates":[179.999,10]}"#,
    r#"{"type":"Point","coordinates":[-179.999,10]}"#,
    r#"{"type":"Point","coordinates":[10,89.9]}"#,
    r#"{"type":"Point","coordinates":[5,5]}"#,
    r#"{"type":"Point","coordinates":[200,5]}"#,
    r#"{"type":"Point"}"#,
    r#"{"type":"LineString","coordinates":[[0,0],[5,5]]}"#,
    r#"{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}"#,
    r#"{"type":"Polygon","coordinates":[[[4,4],[6,4],[6,6],[4,6],[4,4]]]}"#,
    r#"{"type":"MultiPoint","coordinates":[[0,0],[5,5]]}"#,
];

pub fn scalar(choices: &mut Choices<'_>) -> Value {
    match choices.below(8) {
        0 => Value::Null,
        1 => Value::Bool(choices.once_in(2)),
        2..=4 => number(choices),
        _ => Value::String(string(choices)),
    }
}

pub(super) fn number(choices: &mut Choices<'_>) -> Value {
    read(choices.pick(NUMBERS))
}

pub(super) fn string(choices: &mut Choices<'_>) -> String {
    if !choices.once_in(5) {
        return choices.pick(STRINGS).to_owned();
    }
    let mut text = "x".repeat(LONG[choices.below(LONG.len())]);
    text.push_str(choices.pick(&["", "a", "b", "é", "\0", "xa"]));
    text
}

/// A scalar or a small tree.
pub fn value(choices: &mut Choices<'_>, depth: usize) -> Value {
    match choices.below(6) {
        4 if depth > 0 => Value::Array(choices.list(0, 3, |choices| value(choices, depth - 1))),
        5 if depth > 0 => object(choices, depth - 1),
        _ => scalar(choices),
    }
}

fn object(choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut object = Object::new();
    for name in INNER {
        if choices.once_in(2) {
            object.set(*name, value(choices, depth));
        }
    }
    object.into()
}

/// An item's properties, without `id` and the partition key, which the caller adds.
pub fn document(choices: &mut Choices<'_>) -> Object {
    let mut document = Object::new();
    for (name, _) in NAMES {
        if !choices.once_in(3) {
            document.set(*name, property(choices, name));
        }
    }
    if choices.once_in(2) {
        document.set("loc", shape(choices));
    }
    document
}

/// Some names usually have one type, so that queries match something.
fn property(choices: &mut Choices<'_>, name: &str) -> Value {
    if choices.once_in(4) {
        return value(choices, 2);
    }
    match name {
        "n" => number(choices),
        "s" => Value::String(string(choices)),
        "t" => Value::Array(choices.list(0, 4, scalar)),
        "o" if choices.once_in(2) => Value::Array(choices.list(0, 3, |choices| object(choices, 1))),
        "o" => object(choices, 1),
        _ => scalar(choices),
    }
}

pub(super) fn shape(choices: &mut Choices<'_>) -> Value {
    read(choices.pick(SHAPES))
}

fn read(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or(Value::Null)
}
