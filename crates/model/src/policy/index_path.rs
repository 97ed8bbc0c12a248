//! Index paths: the paths of an indexing policy.
//!
//! ```text
//! /a/b/?            the scalar at a.b
//! /a/*              everything at and below a        (`/*` and the older `/` are the root)
//! /a/[]/b/?         b in every element of array a
//! /"x y"/?          a name with other characters; `\` escapes the quote
//! /a/[]/{x,y/z}/?   the tuple (x, y.z) of every element of a
//! ```
//!
//! Guarantees: the text is returned as it was sent; two spellings of one path have equal `steps` and
//! `end`. `matcher` evaluates a set of paths for a value.

use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    Property(String),
    /// `[]`: any element of an array.
    Element,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// `/?`: the scalar here. Composite paths have no end in their text and imply this one.
    Scalar,
    /// `/*`: everything here and below.
    Subtree,
    /// `/{…}/?`: these properties of each element, indexed together.
    Tuple(Vec<Vec<String>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPath {
    text: String,
    pub steps: Vec<PathStep>,
    pub end: End,
}

impl IndexPath {
    /// An included or excluded path, which ends in `/?` or `/*`.
    pub fn parse(text: &str) -> Result<Self> {
        let (steps, end) = steps_and_end(text).map_err(|at| malformed(text, at))?;
        Ok(IndexPath { text: text.to_owned(), steps, end })
    }

    /// A path of a composite index: no wildcard at the end, `/?` is implied.
    pub fn parse_bare(text: &str) -> Result<Self> {
        let steps = tokens(text).and_then(|tokens| steps(&tokens)).map_err(|at| malformed(text, at))?;
        Ok(IndexPath { text: text.to_owned(), steps, end: End::Scalar })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether the path starts at this property of the item.
    pub fn starts_at(&self, property: &str) -> bool {
        matches!(self.steps.first(), Some(PathStep::Property(name)) if name == property)
    }
}

fn malformed(text: &str, at: usize) -> Error {
    Error::invalid(format!(
        "The indexing path '{text}' could not be accepted, failed near position '{at}'. Write /name/? for one value, \
         /name/* for everything below it, [] for the elements of an array, and quote names that have other characters \
         than letters, digits and _."
    ))
}

/// The token between two slashes, with the byte position where it starts.
type SpannedPathToken = (usize, PathToken);

#[derive(Debug, PartialEq)]
enum PathToken {
    Step(PathStep),
    Question,
    Star,
    Tuple(Vec<Vec<String>>),
}

/// In the functions below, an error is the byte position that cannot be parsed.
fn steps_and_end(text: &str) -> Result<(Vec<PathStep>, End), usize> {
    if text == "/" {
        return Ok((Vec::new(), End::Subtree));
    }
    let mut tokens = tokens(text)?;
    let (at, last) = tokens.pop().ok_or(0usize)?;
    match last {
        PathToken::Star => Ok((steps(&tokens)?, End::Subtree)),
        PathToken::Question => match tokens.pop() {
            Some((at, PathToken::Tuple(fields))) => Ok((tuple_steps(&tokens, at)?, End::Tuple(fields))),
            Some(token) => {
                tokens.push(token);
                Ok((steps(&tokens)?, End::Scalar))
            }
            // `/?` alone is invalid: an item is never a scalar.
            None => Err(at),
        },
        PathToken::Step(_) | PathToken::Tuple(_) => Err(text.len()),
    }
}

fn steps(tokens: &[SpannedPathToken]) -> Result<Vec<PathStep>, usize> {
    let step = |(at, part): &SpannedPathToken| match part {
        PathToken::Step(step) => Ok(step.clone()),
        _ => Err(*at),
    };
    tokens.iter().map(step).collect()
}

/// The path of the array whose elements the tuple at `at` describes: its last step must be `[]`.
fn tuple_steps(tokens: &[SpannedPathToken], at: usize) -> Result<Vec<PathStep>, usize> {
    let steps = steps(tokens)?;
    if steps.len() > 1 && steps.last() == Some(&PathStep::Element) { Ok(steps) } else { Err(at) }
}

fn tokens(text: &str) -> Result<Vec<SpannedPathToken>, usize> {
    let mut lexer = PathLexer { text, at: 0 };
    let mut tokens = Vec::new();
    while !lexer.is_done() {
        lexer.expect('/')?;
        tokens.push((lexer.at, lexer.token()?));
    }
    if tokens.is_empty() { Err(0) } else { Ok(tokens) }
}

struct PathLexer<'a> {
    text: &'a str,
    at: usize,
}

impl PathLexer<'_> {
    fn token(&mut self) -> Result<PathToken, usize> {
        match self.peek() {
            Some('*') => self.expect('*').map(|()| PathToken::Star),
            Some('?') => self.expect('?').map(|()| PathToken::Question),
            Some('{') => self.tuple().map(PathToken::Tuple),
            Some('[') => {
                self.expect('[')?;
                self.expect(']')?;
                Ok(PathToken::Step(PathStep::Element))
            }
            _ => self.name().map(|name| PathToken::Step(PathStep::Property(name))),
        }
    }

    /// `{x, y/z}`
    fn tuple(&mut self) -> Result<Vec<Vec<String>>, usize> {
        self.expect('{')?;
        let mut fields = vec![self.field()?];
        while self.peek() == Some(',') {
            self.expect(',')?;
            fields.push(self.field()?);
        }
        self.expect('}')?;
        Ok(fields)
    }

    /// `y/z` with blanks around it
    fn field(&mut self) -> Result<Vec<String>, usize> {
        self.skip_blanks();
        let mut names = vec![self.name()?];
        while self.peek() == Some('/') {
            self.expect('/')?;
            names.push(self.name()?);
        }
        self.skip_blanks();
        Ok(names)
    }

    fn name(&mut self) -> Result<String, usize> {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => self.unquoted(),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, usize> {
        self.expect(quote)?;
        let mut name = String::new();
        loop {
            match self.next().ok_or(self.at)? {
                '\\' => name.push(self.next().ok_or(self.at)?),
                end if end == quote => return Ok(name),
                other => name.push(other),
            }
        }
    }

    fn unquoted(&mut self) -> Result<String, usize> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii();
        let rest = self.rest();
        let length = rest.find(|c| !plain(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.at);
        }
        self.at += length;
        Ok(rest[..length].to_owned())
    }

    fn skip_blanks(&mut self) {
        while self.peek() == Some(' ') {
            self.at += 1;
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), usize> {
        if self.peek() != Some(wanted) {
            return Err(self.at);
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn is_done(&self) -> bool {
        self.at >= self.text.len()
    }
}

impl<'a> PathLexer<'a> {
    /// `at` is always on a character boundary.
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
