//! Lexer, parser, syntax tree and printer of the Cosmos SQL language.
//!
//! Guarantees: any text gives a tree or a diagnostic with a position, in time linear in its length and with bounded
//! recursion. `check`, `compile` and `expr` give the tree its meaning.

pub mod ast;
pub mod diagnostic;
pub mod lexer;
pub mod parser;
pub mod print;

pub use diagnostic::Diagnostic;
pub use parser::parse;
pub use print::{print, print_expr};

/// The longest query text, in bytes.
pub const TEXT_BYTES_MAX: usize = 512 * 1024;

/// How deeply a scalar may nest: parentheses, constructors, subqueries, prefix operators, right operands.
/// Chains (`a AND b AND c`, `a + b + c`, `a.b.c`, `x ? 1 : y ? 2 : 3`) are flat and do not count.
pub const NESTING_MAX: usize = 256;

/// The largest number of properties in an object constructor or of items in a select list.
pub const PROPERTIES_MAX: usize = 4096;

/// A range of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// From the start of this span to the end of the other.
    pub fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }

    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}
