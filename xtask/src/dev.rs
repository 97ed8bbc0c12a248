//! `cargo xtask dev`: from a fresh clone to a running emulator with one command.
//!
//! Guarantees: `pleiad` replaces this process and is not its child, so that Ctrl-C and signals reach it. It runs in the
//! user's current directory, so that relative paths mean what the user expects.

use std::process::Command;

use crate::rocksdb;
use crate::setup::{self, SetupScope};
use crate::shell::{self, Result};

pub fn run(args: &[String]) -> Result {
    setup::ensure(&[SetupScope::Build])?;
    rocksdb::ensure()?;
    if !shell::binary().exists() {
        println!("{} compiles Pleiad itself: about 4 minutes on 2 cores.", shell::bold("The first build"));
    }
    let manifest = shell::root().join("Cargo.toml");
    let mut cargo = shell::bare_cargo(["run", "--release", "--package", "pleiad"]);
    cargo.arg("--manifest-path").arg(manifest);
    rocksdb::prepare(&mut cargo);
    replace_process(cargo.args(["--", "dev"]).args(args))
}

#[cfg(unix)]
fn replace_process(command: &mut Command) -> Result {
    use std::os::unix::process::CommandExt;
    let error = command.exec(); // returns only if the program could not start
    Err(format!("cannot start `{}`: {error}", shell::command_line(command)))
}

#[cfg(not(unix))]
fn replace_process(command: &mut Command) -> Result {
    shell::run(command)
}
