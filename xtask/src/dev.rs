//! `cargo xtask dev`: from a fresh clone to a running emulator with one command.
//!
//! Promise: the process that runs in the end is `pleiad` itself, not a child of ours, so that Ctrl-C and
//! signals reach it; it runs where the user stands, so that relative paths mean what they say.

use std::process::Command;

use crate::rocksdb;
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

pub fn run(args: &[String]) -> Result {
    setup::ensure(&[SetupScope::Build])?;
    rocksdb::ensure()?;
    let manifest = shell::root().join("Cargo.toml");
    let mut cargo = shell::bare_cargo(["run", "--release", "--package", "pleiad"]);
    cargo.env("CARGO_TARGET_DIR", shell::target()).arg("--manifest-path").arg(manifest);
    rocksdb::link(&mut cargo);
    replace_ourselves(cargo.args(["--", "dev"]).args(args))
}

#[cfg(unix)]
fn replace_ourselves(command: &mut Command) -> Result {
    use std::os::unix::process::CommandExt;
    let error = command.exec(); // comes back only if it could not start
    Err(format!("cannot start `{}`: {error}", shell::line(command)))
}

#[cfg(not(unix))]
fn replace_ourselves(command: &mut Command) -> Result {
    shell::run(command)
}
