//! No dead golden pages.
//!
//! Promise: a page in tests/golden asks at least one question and is run. Statically we see the first; the
//! second is known after the golden step, from the list that the runner writes.

use std::collections::BTreeSet;

use super::tree::SourceTree;

const DIR: &str = "tests/golden/";

/// Between a question and its answer.
const ANSWER: &str = "----";

/// Opens a table of expressions with their values beside them.
const TABLE: &str = "values";

pub fn check(tree: &SourceTree) -> Vec<String> {
    let asks = |line: &str| line.trim_end() == ANSWER || line.split_whitespace().next() == Some(TABLE);
    let silent = pages(tree).filter(|(_, text)| !text.lines().any(asks));
    silent.map(|(path, _)| format!("{path} has neither `{ANSWER}` nor `{TABLE}`: it asks nothing")).collect()
}

/// The pages that are in the tree and not in the runner's list.
pub fn dead(tree: &SourceTree, ran: &str) -> Vec<String> {
    let ran: BTreeSet<&str> = ran.lines().map(within).collect();
    let dead = pages(tree).filter(|(path, _)| !ran.contains(within(path)));
    dead.map(|(path, _)| format!("{path} was not run by the golden tests")).collect()
}

fn pages(tree: &SourceTree) -> impl Iterator<Item = (&str, &str)> {
    tree.files().filter(|(path, _)| path.starts_with(DIR) && !path.ends_with(".md") && !path.ends_with(".rs"))
}

/// The runner may write paths from wherever it stands.
fn within(path: &str) -> &str {
    let path = path.trim();
    path.rsplit_once(DIR).map_or(path, |(_, rest)| rest)
}
