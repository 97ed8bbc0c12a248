//! Every golden page states at least one answer and is run.
//!
//! Guarantees: a page in tests/golden has at least one request with an expected answer, or a table of values. Whether
//! it ran is known after the golden step, from the list that the runner writes.

use std::collections::BTreeSet;

use super::tree::SourceTree;

const DIR: &str = "tests/golden/";

/// The line between a request and its expected answer.
const ANSWER: &str = "----";

/// Starts a table of expressions and their values.
const TABLE: &str = "values";

pub fn check(tree: &SourceTree) -> Vec<String> {
    let states_answer = |line: &str| line.trim_end() == ANSWER || line.split_whitespace().next() == Some(TABLE);
    let without_answer = pages(tree).filter(|(_, text)| !text.lines().any(states_answer));
    without_answer.map(|(path, _)| format!("{path} has neither `{ANSWER}` nor `{TABLE}`: it has no query")).collect()
}

/// The pages that are in the tree and not in the runner's list.
pub fn not_run(tree: &SourceTree, ran: &str) -> Vec<String> {
    let ran: BTreeSet<&str> = ran.lines().map(relative_path).collect();
    let missing = pages(tree).filter(|(path, _)| !ran.contains(relative_path(path)));
    missing.map(|(path, _)| format!("{path} was not run by the golden tests")).collect()
}

fn pages(tree: &SourceTree) -> impl Iterator<Item = (&str, &str)> {
    tree.files().filter(|(path, _)| path.starts_with(DIR) && !path.ends_with(".md") && !path.ends_with(".rs"))
}

/// The runner's paths may be relative to any directory.
fn relative_path(path: &str) -> &str {
    let path = path.trim();
    path.rsplit_once(DIR).map_or(path, |(_, rest)| rest)
}
