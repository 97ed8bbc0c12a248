//! Full-text functions by their names. They are compiled into nodes of their own (`expr::full_text`), since they need to know
//! which property they are asked of, and not only its value.
//!
//! `FullTextScore` and `RRF` stand in `ORDER BY RANK` only: `rank` takes them apart.

use pleiad_model::{Error, Result};

use super::Function;
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("FULLTEXTCONTAINS", 2, compiled),
    Function::at_least("FULLTEXTCONTAINSALL", 2, compiled),
    Function::at_least("FULLTEXTCONTAINSANY", 2, compiled),
    Function::at_least("FULLTEXTSCORE", 2, compiled),
    Function::at_least("RRF", 2, compiled),
    // As a query plan writes them.
    Function::exactly("_FULLTEXTWORDCOUNT", 1, compiled),
    Function::exactly("_FULLTEXTSCORE", 5, compiled),
];

fn compiled<'a>(_: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    Err(Error::refused("A full-text function outside of a query"))
}
