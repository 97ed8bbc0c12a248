//! Case folding, ordinal and culture-independent.
//!
//! Invariant: every character maps to exactly one character, so the number of characters does not change. A character
//! that would become several (`ß`) is unchanged, and a non-ASCII character never maps to an ASCII one (`ı` is not `I`,
//! the Kelvin sign is not `K`), so that an ASCII needle can be searched for in the bytes of any text.

/// A needle up to this length is compared at every position; a longer one is searched for in folded copies.
const NEEDLE_BYTES_IN_PLACE_MAX: usize = 32;

pub fn upper(c: char) -> char {
    if c.is_ascii() { c.to_ascii_uppercase() } else { single(c, c.to_uppercase()) }
}

pub fn lower(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { single(c, c.to_lowercase()) }
}

fn single(c: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    match (mapped.len(), mapped.next()) {
        (1, Some(other)) if !other.is_ascii() => other,
        _ => c,
    }
}

pub fn equal(left: &str, right: &str) -> bool {
    left.chars().map(upper).eq(right.chars().map(upper))
}

pub fn starts_with(text: &str, head: &str) -> bool {
    has_prefix(text.chars(), head.chars())
}

pub fn ends_with(text: &str, tail: &str) -> bool {
    has_prefix(text.chars().rev(), tail.chars().rev())
}

fn has_prefix(mut text: impl Iterator<Item = char>, mut part: impl Iterator<Item = char>) -> bool {
    part.all(|own| text.next().is_some_and(|c| upper(c) == upper(own)))
}

pub fn contains(text: &str, needle: &str) -> bool {
    if needle.is_ascii() && needle.len() <= NEEDLE_BYTES_IN_PLACE_MAX {
        return contains_ascii(text.as_bytes(), needle.as_bytes());
    }
    folded(text).contains(&folded(needle))
}

fn contains_ascii(text: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || text.windows(needle.len()).any(|part| part.eq_ignore_ascii_case(needle))
}

fn folded(text: &str) -> String {
    text.chars().map(upper).collect()
}
