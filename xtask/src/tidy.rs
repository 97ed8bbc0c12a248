//! `cargo xtask tidy`: the house checks itself, so that a reviewer need not.
//!
//! Promise: every check is a pure function from the tree (and the binary's list of settings) to findings; a
//! finding names the file and says what is wrong with it. All checks run, all findings are shown.

mod tree; // the files git knows, in memory

mod arrows; // who may import whom
mod golden; // no dead pages
mod hosts;
mod modules; // headers and lengths
mod paths; // what the docs name exists
mod requirements; // S-numbers and the tests that prove them
mod settings; // every setting is documented // no registry is named

use crate::shell::{self, Result};
use tree::SourceTree;

pub fn run() -> Result {
    let tree = SourceTree::load(&shell::root())?;
    let settings = setting_names()?;
    let checks: [(&str, Vec<String>); 7] = [
        ("arrows between crates", arrows::check(&tree)),
        ("module headers and lengths", modules::check(&tree)),
        ("paths in the docs", paths::check(&tree)),
        ("requirement numbers", requirements::check(&tree)),
        ("settings", settings::check(&tree, &settings)),
        ("golden pages", golden::check(&tree)),
        ("registry hosts", hosts::check(&tree)),
    ];
    report(&checks)
}

/// Used by the golden step: `ran` holds the path of each page that the runner ran, one per line.
pub fn golden_pages_all_ran(ran: &str) -> Result {
    let tree = SourceTree::load(&shell::root())?;
    report(&[("golden pages that were run", golden::dead(&tree, ran))])
}

fn setting_names() -> Result<Vec<String>> {
    shell::run(&mut shell::cargo(["build", "--release", "--package", "pleiad"]))?;
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
