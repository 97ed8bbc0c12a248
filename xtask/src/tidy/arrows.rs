//! Allowed dependencies between crates. A crate may depend on those to its right and on no other crate of the
//! workspace.
//!
//! Guarantees: a dependency that is not in this table is a finding, normal or dev-dependency: a dev-dependency on
//! the layer above is how layers begin to depend on each other.

use super::tree::SourceTree;

const ARROWS: [(&str, &[&str]); 13] = [
    ("pleiad", &["wire", "engine", "storage", "model"]),
    ("wire", &["engine", "model"]),
    ("engine", &["sql", "script", "partition", "spatial", "text", "vector", "storage", "model"]),
    ("partition", &["spatial", "text", "vector", "storage", "model"]),
    ("sql", &["spatial", "text", "vector", "model"]),
    ("script", &["model"]),
    ("spatial", &["model"]),
    ("text", &["model"]),
    ("vector", &["model"]),
    ("storage", &["model"]),
    ("model", &[]),
    ("benches", &["wire", "engine", "partition", "storage", "model"]),
    ("xtask", &[]),
];

pub fn check(tree: &SourceTree) -> Vec<String> {
    tree.files().filter_map(|(path, text)| Some((path, package(path)?, text))).flat_map(check_crate).collect()
}

/// `crates/model/Cargo.toml`, `benches/Cargo.toml` and `xtask/Cargo.toml` belong to `model`, `benches` and `xtask`.
pub fn package(path: &str) -> Option<&str> {
    let dir = path.strip_suffix("/Cargo.toml")?;
    let name = dir.strip_prefix("crates/").unwrap_or(dir);
    (["benches", "xtask"].contains(&dir) || dir.starts_with("crates/") && !name.contains('/')).then_some(name)
}

fn check_crate((path, package, manifest): (&str, &str, &str)) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package) else {
        return vec![format!("{path}: `{package}` has no row in the table of xtask/src/tidy/arrows.rs")];
    };
    let workspace_crates =
        dependencies(manifest).into_iter().filter_map(|name| workspace_name(&name).map(str::to_owned));
    let wrong = workspace_crates.filter(|name| !allowed.contains(&name.as_str()));
    wrong.map(|name| format!("{path}: {package} imports {name}; it may import {}", listed(allowed))).collect()
}

/// `pleiad-model` is the workspace's `model`; None for a crate from outside the workspace.
fn workspace_name(dependency: &str) -> Option<&str> {
    if dependency == "pleiad" { Some(dependency) } else { dependency.strip_prefix("pleiad-") }
}

fn listed(allowed: &[&str]) -> String {
    if allowed.is_empty() { "no crate of the workspace".to_owned() } else { format!("only {}", allowed.join(", ")) }
}

/// The names of the packages that a manifest depends on, in any of its dependency tables.
///
///   [dependencies]            [dependencies.pleiad-model]      [target.'cfg(unix)'.dev-dependencies]
///   pleiad-model.workspace = true      m = { package = "pleiad-model" }      pleiad-model = { path = "…" }
pub fn dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            found.extend(section.rsplit_once("dependencies.").map(|(_, name)| unquoted(name)));
        } else if let Some((key, value)) = line.split_once('=')
            && section.contains("dependencies")
        {
            found.extend(package_name(line));
            if section.ends_with("dependencies") && !value.contains("package") {
                found.push(unquoted(key.split('.').next().unwrap_or(key)));
            }
        }
    }
    found
}

/// The real name when a line has `package = "…"`.
fn package_name(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("package")?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    Some(value.split('"').nth(1)?.to_owned())
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}
