//! Names in the docs exist: paths in backticks or code blocks, and relative links.
//!
//! Guarantees: the pages in the root directory (except CHANGELOG.md) and in docs/ (except docs/decisions, which
//! describes the past) never refer to a file that does not exist.

use super::tree::SourceTree;

/// A token that starts with one of these is a path.
const TOP_DIRS: [&str; 9] = ["crates/", "tests/", "docs/", "xtask/", "web/", "fuzz/", "benches/", ".ci/", ".cargo/"];

const OVERVIEW: &str = "ARCHITECTURE.md";

pub fn check(tree: &SourceTree) -> Vec<String> {
    let mut findings = Vec::new();
    if tree.text(OVERVIEW).is_none() {
        findings.push(format!("{OVERVIEW} does not exist; it is the overview that a new reader starts with"));
    }
    for (path, text) in tree.files().filter(|(path, _)| is_checked(path)) {
        findings.extend(check_page(tree, path, text));
    }
    findings
}

fn is_checked(path: &str) -> bool {
    let page = path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"));
    page && path != "CHANGELOG.md" && !path.starts_with("docs/decisions/")
}

fn check_page(tree: &SourceTree, page: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for path in named_paths(text).into_iter().filter(|path| !tree.has(path)) {
        findings.push(format!("{page} names {path}, which does not exist{}", hint(tree, &path)));
    }
    for link in links(text).into_iter().filter(|link| !tree.has(&resolve(page, link))) {
        findings.push(format!("{page} links to {link}, which does not exist"));
    }
    findings.sort();
    findings.dedup();
    findings
}

/// The paths that a page names, with `{a,b}` expanded and everything from a wildcard on removed.
pub fn named_paths(text: &str) -> Vec<String> {
    code(text)
        .iter()
        .flat_map(|span| span.split_whitespace())
        .map(|token| token.trim_start_matches(['(', '"', '\'']).trim_start_matches("./"))
        .filter(|token| TOP_DIRS.iter().any(|top| token.starts_with(top)))
        .flat_map(expand)
        .map(|path| trim_path(&path).to_owned())
        .collect()
}

/// The code of a page: the contents of backticks, and the lines of fenced blocks.
pub fn code(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            spans.push(line);
        } else {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// `a/{b,c}/d` is `a/b/d` and `a/c/d`; an unclosed brace is removed.
fn expand(token: &str) -> Vec<String> {
    let Some((before, rest)) = token.split_once('{') else {
        return vec![token.to_owned()];
    };
    let Some((choices, after)) = rest.split_once('}') else {
        return vec![before.to_owned()];
    };
    choices.split(',').flat_map(|choice| expand(&format!("{before}{choice}{after}"))).collect()
}

/// Removes what may surround a path: punctuation, `::test_name`, `:12`, `#anchor`, wildcards.
fn trim_path(path: &str) -> &str {
    let wild = path.find(['*', '…', '<', '$']);
    let path = wild.map_or(path, |at| &path[..path[..at].rfind('/').map_or(0, |slash| slash + 1)]);
    let end = path.find([':', '#', ',', ';', ')', '"', '\'', '|']).unwrap_or(path.len());
    path[..end].trim_end_matches(['.', '/'])
}

/// The relative targets of `[text](target)`, without anchors.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let local = targets.filter(|target| !target.contains(':') && !target.contains(char::is_whitespace));
    local.map(|target| target.split('#').next().unwrap_or(target)).filter(|target| !target.is_empty()).collect()
}

/// Resolves a link relative to its page.
fn resolve(page: &str, link: &str) -> String {
    let mut at: Vec<&str> = page.split('/').collect();
    at.pop();
    for step in link.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(at.pop()),
            name => at.push(name),
        }
    }
    at.join("/")
}

/// ` (route.rs?)` if a file in the same directory has a similar name.
fn hint(tree: &SourceTree, path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let near = tree.children(dir).into_iter().map(|other| (distance(name, other), other));
    match near.min() {
        Some((far, other)) if far <= 3 => format!(" ({other}?)"),
        _ => String::new(),
    }
}

/// The edit distance (Levenshtein), row by row.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
