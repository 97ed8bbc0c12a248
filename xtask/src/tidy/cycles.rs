//! The module graph of each crate: no cycles, and modules are declared after what they use.
//!
//! A crate's root declares its modules in reading order: every module comes after those it builds on. The graph has the
//! top-level modules as nodes; a file inside a module counts as the module. Test files, and test modules at the end of a
//! file, do not count.
//!
//! ```text
//! lib.rs   mod record; mod index; mod write;      write → index → record      in order
//!          mod write; mod record;                 write → record              write is declared too early
//!          a → b → a                              a cycle: listed in CYCLES, or a finding
//! ```
//!
//! Invariant: CYCLES only shrinks. A listed module that is in no cycle any more is a finding, too.

use std::collections::{BTreeMap, BTreeSet};

use super::rust;
use super::tree::{SourceTree, is_test};

/// Modules that are in a cycle today, by crate. Remove names; do not add any.
const CYCLES: [(&str, &[&str]); 5] = [
    ("engine", &["catalog", "feed", "jobs", "query", "throughput"]),
    (
        "partition",
        &[
            "change_feed",
            "exact_knn",
            "feed",
            "index",
            "key_statistics",
            "missing_values",
            "partition",
            "row_changes",
            "schema",
            "shard_state",
            "snapshot",
            "ttl",
            "upgrade",
            "vector_index",
        ],
    ),
    ("pleiad", &["certificate", "config", "remote", "seed"]),
    ("script", &["runtime", "session"]),
    ("sql", &["block", "check", "compile", "document", "expr", "run"]),
];

pub fn check(tree: &SourceTree) -> Vec<String> {
    let roots = tree.files().filter_map(|(path, _)| Some((path, crate_of(path)?)));
    roots.flat_map(|(root, name)| of_crate(&ModuleGraph::of(tree, root), name, root)).collect()
}

/// `crates/sql/src/lib.rs` is the root of `sql`.
fn crate_of(path: &str) -> Option<&str> {
    let dir = path.strip_suffix("/src/lib.rs").or_else(|| path.strip_suffix("/src/main.rs"))?;
    let name = dir.strip_prefix("crates/").unwrap_or(dir);
    (!name.contains('/') && name != "fuzz").then_some(name)
}

fn of_crate(graph: &ModuleGraph, name: &str, root: &str) -> Vec<String> {
    let listed = CYCLES.iter().find(|(listed, _)| *listed == name).map_or(&[] as &[&str], |(_, modules)| modules);
    let cyclic: BTreeSet<&str> = graph.modules.iter().map(String::as_str).filter(|m| graph.in_cycle(m)).collect();
    let new = cyclic.iter().filter(|module| !listed.contains(module));
    let new = new.map(|module| format!("{root}: `{module}` is in a cycle: {}", graph.cycle(module).join(" → ")));
    let stale = listed.iter().filter(|module| !cyclic.contains(*module));
    let stale = stale.map(|module| format!("{root}: `{module}` is in no cycle any more: take it out of CYCLES"));
    let early = graph.too_early().into_iter();
    let early = early.map(|(user, used)| format!("{root}: `{user}` uses `{used}` and is declared before it"));
    new.chain(stale).chain(early).collect()
}

/// The top-level modules of a crate, in the order of their declarations, and which uses which.
struct ModuleGraph {
    modules: Vec<String>,
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl ModuleGraph {
    fn of(tree: &SourceTree, root: &str) -> ModuleGraph {
        let code = rust::lex(tree.text(root).unwrap_or_default()).code;
        let modules = declared(&code);
        let exports = re_exports(&code, &modules);
        let dir = root.rsplit_once('/').map_or("", |(dir, _)| dir);
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs") && !is_test(path)) {
            let Some(inner) = path.strip_prefix(dir).and_then(|rest| rest.strip_prefix('/')) else { continue };
            let module = inner.trim_end_matches(".rs").split('/').next().unwrap_or_default();
            if path == root || !modules.iter().any(|declared| declared == module) {
                continue;
            }
            let depth = inner.split('/').count();
            let names = root_names(product_part(&rust::lex(text).code), depth);
            let used = names.into_iter().filter_map(|name| match modules.contains(&name) {
                true => Some(name),
                false => exports.get(&name).cloned(),
            });
            uses.entry(module.to_owned()).or_default().extend(used.filter(|used| used != module));
        }
        ModuleGraph { modules, uses }
    }

    /// A shortest cycle through the module, found by breadth-first search; empty if there is none.
    fn cycle(&self, module: &str) -> Vec<&str> {
        let mut paths: Vec<Vec<&str>> = self.uses_of(module).map(|used| vec![used]).collect();
        let mut visited: BTreeSet<&str> = self.uses_of(module).collect();
        while !paths.is_empty() {
            if let Some(path) = paths.iter().find(|path| path.last() == Some(&module)) {
                return path.clone();
            }
            let longer = paths.iter().flat_map(|path| {
                let last = path.last().copied().unwrap_or_default();
                self.uses_of(last).map(move |used| path.iter().copied().chain([used]).collect::<Vec<_>>())
            });
            let longer: Vec<_> = longer.filter(|path| path.last().is_some_and(|last| visited.insert(last))).collect();
            paths = longer;
        }
        Vec::new()
    }

    fn uses_of(&self, module: &str) -> impl Iterator<Item = &str> {
        self.uses.get(module).into_iter().flatten().map(String::as_str)
    }

    fn in_cycle(&self, module: &str) -> bool {
        !self.cycle(module).is_empty()
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let (mut stack, mut visited) = (vec![from], BTreeSet::new());
        while let Some(module) = stack.pop() {
            stack.extend(self.uses_of(module).filter(|used| visited.insert(*used)));
        }
        visited.contains(to)
    }

    /// Pairs of a module and a later one that it uses, except pairs inside one cycle.
    fn too_early(&self) -> Vec<(&str, &str)> {
        let position = |module: &str| self.modules.iter().position(|declared| declared == module);
        let pairs =
            self.uses.iter().flat_map(|(user, used)| used.iter().map(move |used| (user.as_str(), used.as_str())));
        pairs.filter(|(user, used)| position(user) < position(used) && !self.reaches(used, user)).collect()
    }
}

/// The modules that a crate's root declares (`mod name;`).
fn declared(code: &str) -> Vec<String> {
    let lines = code.lines().filter_map(|line| line.trim().strip_suffix(';'));
    lines.filter_map(|line| line.rsplit_once("mod ").map(|(_, name)| name.trim().to_owned())).collect()
}

/// Names that the root re-exports (`pub use record::Record;`), and the module of each.
fn re_exports(code: &str, modules: &[String]) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in code.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let Some((module, names)) = statement.split_once("::") else { continue };
        if modules.iter().any(|declared| declared == module.trim()) {
            exports.extend(identifiers(names).map(|name| (name.to_owned(), module.trim().to_owned())));
        }
    }
    exports
}

/// The code before `#[cfg(test)] mod tests {`.
fn product_part(code: &str) -> &str {
    let tests = code.match_indices("#[cfg(test)]").find(|(at, _)| {
        let after = code[at + "#[cfg(test)]".len()..].trim_start();
        after.starts_with("mod ") && after.find('{') < after.find(';')
    });
    tests.map_or(code, |(at, _)| &code[..at])
}

/// The first names of all paths that begin at the crate's root: `crate::x` and, in a module of this depth,
/// `super::…::x`.
fn root_names(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for prefix in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            names.extend(first_names(&code[at + prefix.len()..]));
        }
    }
    names
}

/// `a::b` gives `a`; `{a, b::{c, d}}` gives `a` and `b`.
fn first_names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return identifiers(rest).next().filter(|name| rest.starts_with(name)).map(str::to_owned).into_iter().collect();
    };
    let (mut depth, mut names, mut at_start) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && (c.is_alphabetic() || c == '_') => {
                names.extend(identifiers(&group[at..]).next().map(str::to_owned));
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
