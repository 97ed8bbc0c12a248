//! RocksDB, compiled once per machine.
//!
//! Guarantees: after `ensure`, every cargo call of xtask links the same static library, whatever packages it builds.
//! Otherwise cargo would compile RocksDB's C++ code again (ten minutes) whenever a different selection of packages
//! changes the features of a direct or indirect dependency of its build script
//! (docs/decisions/0005-rocksdb-built-once.md).
//!
//! ```text
//! Cargo.lock contains librocksdb-sys 0.19.0+11.8.1
//!   → ~/.cache/pleiad/rocksdb/0.19.0+11.8.1/librocksdb.a     ROCKSDB_LIB_DIR, ROCKSDB_STATIC
//! ```

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Result};

const CRATE: &str = "librocksdb-sys";
const LIBRARY: &str = "librocksdb.a";
/// The features that `storage` enables through the crate `rocksdb`.
const FEATURES: &str = r#"["lz4", "zstd", "bindgen-runtime"]"#;

/// Cargo on this workspace: one target directory, and no variables left over from the cargo that runs xtask.
pub fn cargo<I: AsRef<OsStr>>(args: impl IntoIterator<Item = I>) -> Command {
    let mut cargo = shell::bare_cargo(args);
    cargo.env("CARGO_TARGET_DIR", shell::target()).current_dir(shell::root());
    link(&mut cargo);
    cargo
}

/// Sets the library's directory for a cargo call, if the library exists and the user has not set another.
pub fn link(cargo: &mut Command) {
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
        "{} compiles RocksDB, the storage engine inside Pleiad, from its C++ source: about 10 minutes\n\
         on 2 cores, once. The result stays in {}; later builds reuse it.",
        shell::bold("The first build"),
        dir.display()
    );
    let work = dir.join("build");
    write_project(&work)?;
    let mut cargo = shell::bare_cargo(["build", "--release"]);
    shell::run(cargo.current_dir(&work).env("CARGO_TARGET_DIR", work.join("target")))?;
    store_library(&work, &dir)
}

/// The directory of the library of the locked version.
fn library_dir() -> Option<PathBuf> {
    let lock = std::fs::read_to_string(shell::root().join("Cargo.lock")).ok()?;
    Some(shell::cache().join("rocksdb").join(locked_version(&lock)?))
}

/// `name = "librocksdb-sys"` is followed by its version.
fn locked_version(lock: &str) -> Option<&str> {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{CRATE}\""));
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

/// A package with only that dependency, and with the workspace's lock file so that its own dependencies are the same.
fn write_project(work: &Path) -> Result {
    let lock = std::fs::read_to_string(shell::root().join("Cargo.lock")).map_err(|e| format!("Cargo.lock: {e}"))?;
    let version = locked_version(&lock).ok_or("Cargo.lock names no RocksDB")?;
    let manifest = format!(
        "[package]\nname = \"rocksdb-once\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{CRATE} = {{ version = \"={}\", default-features = false, features = {FEATURES} }}\n",
        version.split('+').next().unwrap_or(version)
    );
    let write = |path: PathBuf, text: &str| std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
    std::fs::create_dir_all(work.join("src")).map_err(|e| format!("{}: {e}", work.display()))?;
    write(work.join("Cargo.toml"), &manifest)?;
    write(work.join("Cargo.lock"), &lock)?;
    write(work.join("src").join("lib.rs"), "")
}

/// Moves the finished library to its directory atomically, then deletes the build directory.
fn store_library(work: &Path, target_dir: &Path) -> Result {
    let builds = shell::list(&work.join("target").join("release").join("build"));
    let built = builds.iter().map(|dir| dir.join("out").join(LIBRARY)).find(|library| library.exists());
    let built = built.ok_or("the build of RocksDB produced no library")?;
    std::fs::rename(&built, target_dir.join(LIBRARY)).map_err(|e| format!("{}: {e}", built.display()))?;
    let _ = std::fs::remove_dir_all(work); // a failure only wastes disk space
    Ok(())
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
}
