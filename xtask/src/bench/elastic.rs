//! `cargo xtask bench elastic`: what it costs to hold containers to their throughput, to have many partitions, to split one
//! under load.

use super::measure;
use super::query::options;
use crate::setup::{self, SetupScope};
use crate::shell::Result;

/// `--items` is how many a partition holds that is split: a million are a gigabyte.
pub fn run(args: &[String]) -> Result {
    let options = options(args)?;
    setup::ensure(&[SetupScope::Build])?;
    measure("elastic", &[options.items.to_string().as_ref()], options.write)
}
