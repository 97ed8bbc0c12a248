//! Property paths: from the root of an item to one property.
//!
//! Invariant: a path names exactly one property. It has no wildcard and no array index; those belong
//! to index paths, which `policy` parses.
//!
//! ```text
//!   /department            department
//!   /properties/name       properties → name
//!   /"department name"     department name
//!   /'a/b'/"say \"x\""     a/b → say "x"          inside quotes `/` is literal and `\` escapes
//! ```

use std::hash::{Hash, Hasher};

use crate::{Error, Result, Value};

#[cfg(test)]
mod tests;

/// Two paths are equal if they name the same property: `/a` equals `/"a"`.
#[derive(Clone, Debug)]
pub struct PropertyPath {
    text: String,
    segments: Vec<String>,
}

impl PropertyPath {
    pub fn parse(text: &str) -> Result<Self> {
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() || segments.is_empty() {
            rest = rest.strip_prefix('/').ok_or_else(|| invalid(text, "every segment begins with '/'"))?;
            let (segment, after) = read_segment(rest).map_err(|why| invalid(text, why))?;
            segments.push(segment);
            rest = after;
        }
        Ok(PropertyPath { text: text.to_owned(), segments })
    }

    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The path as the client wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value at this path; paths do not go through arrays.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.segments.iter().try_fold(value, |at, name| at.get(name))
    }
}

fn invalid(text: &str, why: &str) -> Error {
    Error::invalid(format!(
        "The path '{text}' is invalid: {why}. Write one property as /a/b, and a name with other characters in quotes: /\"a b\"."
    ))
}

/// One segment without its slash, and the text after it.
fn read_segment(text: &str) -> Result<(String, &str), &'static str> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => read_quoted(quote, &text[1..]),
        _ => read_bare(text),
    }
}

fn read_bare(text: &str) -> Result<(String, &str), &'static str> {
    let (name, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
    if name.is_empty() {
        return Err("a segment is empty");
    }
    if matches!(name, "*" | "?" | "[]") {
        return Err("'*', '?' and '[]' belong to index paths, this one names a single property");
    }
    if !name.chars().all(is_bare) {
        return Err("outside quotes a name has letters, digits, '_' and '-' only");
    }
    Ok((name.to_owned(), rest))
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii()
}

fn read_quoted(quote: char, text: &str) -> Result<(String, &str), &'static str> {
    let mut name = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => name.push(chars.next().ok_or("it ends after a '\\'")?),
            c if c == quote => return Ok((name, chars.as_str())),
            c => name.push(c),
        }
    }
    Err("a quote is not closed")
}

impl PartialEq for PropertyPath {
    fn eq(&self, other: &Self) -> bool {
        self.segments == other.segments
    }
}

impl Eq for PropertyPath {}

impl Hash for PropertyPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segments.hash(state);
    }
}
