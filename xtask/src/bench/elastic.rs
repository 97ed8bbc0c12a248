//! `cargo xtask bench elastic`: what it costs to hold containers to their throughput, to have many partitions, to split one
//! under load.

use super::query::options;
use super::{PAGE, build, program};
use crate::setup::{self, Scope};
use crate::shell::{self, Result};

/// `--items` is how many a partition holds that is split: a million are a gigabyte.
pub fn run(args: &[String]) -> Result {
    let options = options(args)?;
    setup::ensure(&[Scope::Build])?;
    build()?;
    let result = shell::target().join("bench-elastic.json");
    let mut bench = shell::command(program(), ["elastic"]);
    bench.arg(shell::binary()).arg(&result).arg(options.items.to_string());
    if options.write {
        bench.arg(shell::root().join(PAGE));
    }
    shell::run(&mut bench)?;
    println!("the figures as JSON: {}", result.display());
    Ok(())
}
