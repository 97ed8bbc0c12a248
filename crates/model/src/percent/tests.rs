use super::*;
use proptest::prelude::*;

#[test]
fn what_is_no_escape_is_a_name() {
    for (segment, meant) in [("a", "a"), ("My%20Db", "My Db"), ("x%41", "xA"), ("%C3%A9+", "é+")] {
        assert_eq!(name(segment), meant);
    }
    for literal in ["100%", "%", "%4", "%zz", "%41%", "%FF", "50%25%"] {
        assert_eq!(name(literal), literal);
    }
}

proptest! {
    #[test]
    fn what_is_escaped_is_read_again(text in "[%a-f0-9é]{0,12}") {
        let segment = escape(&text);
        prop_assert_eq!(name(&segment), text.as_str());
    }
}
