//! `cargo xtask test soak`: partitions split and merge continuously while clients of two SDKs read and write.
//!
//! The binary is the release build, and the SDKs are those of the interop suites, unmodified. The load and its
//! invariants are in tests/soak.

use std::fs;

use crate::interop;
use crate::shell::{self, Result};

/// Only splits, or splits and merges; without and with a server that is killed now and then.
const WORLDS: [&[&str]; 4] = [&["splits"], &["merges"], &["splits", "killed"], &["merges", "killed"]];

pub fn run() -> Result {
    let binary = interop::build()?;
    let (python, js) = (interop::prepare_by_name("python")?, interop::prepare_by_name("js")?);
    for world in WORLDS {
        println!("\n{}", shell::bold(&format!("-- soak {}", world.join(" "))));
        let logs = shell::cache().join("soak").join(world.join("-"));
        fs::create_dir_all(&logs).map_err(|e| format!("cannot create {}: {e}", logs.display()))?;
        let mut soak = shell::command(python.cache.join("venv/bin/python"), ["soak.py"]);
        soak.args(world).current_dir(shell::root().join("tests/soak")).env("PYTHONDONTWRITEBYTECODE", "1");
        soak.env("PLEIAD_BINARY", &binary).env("SOAK_LOGS", logs);
        soak.env("SOAK_NODE_MODULES", js.cache.join("suite/node_modules"));
        interop::without_proxy(&mut soak);
        shell::run(&mut soak)?;
    }
    Ok(())
}
