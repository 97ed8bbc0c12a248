use super::*;
use proptest::prelude::*;

#[test]
fn invalid_escapes_are_left_unchanged() {
    for (segment, decoded) in [("a", "a"), ("My%20Db", "My Db"), ("x%41", "xA"), ("%C3%A9+", "é+")] {
        assert_eq!(decode_lenient(segment), decoded);
    }
    for literal in ["100%", "%", "%4", "%zz", "%41%", "%FF", "50%25%"] {
        assert_eq!(decode_lenient(literal), literal);
    }
}

proptest! {
    #[test]
    fn escaped_names_round_trip(text in "[%a-f0-9é]{0,12}") {
        let segment = escape(&text);
        prop_assert_eq!(decode_lenient(&segment), text.as_str());
    }
}
