//! The Cosmos SQL language: text to syntax tree, and back.
//!
//! Promise: any text gives a tree or a fault that says where, in time linear in its length and with
//! bounded recursion. What the tree means is for `check`, `compile` and
//! `expr` to say.

pub mod ast;
pub mod diagnostic;
pub mod lexer;
pub mod parser;
pub mod print;

pub use diagnostic::Diagnostic;
pub use parser::parse;
pub use print::{print, print_expr};

/// The longest query text.
pub const TEXT_BYTES_MAX: usize = 512 * 1024;

/// How deep a scalar may nest: parentheses, constructors, subqueries, prefix operators, right operands.
/// Chains (`a AND b AND c`, `a + b + c`, `a.b.c`, `x ? 1 : y ? 2 : 3`) are flat and do not count.
pub const NESTING_MAX: usize = 256;

/// The most properties one object constructor or select list may name.
pub const PROPERTIES_MAX: usize = 4096;

/// A piece of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// From the start of this piece to the end of that one.
    pub fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }

    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}
