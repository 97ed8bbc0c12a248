//! `cargo xtask bench scripts`: the cost of stored procedures, user-defined functions and batches, against the same
//! work without them.

use super::{measure, parse_write_flag};
use crate::setup::{self, SetupScope};
use crate::shell::Result;

pub fn run(args: &[String]) -> Result {
    let write = parse_write_flag("scripts", args)?;
    setup::ensure(&[SetupScope::Build])?;
    measure("scripts", &[], write)
}
