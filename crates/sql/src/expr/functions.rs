//! Built-in functions: a table with one row per function.
//!
//! Guarantees: a type mismatch is never an error. An argument of the wrong type makes the result undefined, and so does
//! an undefined argument, unless the function tests for undefined. A function charges the memory of its result to the
//! context's budget, beforehand if it can be much larger than the arguments. No function takes more than `n log n`
//! steps for arguments of size n, except those with a limit of their own (`regex`, `search`) and the spatial relations,
//! which check the interrupt as they proceed.
//!
//! Aggregate functions are in `aggregate`. `check` validates function names and the number of arguments.

mod arguments; // reading arguments, building results
mod math; // numbers
mod integers; // 64-bit integers
mod types; // IS_…
mod fold; // case folding
mod search; // CONTAINS, STARTSWITH, …
mod units; // positions in strings: UTF-16 code units
mod strings; // TRIM, REPLACE, CONCAT, …
mod convert; // conversion of strings from and to other types
mod regex; // regular expressions
mod arrays; // arrays and objects
mod sets; // arrays as sets
mod dates; // dates and times
mod items; // IIF, DOCUMENTID
mod spatial; // GeoJSON
mod vector; // VECTORDISTANCE
mod full_text; // full-text functions
mod unsupported; // known, but not supported

use std::collections::HashMap;
use std::sync::LazyLock;

use pleiad_model::Result;

use super::{Context, Datum};

pub use vector::{DEFAULT_METRIC, VECTOR_DISTANCE};

pub struct Function {
    /// The documented name in upper case; lookups ignore case.
    pub name: &'static str,
    pub arity: Arity,
    pub varies: Varies,
    pub call: BuiltinFn,
}

/// Whether two calls with the same arguments can return different results (volatility). A call that never varies is
/// folded into a constant; one that varies per run is folded once the run has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varies {
    Never,
    PerRun,
    PerCall,
}

/// Arguments are already evaluated; a function may take them out of the slice.
pub type BuiltinFn = for<'a> fn(&mut [Datum<'a>], &Context<'_>) -> Result<Datum<'a>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    pub min: usize,
    /// `None`: any number.
    pub max: Option<usize>,
}

impl Function {
    const fn new(name: &'static str, min: usize, max: Option<usize>, call: BuiltinFn) -> Self {
        Function { name, arity: Arity { min, max }, varies: Varies::Never, call }
    }

    pub const fn exactly(name: &'static str, arguments: usize, call: BuiltinFn) -> Self {
        Function::new(name, arguments, Some(arguments), call)
    }

    pub const fn between(name: &'static str, min: usize, max: usize, call: BuiltinFn) -> Self {
        Function::new(name, min, Some(max), call)
    }

    pub const fn at_least(name: &'static str, min: usize, call: BuiltinFn) -> Self {
        Function::new(name, min, None, call)
    }

    const fn varying(mut self, varies: Varies) -> Self {
        self.varies = varies;
        self
    }
}

const FAMILIES: [&[Function]; 16] = [
    math::FUNCTIONS,
    integers::FUNCTIONS,
    types::FUNCTIONS,
    search::FUNCTIONS,
    units::FUNCTIONS,
    strings::FUNCTIONS,
    convert::FUNCTIONS,
    regex::FUNCTIONS,
    arrays::FUNCTIONS,
    sets::FUNCTIONS,
    dates::FUNCTIONS,
    items::FUNCTIONS,
    spatial::FUNCTIONS,
    vector::FUNCTIONS,
    full_text::FUNCTIONS,
    unsupported::FUNCTIONS,
];

/// A second name and the function it calls.
const ALIASES: [(&str, &str); 14] = [
    ("INTBITWISEAND", "INTBITAND"),
    ("INTBITWISELEFTSHIFT", "INTBITLEFTSHIFT"),
    ("INTBITWISENOT", "INTBITNOT"),
    ("INTBITWISEOR", "INTBITOR"),
    ("INTBITWISERIGHTSHIFT", "INTBITRIGHTSHIFT"),
    ("INTBITWISEXOR", "INTBITXOR"),
    ("CONTAINSALLCI", "CONTAINS_ALL_CI"),
    ("CONTAINSALLCS", "CONTAINS_ALL_CS"),
    ("CONTAINSANYCI", "CONTAINS_ANY_CI"),
    ("CONTAINSANYCS", "CONTAINS_ANY_CS"),
    // Names in queries that client libraries generate.
    ("_REGEX_MATCH", "REGEXMATCH"),
    ("_TRY_ARRAY_CONTAINS", "ARRAY_CONTAINS"),
    ("_OBJECTTOARRAY", "OBJECTTOARRAY"),
    ("_VECTORSCORE", VECTOR_DISTANCE),
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let mut by_name: HashMap<_, _> = FAMILIES.into_iter().flatten().map(|f| (f.name, f)).collect();
    for (alias, name) in ALIASES {
        if let Some(function) = by_name.get(name) {
            by_name.insert(alias, function);
        }
    }
    by_name
});

/// Finds a function by name, ignoring case.
pub fn find(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name.to_ascii_uppercase().as_str()).copied()
}

#[cfg(test)]
pub(super) mod tests;
