//! `cargo xtask bench scripts`: what stored procedures, user-defined functions and batches cost, against the same work without them.

use super::{PAGE, build, program};
use crate::setup::{self, Scope};
use crate::shell::{self, Result};

pub fn run(args: &[String]) -> Result {
    let write = match args {
        [] => false,
        [only] if only == "--write" => true,
        _ => return Err("bench scripts takes `--write` or nothing".to_owned()),
    };
    setup::ensure(&[Scope::Build])?;
    build()?;
    let result = shell::target().join("bench-scripts.json");
    let mut bench = shell::command(program(), ["scripts"]);
    bench.arg(shell::binary()).arg(&result);
    if write {
        bench.arg(shell::root().join(PAGE));
    }
    shell::run(&mut bench)?;
    println!("the figures as JSON: {}", result.display());
    Ok(())
}
