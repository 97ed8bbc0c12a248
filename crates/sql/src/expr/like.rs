//! `LIKE` patterns.
//!
//! Guarantees: patterns are anchored at both ends and case-sensitive, one character is one Unicode scalar, and no
//! pattern takes more than text length × `LOOSE_PIECE_MAX` steps.
//!
//! ```text
//! "ab%c_d%e"   pieces between the runs of %:  ab · c_d · e
//!              first at the start, last at the end, the others at their leftmost match
//! ```

use pleiad_model::{Error, Result};

/// The longest loose piece: one that contains `_` or `[…]`, where each member of a set counts. Pieces of plain
/// characters are searched in linear time and may have any length.
pub const LOOSE_PIECE_MAX: usize = 1024;

pub struct LikePattern {
    /// At least one; separated by `%`.
    pieces: Vec<LikePiece>,
}

enum LikePiece {
    Plain(String),
    Loose(Vec<LikeElement>),
}

#[derive(Clone, Debug)]
enum LikeElement {
    Char(char),
    Any,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl LikePattern {
    pub fn compile(pattern: &str, escape: Option<char>) -> Result<Self> {
        let mut rest = pattern;
        let mut pieces = Vec::new();
        let mut piece = Vec::new();
        let mut sets_close = true; // after a `[` without `]` no other set is parsed: each attempt reads to the end
        while let Some(c) = take(&mut rest) {
            match c {
                c if Some(c) == escape => piece.push(LikeElement::Char(take(&mut rest).unwrap_or(c))),
                '%' => pieces.push(LikePiece::new(std::mem::take(&mut piece))?),
                '_' => piece.push(LikeElement::Any),
                '[' if sets_close => {
                    let set = set(&mut rest, escape);
                    sets_close = set.is_some();
                    piece.push(set.unwrap_or(LikeElement::Char('[')));
                }
                c => piece.push(LikeElement::Char(c)),
            }
        }
        pieces.push(LikePiece::new(piece)?);
        Ok(LikePattern { pieces })
    }

    pub fn matches(&self, text: &str) -> bool {
        match self.pieces.as_slice() {
            [] => false,
            [only] => only.strip_prefix(text) == Some(""),
            [first, middle @ .., last] => {
                let inner = first.strip_prefix(text).and_then(|rest| last.strip_suffix(rest));
                inner.is_some_and(|rest| middle.iter().try_fold(rest, |rest, piece| piece.skip_past(rest)).is_some())
            }
        }
    }
}

impl LikePiece {
    fn new(elements: Vec<LikeElement>) -> Result<Self> {
        let plain = elements.iter().map(|e| if let LikeElement::Char(c) = e { Some(*c) } else { None });
        match plain.collect::<Option<String>>() {
            Some(text) => Ok(LikePiece::Plain(text)),
            None if elements.iter().map(LikeElement::steps).sum::<usize>() <= LOOSE_PIECE_MAX => {
                Ok(LikePiece::Loose(elements))
            }
            None => Err(Error::invalid(format!(
                "A LIKE pattern can have at most {LOOSE_PIECE_MAX} characters between two '%' when '_' or '[' is among them."
            ))),
        }
    }

    fn strip_prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            LikePiece::Plain(plain) => text.strip_prefix(plain.as_str()),
            LikePiece::Loose(elements) => {
                let mut rest = text;
                elements.iter().all(|element| take(&mut rest).is_some_and(|c| element.accepts(c))).then_some(rest)
            }
        }
    }

    fn strip_suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            LikePiece::Plain(plain) => text.strip_suffix(plain.as_str()),
            LikePiece::Loose(elements) => {
                let mut rest = text.chars();
                elements.iter().rev().all(|e| rest.next_back().is_some_and(|c| e.accepts(c))).then_some(rest.as_str())
            }
        }
    }

    /// The text after the leftmost match of the piece.
    fn skip_past<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            LikePiece::Plain(plain) => text.find(plain.as_str()).and_then(|at| text.get(at + plain.len()..)),
            LikePiece::Loose(_) => text.char_indices().find_map(|(at, _)| self.strip_prefix(&text[at..])),
        }
    }
}

impl LikeElement {
    /// The most comparisons that `accepts` makes.
    fn steps(&self) -> usize {
        match self {
            LikeElement::Char(_) | LikeElement::Any => 1,
            LikeElement::Set { ranges, .. } => 1 + ranges.len(),
        }
    }

    fn accepts(&self, c: char) -> bool {
        match self {
            LikeElement::Char(own) => *own == c,
            LikeElement::Any => true,
            LikeElement::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// Parses a set after `[`, up to the next `]`; consumes nothing if there is none.
fn set(rest: &mut &str, escape: Option<char>) -> Option<LikeElement> {
    let mut inner = *rest;
    let negated = inner.starts_with('^');
    if negated {
        take(&mut inner);
    }
    let mut ranges = Vec::new();
    loop {
        match take(&mut inner)? {
            ']' => break,
            c => ranges.push(range(literal(c, &mut inner, escape), &mut inner, escape)),
        }
    }
    *rest = inner;
    Some(LikeElement::Set { negated, ranges })
}

/// `low`, or `low-high` when a dash and something other than the closing bracket follow.
fn range(low: char, inner: &mut &str, escape: Option<char>) -> (char, char) {
    let mut ahead = *inner;
    if take(&mut ahead) == Some('-')
        && let Some(high) = take(&mut ahead).filter(|c| *c != ']')
    {
        let high = literal(high, &mut ahead, escape);
        *inner = ahead;
        return (low, high);
    }
    (low, low)
}

fn literal(c: char, rest: &mut &str, escape: Option<char>) -> char {
    if Some(c) == escape { take(rest).unwrap_or(c) } else { c }
}

fn take(rest: &mut &str) -> Option<char> {
    let c = rest.chars().next()?;
    *rest = &rest[c.len_utf8()..];
    Some(c)
}

#[cfg(test)]
mod tests;
