//! `cargo xtask test`: all checks, in order, cheapest first.
//!
//! Guarantees: it stops at the first failure with the command line that runs the failed step again, and ends with a
//! table of the steps and their times. Steps do not depend on each other; each can run alone.

mod targets;

use std::time::{Duration, Instant};

use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};
use crate::{interop, rocksdb, soak, tidy};

struct TestStep {
    name: &'static str,
    about: &'static str,
    needs: &'static [SetupScope],
    run: fn() -> Result,
}

const STEPS: [TestStep; 8] = [
    TestStep { name: "fmt", about: "rustfmt finds nothing to change", needs: &[SetupScope::Lint], run: fmt },
    TestStep {
        name: "clippy",
        about: "clippy finds no problem",
        needs: &[SetupScope::Lint, SetupScope::Build],
        run: clippy,
    },
    TestStep { name: "tidy", about: "static checks", needs: &[SetupScope::Build], run: tidy::run },
    TestStep { name: "unit", about: "unit tests of all crates", needs: &[SetupScope::Build], run: unit },
    TestStep { name: "golden", about: "golden pages in several worlds", needs: &[SetupScope::Build], run: golden },
    TestStep { name: "crash", about: "crash tests: kill -9 under load", needs: &[SetupScope::Build], run: crash },
    TestStep {
        name: "interop",
        about: "official SDKs against the binary",
        needs: &[SetupScope::Build, SetupScope::Interop],
        run: interop::run_all,
    },
    TestStep {
        name: "soak",
        about: "splits and merges under load from SDKs",
        needs: &[SetupScope::Build, SetupScope::Interop],
        run: soak::run,
    },
];

pub fn run(names: &[String]) -> Result {
    let steps = selected_steps(names)?;
    let needs: Vec<SetupScope> = steps.iter().flat_map(|step| step.needs).copied().collect();
    setup::ensure(&needs)?; // fail now, not after twenty minutes
    if needs.contains(&SetupScope::Build) {
        rocksdb::ensure()?;
    }
    let mut times = Vec::new();
    let outcome = steps.iter().try_for_each(|step| run_timed(step, &mut times));
    println!("\n{}", summary(&steps, &times, outcome.is_ok()));
    outcome
}

fn selected_steps(names: &[String]) -> Result<Vec<&'static TestStep>> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    names.iter().map(|name| find_step(name)).collect()
}

fn find_step(name: &str) -> Result<&'static TestStep> {
    let known = || STEPS.map(|step| step.name).join(", ");
    STEPS.iter().find(|step| step.name == name).ok_or_else(|| format!("no step `{name}`; the steps are {}", known()))
}

fn run_timed(step: &TestStep, times: &mut Vec<Duration>) -> Result {
    println!("\n{}", shell::bold(&format!("== {}: {}", step.name, step.about)));
    let start = Instant::now();
    let outcome = (step.run)();
    times.push(start.elapsed());
    outcome.map_err(|e| format!("{} failed: {e}\nagain: {}", step.name, rerun(step)))
}

fn rerun(step: &TestStep) -> String {
    format!("cargo xtask test {}", step.name)
}

/// One line per step; `times` is shorter than `steps` if a step failed and the later ones did not run.
fn summary(steps: &[&TestStep], times: &[Duration], passed: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (mark, time) = match times.get(index) {
            None => (shell::yellow("not run"), String::new()),
            Some(time) if index + 1 == times.len() && !passed => (shell::red("FAILED "), seconds(*time)),
            Some(time) => (shell::green("ok     "), seconds(*time)),
        };
        lines.push(format!("  {:<8} {mark} {time:>9}", step.name).trim_end().to_owned());
    }
    let total = seconds(times.iter().sum());
    lines.push(format!("  {:<8} {} {total:>9}", "all", if passed { "ok     " } else { "FAILED " }));
    lines.join("\n")
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        whole => format!("{} m {:02} s", whole / 60, whole % 60),
    }
}

// ---- the steps ------------------------------------------------------------------------------------------

fn fmt() -> Result {
    let color = if shell::colours() { "auto" } else { "never" };
    let mut fmt = rocksdb::cargo(["fmt", "--all", "--check", "--", "--color", color]);
    shell::run(&mut fmt).map_err(|e| format!("{e}; `cargo fmt --all` fixes it"))
}

fn clippy() -> Result {
    let args = ["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
    shell::run(&mut rocksdb::cargo(args))
}

/// All tests of the workspace except the targets that are separate steps; `debug_assert!` is on
/// (docs/decisions/0017-three-profiles.md).
fn unit() -> Result {
    let mut tests = rocksdb::cargo(["test", "--profile", "checked", "--workspace", "--lib", "--bins"]);
    for target in targets::integration(&shell::root()) {
        if !targets::SEPARATE_STEPS.contains(&target.as_str()) {
            tests.args(["--test", &target]);
        }
    }
    shell::run(&mut tests)?;
    shell::run(&mut rocksdb::cargo(["test", "--profile", "checked", "--workspace", "--doc", "--quiet"]))
}

/// The runner appends the path of each page it runs to the file that PLEIAD_GOLDEN_RAN names; a page that is in
/// the tree and not in that file tests nothing, so it fails the step.
fn golden() -> Result {
    let ran = shell::target().join("golden-pages-ran.txt");
    let _ = std::fs::remove_file(&ran); // absent on the first run
    let mut tests = rocksdb::cargo(["test", "--release", "--workspace", "--test", "golden"]);
    shell::run(tests.env("PLEIAD_GOLDEN_RAN", &ran))?;
    let ran =
        std::fs::read_to_string(&ran).map_err(|e| format!("the golden runner did not write {}: {e}", ran.display()))?;
    tidy::golden_pages_all_ran(&ran)
}

fn crash() -> Result {
    shell::run(&mut rocksdb::cargo(["test", "--release", "--workspace", "--test", "crash"]))
}

#[cfg(test)]
mod tests;
