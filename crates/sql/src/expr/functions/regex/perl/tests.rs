use proptest::prelude::*;

use super::*;

const PLAIN: RegexFlags = RegexFlags { multi_line: false, ignore_space: false };

#[track_caller]
fn check(source: &str, want: &str) {
    let translated = translate(source, PLAIN).unwrap().unwrap_or_else(|| panic!("{source} is not a valid pattern"));
    assert_eq!(translated.text, want, "{source}");
}

#[test]
fn most_patterns_are_unchanged() {
    for same in ["", "abc", "a|b", "^a.*b+?", "(a)(?:b)(?=c)(?<!d)", r"\d\w\s\bé\p{L}", "a{2}b{2,}c{2,3}?", "😀"] {
        check(same, same);
    }
    check("(?P<n>a)(?'m'b)", "(?<n>a)(?<m>b)");
}

#[test]
fn syntax_that_the_engines_misread_is_escaped() {
    check(r"\<\/\-", r"\x{3c}\x{2f}\x{2d}");
    check("a{,2}{x}", r"a{0,2}\{x}");
    check(r"\cA\012\e", r"\x{1}\x{a}\e");
    check(r"\101\o{102}\N{U+43}\x44\x{45}\x4", "ABCDE\\x{4}");
    check(r"(a)\1\10\N", r"(a)(?:\1)\x{8}[^\n]");
    check(r"\Qa.b\Ec", r"a\x{2e}bc");
    check("a(?#comment)b", "ab");
    check(r"(a)\g1\g{1}\g{-1}(?P=n)\k{n}\k'n'", r"(a)(?:\1)(?:\1)(?:\1)\k<n>\k<n>\k<n>");
    check("(?^:a)(?^i:b)", "(?-imsx:a)(?i-msx:b)");
}

#[test]
fn classes_are_not_nested() {
    check("[a&&b]", r"[a\x{26}\x{26}b]");
    check("[[a]b]", r"[\x{5b}a]b]");
    check("[]a]", r"[\x{5d}a]");
    check("[^]]", r"[^\x{5d}]");
    check("[+--]", r"[\x{2b}-\x{2d}]");
    check("[a-]", r"[a\x{2d}]");
    check(r"[\w-z]", r"[\w\x{2d}z]");
    check("[[:alpha:]_]", r"[[:alpha:]\x{5f}]");
    check(r"[\b\x41\n]", r"[\x{8}A\x{a}]");
    check(r"[\101\o{102}\N{U+43}]", "[ABC]");
    check(r"[\pL\P{Lu}\u00e9]", r"[\pL\P{Lu}é]");
}

#[test]
fn end_anchors_match_before_a_final_newline() {
    let translated = translate(r"^a$|b\Z", PLAIN).unwrap().unwrap();
    assert_eq!(translated.text, r"^a\z|b\z");
    assert_eq!(translated.before_newline.as_deref(), Some(r"^a(?:\z|(?=\n\z))|b(?:\z|(?=\n\z))"));
    let lines = translate("a$(?-m)b$", RegexFlags { multi_line: true, ..PLAIN }).unwrap().unwrap();
    assert_eq!((lines.text.as_str(), lines.before_newline.is_some()), (r"a$(?-m)b\z", true));
    assert_eq!(translate("(?m)a$", PLAIN).unwrap().unwrap().before_newline, None);
}

#[test]
fn tokens_after_an_end_anchor_are_detected() {
    for last in ["a$", "a$|b$", "(a$|b)", "(?:x(a$))", "^(a|b$)$", r"a\Z"] {
        assert!(translate(last, PLAIN).unwrap().unwrap().ends_last, "{last}");
    }
    for behind in [r"a$\n", r"(a$)\s*", "(a$|b)c", "$a|b", "(?:a$)+", "a$*", r"a$|b\z", "(a$|(b))(?:|c)"] {
        assert!(!translate(behind, PLAIN).unwrap().unwrap().ends_last, "{behind}");
    }
}

#[test]
fn flags_end_with_their_group() {
    check("(a(?m)b$)c$", r"(a(?m)b$)c\z");
    check("(?x: a # [ comment\n b)#", "(?x: a \n b)#");
    check("(?x)[a #]", r"(?x)[a\x{20}\x{23}]");
}

#[test]
fn possessive_quantifiers_need_backtracking() {
    for (source, backtracks) in [("a*+a", true), ("a{2}+", true), ("a++", true), ("a+?", false), ("[a*+]", false)] {
        assert_eq!(translate(source, PLAIN).unwrap().unwrap().backtracks, backtracks, "{source}");
    }
}

#[test]
fn invalid_patterns_are_rejected() {
    for none in [
        "a**",
        "a+*",
        "a??*",
        "a*{2}",
        "a{2}{3}",
        "a{2}*",
        "[",
        "[z-a]",
        "[a",
        r"a\",
        r"\g",
        r"(a)\g{0}",
        r"\g{-1}",
        "(?R-i)",
        "(?<n",
        r"[\q]",
        "[[:foo:]]",
        r"\o101",
        r"\x{110000}",
    ] {
        assert_eq!(translate(none, PLAIN), Ok(None), "{none}");
    }
}

#[test]
fn unsupported_features_are_rejected_by_name() {
    for (source, what) in [
        ("(a(?1)?b)", "Recursion"),
        ("(?R)", "Recursion"),
        ("(?-1)", "Recursion"),
        ("(?&n)", "Recursion"),
        ("(?|(a)|(b))", "Numbering groups"),
        ("(*FAIL)", "Verbs"),
        ("(?{1})", "Code"),
        (r"\X", r"\X"),
        (r"\b{wb}a", "Boundaries"),
        (r"\N{SPACE}", "Characters by name"),
        ("(?n)a", "One of these flags"),
        ("(?a:b)", "One of these flags"),
    ] {
        let error = translate(source, PLAIN).unwrap_err();
        assert!(
            error.kind == pleiad_model::Kind::Unsupported && error.to_string().starts_with(what),
            "{source}: {error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_translates_or_is_rejected(source in "[a-c0-9\\\\(){}\\[\\]<>?*+|^$:#&~ .,=!'RPQEgkxhHvVZzcué-]{0,24}") {
        let _ = translate(&source, PLAIN);
        let _ = translate(&source, RegexFlags { multi_line: true, ignore_space: true });
    }

    /// A quoted text matches itself and nothing shorter.
    #[test]
    fn quoted_text_matches_itself(text in "[^\\\\]{1,12}") {
        let translated = translate(&format!(r"\A\Q{text}\E\z"), PLAIN)?.unwrap();
        let regex = regex::Regex::new(&translated.text).unwrap();
        prop_assert!(regex.is_match(&text));
        prop_assert!(!regex.is_match(&text[..text.len() - text.chars().next_back().map_or(0, char::len_utf8)]));
    }
}
