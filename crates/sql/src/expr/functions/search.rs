//! String search: `CONTAINS`, `STARTSWITH`, `ENDSWITH`, `STRINGEQUALS`.
//!
//! Guarantees: time linear in both strings, case-sensitive or not. Searching one text for many strings is limited.

use pleiad_model::{Error, Result};

use super::Function;
use super::arguments::{boolean_value, flag, string};
use super::fold;
use crate::expr::Datum;

pub const FUNCTIONS: &[Function] = &[
    Function::between("CONTAINS", 2, 3, |args, _| compare(args, contains, fold::contains)),
    Function::at_least("CONTAINS_ALL_CI", 2, |args, _| each(args, all, fold::contains)),
    Function::at_least("CONTAINS_ALL_CS", 2, |args, _| each(args, all, contains)),
    Function::at_least("CONTAINS_ANY_CI", 2, |args, _| each(args, any, fold::contains)),
    Function::at_least("CONTAINS_ANY_CS", 2, |args, _| each(args, any, contains)),
    Function::between("ENDSWITH", 2, 3, |args, _| compare(args, |s, t| s.ends_with(t), fold::ends_with)),
    Function::between("STARTSWITH", 2, 3, |args, _| compare(args, |s, t| s.starts_with(t), fold::starts_with)),
    Function::between("STRINGEQUALS", 2, 3, |args, _| compare(args, |s, t| s == t, fold::equal)),
];

/// The most bytes that one call may read: the text, once for each string searched for.
const READ_BYTES_MAX: usize = 512 * 1024 * 1024;

type Test = fn(&str, &str) -> bool;

fn contains(text: &str, needle: &str) -> bool {
    text.contains(needle)
}

/// Uses `exact` unless the third argument requests to ignore case.
fn compare<'a>(args: &[Datum<'a>], exact: Test, ignoring_case: Test) -> Result<Datum<'a>> {
    let test = flag(args, 2).map(|ignore_case| if ignore_case { ignoring_case } else { exact });
    boolean_value(test.and_then(|test| test_one(args, 1, test)))
}

fn test_one(args: &[Datum<'_>], position: usize, test: Test) -> Option<bool> {
    Some(test(string(args, 0)?, string(args, position)?))
}

/// Applies `all` or `any` to the tests of the arguments after the first.
fn each<'a>(args: &[Datum<'a>], quantifier: fn(&[Datum<'_>], Test) -> Option<bool>, test: Test) -> Result<Datum<'a>> {
    let text_bytes = string(args, 0).map_or(0, str::len);
    if text_bytes.saturating_mul(args.len()) > READ_BYTES_MAX {
        return Err(Error::invalid("A text this long cannot be searched for so many strings. Search for fewer."));
    }
    boolean_value(quantifier(args, test))
}

/// The three-valued `AND` of one test for each argument after the first.
fn all(args: &[Datum<'_>], test: Test) -> Option<bool> {
    let mut truth = Some(true);
    for position in 1..args.len() {
        match test_one(args, position, test) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => truth = None,
        }
    }
    truth
}

/// The three-valued `OR` of one test for each argument after the first.
fn any(args: &[Datum<'_>], test: Test) -> Option<bool> {
    let mut truth = Some(false);
    for position in 1..args.len() {
        match test_one(args, position, test) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => truth = None,
        }
    }
    truth
}
