//! Finds the workspace's integration tests.
//!
//! Cargo can include test targets by name but not exclude them, so this module lists the ones to include. It finds them
//! like cargo: by file (`tests/x.rs`, `tests/x/main.rs`) or by a `[[test]]` in the manifest.

use std::path::Path;

use crate::shell;

/// Test targets that are slow or broad enough for their own line in the summary.
pub const SEPARATE_STEPS: [&str; 2] = ["golden", "crash"];

pub fn integration(root: &Path) -> Vec<String> {
    let crates = shell::list(&root.join("crates"));
    let mut names: Vec<String> = crates.iter().flat_map(|package| package_targets(package)).collect();
    names.sort();
    names.dedup();
    names
}

fn package_targets(package: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap_or_default();
    let files = shell::list(&package.join("tests"));
    files.iter().filter_map(|file| by_file(file)).chain(by_manifest(&manifest)).collect()
}

fn by_file(file: &Path) -> Option<String> {
    let name = shell::name(file);
    match file.is_dir() {
        true => file.join("main.rs").exists().then_some(name),
        false => name.strip_suffix(".rs").map(str::to_owned),
    }
}

/// The `name`s of the `[[test]]` tables.
pub fn by_manifest(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_test = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_test = line == "[[test]]";
        } else if let Some(("name", value)) = line.split_once('=').map(|(key, value)| (key.trim(), value))
            && in_test
        {
            names.push(value.trim().trim_matches('"').to_owned());
        }
    }
    names
}
