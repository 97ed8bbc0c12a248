//! Script program: a script's text, and the kind of realm it needs.
//!
//! The text is stored unchanged; nothing is run here. The first runtime that uses the program compiles it and caches
//! the result: loading bytecode from elsewhere is unsafe in QuickJS, so compiled programs stay on their thread, keyed
//! by the program's number.
//!
//! Most scripts run in a realm that is shared by all calls of a thread and frozen, so that a call cannot leave state
//! behind. A script that changes built-ins (`String.prototype.format = …`) needs its own realm, created for the call
//! and discarded after it, which takes about a millisecond instead of microseconds. `needs_own_realm` is conservative:
//! in doubt it returns true. If it misses a change, the change is ignored, or throws in strict mode; another call never
//! sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Cheap to clone; reuse it while the script's text does not change.
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
    leaves_globals_unchanged: bool,
    is_stateless: bool,
}

impl Program {
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (name, source) = (name.into(), source.into());
        let (number, has_own_realm) = (NUMBERS.fetch_add(1, Ordering::Relaxed), needs_own_realm(&source));
        let leaves_globals_unchanged = !has_own_realm && leaves_globals_unchanged(&source);
        let is_stateless = leaves_globals_unchanged && is_stateless(&source);
        Program {
            inner: Arc::new(ProgramText {
                number,
                name,
                source,
                has_own_realm,
                leaves_globals_unchanged,
                is_stateless,
            }),
        }
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

    /// A call cannot have left anything in the global object.
    pub(crate) fn leaves_globals_unchanged(&self) -> bool {
        self.inner.leaves_globals_unchanged
    }

    /// Its function keeps no state between calls.
    pub(crate) fn is_stateless(&self) -> bool {
        self.inner.is_stateless
    }

    /// The text as the body of a factory, which returns the script's function, so that each call has a fresh one.
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

/// Precedes the first line of a script; columns are counted without it.
pub(crate) const EXPRESSION_PREFIX: &str = "()=>(";

/// The name of the first declared function: the entry point of a script with several functions.
fn first_function(source: &str) -> Option<String> {
    let code = code_only(source);
    let words = words(&code);
    let mut names = words.windows(2).filter(|pair| pair[0].text == "function").map(|pair| pair[1].text);
    names.next().map(str::to_owned)
}

/// The text without comments and with empty strings: words in them are not code. A quote in a regular expression can
/// mislead it until the end of the line, which is good enough for a heuristic.
fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(['/', '"', '\'', '`']) {
        code.push_str(&rest[..at]);
        let (replacement, remaining) = skip_comment_or_string(&rest[at..]);
        code.push_str(replacement);
        rest = remaining;
    }
    code + rest
}

/// The replacement of a comment or string at the beginning of the text, and the text after it.
fn skip_comment_or_string(text: &str) -> (&str, &str) {
    let from = |at: Option<usize>, more: usize| at.map_or("", |at| &text[at + more..]);
    match text.as_bytes() {
        [b'/', b'/', ..] => (" ", from(text.find('\n'), 0)),
        [b'/', b'*', ..] => (" ", from(text.find("*/"), 2)),
        [b'/', ..] => ("/", &text[1..]),
        _ => (&text[..1], from(string_end(text), 1)),
    }
}

/// The end of the string that begins here: its closing quote, or the end of its line.
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

/// Names through which a script can reach a built-in to change it.
const REFLECTIVE_NAMES: [&str; 11] = [
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

const BUILT_INS: [&str; 26] = [
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

fn needs_own_realm(source: &str) -> bool {
    let source = &code_only(source);
    words(source).iter().any(|word| {
        let after = source[word.start + word.text.len()..].trim_start();
        REFLECTIVE_NAMES.contains(&word.text)
            || word.text == "constructor" && before(source, word.start).ends_with('.')
            || word.text == "prototype" && !is_borrowed_method(after)
            || BUILT_INS.contains(&word.text) && !is_read_only_use(before(source, word.start), after)
    })
}

/// Whether the script assigns only variables that it declares in the same statement, and uses neither `this` nor
/// computed member names. After any other script, harmless or not, the realm is reset; also after one with a slash,
/// which may begin a regular expression and mislead `code_only`.
fn leaves_globals_unchanged(source: &str) -> bool {
    const SUSPECT_WORDS: [&str; 7] = ["this", "async", "await", "yield", "in", "of", "with"];
    const SUSPECT_TOKENS: [&str; 5] = ["++", "--", "`", "/", "\\"];
    let code = &code_only(source);
    let has_no_suspect_word = !words(code).iter().any(|word| SUSPECT_WORDS.contains(&word.text));
    has_no_suspect_word
        && !SUSPECT_TOKENS.iter().any(|sign| code.contains(sign))
        && !code.match_indices('[').any(|(at, _)| precedes_member_access(before(code, at)))
        && assignments(code).all(|at| is_declaration(code, at))
}

/// Whether a bracket after this text is a member access.
fn precedes_member_access(left: &str) -> bool {
    left.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ')' | ']' | '}' | '"' | '\''))
}

/// Whether the text is one function without outer code, so that only the function object itself could hold state, and
/// it does not use `Object`, which could write to that object.
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

/// The positions of equals signs that are neither part of a comparison nor of an arrow.
fn assignments(code: &str) -> impl Iterator<Item = usize> {
    let is_assignment = |at: &usize| match (&code.as_bytes()[..*at], &code.as_bytes()[at + 1..]) {
        (_, [b'=' | b'>', ..]) | ([.., b'=' | b'!'], _) => false,
        ([.., one, other], _) if one == other => true, // a >>= b
        ([.., b'<' | b'>'], _) => false,
        _ => true,
    };
    code.match_indices('=').map(|(at, _)| at).filter(is_assignment)
}

/// `var name =`, and likewise `let` and `const`.
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

/// `prototype.slice.call(…)` uses a method and changes none.
fn is_borrowed_method(after: &str) -> bool {
    let Some((_, rest)) = member(after) else { return false };
    matches!(member(rest), Some(("call" | "apply" | "bind", _)))
}

/// `Math.max(…)`, `Number.EPSILON`, `String(x)`, `new Date`, `x instanceof Array`, `extends Error`, `{ Date: … }`,
/// `doc.Date`: uses, not changes.
fn is_read_only_use(before: &str, after: &str) -> bool {
    if is_callback_or_compared(before, after) || before.ends_with('.') || after.starts_with(['(', ':', '"', '\'']) {
        return true;
    }
    if ["new", "instanceof", "extends"].iter().any(|word| before.ends_with(word)) {
        return true;
    }
    member(after).is_some_and(|(_, rest)| !is_assigned(rest))
}

/// `list.map(Number)`, `x.constructor === Array`.
fn is_callback_or_compared(before: &str, after: &str) -> bool {
    const ITERATION_METHODS: [&str; 6] = [".map(", ".filter(", ".some(", ".every(", ".find(", ".flatMap("];
    let is_callback = after.starts_with(')') && ITERATION_METHODS.iter().any(|call| before.ends_with(call));
    let is_compared = |operator: &&str| before.ends_with(*operator) || after.starts_with(*operator);
    is_callback || ["==", "!="].iter().any(is_compared)
}

/// `.name` and the text after it.
fn member(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('.')?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    (end > 0).then(|| (&rest[..end], rest[end..].trim_start()))
}

fn is_assigned(rest: &str) -> bool {
    let is_compared = rest.starts_with("==") || rest.starts_with("=>");
    rest.starts_with('=') && !is_compared || rest.starts_with('[') || rest.starts_with("++") || rest.starts_with("--")
}
