//! Every module opens with its promise (`//!`), and a file is one sitting.
//!
//! Tests are free of both: their promise stands in the module next door, and a list of proofs may be long.

use super::tree::{SourceTree, is_test};

/// Twice what we like a file to be: past this it is two files.
const LINES_MAX: usize = 700;

pub fn check(tree: &SourceTree) -> Vec<String> {
    tree.files().filter(|(path, _)| is_module(path)).flat_map(|(path, text)| of_module(path, text)).collect()
}

fn is_module(path: &str) -> bool {
    let ours = path.starts_with("crates/") && path.contains("/src/")
        || ["benches/src/", "xtask/src/"].iter().any(|top| path.starts_with(top));
    ours && path.ends_with(".rs") && !is_test(path)
}

fn of_module(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.trim_start().starts_with("//!") {
        findings.push(format!("{path}: opens without a `//!` header"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(format!("{path}: {lines} lines, more than {LINES_MAX}; what can move out?"));
    }
    findings
}
