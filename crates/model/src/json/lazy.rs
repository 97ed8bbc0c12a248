//! Lazy JSON: finds values in JSON text without parsing all of it.
//!
//! Guarantees: in text that `json` wrote, or would accept, a value is found where `json::parse` would find it, and only
//! the bytes up to its end are read. Of a duplicate name the first occurrence counts; text that `json` wrote has no
//! duplicates. On other bytes the results are meaningless, but nothing panics, nothing recurses, and every scan ends.
//!
//! The text is not validated here; text from outside must pass `json::parse` first.
//!
//! ```text
//! {"id":"a","tags":["x","y"],"n":5}
//!                  └───┬───┘            property(text, "tags")
//!                       └┬┘             element(tags, 1)
//! ```

use std::borrow::Cow;

use memchr::memchr2;

use crate::{Number, Value};

#[cfg(test)]
mod tests;

/// The type of a value, as its first byte determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// `None` if no value begins here.
pub fn json_type(text: &[u8]) -> Option<JsonType> {
    match *text.get(skip_space(text, 0))? {
        b'"' => Some(JsonType::String),
        b'{' => Some(JsonType::Object),
        b'[' => Some(JsonType::Array),
        b'n' => Some(JsonType::Null),
        b't' | b'f' => Some(JsonType::Bool),
        b'-' | b'0'..=b'9' => Some(JsonType::Number),
        _ => None,
    }
}

/// The end of the value that begins at `at`: the first byte that is not part of it.
pub fn skip(text: &[u8], at: usize) -> usize {
    let at = skip_space(text, at);
    match text.get(at) {
        Some(b'"') => skip_string(text, at + 1),
        Some(b'{') => skip_nested(text, at + 1, CURLY),
        Some(b'[') => skip_nested(text, at + 1, SQUARE),
        _ => skip_while(text, at, |byte| !ends_literal(byte)),
    }
}

/// The text of a property's value.
pub fn property<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    properties(object).find(|property| string_equals(property.name, name)).map(|property| property.value)
}

/// The text of an array's nth element, from zero.
pub fn element(array: &[u8], n: usize) -> Option<&[u8]> {
    elements(array).nth(n)
}

/// A property as slices of the object's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawProperty<'a> {
    /// With its quotes, escaped as it is in the text: see `string` and `string_equals`.
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// Where the value begins in the object's text.
    pub value_at: usize,
}

/// The properties of an object in text order; empty if the text is not an object.
pub fn properties(object: &[u8]) -> RawProperties<'_> {
    RawProperties { scanner: JsonScanner::inside(object, b'{') }
}

#[derive(Clone, Debug)]
pub struct RawProperties<'a> {
    scanner: JsonScanner<'a>,
}

impl<'a> Iterator for RawProperties<'a> {
    type Item = RawProperty<'a>;

    fn next(&mut self) -> Option<RawProperty<'a>> {
        let (name, _) = self.scanner.next_value(b'}')?;
        self.scanner.expect(b':')?;
        let (value, value_at) = self.scanner.next_value(b'}')?;
        self.scanner.skip_comma();
        Some(RawProperty { name, value, value_at })
    }
}

/// The texts of an array's elements; empty if the text is not an array.
pub fn elements(array: &[u8]) -> Elements<'_> {
    Elements { scanner: JsonScanner::inside(array, b'[') }
}

#[derive(Clone, Debug)]
pub struct Elements<'a> {
    scanner: JsonScanner<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (element, _) = self.scanner.next_value(b']')?;
        self.scanner.skip_comma();
        Some(element)
    }
}

/// A position between two tokens of an array or object. At the end of the text the scan is finished.
#[derive(Clone, Debug)]
struct JsonScanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> JsonScanner<'a> {
    fn inside(text: &'a [u8], open: u8) -> Self {
        let mut scanner = JsonScanner { text, at: 0 };
        if scanner.expect(open).is_none() {
            scanner.at = text.len();
        }
        scanner
    }

    fn expect(&mut self, token: u8) -> Option<()> {
        let at = skip_space(self.text, self.at);
        (*self.text.get(at)? == token).then(|| self.at = at + 1)
    }

    /// The next value and the position where it begins.
    fn next_value(&mut self, close: u8) -> Option<(&'a [u8], usize)> {
        let from = skip_space(self.text, self.at);
        if *self.text.get(from)? == close {
            return None;
        }
        self.at = skip(self.text, from);
        // A value has at least one byte; an empty one would not advance the scan.
        let value = self.text.get(from..self.at).filter(|value| !value.is_empty())?;
        Some((value, from))
    }

    /// Skips the comma; if none follows, the scan is finished.
    fn skip_comma(&mut self) {
        if self.expect(b',').is_none() {
            self.at = self.text.len();
        }
    }
}

/// A number, parsed exactly as `json::parse` does.
pub fn number(text: &[u8]) -> Option<Number> {
    let text = text.trim_ascii();
    match text {
        [b'-', digits @ ..] => integer(digits).filter(|n| *n > 0).map(|n| Number::Int(-n)),
        digits => integer(digits).map(Number::Int),
    }
    .or_else(|| long_number(text))
}

/// Up to 18 digits, which always fit an `i64`.
fn integer(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

fn long_number(text: &[u8]) -> Option<Number> {
    // Without this check the standard library would also accept "inf".
    text.last().filter(|byte| byte.is_ascii_digit())?;
    let text =
        std::str::from_utf8(text).ok().filter(|text| text.starts_with(|c: char| c == '-' || c.is_ascii_digit()))?;
    if text == "-0" {
        return Some(Number::Float(-0.0));
    }
    let exact = text.parse().map(Number::Int).or_else(|_| text.parse().map(Number::UInt)).ok();
    exact.or_else(|| text.parse().ok().filter(|n: &f64| n.is_finite()).map(Number::Float))
}

/// The unescaped string; borrowed from the text unless that has escapes. `None` if the text is not a string.
pub fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    let quoted = quoted(text)?;
    match memchr::memchr(b'\\', quoted) {
        None => Some(String::from_utf8_lossy(quoted)),
        Some(_) => super::parse(text).ok().and_then(|value| match value {
            Value::String(text) => Some(Cow::Owned(text)),
            _ => None,
        }),
    }
}

/// Whether the text is a string with this value.
pub fn string_equals(text: &[u8], expected: &str) -> bool {
    let Some(quoted) = quoted(text) else { return false };
    // An escape is longer than its character, so text of the same length without escapes is equal only byte for byte.
    match quoted.len() == expected.len() {
        true => quoted == expected.as_bytes() && memchr::memchr(b'\\', quoted).is_none(),
        false => quoted.len() > expected.len() && string(text).is_some_and(|is| is == expected),
    }
}

/// The bytes between the quotes.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    match text.trim_ascii() {
        [b'"', quoted @ .., b'"'] => Some(quoted),
        _ => None,
    }
}

/// A scalar value; `None` for arrays and objects.
pub fn scalar(text: &[u8]) -> Option<Value> {
    match json_type(text)? {
        JsonType::Null => Some(Value::Null),
        JsonType::Bool => Some(Value::Bool(text.trim_ascii() == b"true")),
        JsonType::Number => number(text).map(Value::Number),
        JsonType::String => string(text).map(|text| Value::String(text.into_owned())),
        JsonType::Array | JsonType::Object => None,
    }
}

/// The hash of a property's name in a record's property table. FNV-1a is good enough: names are compared anyway.
pub fn name_hash(name: &str) -> u32 {
    name.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The position after the closing quote of a string whose opening quote is just before `at`.
fn skip_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        match text.get(at + found) {
            Some(b'\\') => at += found + 2,
            _ => return at + found + 1,
        }
    }
    text.len()
}

/// The position after the end of an object or array whose opening bracket is just before `at`. Counting brackets of one
/// shape is enough: in valid text the brackets of the other shape are balanced in between.
fn skip_nested(text: &[u8], mut at: usize, bracket: Bracket) -> usize {
    let mut depth = 1usize;
    while let Some(byte) = text.get(at) {
        at += 1;
        match STRUCTURAL[usize::from(*byte)] & (bracket | QUOTE) {
            0 => {}
            QUOTE => at = skip_string(text, at),
            _ if *byte == b'{' || *byte == b'[' => depth += 1,
            _ if depth == 1 => return at,
            _ => depth -= 1,
        }
    }
    text.len()
}

fn skip_space(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(byte) if *byte > b' ' => at,
        _ => skip_while(text, at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')),
    }
}

fn skip_while(text: &[u8], at: usize, predicate: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().position(|&byte| !predicate(byte)).map_or(text.len(), |passed| at + passed)
}

fn ends_literal(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r')
}

type Bracket = u8;
const CURLY: Bracket = 1;
const SQUARE: Bracket = 2;
const QUOTE: u8 = 4;

/// For each byte, its role in the search for the end of an object or array.
const STRUCTURAL: [u8; 256] = {
    let mut table = [0; 256];
    table[b'{' as usize] = CURLY;
    table[b'}' as usize] = CURLY;
    table[b'[' as usize] = SQUARE;
    table[b']' as usize] = SQUARE;
    table[b'"' as usize] = QUOTE;
    table
};
