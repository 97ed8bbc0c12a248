//! No file names a package registry, so that every build uses the registry or mirror that is configured.
//!
//! Guarantees: registry hosts occur in no tracked file except Cargo.lock, where cargo writes its own identifier; npm
//! lock files pin by version and hash and contain no `resolved` addresses.

use super::tree::SourceTree;

/// Host names, in two halves so that the check does not find this table.
const HOSTS: [(&str, &str); 11] = [
    ("crates", "io"),
    ("registry.npmjs", "org"),
    ("registry.yarnpkg", "com"),
    ("pypi", "org"),
    ("files.pythonhosted", "org"),
    ("repo.maven.apache", "org"),
    ("repo1.maven", "org"),
    ("proxy.golang", "org"),
    ("sum.golang", "org"),
    ("rubygems", "org"),
    ("api.nuget", "org"),
];

pub fn check(tree: &SourceTree) -> Vec<String> {
    tree.files().flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !path.ends_with("Cargo.lock") {
        let hosts = HOSTS.iter().map(|(name, top)| format!("{name}.{top}"));
        findings
            .extend(hosts.filter(|host| mentions(text, host)).map(|host| format!("{path} names the registry {host}")));
    }
    if path.ends_with("package-lock.json") && text.contains("\"resolved\"") {
        findings.push(format!("{path} has `resolved` addresses; npm config set omit-lockfile-registry-resolved true"));
    }
    findings
}

/// Returns true if the host occurs, alone or below a longer name such as `index.` + host, but not inside another word.
fn mentions(text: &str, host: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
    text.match_indices(host)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + host.len()..].chars().next()))
}
