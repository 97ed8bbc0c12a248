//! `cargo xtask bench` and `cargo xtask compare`: build the benchmark program, install what it needs, and run it. The
//! measurements themselves are in `benches`.
//!
//! Guarantees: the measured binary is the normal release build, with nothing enabled for the benchmark. Software for a
//! comparison is stored in ~/.cache/pleiad/compare or comes from the system's packages.

mod elastic; // rate limiting, many partitions, a split
mod query; // query times, compared with PostgreSQL and DuckDB
mod scripts; // the cost of scripts and batches
mod vector; // approximate against exact vector search

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use crate::rocksdb;
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

const PAGE: &str = "docs/performance.md";
const EMULATOR: &str = "@vercel/cosmosdb-server@1.0.1";

/// With `--write` the table is also written into the page.
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
            return Err("bench takes `query`, `elastic`, `scripts`, `vector`, `--write` or no argument".to_owned());
        }
    };
    setup::ensure(&[SetupScope::Build])?;
    measure("bench", &[], write)
}

/// Builds the programs and runs one benchmark; with `write` its table is also written into the page.
fn measure(benchmark: &str, extra_args: &[&OsStr], write: bool) -> Result {
    build()?;
    let result = shell::target().join(if benchmark == "bench" {
        "bench.json".to_owned()
    } else {
        format!("bench-{benchmark}.json")
    });
    let mut bench = shell::command(program(), [benchmark]);
    bench.arg(shell::binary()).arg(&result).args(extra_args);
    if write {
        bench.arg(shell::root().join(PAGE));
    }
    shell::run(&mut bench)?;
    println!("results as JSON: {}", result.display());
    Ok(())
}

/// Parses the arguments of a benchmark whose only option is `--write`.
fn parse_write_flag(benchmark: &str, args: &[String]) -> Result<bool> {
    match args {
        [] => Ok(false),
        [only] if only == "--write" => Ok(true),
        _ => Err(format!("bench {benchmark} takes no argument other than `--write`")),
    }
}

pub fn compare() -> Result {
    setup::ensure(&[SetupScope::Build, SetupScope::Compare])?;
    let modules = install_emulator()?;
    let postgres =
        setup::postgres_programs().ok_or("PostgreSQL's programs (initdb, postgres, psql, pgbench) were not found")?;
    build()?;
    let mut compare = shell::command(program(), ["compare"]);
    shell::run(compare.arg(shell::binary()).arg(shell::root().join(PAGE)).arg(modules).arg(postgres))
}

/// In two builds: cargo unifies the features of packages that it builds together, and the product must not get the
/// bench's.
fn build() -> Result {
    rocksdb::ensure()?;
    shell::run(&mut rocksdb::cargo(["build", "--release", "--package", "pleiad"]))?;
    shell::run(&mut rocksdb::cargo(["build", "--release", "--package", "pleiad-bench"]))
}

fn program() -> PathBuf {
    shell::binary().with_file_name(format!("pleiad-bench{}", std::env::consts::EXE_SUFFIX))
}

/// Installs the emulator once; its version is pinned, so an existing installation is the right one.
fn install_emulator() -> Result<PathBuf> {
    let dir = shell::cache().join("compare").join(EMULATOR.rsplit('@').next().unwrap_or_default());
    if !dir.join("node_modules").exists() {
        fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        let mut npm = shell::command("npm", ["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]);
        shell::run(npm.arg(&dir).arg(EMULATOR).current_dir(&dir))?;
    }
    Ok(dir)
}
