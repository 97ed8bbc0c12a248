//! Percent-encoding of path segments.
//!
//! Guarantees: `decode_lenient` reverses `escape`. A plus sign is a plus sign: these are paths, not forms.
//!
//! ```text
//! My%20Db   My Db        p%25q   p%q        100%   100%, because it is not an escape
//! ```

use std::borrow::Cow;

/// Appends the text with every `%XX` replaced by its byte; `None` if a percent sign is not followed by two hex digits.
pub fn decode_onto(text: &str, out: &mut impl Extend<u8>) -> Option<()> {
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, remaining) = match (first, tail) {
            (b'%', [high, low, left @ ..]) => (hex(*high)? << 4 | hex(*low)?, left),
            (b'%', _) => return None,
            _ => (first, tail),
        };
        out.extend(Some(byte));
        rest = remaining;
    }
    Some(())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// The name in a segment that the client may not have escaped: text that is not percent-encoded UTF-8 is unchanged.
pub fn decode_lenient(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return segment.into();
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let decoded = decode_onto(segment, &mut bytes).and_then(|()| String::from_utf8(bytes).ok());
    decoded.map_or(segment.into(), Cow::from)
}

/// A segment that decodes to this name, also with `decode_lenient`.
pub fn escape(name: &str) -> Cow<'_, str> {
    if name.contains('%') { name.replace('%', "%25").into() } else { name.into() }
}

#[cfg(test)]
mod tests;
