//! Dependencies in the manifests: one version of each, named once, and none that is not used.
//!
//! `[workspace.dependencies]` in the root manifest has the versions; a crate names a dependency with `workspace = true`
//! and adds its features.
//!
//! ```text
//! Cargo.toml               [workspace.dependencies]  bytes = "1.12.1"          ← used by no crate: a finding
//! crates/wire/Cargo.toml   [dependencies]            bytes.workspace = true    ← not named in its sources: a finding
//!                                                    bytes = "1"               ← a version of its own: a finding
//! ```

use std::collections::BTreeSet;

use super::arrows::{dependencies, package};
use super::rust;
use super::tree::SourceTree;

const ROOT: &str = "Cargo.toml";

pub fn check(tree: &SourceTree) -> Vec<String> {
    let members: Vec<(&str, &str)> = tree.files().filter(|(path, _)| package(path).is_some()).collect();
    let used: BTreeSet<String> = members.iter().flat_map(|(_, manifest)| dependencies(manifest)).collect();
    let declared = declared(tree.text(ROOT).unwrap_or_default());
    let unused = declared.into_iter().filter(|name| !used.contains(name));
    let unused = unused.map(|name| format!("{ROOT}: no crate uses `{name}`"));
    unused.chain(members.iter().flat_map(|(path, manifest)| of_member(tree, path, manifest))).collect()
}

/// The names in `[workspace.dependencies]`.
fn declared(manifest: &str) -> Vec<String> {
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name.trim()));
    names.filter(|name| !name.starts_with('#')).map(str::to_owned).collect()
}

fn of_member(tree: &SourceTree, path: &str, manifest: &str) -> Vec<String> {
    let dir = path.trim_end_matches("Cargo.toml");
    let sources = tree.files().filter(|(file, _)| file.starts_with(dir) && file.ends_with(".rs"));
    let code: String = sources.map(|(_, text)| rust::lex(text).code).collect();
    let mut findings: Vec<String> = dependencies(manifest)
        .into_iter()
        .filter(|name| !names(&code, &name.replace('-', "_")))
        .map(|name| format!("{path}: `{name}` is not used in {dir}"))
        .collect();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.contains("dependencies") && line.contains('=') && !line.contains("workspace = true") {
            findings.push(format!("{path}: `{line}` has a version of its own; put it into [workspace.dependencies]"));
        }
    }
    findings
}

/// Whether the code has this identifier.
fn names(code: &str, identifier: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == identifier)
}
