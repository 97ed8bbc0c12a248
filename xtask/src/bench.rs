//! `cargo xtask bench` and `cargo xtask compare`: how fast we are, against what the parts below could do and beside
//! what others do. What is measured, and how, is in `benches`; here it is built and given what it needs.
//!
//! Promise: the measured binary is built exactly as everyone's is, with nothing switched on for the occasion. What is
//! installed for a comparison lives in ~/.cache/pleiad/compare or comes from the system's packages.

mod elastic; // what partitions and their changes cost
mod query; // questions about many items, beside others
mod scripts; // what scripts and batches cost
mod vector; // the nearest vectors, by graph

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use crate::rocksdb;
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

const PAGE: &str = "docs/performance.md";
const EMULATOR: &str = "@vercel/cosmosdb-server@1.0.1";

/// With `--write` the table also goes into the page.
pub fn run(args: &[String]) -> Result {
    match args.split_first() {
        Some((first, rest)) if first == "query" => return query::run(rest),
        Some((first, rest)) if first == "elastic" => return elastic::run(rest),
        Some((first, rest)) if first == "scripts" => return scripts::run(rest),
        Some((first, rest)) if first == "vector" => return vector::run(rest),
        _ => {}
    }
    let write = match args {
        [] => false,
        [only] if only == "--write" => true,
        _ => {
            return Err(
                "bench takes `--write`, or `query`, or `elastic`, or `scripts`, or `vector`, or nothing".to_owned()
            );
        }
    };
    setup::ensure(&[SetupScope::Build])?;
    measure("bench", &[], write)
}

/// Builds, and runs one part of the bench program; with `write` its table goes into the page.
fn measure(part: &str, more: &[&OsStr], write: bool) -> Result {
    build()?;
    let result =
        shell::target().join(if part == "bench" { "bench.json".to_owned() } else { format!("bench-{part}.json") });
    let mut bench = shell::command(program(), [part]);
    bench.arg(shell::binary()).arg(&result).args(more);
    if write {
        bench.arg(shell::root().join(PAGE));
    }
    shell::run(&mut bench)?;
    println!("the figures as JSON: {}", result.display());
    Ok(())
}

/// What a part takes that has no other options.
fn only_write(part: &str, args: &[String]) -> Result<bool> {
    match args {
        [] => Ok(false),
        [only] if only == "--write" => Ok(true),
        _ => Err(format!("bench {part} takes `--write` or nothing")),
    }
}

pub fn compare() -> Result {
    setup::ensure(&[SetupScope::Build, SetupScope::Compare])?;
    let modules = install_emulator()?;
    let postgres =
        setup::postgres_programs().ok_or("PostgreSQL's programs (initdb, postgres, psql, pgbench) are not found")?;
    build()?;
    let mut compare = shell::command(program(), ["compare"]);
    shell::run(compare.arg(shell::binary()).arg(shell::root().join(PAGE)).arg(modules).arg(postgres))
}

/// In two steps: cargo joins the features of what it builds together, and the product must not get the bench's.
fn build() -> Result {
    rocksdb::ensure()?;
    shell::run(&mut shell::cargo(["build", "--release", "--package", "pleiad"]))?;
    shell::run(&mut shell::cargo(["build", "--release", "--package", "pleiad-bench"]))
}

fn program() -> PathBuf {
    shell::binary().with_file_name(format!("pleiad-bench{}", std::env::consts::EXE_SUFFIX))
}

/// Once; the version is pinned, so that what is there is what is wanted.
fn install_emulator() -> Result<PathBuf> {
    let dir = shell::cache().join("compare").join(EMULATOR.rsplit('@').next().unwrap_or_default());
    if !dir.join("node_modules").exists() {
        fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        let mut npm = shell::command("npm", ["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]);
        shell::run(npm.arg(&dir).arg(EMULATOR).current_dir(&dir))?;
    }
    Ok(dir)
}
