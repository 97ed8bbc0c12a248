//! `cargo xtask dist`: the binary that users get.
//!
//! Guarantees: the profile `dist` optimises the whole program at once; the binary has no debug information, which is
//! in a file beside it that debuggers and backtraces find by name. A binary that is larger than it should be is an
//! error.
//!
//! ```text
//! target/dist/pleiad         stripped
//! target/dist/pleiad.debug   symbols and line numbers
//! ```

use std::path::Path;

use crate::rocksdb;
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

const BINARY_BYTES_MAX: u64 = 35 << 20;

pub fn run() -> Result {
    setup::ensure(&[SetupScope::Build])?;
    rocksdb::ensure()?;
    shell::run(&mut rocksdb::cargo(["build", "--profile", "dist", "--package", "pleiad"]))?;
    let dir = shell::target().join("dist");
    split_debug_information(&dir)?;
    for name in ["pleiad", "pleiad.debug"] {
        println!("{:>9}  {}", megabytes(bytes_of(&dir.join(name))?), dir.join(name).display());
    }
    match bytes_of(&dir.join("pleiad"))? {
        bytes if bytes > BINARY_BYTES_MAX => Err(format!("the binary has more than {}", megabytes(BINARY_BYTES_MAX))),
        _ => Ok(()),
    }
}

/// Cargo hard-links the binary to the one it keeps, so this writes a new file in its place.
#[cfg(target_os = "linux")]
fn split_debug_information(dir: &Path) -> Result {
    let objcopy = |args: &[&str]| shell::run(shell::command("objcopy", args).current_dir(dir));
    objcopy(&["--only-keep-debug", "pleiad", "pleiad.debug"])?;
    objcopy(&["--strip-all", "--add-gnu-debuglink=pleiad.debug", "pleiad", "pleiad.stripped"])?;
    std::fs::rename(dir.join("pleiad.stripped"), dir.join("pleiad")).map_err(|e| format!("{}: {e}", dir.display()))
}

#[cfg(not(target_os = "linux"))]
fn split_debug_information(_dir: &Path) -> Result {
    Err("debug information is split on Linux only; the binary in target/dist is complete".to_owned())
}

fn bytes_of(file: &Path) -> Result<u64> {
    std::fs::metadata(file).map(|metadata| metadata.len()).map_err(|e| format!("{}: {e}", file.display()))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_megabytes() {
        assert_eq!(megabytes(BINARY_BYTES_MAX), "35.0 MB");
        assert_eq!(megabytes(1_310_720), "1.2 MB");
    }
}
