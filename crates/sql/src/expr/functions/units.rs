//! Substrings and positions in UTF-16 code units.
//!
//! Positions and lengths count UTF-16 code units, as clients do. A surrogate pair is never split: a character of which
//! only one half is selected is left out.
//!
//! ```text
//! "a😀b"   units  0  1  2  3      LEFT 2 is "a", LEFT 3 is "a😀"
//!                 a  └😀┘  b      SUBSTRING from 2 begins at b
//! ```

use pleiad_model::Result;

use super::Function;
use super::arguments::{integer, integer_value, or_default, size, slice, string};
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::between("INDEX_OF", 2, 3, |args, _| integer_value(index_of(args))),
    Function::between("LASTINDEXOF", 2, 3, |args, _| integer_value(last_index_of(args))),
    Function::exactly("LEFT", 2, |args, cx| slice(left(args), cx)),
    Function::exactly("LENGTH", 1, |args, _| size(string(args, 0).map(count))),
    Function::exactly("RIGHT", 2, |args, cx| slice(right(args), cx)),
    Function::exactly("SUBSTRING", 3, substring),
];

const ABSENT: i64 = -1;

/// The number of code units of the text.
pub fn count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The byte offsets for a split at this code unit: where the text before it ends and where the text after it starts.
/// They differ if the unit is inside a character.
fn byte_offsets(text: &str, unit: usize) -> (usize, usize) {
    if text.as_bytes().get(..unit).is_some_and(<[u8]>::is_ascii) {
        return (unit, unit);
    }
    let mut at = 0;
    for (byte, c) in text.char_indices() {
        if at >= unit {
            return (byte, byte);
        }
        at += c.len_utf16();
        if at > unit {
            return (byte, byte + c.len_utf8());
        }
    }
    (text.len(), text.len())
}

pub fn before(text: &str, unit: usize) -> &str {
    text.get(..byte_offsets(text, unit).0).unwrap_or("")
}

fn from(text: &str, unit: usize) -> &str {
    text.get(byte_offsets(text, unit).1..).unwrap_or("")
}

/// A number of units from an argument; negative counts as 0.
fn units(args: &[Datum<'_>], position: usize) -> Option<usize> {
    integer(args, position).map(|n| usize::try_from(n.max(0)).unwrap_or(usize::MAX))
}

fn left<'v>(args: &'v [Datum<'_>]) -> Option<&'v str> {
    Some(before(string(args, 0)?, units(args, 1)?))
}

fn right<'v>(args: &'v [Datum<'_>]) -> Option<&'v str> {
    let (text, wanted) = (string(args, 0)?, units(args, 1)?);
    Some(from(text, count(text).saturating_sub(wanted)))
}

/// A start before the text or past its end gives the empty string.
fn substring<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let part = || {
        let (text, start, length) = (string(args, 0)?, integer(args, 1)?, units(args, 2)?);
        Some(match usize::try_from(start) {
            Ok(start) => between(text, start, start.saturating_add(length)),
            Err(_) => "",
        })
    };
    slice(part(), cx)
}

fn between(text: &str, start: usize, end: usize) -> &str {
    text.get(byte_offsets(text, start).1..byte_offsets(text, end).0).unwrap_or("")
}

/// Searches from `start` on; a negative start counts as 0.
fn index_of(args: &[Datum<'_>]) -> Option<i64> {
    let (text, needle) = (string(args, 0)?, string(args, 1)?);
    let start = or_default(args, 2, 0, || units(args, 2))?;
    if start > text.len() || start > count(text) {
        return Some(ABSENT);
    }
    let skipped = byte_offsets(text, start).1;
    let found = text.get(skipped..)?.find(needle);
    position(text, found.map(|at| skipped + at))
}

/// Searches backwards; `start` is the last unit that a match may include.
fn last_index_of(args: &[Datum<'_>]) -> Option<i64> {
    let (text, needle) = (string(args, 0)?, string(args, 1)?);
    let start = or_default(args, 2, i64::MAX, || integer(args, 2))?;
    let end = usize::try_from(start.saturating_add(1).max(0)).unwrap_or(usize::MAX);
    position(text, before(text, end).rfind(needle))
}

/// The code unit at this byte offset, or -1 if nothing was found.
fn position(text: &str, byte: Option<usize>) -> Option<i64> {
    match byte {
        Some(byte) => i64::try_from(count(text.get(..byte)?)).ok(),
        None => Some(ABSENT),
    }
}
