//! Lone surrogates: replaces escapes of half a surrogate pair in JSON text that could not be parsed.
//!
//! Guarantees: all other bytes are unchanged, so text with other syntax errors remains invalid.
//!
//! ```text
//! "a\ud83d"   →   "a\ufffd"          "\ud83d\ude00"   is a pair and is kept
//! ```

/// The text with U+FFFD in place of every lone surrogate; `None` if it has none.
pub(super) fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut at, mut replaced) = (Vec::with_capacity(text.len()), 0, 0);
    while at < text.len() {
        let (length, is_valid) = next_unit(&text[at..]);
        match is_valid {
            true => out.extend_from_slice(&text[at..at + length]),
            false => out.extend_from_slice(b"\\ufffd"),
        }
        replaced += usize::from(!is_valid);
        at += length;
    }
    (replaced > 0).then_some(out)
}

/// The length of the next unit in bytes, and whether it is valid: anything but a lone surrogate.
fn next_unit(text: &[u8]) -> (usize, bool) {
    match (text, escaped_unit(text)) {
        (_, Some(0xD800..=0xDBFF)) => match text.get(6..).and_then(escaped_unit) {
            Some(0xDC00..=0xDFFF) => (12, true),
            _ => (6, false),
        },
        (_, Some(0xDC00..=0xDFFF)) => (6, false),
        (_, Some(_)) => (6, true),
        ([b'\\', _, ..], None) => (2, true),
        _ => (1, true),
    }
}

/// `\uXXXX`
fn escaped_unit(text: &[u8]) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = text.get(..6)? else { return None };
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use crate::Value;
    use crate::json::parse;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(parse(text.as_bytes()).unwrap(), Value::from(want), "{text}");
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        check(r#""a\ud83d""#, "a\u{FFFD}");
        check(r#""\ude00b""#, "\u{FFFD}b");
        check(r#""\ud83d\ud83d\ude00""#, "\u{FFFD}\u{1F600}");
        check(r#""\ud83dx\u0041\\ud83d""#, "\u{FFFD}xA\\ud83d");
        check(r#""\ud83d\n""#, "\u{FFFD}\n");
    }

    #[test]
    fn other_syntax_errors_are_still_reported() {
        for text in [r#""\ud83d"#, r#"{"\ud83d"}"#, r#""\ud8""#, r#""\ud83d\x""#, r#""\u+123""#, "\"\\ud83d\u{1}\""] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
