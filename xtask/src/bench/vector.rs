//! `cargo xtask bench vector`: speed and recall of approximate vector search, against exact k-NN.

use std::ffi::OsStr;

use super::{measure, parse_write_flag};
use crate::setup::{self, SetupScope};
use crate::shell::Result;

const ITEMS: &str = "100000";

/// The first argument may be a number of items other than a hundred thousand.
pub fn run(args: &[String]) -> Result {
    let (items, args) = match args.split_first() {
        Some((items, rest)) if items.parse::<u64>().is_ok() => (items.as_str(), rest),
        _ => (ITEMS, args),
    };
    let write = parse_write_flag("vector", args)?;
    setup::ensure(&[SetupScope::Build])?;
    measure("vector", &[OsStr::new(items)], write)
}
