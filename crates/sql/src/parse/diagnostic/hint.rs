//! Hints for syntax errors: constructs of other SQL dialects, and what to write instead.
//!
//! A hint is a guess from the unexpected token and its neighbors. It never decides whether a text is an error; the
//! parser does.

use super::super::Span;
use super::super::lexer::{Lexer, Token};
use super::super::parser::is_reserved;

/// The unexpected token, the token before it and the text after it, as written.
struct TokenContext<'t> {
    before: &'t str,
    token: &'t str,
    /// Nothing separates the two tokens.
    touching: bool,
    after: &'t str,
}

pub(super) fn for_syntax(span: Span, text: &str) -> Option<String> {
    let context = token_context(span, text);
    let fixed = count_hint(&context)
        .or_else(|| symbol_hint(&context))
        .or_else(|| string_hint(&context))
        .or_else(|| word_hint(&context));
    fixed.map(str::to_owned).or_else(|| reserved_hint(&context))
}

fn token_context(span: Span, text: &str) -> TokenContext<'_> {
    let mut lexer = Lexer::new(text);
    let mut before = Span::default();
    loop {
        let lexed = lexer.advance();
        if lexed.span.start >= span.start || lexed.token == Token::End {
            break;
        }
        before = lexed.span;
    }
    let after = text.get(span.end..).unwrap_or("");
    TokenContext { before: before.of(text), token: span.of(text), touching: before.end == span.start, after }
}

const BARE_NAMES: &str = "Names are not quoted: write c.name, or c[\"name\"] when it is not an identifier.";
const COMMENTS: &str = "Comments begin with -- and end with the line.";
const PARAMETERS: &str = "Parameters begin with @.";

fn count_hint(context: &TokenContext<'_>) -> Option<&'static str> {
    let expects_count = ["TOP", "OFFSET", "LIMIT"].iter().any(|word| context.before.eq_ignore_ascii_case(word));
    let is_not_a_count = context.token.starts_with(['-', '+', '(', '\'', '"']);
    (expects_count && is_not_a_count).then_some("A count is a whole number from 0 on, or a parameter.")
}

fn symbol_hint(context: &TokenContext<'_>) -> Option<&'static str> {
    Some(match (context.before, context.token) {
        ("=", "=") => "Equality is written with one '='.",
        ("&", "&") => "Write AND: '&' works on the bits of numbers.",
        ("/", "/") => COMMENTS,
        (_, "/") if context.after.starts_with('*') => COMMENTS,
        (_, "!") => "Write NOT, or != to compare.",
        (_, ";") => "A request holds one query, without a semicolon.",
        (_, "`") => BARE_NAMES,
        ("." | "FROM" | "from" | "JOIN" | "join" | "AS" | "as", "[") => BARE_NAMES,
        ("(", "*") => "Write COUNT(1) to count items.",
        ("." | "," | "VALUE" | "value", "*") | ("*", ",") => {
            "The star stands alone: write SELECT * or name the properties."
        }
        (_, "$" | "#") => PARAMETERS,
        ("=" | "<" | ">" | "<=" | ">=" | "!=" | "<>" | "(" | ",", ":" | "?") => PARAMETERS,
        (_, "‘" | "’" | "“" | "”") => "Strings stand between straight quotes.",
        _ => return None,
    })
}

fn string_hint(context: &TokenContext<'_>) -> Option<&'static str> {
    let is_quoted = |token: &str| token.starts_with(['\'', '"']);
    if !is_quoted(context.token) {
        return None;
    }
    if context.touching && is_quoted(context.before) {
        return Some("A quote inside a string is written \\' or \\\", not doubled.");
    }
    let closed = context.token.len() > 1 && context.token.ends_with(&context.token[..1]);
    (!closed).then_some("The string is not closed.")
}

/// Words of other dialects. The parser has often read such a word as an alias, so the error is at the token after it.
const FOREIGN: [(&[&str], &str); 9] = [
    (&["LIMIT"], "LIMIT follows OFFSET: write OFFSET 0 LIMIT 10, or SELECT TOP 10."),
    (&["OFFSET"], "OFFSET needs LIMIT: write OFFSET 0 LIMIT 10."),
    (&["IS"], "Write IS_NULL(c.name), or NOT IS_DEFINED(c.name) for a property that is not there."),
    (
        &["ON", "INNER", "OUTER", "LEFT", "RIGHT", "CROSS", "FULL"],
        "JOIN goes through an array of the same item: write JOIN x IN c.items, without ON.",
    ),
    (&["HAVING"], "There is no HAVING: filter the groups after the query."),
    (&["UNION", "INTERSECT", "EXCEPT"], "One query at a time: combine results after the query."),
    (&["WHEN", "CASE"], "Write condition ? value : otherwise."),
    (&["INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP"], "Queries only read: items are written one by one."),
    (&["DISTINCT"], "Count distinct values with SELECT COUNT(1) FROM (SELECT DISTINCT VALUE c.name FROM c)."),
];

fn word_hint(context: &TokenContext<'_>) -> Option<&'static str> {
    let is_one_of = |words: &[&str], token: &str| words.iter().any(|word| token.eq_ignore_ascii_case(word));
    let hint = |token: &str| FOREIGN.iter().find(|(words, _)| is_one_of(words, token)).map(|(_, hint)| *hint);
    hint(context.token).or_else(|| hint(context.before).filter(|_| !context.before.eq_ignore_ascii_case("DISTINCT")))
}

fn reserved_hint(context: &TokenContext<'_>) -> Option<String> {
    let token = context.token;
    match context.before {
        "." if is_reserved(token) => Some(format!("'{token}' is a reserved word: write [\"{token}\"].")),
        word if word.eq_ignore_ascii_case("AS") && is_reserved(token) => {
            Some(format!("'{token}' is a reserved word: choose another alias."))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
