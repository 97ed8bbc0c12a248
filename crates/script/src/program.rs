//! A script's text, and which kind of realm it needs.
//!
//! Promise: the text is kept as it came; nothing is run here. Whether it compiles is found out by the first runtime
//! that meets it, and remembered there: QuickJS can load foreign bytecode only unsafely, so compiled programs stay on
//! their thread, keyed by the program's number.
//!
//! Most scripts run in a realm that is shared by all calls of a thread and frozen, so that nothing can be left behind.
//! A script that changes built-ins (`String.prototype.format = …`) needs one of its own, made for the call and thrown
//! away, which takes about a millisecond instead of microseconds. `wants_own_realm` errs towards that side. If it is wrong, such a change is ignored,
//! or refused in strict mode; it is never seen by another call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Cheap to clone; keep it as long as the script's text does not change.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<ProgramText>,
}

#[derive(Debug)]
struct ProgramText {
    number: u64,
    name: String,
    source: String,
    has_own_realm: bool,
    is_plain: bool,
    is_stateless: bool,
}

impl Program {
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (name, source) = (name.into(), source.into());
        let (number, has_own_realm) = (NUMBERS.fetch_add(1, Ordering::Relaxed), wants_own_realm(&source));
        let is_plain = !has_own_realm && is_plain(&source);
        let is_stateless = is_plain && is_stateless(&source);
        Program { inner: Arc::new(ProgramText { number, name, source, has_own_realm, is_plain, is_stateless }) }
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

    /// It cannot have left anything in the global object.
    pub(crate) fn is_plain(&self) -> bool {
        self.inner.is_plain
    }

    /// Its function is as good as new after a call.
    pub(crate) fn is_stateless(&self) -> bool {
        self.inner.is_stateless
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
fn first_function(source: &str) -> Option<String> {
    let code = code_only(source);
    let words = words(&code);
    let mut names = words.windows(2).filter(|pair| pair[0].text == "function").map(|pair| pair[1].text);
    names.next().map(str::to_owned)
}

/// The text without comments and with strings emptied: words in them are talk. A quote in a regular expression can
/// mislead it until the end of the line, which is good enough for a guess.
fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(['/', '"', '\'', '`']) {
        code.push_str(&rest[..at]);
        let (kept, left) = after_talk(&rest[at..]);
        code.push_str(kept);
        rest = left;
    }
    code + rest
}

/// What stands for a comment or string at the beginning of the text, and what follows it.
fn after_talk(text: &str) -> (&str, &str) {
    let from = |at: Option<usize>, more: usize| at.map_or("", |at| &text[at + more..]);
    match text.as_bytes() {
        [b'/', b'/', ..] => (" ", from(text.find('\n'), 0)),
        [b'/', b'*', ..] => (" ", from(text.find("*/"), 2)),
        [b'/', ..] => ("/", &text[1..]),
        _ => (&text[..1], from(string_end(text), 1)),
    }
}

/// Where the string that begins here ends: at its quote, or where its line does.
fn string_end(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut is_escaped = false;
    let mut inside = text.char_indices().skip(1);
    let end = inside.find(|(_, c)| {
        let ends = !is_escaped && (*c == quote || *c == '\n' && quote != '`');
        is_escaped = !is_escaped && *c == '\\';
        ends
    });
    end.map(|(at, _)| at)
}

#[derive(Clone, Copy)]
struct SourceWord<'a> {
    text: &'a str,
    start: usize,
}

/// Identifiers and keywords.
fn words(source: &str) -> Vec<SourceWord<'_>> {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in source.char_indices().chain([(source.len(), ' ')]) {
        match (start, is_inside(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found.push(SourceWord { text: &source[from..at], start: from });
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Names by which a script reaches a built-in to change it.
const REACHING: [&str; 11] = [
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
];

const BUILT_IN: [&str; 26] = [
    "Object",
    "Array",
    "String",
    "Number",
    "Boolean",
    "Date",
    "RegExp",
    "Math",
    "JSON",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "Promise",
    "Proxy",
    "Symbol",
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "ReferenceError",
    "EvalError",
    "URIError",
    "BigInt",
    "console",
    "ErrorCodes",
];

fn wants_own_realm(source: &str) -> bool {
    let source = &code_only(source);
    words(source).iter().any(|word| {
        let after = source[word.start + word.text.len()..].trim_start();
        REACHING.contains(&word.text)
            || word.text == "constructor" && before(source, word.start).ends_with('.')
            || word.text == "prototype" && !is_borrowed_method(after)
            || BUILT_IN.contains(&word.text) && !is_plain_use(before(source, word.start), after)
    })
}

/// Whether nothing is assigned but what is declared on the spot, and nobody asks who is `this` or reaches into an object by a
/// name that is worked out. A script with anything else, harmless or not, is swept after; so is one with a slash, which may
/// begin a regular expression and mislead `code_only`.
fn is_plain(source: &str) -> bool {
    const TELLING: [&str; 7] = ["this", "async", "await", "yield", "in", "of", "with"];
    const SIGNS: [&str; 5] = ["++", "--", "`", "/", "\\"];
    let code = &code_only(source);
    let is_quiet = !words(code).iter().any(|word| TELLING.contains(&word.text));
    is_quiet
        && !SIGNS.iter().any(|sign| code.contains(sign))
        && !code.match_indices('[').any(|(at, _)| reaches_in(before(code, at)))
        && assignments(code).all(|at| is_declaration(code, at))
}

/// Whether a bracket behind this opens a member.
fn reaches_in(left: &str) -> bool {
    left.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ')' | ']' | '}' | '"' | '\''))
}

/// Whether a plain text is one function and nothing around it, so that it has nothing to remember by but itself, and does not
/// reach for what could write on that.
fn is_stateless(source: &str) -> bool {
    let code = code_only(source);
    let code = code.trim();
    let Some(body) = code.find('{') else { return false };
    let mut depth = 0;
    let end = code.char_indices().skip_while(|(at, _)| *at < body).find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth == 0
    });
    let is_whole = end.is_some_and(|(at, _)| at + 1 == code.len());
    is_whole && code.starts_with("function") && !words(code).iter().any(|word| word.text == "Object")
}

/// Where an equals sign stands that compares nothing and is no arrow.
fn assignments(code: &str) -> impl Iterator<Item = usize> {
    let is_assignment = |at: &usize| match (&code.as_bytes()[..*at], &code.as_bytes()[at + 1..]) {
        (_, [b'=' | b'>', ..]) | ([.., b'=' | b'!'], _) => false,
        ([.., one, other], _) if one == other => true, // a >>= b
        ([.., b'<' | b'>'], _) => false,
        _ => true,
    };
    code.match_indices('=').map(|(at, _)| at).filter(is_assignment)
}

/// `var name =`, and its kin.
fn is_declaration(code: &str, at: usize) -> bool {
    let left = code[..at].trim_end();
    let Some(name) = words(left).last().copied().filter(|word| word.start + word.text.len() == left.len()) else {
        return false;
    };
    let keyword = before(left, name.start);
    ["var", "let", "const"].iter().any(|word| {
        keyword
            .strip_suffix(word)
            .is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.'))
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

/// `Math.max(…)`, `Number.EPSILON`, `String(x)`, `new Date`, `x instanceof Array`, `extends Error`, `{ Date: … }`, `doc.Date`: uses, not changes.
fn is_plain_use(before: &str, after: &str) -> bool {
    if is_only_looked_at(before, after) || before.ends_with('.') || after.starts_with(['(', ':', '"', '\'']) {
        return true;
    }
    if ["new", "instanceof", "extends"].iter().any(|word| before.ends_with(word)) {
        return true;
    }
    member(after).is_some_and(|(_, rest)| !is_assigned(rest))
}

/// `list.map(Number)`, `x.constructor === Array`.
fn is_only_looked_at(before: &str, after: &str) -> bool {
    const ITERATING: [&str; 6] = [".map(", ".filter(", ".some(", ".every(", ".find(", ".flatMap("];
    let is_callback = after.starts_with(')') && ITERATING.iter().any(|call| before.ends_with(call));
    let is_compared = |operator: &&str| before.ends_with(*operator) || after.starts_with(*operator);
    is_callback || ["==", "!="].iter().any(is_compared)
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
