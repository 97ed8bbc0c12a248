//! Names of the full-text functions. Calls are compiled to a node of their own (`expr::full_text`), because they need
//! the path of their property, not only its value.
//!
//! `FullTextScore` and `RRF` are valid only in `ORDER BY RANK`; see `rank`.

use pleiad_model::{Error, Result};

use super::Function;
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("FULLTEXTCONTAINS", 2, compiled),
    Function::at_least("FULLTEXTCONTAINSALL", 2, compiled),
    Function::at_least("FULLTEXTCONTAINSANY", 2, compiled),
    Function::at_least("FULLTEXTSCORE", 2, compiled),
    Function::at_least("RRF", 2, compiled),
    // Names in query plans.
    Function::exactly("_FULLTEXTWORDCOUNT", 1, compiled),
    Function::exactly("_FULLTEXTSCORE", 5, compiled),
];

fn compiled<'a>(_: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    Err(Error::unsupported("A full-text function outside of a query"))
}
