//! `cargo xtask bench vector`: how fast and how well the nearest vectors are found by a graph, against looking at every vector.

use std::ffi::OsStr;

use super::{measure, only_write};
use crate::setup::{self, SetupScope};
use crate::shell::Result;

const ITEMS: &str = "100000";

/// `ITEMS` first, if it should not be a hundred thousand.
pub fn run(args: &[String]) -> Result {
    let (items, args) = match args.split_first() {
        Some((items, rest)) if items.parse::<u64>().is_ok() => (items.as_str(), rest),
        _ => (ITEMS, args),
    };
    let write = only_write("vector", args)?;
    setup::ensure(&[SetupScope::Build])?;
    measure("vector", &[OsStr::new(items)], write)
}
