use proptest::prelude::*;

use super::{LOOSE_PIECE_MAX, LikePattern};

#[track_caller]
fn matches(text: &str, pattern: &str, escape: Option<char>) -> bool {
    LikePattern::compile(pattern, escape).unwrap().matches(text)
}

#[test]
fn patterns() {
    for (pattern, yes, no) in [
        ("abc", &["abc"][..], &["", "ab", "abcd", "ABC"][..]),
        ("", &[""], &["a"]),
        ("%", &["", "a", "äöü"], &[]),
        ("a%", &["a", "abc"], &["", "ba"]),
        ("%a", &["a", "ba", "aa"], &["ab"]),
        ("%a%", &["a", "bab"], &["", "b"]),
        ("a%a", &["aa", "aba"], &["a", "ab"]),
        ("a%b%c", &["abc", "a-b-b-c"], &["acb", "abcd", "ac"]),
        ("%ab%ab%", &["abab", "xabxabx"], &["ab", "aba"]),
        ("a_c", &["abc", "aéc", "a😀c"], &["ac", "abbc"]),
        ("%_b", &["ab", "bb", "aab"], &["b"]),
        ("_%_", &["ab", "abc"], &["a", ""]),
        ("%a_c%d", &["abcd", "a_cd", "xxabc--d"], &["abd", "acd"]),
        ("[abc]x", &["ax", "cx"], &["dx", "x", "[abc]x"]),
        ("[a-f]", &["a", "d", "f"], &["g", "-", "A"]),
        ("[^a-c]%", &["d", "dx"], &["a", "bx", ""]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[%]", &["%"], &["a"]),
        ("[_]", &["_"], &["a"]),
        ("[[]x", &["[x"], &["x"]),
        ("a]", &["a]"], &["a"]),
        ("[a", &["[a"], &["a"]),
        ("[]a", &[], &["a", "]a"]),
        ("100[%]%", &["100%", "100% sure"], &["1000"]),
    ] {
        yes.iter().for_each(|text| assert!(matches(text, pattern, None), "{text} LIKE {pattern}"));
        no.iter().for_each(|text| assert!(!matches(text, pattern, None), "{text} NOT LIKE {pattern}"));
    }
}

#[test]
fn the_escape_character_makes_the_next_literal() {
    assert!(matches("save 20% now", "%20^%%", Some('^')));
    assert!(!matches("save 200 now", "%20^%%", Some('^')));
    assert!(matches("a_b", r"a\_b", Some('\\')));
    assert!(!matches("axb", r"a\_b", Some('\\')));
    assert!(matches("[a]", "![a]", Some('!')));
    assert!(matches("]", "[!]]", Some('!')));
    assert!(matches("a!", "a!", Some('!')));
}

#[test]
fn only_pieces_with_wildcards_are_limited() {
    assert!(LikePattern::compile(&"_".repeat(LOOSE_PIECE_MAX), None).is_ok());
    assert!(LikePattern::compile(&"_".repeat(LOOSE_PIECE_MAX + 1), None).is_err());
    assert!(LikePattern::compile(&"_%".repeat(LOOSE_PIECE_MAX + 1), None).is_ok());
    assert!(LikePattern::compile(&"a".repeat(300_000), None).is_ok());
    assert!(LikePattern::compile(&format!("[{}]", "a".repeat(LOOSE_PIECE_MAX - 1)), None).is_ok());
    assert!(LikePattern::compile(&format!("[{}]", "a".repeat(LOOSE_PIECE_MAX)), None).is_err());
}

/// Would take minutes with a search that restarts at each position.
#[test]
fn a_hostile_pattern_does_not_hang() {
    let text = "a".repeat(300_000);
    assert!(!matches(&text, &format!("%{}b%", "a".repeat(150_000)), None));
    assert!(!matches(&text, &format!("{}b", "%a".repeat(100_000)), None));
    assert!(matches(&text, &"%a_".repeat(1_000), None));
    assert!(!matches(&text, &"[".repeat(300_000), None));
}

/// The textbook definition: exponential and obviously correct.
fn naive(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|n| naive(&text[n..], rest)),
        ['_', rest @ ..] => !text.is_empty() && naive(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && naive(&text[1..], rest),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn agrees_with_the_definition(text in "[abé]{0,10}", pattern in "[abé%_]{0,8}") {
        let (t, p): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
        prop_assert_eq!(matches(&text, &pattern, None), naive(&t, &p));
    }

    #[test]
    fn any_pattern_compiles(text in any::<String>(), pattern in r"[\[\]a-c^%_!-]{0,20}", escape in prop::option::of(any::<char>())) {
        matches(&text, &pattern, escape);
        matches(&pattern, &pattern, escape);
    }
}
