//! RocksDB, compiled once per machine.
//!
//! Guarantees: after `ensure`, every cargo call of xtask links the same static library, whatever packages it builds.
//! Otherwise cargo would compile RocksDB's C++ code again (more than ten minutes) whenever a different selection of packages
//! changes the features of a direct or indirect dependency of its build script
//! (docs/decisions/0005-rocksdb-built-once.md).
//!
//! ```text
//! Cargo.lock contains librocksdb-sys 0.19.0+11.8.1
//!   → ~/.cache/pleiad/rocksdb/0.19.0+11.8.1-unity2/librocksdb.a     ROCKSDB_LIB_DIR, ROCKSDB_STATIC
//! ```

mod unity; // the compilation
mod checksum; // a check of the compiled library

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkout;
use crate::shell::{self, Result};
use unity::CrateDirs;

const CRATE: &str = "librocksdb-sys";
const LIBRARY: &str = "librocksdb.a";
/// Part of the directory's name: raise it when the way of compiling changes.
const RECIPE: &str = "unity2";

/// Cargo on this workspace: one target directory, and no variables left over from the cargo that runs xtask.
pub fn cargo<I: AsRef<OsStr>>(args: impl IntoIterator<Item = I>) -> Command {
    let mut cargo = shell::bare_cargo(args);
    prepare(&mut cargo);
    cargo.current_dir(shell::root());
    cargo
}

/// The target directory and the library of a cargo call, unless the user has set others.
pub fn prepare(cargo: &mut Command) {
    let target = shell::target();
    if let Err(why) = checkout::claim(&target, &shell::root()) {
        println!("{} crates of another checkout may be used: {why}", shell::yellow("warning:"));
    }
    cargo.env("CARGO_TARGET_DIR", target);
    let Some(dir) = library_dir().filter(|dir| dir.join(LIBRARY).exists()) else { return };
    if std::env::var_os("ROCKSDB_LIB_DIR").is_none() {
        cargo.env("ROCKSDB_LIB_DIR", dir).env("ROCKSDB_STATIC", "1");
    }
}

/// Compiles the library unless it exists.
pub fn ensure() -> Result {
    let Some(dir) = library_dir() else { return Err(format!("Cargo.lock names no {CRATE}")) };
    if dir.join(LIBRARY).exists() || std::env::var_os("ROCKSDB_LIB_DIR").is_some() {
        return Ok(());
    }
    println!(
        "{} downloads the crates and compiles RocksDB, the storage engine inside Pleiad: about 3 minutes\n\
         on 2 cores, once. The result stays in {}; later builds reuse it.",
        shell::bold("The first build"),
        dir.display()
    );
    let work = dir.join("build");
    let built = unity::build(&crate_dirs()?, &work, LIBRARY)?;
    checksum::check(&built, &work.join("checksum"))?;
    std::fs::rename(&built, dir.join(LIBRARY)).map_err(|e| format!("{}: {e}", built.display()))?;
    let _ = std::fs::remove_dir_all(work); // a failure only wastes disk space
    Ok(())
}

/// The directory of the library of the locked version.
fn library_dir() -> Option<PathBuf> {
    let lock = std::fs::read_to_string(shell::root().join("Cargo.lock")).ok()?;
    Some(shell::cache().join("rocksdb").join(format!("{}-{RECIPE}", locked_version(&lock)?)))
}

/// `name = "librocksdb-sys"` is followed by its version.
fn locked_version(lock: &str) -> Option<&str> {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{CRATE}\""));
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

/// Downloads the crates of the workspace, if they are missing, and finds those with C and C++ sources.
fn crate_dirs() -> Result<CrateDirs> {
    let version = shell::output(&mut shell::command("rustc", ["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("`rustc -vV` names no host")?;
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let metadata = shell::output(shell::bare_cargo(args).current_dir(shell::root()))?;
    let dir = |name: &str| manifest_dir(&metadata, name).ok_or(format!("cargo metadata names no {name}"));
    Ok(CrateDirs { rocksdb: dir(CRATE)?, lz4: dir("lz4-sys")?, zstd: dir("zstd-sys")? })
}

/// The directory of a crate of that name, by its `manifest_path` in the output of `cargo metadata`.
fn manifest_dir(metadata: &str, name: &str) -> Option<PathBuf> {
    let manifests = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut dirs = manifests.filter_map(|manifest| PathBuf::from(manifest).parent().map(Path::to_path_buf));
    let is_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    dirs.find(|dir| shell::name(dir).strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_locked_one() {
        let lock = "[[package]]\nname = \"libc\"\nversion = \"1\"\n\n[[package]]\nname = \"librocksdb-sys\"\nversion = \"0.19.0+11.8.1\"\n";
        assert_eq!(locked_version(lock), Some("0.19.0+11.8.1"));
        assert_eq!(locked_version("[[package]]\nname = \"libc\"\n"), None);
    }

    #[test]
    fn a_crate_is_found_by_its_manifest() {
        let metadata =
            r#"{"manifest_path":"/r/lz4-sys-extra-1/Cargo.toml"},{"manifest_path":"/r/lz4-sys-1.2+x/Cargo.toml"}"#;
        assert_eq!(manifest_dir(metadata, "lz4-sys"), Some(PathBuf::from("/r/lz4-sys-1.2+x")));
        assert_eq!(manifest_dir(metadata, "zstd-sys"), None);
    }
}
