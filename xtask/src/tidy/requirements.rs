//! Requirement numbers (S1 to S170) and the tests that show them.
//!
//! Guarantees: a number in a test is a requirement, and a test that docs/requirements.md names exists. Whether the test
//! shows what its name says is for its reader to judge.

use std::collections::BTreeSet;

use super::paths;
use super::tree::{SourceTree, is_test};

const NUMBERS: std::ops::RangeInclusive<u32> = 1..=170;
const PAGE: &str = "docs/requirements.md";

pub fn check(tree: &SourceTree) -> Vec<String> {
    let mut findings: Vec<String> = tree
        .files()
        .filter(|(path, _)| has_numbers(path))
        .flat_map(|(path, text)| unknown_numbers(path, text))
        .collect();
    match tree.text(PAGE) {
        Some(text) => findings.extend(missing_tests(tree, text)),
        None => findings.push(format!("{PAGE} does not exist; it lists the tests of each requirement")),
    }
    findings
}

/// Tests in any language, sources with tests in them, and the page itself; not data, where `S300` may be a name, and
/// not xtask's own tests, which contain wrong numbers.
fn has_numbers(path: &str) -> bool {
    let source = [".rs", ".py", ".mjs", ".js", ".java", ".go"].iter().any(|end| path.ends_with(end));
    path == PAGE || is_golden(path) || source && (path.starts_with("tests/") || path.starts_with("crates/"))
}

fn is_golden(path: &str) -> bool {
    path.starts_with("tests/golden/")
}

fn unknown_numbers(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // In a golden page only comments mention requirements; the rest is data. In a product source only names do.
        let upper = is_test(path) && (!is_golden(path) || line.starts_with('#')) || path == PAGE;
        let mentioned = if upper { numbers(line) } else { Vec::new() };
        for number in mentioned.into_iter().chain(numbers_in_name(line)).filter(|number| !NUMBERS.contains(number)) {
            findings.push(format!("{path}:{}: S{number} is not a requirement (S1 to S170)", index + 1));
        }
    }
    findings
}

/// The words `S12` of a line.
pub fn numbers(line: &str) -> Vec<u32> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter_map(|word| word.strip_prefix('S')?.parse().ok())
        .collect()
}

/// The numbers in the name of a test: `fn s12_ids_are_unique`, `def test_s12_s13`, `func TestS12S13Identity`.
pub fn numbers_in_name(line: &str) -> Vec<u32> {
    let name = function_name(line).unwrap_or_default();
    let snake = name.split('_').filter_map(|part| part.strip_prefix('s')?.parse().ok());
    let camel = name.split('S').skip(1).filter_map(|part| part[..digits(part)].parse().ok());
    snake.chain(camel).collect()
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (_, rest) = ["fn ", "def ", "func ", "void "].iter().find_map(|word| line.split_once(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

fn missing_tests(tree: &SourceTree, page: &str) -> Vec<String> {
    let functions: BTreeSet<&str> = functions(tree);
    let mut findings = Vec::new();
    for token in paths::code(page).into_iter().flat_map(str::split_whitespace) {
        if let Some(test) = named_test(token).filter(|test| !functions.contains(test)) {
            findings.push(format!("{PAGE} names the test `{token}`, but there is no test {test}"));
        }
    }
    findings
}

/// The function that `module::path::to::test` or `tests/interop/go/items_test.go::TestX` names. `paths` checks tokens
/// without a function.
pub fn named_test(token: &str) -> Option<&str> {
    let (path, name) = token.trim_end_matches(['.', ',', ';', ')']).rsplit_once("::")?;
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let snake = |text: &str| word(text) && !text.contains(char::is_uppercase);
    // `Kind::Moved` is a name in the code and not a test; after the path of a file every name is a test.
    let is_test = if path.contains('/') { word(name) } else { snake(name) && path.split("::").all(snake) };
    is_test.then_some(name)
}

fn functions(tree: &SourceTree) -> BTreeSet<&str> {
    let source = |path: &str| [".rs", ".py", ".go", ".java"].iter().any(|end| path.ends_with(end));
    let sources = tree.files().filter(|(path, _)| source(path));
    sources.flat_map(|(_, text)| text.lines().filter_map(function_name)).collect()
}
