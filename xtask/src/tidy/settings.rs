//! Every setting is documented, and every documented setting exists.
//!
//! Guarantees: docs/configuration.md and the binary's list (`pleiad config --list`) agree. The page's settings are the
//! rows of tables whose first heading is `Setting`.

use super::tree::SourceTree;

const PAGE: &str = "docs/configuration.md";

pub fn check(tree: &SourceTree, names: &[String]) -> Vec<String> {
    let Some(page) = tree.text(PAGE) else {
        return vec![format!("{PAGE} does not exist; it documents every setting")];
    };
    let undocumented = names.iter().filter(|name| !mentions(page, name));
    let unknown = documented(page).into_iter().filter(|name| !names.iter().any(|known| known == name));
    undocumented
        .map(|name| format!("{PAGE} does not mention the setting `{name}`"))
        .chain(unknown.map(|name| format!("{PAGE} documents `{name}`, which the binary does not have")))
        .collect()
}

/// Returns true if the name occurs as a whole word, not as part of a longer one.
fn mentions(page: &str, name: &str) -> bool {
    page.split(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).any(|word| word.trim_end_matches('.') == name)
}

fn documented(page: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut in_settings = false;
    for line in page.lines().map(str::trim) {
        match line.strip_prefix('|').and_then(|row| row.split('|').next()).map(str::trim) {
            None => in_settings = false,
            Some(heading) if heading.eq_ignore_ascii_case("setting") => in_settings = true,
            Some(cell) if in_settings => names.extend(cell.split('`').nth(1)),
            Some(_) => {}
        }
    }
    names
}
