//! The built-in functions: one row each.
//!
//! Promise: types never make an error. An argument that does not fit gives undefined, as does an undefined
//! argument unless the function is about undefined itself. Whatever a function builds it pays for from the
//! context's room, before it builds it where the size can be known, and none takes more than
//! `n log n` steps for arguments of size n, except where a limit of its own bounds it (`regex`, `search`).
//!
//! Aggregates are no functions in this sense: `aggregate` has them. How many arguments a call has, and
//! whether its name exists, is `check`'s to say.

mod arguments; // what calls are given and what they answer
mod math; // numbers
mod integers; // 64-bit integers
mod types; // IS_…
mod fold; // letters without their case
mod search; // is this string in that one
mod units; // positions in strings
mod strings; // cut, trim, join, replace
mod convert; // strings from and to other types
mod regex; // regular expressions
mod arrays; // arrays and objects
mod sets; // arrays as sets
mod dates; // points in time
mod items; // choices, and the item itself
mod spatial; // GeoJSON
mod vector; // how near vectors are
mod full_text; // words in texts
mod unsupported; // known by name only

use std::collections::HashMap;
use std::sync::LazyLock;

use pleiad_model::Result;

use super::{Context, Datum};

pub use vector::{UNSAID, VECTOR_DISTANCE};

pub struct Function {
    /// As the documentation writes it, in upper case; looked up whatever the case.
    pub name: &'static str,
    pub arity: Arity,
    pub varies: Varies,
    pub call: BuiltinFn,
}

/// When two calls with the same arguments may differ. What never varies is folded into a constant; what varies
/// from run to run, once the run has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varies {
    Never,
    PerRun,
    PerCall,
}

/// Arguments arrive evaluated; a function may take them out of the slice.
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

/// A second spelling, and the function it calls.
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
    // Names that client libraries write into queries of their own.
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

/// The function of that name, in any case.
pub fn find(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name.to_ascii_uppercase().as_str()).copied()
}

#[cfg(test)]
pub(super) mod tests;
