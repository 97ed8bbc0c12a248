//! `cargo xtask interop`: the official SDKs, unmodified, against the binary.
//!
//! Guarantees: each suite gets three fresh, empty servers through its environment: the main one (PLEIAD_ENDPOINT,
//! PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY, PLEIAD_CA_FILE), one with rate limiting (PLEIAD_ENDPOINT_LIMITED), and one whose
//! account the suite may restore from a snapshot (PLEIAD_ENDPOINT_RESTORED). Everything that is downloaded or compiled
//! for a suite is stored in ~/.cache/pleiad/interop; the working tree does not change. The suites are in
//! tests/interop/<name>.

mod suites;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::rocksdb;
use crate::server::{EMULATOR_KEY, TestServer};
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

use suites::{SUITES, Suite};

/// The directory of a suite, and the one that it may write to.
pub struct SuiteDirs {
    pub source: PathBuf,
    pub cache: PathBuf,
}

enum SuiteOutcome {
    Passed,
    Skipped(String),
    Failed(String),
}

pub fn run(names: &[String]) -> Result {
    let suites = selected_suites(names)?;
    let binary = build()?;
    let mut passed = 0;
    let mut failed = Vec::new();
    for suite in suites {
        match report(suite, &binary) {
            SuiteOutcome::Passed => passed += 1,
            SuiteOutcome::Skipped(_) => {}
            SuiteOutcome::Failed(_) => failed.push(suite.name),
        }
    }
    overall_result(passed, &failed, names.len())
}

pub fn run_all() -> Result {
    run(&[])
}

/// A suite that was requested by name must run, and a run without any suite is a failure.
fn overall_result(passed: usize, failed: &[&str], requested: usize) -> Result {
    if !failed.is_empty() {
        return Err(format!("failed: {0}\nagain: cargo xtask interop {0}", failed.join(" ")));
    }
    match passed {
        0 => Err("no suite could run".to_owned()),
        _ if passed < requested => Err("a suite that was requested by name was skipped".to_owned()),
        _ => Ok(()),
    }
}

fn selected_suites(names: &[String]) -> Result<Vec<&'static Suite>> {
    let known = || SUITES.map(|suite| suite.name).join(", ");
    let find = |name: &String| {
        SUITES
            .iter()
            .find(|suite| suite.name == name)
            .ok_or_else(|| format!("no suite `{name}`; there are {}", known()))
    };
    match names.is_empty() {
        true => Ok(SUITES.iter().collect()),
        false => names.iter().map(find).collect(),
    }
}

pub fn build() -> Result<PathBuf> {
    setup::ensure(&[SetupScope::Build, SetupScope::Interop])?;
    shell::run(&mut rocksdb::cargo(["build", "--release", "--package", "pleiad"]))?;
    Ok(shell::binary())
}

fn report(suite: &Suite, binary: &Path) -> SuiteOutcome {
    println!("\n{}", shell::bold(&format!("-- interop {}", suite.name)));
    let start = Instant::now();
    let outcome = run_suite(suite, binary);
    let took = start.elapsed().as_secs_f64();
    match &outcome {
        SuiteOutcome::Passed => println!("{} {} ({took:.1} s)", shell::green("passed:"), suite.name),
        SuiteOutcome::Skipped(why) => println!("{} {}: {why}", shell::yellow("skipped:"), suite.name),
        SuiteOutcome::Failed(why) => println!("{} {} ({took:.1} s): {why}", shell::red("FAILED:"), suite.name),
    }
    outcome
}

fn run_suite(suite: &Suite, binary: &Path) -> SuiteOutcome {
    let dirs = suite_dirs(suite);
    if !suites::has_file(&dirs.source, suite.tests) {
        return SuiteOutcome::Skipped(format!("tests/interop/{} has no test (no *{})", suite.name, suite.tests));
    }
    if let Some(missing) = suite.toolchain.iter().find(|program| !setup::on_path(program)) {
        return SuiteOutcome::Skipped(format!("`{missing}` is not installed on this machine"));
    }
    match prepare_and_run(suite, &dirs, binary) {
        Ok(()) => SuiteOutcome::Passed,
        Err(why) => SuiteOutcome::Failed(why),
    }
}

fn suite_dirs(suite: &Suite) -> SuiteDirs {
    SuiteDirs {
        source: shell::root().join("tests/interop").join(suite.name),
        cache: shell::cache().join("interop").join(suite.name),
    }
}

/// Installs a suite's SDK and returns its directories.
pub fn prepare_by_name(name: &str) -> Result<SuiteDirs> {
    let suites = selected_suites(&[name.to_owned()])?;
    let suite = suites.first().ok_or("no suite")?;
    let dirs = suite_dirs(suite);
    prepare(suite, &dirs)?;
    Ok(dirs)
}

fn prepare(suite: &Suite, dirs: &SuiteDirs) -> Result {
    fs::create_dir_all(&dirs.cache).map_err(|e| format!("cannot create {}: {e}", dirs.cache.display()))?;
    (suite.prepare)(dirs)
}

fn prepare_and_run(suite: &Suite, dirs: &SuiteDirs, binary: &Path) -> Result {
    prepare(suite, dirs)?;
    let tokens = token_settings();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let server = TestServer::start(Command::new(binary), &tokens, dirs.cache.join("server.log"))?;
    let limited = TestServer::start(Command::new(binary), &["--rate-limit"], dirs.cache.join("limited.log"))?;
    let restored = TestServer::start(Command::new(binary), &[], dirs.cache.join("restored.log"))?;
    let certificate = dirs.cache.join("emulator.pem");
    fs::write(&certificate, server.certificate()?)
        .map_err(|e| format!("cannot write {}: {e}", certificate.display()))?;
    let ran = (suite.tests_of)(dirs).iter_mut().try_for_each(|test| {
        set_environment(test, &server, &certificate);
        test.env("PLEIAD_ENDPOINT_LIMITED", &limited.endpoint).env("PLEIAD_ENDPOINT_RESTORED", &restored.endpoint);
        shell::run(test)
    });
    let stopped = server.stop().and(limited.stop()).and(restored.stop());
    stopped.and(ran) // a crashed server explains a failed suite; report it first
}

/// The issuer of bearer tokens that the server accepts: tests/interop/tokens/README.md.
fn token_settings() -> [String; 4] {
    let file = |name: &str| tokens().join(name).display().to_string();
    [
        format!("--token-keys={}", file("keys.json")),
        format!("--roles={}", file("roles.json")),
        "--token-issuer=https://issuer.example/".to_owned(),
        "--token-audience=https://cosmos.azure.com".to_owned(),
    ]
}

fn tokens() -> PathBuf {
    shell::root().join("tests/interop/tokens")
}

/// The environment that every suite reads.
fn set_environment(test: &mut Command, server: &TestServer, certificate: &Path) {
    test.env("PLEIAD_ENDPOINT", &server.endpoint)
        .env("PLEIAD_ENDPOINT_HTTPS", &server.endpoint_https)
        .env("PLEIAD_KEY", EMULATOR_KEY)
        .env("PLEIAD_CA_FILE", certificate)
        .env("PLEIAD_README", shell::root().join("README.md")) // its code snippets are tests, too
        .env("PLEIAD_SCRIPTS", shell::root().join("tests/interop/scripts")) // scripts that all suites store on the server
        .env("PLEIAD_TOKENS", tokens()) // the key that signs bearer tokens
        .env("NODE_EXTRA_CA_CERTS", certificate); // Node reads this variable only at its start
    without_proxy(test);
}

pub fn without_proxy(test: &mut Command) {
    for name in ["NO_PROXY", "no_proxy"] {
        test.env(name, with_localhost(&std::env::var(name).unwrap_or_default()));
    }
}

/// Requests to localhost must not go through a configured proxy.
fn with_localhost(exceptions: &str) -> String {
    let others = exceptions.split(',').map(str::trim).filter(|host| !host.is_empty());
    others.chain(["localhost", "127.0.0.1", "::1"]).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_suite_fails() {
        assert!(overall_result(0, &[], 0).is_err());
        assert!(overall_result(1, &[], 0).is_ok());
        assert!(overall_result(1, &[], 2).is_err(), "one of the two requested suites was skipped");
        assert!(overall_result(3, &["js", "go"], 0).unwrap_err().contains("cargo xtask interop js go"));
    }

    #[test]
    fn proxy_exceptions_are_preserved() {
        assert_eq!(with_localhost("a.example, "), "a.example,localhost,127.0.0.1,::1");
        assert_eq!(with_localhost(""), "localhost,127.0.0.1,::1");
    }
}
