//! A type name means one thing in the workspace: no two product files define the same one.
//!
//! Tests may reuse names: several test modules can each have a fixture called `World`.

use std::collections::BTreeMap;

use super::modules::is_module;
use super::rust;
use super::tree::SourceTree;

/// Names that every crate may define for itself, each with its reason.
const EXCEPTIONS: [(&str, &str); 1] = [("Result", "an alias that fixes the error type of a crate")];

const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

pub fn check(tree: &SourceTree) -> Vec<String> {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (path, text) in tree.files().filter(|(path, _)| is_module(path)) {
        for name in defined(text) {
            files.entry(name).or_default().push(path);
        }
    }
    files.retain(|name, paths| {
        paths.dedup();
        paths.len() > 1 && !EXCEPTIONS.iter().any(|(excepted, _)| excepted == name)
    });
    files.iter().map(|(name, paths)| format!("`{name}` is defined in {}", paths.join(", "))).collect()
}

/// The types that a file defines. Associated types are indented deeper than the item they belong to and are left out.
fn defined(text: &str) -> Vec<String> {
    let code = rust::lex(text).code;
    let mut names = Vec::new();
    let mut inside_impl = false;
    for line in code.lines() {
        let item = line.trim_start();
        if !line.starts_with([' ', '}']) && !item.is_empty() {
            inside_impl = words(item).any(|word| word == "impl" || word == "trait");
        }
        let mut words = words(item).skip_while(|word| ["pub", "crate", "super", "in", "unsafe"].contains(word));
        let (keyword, name) = (words.next(), words.next());
        let is_associated = keyword == Some("type") && inside_impl && line.starts_with(' ');
        if keyword.is_some_and(|word| KEYWORDS.contains(&word)) && !is_associated {
            names.extend(name.filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned));
        }
    }
    names
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
