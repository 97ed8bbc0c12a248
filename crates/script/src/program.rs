//! A script's text, and which kind of realm it needs.
//!
//! Promise: the text is kept as it came; nothing is run here. Whether it compiles is found out by the first runtime
//! that meets it, and remembered there: QuickJS can load foreign bytecode only unsafely, so compiled programs stay on
//! their thread, keyed by the program's number.
//!
//! Most scripts run in a realm that is shared by all calls of a thread and frozen, so that nothing can be left behind.
//! A script that changes built-ins (`String.prototype.format = …`) needs one of its own, made for the call and thrown
//! away: ten times the price. `wants_own_realm` errs towards that side. If it is wrong, such a change is ignored,
//! or refused in strict mode; it is never seen by another call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Cheap to clone; keep it as long as the script's text does not change.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    number: u64,
    name: String,
    source: String,
    has_own_realm: bool,
}

impl Program {
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (name, source) = (name.into(), source.into());
        let (number, has_own_realm) = (NUMBERS.fetch_add(1, Ordering::Relaxed), wants_own_realm(&source));
        Program { inner: Arc::new(Inner { number, name, source, has_own_realm }) }
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub fn source(&self) -> &str {
        &self.inner.source
    }

    pub(crate) fn number(&self) -> u64 {
        self.inner.number
    }

    pub(crate) fn has_own_realm(&self) -> bool {
        self.inner.has_own_realm
    }

    /// The text as the body of a function that makes the script's function, so that each call has a fresh one.
    ///
    ///   function (a) { … }                       ()=>(function (a) { … }⏎)
    ///   function main() { … } function b() { … } ()=>{function main() { … } function b() { … }⏎;return main}
    pub(crate) fn factories(&self) -> impl Iterator<Item = String> + '_ {
        let expression = format!("{EXPRESSION_PREFIX}{}\n)", self.inner.source);
        let declarations =
            first_function(&self.inner.source).map(|main| format!("()=>{{{}\n;return {main}}}", self.inner.source));
        std::iter::once(expression).chain(declarations)
    }
}

/// Stands before the first line of a script; columns are counted without it.
pub(crate) const EXPRESSION_PREFIX: &str = "()=>(";

/// The name of the first function that is declared; a script of several is entered there.
fn first_function(source: &str) -> Option<&str> {
    let words = words(source);
    let mut names = words.windows(2).filter(|pair| pair[0].text == "function").map(|pair| pair[1].text);
    names.next()
}

#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

/// Identifiers and keywords, wherever they stand: also in strings and comments.
fn words(source: &str) -> Vec<Word<'_>> {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in source.char_indices().chain([(source.len(), ' ')]) {
        match (start, is_inside(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found.push(Word { text: &source[from..at], start: from });
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Names by which a script reaches a built-in to change it.
const REACHING: [&str; 12] = [
    "__proto__",
    "defineProperty",
    "defineProperties",
    "setPrototypeOf",
    "getPrototypeOf",
    "__defineGetter__",
    "__defineSetter__",
    "Reflect",
    "globalThis",
    "eval",
    "Function",
    "constructor",
];

const BUILT_IN: [&str; 26] = [
    "Object", "Array", "String", "Number", "Boolean", "Date", "RegExp", "Math", "JSON", "Map", "Set", "WeakMap",
    "WeakSet", "Promise", "Proxy", "Symbol", "Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError",
    "EvalError", "URIError", "BigInt", "console", "ErrorCodes",
];

fn wants_own_realm(source: &str) -> bool {
    words(source).iter().any(|word| {
        let after = source[word.start + word.text.len()..].trim_start();
        REACHING.contains(&word.text)
            || word.text == "prototype" && !is_borrowed_method(after)
            || BUILT_IN.contains(&word.text) && !is_plain_use(before(source, word.start), after)
    })
}

fn before(source: &str, at: usize) -> &str {
    source[..at].trim_end()
}

/// `prototype.slice.call(…)` takes a method, it changes none.
fn is_borrowed_method(after: &str) -> bool {
    let Some((_, rest)) = member(after) else { return false };
    matches!(member(rest), Some(("call" | "apply" | "bind", _)))
}

/// `Math.max(…)`, `Number.EPSILON`, `String(x)`, `new Date`, `x instanceof Array`, `{ Date: … }`, `doc.Date`: uses, not changes.
fn is_plain_use(before: &str, after: &str) -> bool {
    if before.ends_with('.') || after.starts_with(['(', ':', '"', '\'']) {
        return true;
    }
    if before.ends_with("new") || before.ends_with("instanceof") || before.ends_with("catch") {
        return true;
    }
    member(after).is_some_and(|(_, rest)| !is_assigned(rest))
}

/// `.name` and what follows it.
fn member(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('.')?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    (end > 0).then(|| (&rest[..end], rest[end..].trim_start()))
}

fn is_assigned(rest: &str) -> bool {
    let is_compared = rest.starts_with("==") || rest.starts_with("=>");
    rest.starts_with('=') && !is_compared || rest.starts_with('[') || rest.starts_with("++") || rest.starts_with("--")
}
