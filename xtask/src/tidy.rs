//! `cargo xtask tidy`: static checks of the repository's own rules, so that a reviewer need not look for them.
//!
//! Guarantees: every check but the one of commits is a pure function from the source tree (and the binary's list of
//! settings) to findings. A finding names the file and what is wrong with it. All checks run, all findings are shown.

mod tree; // the files that git tracks, in memory
mod rust; // a lexer that separates code and comments

mod arrows; // dependencies between crates
mod manifests; // versions and use of dependencies
mod commits; // subjects of commits
mod golden; // golden pages that nothing runs
mod hosts; // package registries named in files
mod language; // pronouns in comments and docs
mod modules; // headers and lengths of modules
mod cycles; // module graphs: cycles and order
mod paths; // paths and links in the docs
mod seams; // words that a part of the source must not contain
mod requirements; // S-numbers and the tests that show them
mod settings; // documented settings
mod type_names; // one meaning per type name

use crate::rocksdb;
use crate::shell::{self, Result};
use tree::SourceTree;

pub fn run() -> Result {
    let tree = SourceTree::load(&shell::root())?;
    let settings = setting_names()?;
    let checks: [(&str, Vec<String>); 14] = [
        ("arrows between crates", arrows::check(&tree)),
        ("dependencies", manifests::check(&tree)),
        ("seams between protocols and engine", seams::check(&tree)),
        ("module headers and lengths", modules::check(&tree)),
        ("module cycles and order", cycles::check(&tree)),
        ("type names", type_names::check(&tree)),
        ("parts that the seams name", seams::check_parts(&tree)),
        ("language", language::check(&tree)),
        ("paths in the docs", paths::check(&tree)),
        ("requirement numbers", requirements::check(&tree)),
        ("settings", settings::check(&tree, &settings)),
        ("golden pages", golden::check(&tree)),
        ("registry hosts", hosts::check(&tree)),
        ("commit subjects", commits::check()?),
    ];
    report(&checks)
}

/// Used by the golden step: `ran` holds the path of each page that the runner ran, one per line.
pub fn golden_pages_all_ran(ran: &str) -> Result {
    let tree = SourceTree::load(&shell::root())?;
    report(&[("golden pages that were run", golden::not_run(&tree, ran))])
}

fn setting_names() -> Result<Vec<String>> {
    shell::run(&mut rocksdb::cargo(["build", "--release", "--package", "pleiad"]))?;
    let listed = shell::output(&mut shell::command(shell::binary(), ["config", "--list"]))?;
    Ok(listed.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn report(checks: &[(&str, Vec<String>)]) -> Result {
    for (what, findings) in checks {
        let mark = if findings.is_empty() { shell::green("ok") } else { shell::red("FAILED") };
        println!("tidy: {what:<28} {mark}");
        for finding in findings {
            println!("  {finding}");
        }
    }
    match checks.iter().map(|(_, findings)| findings.len()).sum() {
        0 => Ok(()),
        1 => Err("tidy found 1 thing, named above".to_owned()),
        count => Err(format!("tidy found {count} things, named above")),
    }
}

#[cfg(test)]
mod tests;
