//! `cargo xtask bench elastic`: the cost of rate limiting, of many partitions, and of a split under load.

use super::measure;
use super::query::options;
use crate::setup::{self, SetupScope};
use crate::shell::Result;

/// `--items` is the number of items in the partition that is split: a million are a gigabyte.
pub fn run(args: &[String]) -> Result {
    let options = options(args)?;
    setup::ensure(&[SetupScope::Build])?;
    measure("elastic", &[options.items.to_string().as_ref()], options.write)
}
