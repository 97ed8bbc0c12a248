//! Random indexing policies over the names of the documents.

use pleiad_model::{Object, Value};

use super::Choices;
use super::filters::PAIRS;

const PATHS: &[&str] = &[
    "/a/?",
    "/n/?",
    "/s/?",
    "/s/?",
    "/a/?",
    "/b/?",
    "/n/?",
    "/s/?",
    "/t/[]/?",
    "/t/*",
    "/o/*",
    "/o/a/?",
    "/o/[]/a/?",
    "/o/[]/*",
    "/a/*",
    "/\"é x\"/?",
    "/\"\"/?",
    "/a/b/?",
    "/loc/*",
    "/pk/?",
    "/a/[]/?",
];

const COMPOSITE: &[&str] = &["/a", "/b", "/n", "/s", "/o/a", "/pk", "/id", "/_ts"];

/// An `indexingPolicy`, as a client sends it.
pub fn policy(choices: &mut Choices<'_>) -> Value {
    let mut policy = match choices.below(8) {
        0 | 1 => Object::new(),
        2 => some_paths(choices, &["/*"], "includedPaths", "excludedPaths"),
        3 => some_paths(choices, &["/*"], "excludedPaths", "includedPaths"),
        4..=6 => explicit_paths(choices),
        _ => return Object::new().with("indexingMode", "none").with("automatic", false).into(),
    };
    if choices.once_in(2) {
        let composites: Vec<Value> = distinct(choices.list(1, 4, composite));
        policy.set("compositeIndexes", composites);
    }
    if choices.once_in(2) {
        policy.set("fullTextIndexes", list(&["/s"]));
    }
    if choices.once_in(2) {
        policy.set("spatialIndexes", vec![spatial(choices)]);
    }
    policy.into()
}

/// The root on one side, a few paths on the other.
fn some_paths(choices: &mut Choices<'_>, root: &[&str], root_side: &str, other_side: &str) -> Object {
    let mut paths = choices.list(1, 5, |choices| choices.pick(PATHS));
    paths.sort_unstable();
    paths.dedup();
    Object::new().with(root_side, list(root)).with(other_side, list(&paths))
}

/// Paths in addition to the root: with an explicit path, the index also has entries for items without a value at it.
fn explicit_paths(choices: &mut Choices<'_>) -> Object {
    let mut paths = choices.list(1, 5, |choices| choices.pick(PATHS));
    paths.push("/*");
    paths.sort_unstable();
    paths.dedup();
    Object::new().with("includedPaths", list(&paths))
}

fn list(paths: &[&str]) -> Vec<Value> {
    paths.iter().map(|path| Object::new().with("path", *path).into()).collect()
}

fn composite(choices: &mut Choices<'_>) -> Value {
    let mut paths = choices.list(2, 3, |choices| choices.pick(COMPOSITE));
    if choices.once_in(2) {
        // Paths that filters combine.
        let (first, second) = PAIRS[choices.below(PAIRS.len())];
        paths = [vec![first.0, second.0], paths].concat();
        paths.truncate(3);
    }
    let mut seen = Vec::new();
    paths.retain(|path| {
        !seen.contains(path) && {
            seen.push(*path);
            true
        }
    });
    if paths.len() < 2 {
        paths = vec!["/a", "/b"];
    }
    let directed = |path: &str| {
        let order = if choices.once_in(2) { "descending" } else { "ascending" };
        Value::from(Object::new().with("path", path).with("order", order))
    };
    Value::Array(paths.into_iter().map(directed).collect())
}

fn distinct(mut all: Vec<Value>) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    all.retain(|value| {
        !seen.contains(value) && {
            seen.push(value.clone());
            true
        }
    });
    all
}

fn spatial(choices: &mut Choices<'_>) -> Value {
    let mut types = vec![Value::from("Point")];
    if !choices.once_in(3) {
        types.extend(["Polygon", "LineString", "MultiPolygon"].map(Value::from));
    }
    Object::new().with("path", "/loc/*").with("types", types).into()
}
