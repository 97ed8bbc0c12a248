//! `cargo xtask bench scripts`: the cost of stored procedures, user-defined functions and batches, against the same
//! work without them.

use super::{measure, only_write};
use crate::setup::{self, SetupScope};
use crate::shell::Result;

pub fn run(args: &[String]) -> Result {
    let write = only_write("scripts", args)?;
    setup::ensure(&[SetupScope::Build])?;
    measure("scripts", &[], write)
}
