//! `DATETIMEFORMAT`: .NET custom format patterns, in English only.
//!
//! A run of one letter is one specifier. Letters that are not specifiers are literal, and so is anything after `\` or
//! between quotes. The pattern is always a custom one: a single letter does not select a standard format.

use std::fmt::Write;

use super::calendar::{Date, DateTime};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// 1970-01-01 was a Thursday.
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const ABBREVIATED_BYTES: usize = 3;
/// A tick is 100 ns: seven fraction digits.
const FRACTION_DIGITS_MAX: usize = 7;
/// The maximum padding; a longer run of letters does not pad further.
const DIGITS_MAX: usize = 9;

pub fn format(at: DateTime, pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.extend(rest.next()),
            '%' => {} // prefix of a single specifier
            '\'' | '"' => out.extend(rest.by_ref().take_while(|inner| *inner != c)),
            _ => {
                let run = 1 + rest.as_str().chars().take_while(|next| *next == c).count();
                if specifier(at, c, run, &mut out) {
                    rest.by_ref().take(run - 1).for_each(|_| {});
                } else {
                    out.push(c);
                }
            }
        }
    }
    out
}

/// Writes one specifier; returns false if the letter is not a specifier.
fn specifier(at: DateTime, letter: char, run: usize, out: &mut String) -> bool {
    let (Date { year, month, day }, (hour, minute, second)) = (at.date(), at.time());
    match letter {
        'y' if run <= 2 => number(year % 100, run, out),
        'y' => number(year, run, out),
        'M' if run <= 2 => number(month, run, out),
        'M' => name(&MONTHS, month - 1, run, out),
        'd' if run <= 2 => number(day, run, out),
        'd' => name(&DAYS, at.days().rem_euclid(7), run, out),
        'H' => number(hour, run.min(2), out),
        'h' => number((hour + 11) % 12 + 1, run.min(2), out),
        'm' => number(minute, run.min(2), out),
        's' => number(second, run.min(2), out),
        'f' => out.push_str(fraction(at).get(..run.min(FRACTION_DIGITS_MAX)).unwrap_or("")),
        'F' => {
            let digits = fraction(at);
            out.push_str(digits.get(..run.min(FRACTION_DIGITS_MAX)).unwrap_or("").trim_end_matches('0'));
        }
        't' => out.push_str(if hour < 12 { "AM" } else { "PM" }.get(..run.min(2)).unwrap_or("")),
        'K' => out.push('Z'),
        'z' => out.push_str(["+0", "+00", "+00:00"][run.min(3) - 1]),
        'g' => out.push_str("A.D."),
        _ => return false,
    }
    true
}

fn number(number: i64, digits: usize, out: &mut String) {
    let digits = digits.min(DIGITS_MAX);
    let _infallible = write!(out, "{number:0digits$}");
}

/// The abbreviation for a run of three letters, the full name for a longer run.
fn name(names: &[&'static str], index: i64, run: usize, out: &mut String) {
    let name = usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or("");
    out.push_str(if run == ABBREVIATED_BYTES { name.get(..ABBREVIATED_BYTES).unwrap_or(name) } else { name });
}

fn fraction(at: DateTime) -> String {
    format!("{:07}", at.fraction_ticks())
}
