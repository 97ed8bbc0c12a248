//! String functions: substrings around a separator, trimming, joining, replacing.
//!
//! Guarantees: a result that can be much longer than the arguments is charged to the memory budget before it is built;
//! that of `REPLICATE`, which has a limit of its own, afterwards.

use std::borrow::Cow;

use pleiad_model::{Result, Value};

use super::arguments::{array, integer, items, number, or_default, slice, string, string_item, take, text};
use super::{Function, fold, units};
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::at_least("CONCAT", 2, concat),
    Function::exactly("LASTSUBSTRINGAFTER", 2, |args, cx| slice(split(args, str::rsplit_once, |p| p.1), cx)),
    Function::exactly("LASTSUBSTRINGBEFORE", 2, |args, cx| slice(split(args, str::rsplit_once, |p| p.0), cx)),
    Function::exactly("LOWER", 1, |args, cx| text(map(args, fold::lower), cx)),
    Function::between("LTRIM", 1, 2, |args, cx| slice(trim(args, true, false), cx)),
    Function::exactly("REPLACE", 3, replace),
    Function::exactly("REPLICATE", 2, |args, cx| text(replicate(args), cx)),
    Function::exactly("REVERSE", 1, |args, cx| text(string(args, 0).map(|s| s.chars().rev().collect()), cx)),
    Function::between("RTRIM", 1, 2, |args, cx| slice(trim(args, false, true), cx)),
    Function::exactly("STRINGJOIN", 2, string_join),
    Function::exactly("STRINGSPLIT", 2, string_split),
    Function::exactly("SUBSTRINGAFTER", 2, |args, cx| slice(split(args, str::split_once, |p| p.1), cx)),
    Function::exactly("SUBSTRINGBEFORE", 2, |args, cx| slice(split(args, str::split_once, |p| p.0), cx)),
    Function::between("TRIM", 1, 2, |args, cx| slice(trim(args, true, true), cx)),
    Function::exactly("UPPER", 1, |args, cx| text(map(args, fold::upper), cx)),
];

/// The longest result of `REPLICATE`, in UTF-16 units.
pub const REPLICATE_UNITS_MAX: usize = 10_000;

fn map(args: &[Datum<'_>], function: fn(char) -> char) -> Option<String> {
    string(args, 0).map(|text| text.chars().map(function).collect())
}

/// Appends to the first string if it is already owned.
fn concat<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let added = (1..args.len()).map(|at| string(args, at).map(str::len)).sum::<Option<usize>>();
    let (Some(added), Some(_)) = (added, string(args, 0)) else { return Ok(None) };
    cx.memory.reserve(added)?;
    let Some(Value::String(mut whole)) = take(args, 0).map(|first| cx.own(first)).transpose()? else {
        return Ok(None);
    };
    whole.reserve(added);
    (1..args.len()).filter_map(|at| string(args, at)).for_each(|part| whole.push_str(part));
    Ok(Some(Cow::Owned(Value::String(whole))))
}

fn replace<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let (Some(subject), Some(find), Some(with)) = (string(args, 0), string(args, 1), string(args, 2)) else {
        return Ok(None);
    };
    if find.is_empty() {
        return Ok(None);
    }
    let found = subject.matches(find).count();
    cx.memory.reserve(subject.len().saturating_add(found.saturating_mul(with.len())))?;
    Ok(Some(Cow::Owned(Value::String(subject.replace(find, with)))))
}

/// A fractional count is truncated.
fn replicate(args: &[Datum<'_>]) -> Option<String> {
    let (subject, times) = (string(args, 0)?, number(args, 1)?.trunc());
    let times = integer(args, 1).or_else(|| Value::from(times).as_i64());
    let times = usize::try_from(times?).ok()?;
    let units = units::count(subject).checked_mul(times)?;
    // The empty string is not repeated: `times` can be huge.
    (units <= REPLICATE_UNITS_MAX).then(|| if units == 0 { String::new() } else { subject.repeat(times) })
}

fn string_join<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let (Some(parts), Some(separator)) = (array(args, 0), string(args, 1)) else { return Ok(None) };
    let Some(parts) = parts.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let separators = separator.len().saturating_mul(parts.len().saturating_sub(1));
    cx.memory.reserve(parts.iter().map(|part| part.len()).sum::<usize>().saturating_add(separators))?;
    Ok(Some(Cow::Owned(Value::String(parts.join(separator)))))
}

fn string_split<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let (Some(subject), Some(separator)) = (string(args, 0), string(args, 1)) else { return Ok(None) };
    if separator.is_empty() {
        return items(vec![string_item(subject, cx)?]);
    }
    items(subject.split(separator).map(|part| string_item(part, cx)).collect::<Result<_>>()?)
}

type StringPair<'v> = (&'v str, &'v str);

/// The part before or after a separator; undefined if the text does not contain it.
fn split<'v>(
    args: &'v [Datum<'_>],
    at: fn(&'v str, &'v str) -> Option<StringPair<'v>>,
    side: fn(StringPair<'v>) -> &'v str,
) -> Option<&'v str> {
    at(string(args, 0)?, string(args, 1)?).map(side)
}

/// The second argument is a set of characters, not a string to strip.
fn trim<'v>(args: &'v [Datum<'_>], start: bool, end: bool) -> Option<&'v str> {
    let set = or_default(args, 1, CharSet::White, || string(args, 1).map(CharSet::of))?;
    let mut part = string(args, 0)?;
    if start {
        part = part.trim_start_matches(|c| set.has(c));
    }
    if end {
        part = part.trim_end_matches(|c| set.has(c));
    }
    Some(part)
}

enum CharSet {
    White,
    /// ASCII characters as a bit set, the others sorted.
    Of {
        ascii: u128,
        others: Vec<char>,
    },
}

impl CharSet {
    fn of(members: &str) -> Self {
        let ascii = members.bytes().filter(u8::is_ascii).fold(0, |bits, byte| bits | 1 << byte);
        let mut others: Vec<char> = members.chars().filter(|c| !c.is_ascii()).collect();
        others.sort_unstable();
        CharSet::Of { ascii, others }
    }

    fn has(&self, c: char) -> bool {
        match self {
            CharSet::White => c.is_whitespace(),
            CharSet::Of { ascii, .. } if c.is_ascii() => ascii >> (c as u32) & 1 == 1,
            CharSet::Of { others, .. } => others.binary_search(&c).is_ok(),
        }
    }
}
