//! Every module has a header (`//!`) and a limited length.
//!
//! Tests are exempt from both: the header is in the module they test, and a list of tests may be long.

use super::tree::{SourceTree, is_test};

/// About twice the intended length of a file: a longer one should be split.
const LINES_MAX: usize = 700;

pub fn check(tree: &SourceTree) -> Vec<String> {
    tree.files().filter(|(path, _)| is_module(path)).flat_map(|(path, text)| check_module(path, text)).collect()
}

pub fn is_module(path: &str) -> bool {
    let in_workspace = path.starts_with("crates/") && path.contains("/src/")
        || ["benches/src/", "xtask/src/"].iter().any(|top| path.starts_with(top));
    in_workspace && path.ends_with(".rs") && !is_test(path)
}

fn check_module(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.trim_start().starts_with("//!") {
        findings.push(format!("{path}: has no `//!` header"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(format!("{path}: {lines} lines, more than {LINES_MAX}; split it"));
    }
    findings
}
