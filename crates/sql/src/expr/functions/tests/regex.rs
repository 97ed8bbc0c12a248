//! Regular expressions beyond the documented samples.

use super::*;
use crate::expr::functions::regex::{BACKTRACK_ALL_TEXT_BYTES_MAX, BACKTRACK_TEXT_BYTES_MAX};

#[test]
fn modifiers() {
    check(&[
        ("REGEXMATCH('abcd', 'ABC', 'i')", "true"),
        ("REGEXMATCH('abcd', 'ab c', 'x')", "true"),
        ("REGEXMATCH('abcd', 'aB c', 'ix')", "true"),
        ("REGEXMATCH('a\\nb', 'a.b')", "false"),
        ("REGEXMATCH('a\\nb', 'a.b', 's')", "true"),
        ("REGEXMATCH('a\\nb', '^b')", "false"),
        ("REGEXMATCH('a\\nb', '^b', 'm')", "true"),
        ("REGEXMATCH('abc', 'b', 'ii')", "true"),
        ("REGEXMATCH('abc', 'b', 'g')", "undefined"),
        ("REGEXMATCH('abc', 'b', 'I')", "undefined"),
    ]);
}

#[test]
fn patterns() {
    check(&[
        ("REGEXMATCH('salt3824908', 'salt{1}')", "true"),
        ("REGEXMATCH('a.b', 'a\\\\.b')", "true"),
        ("REGEXMATCH('axb', 'a\\\\.b')", "false"),
        ("REGEXMATCH('', '')", "true"),
        ("REGEXMATCH('a', '(')", "undefined"),
        ("REGEXMATCH('a', '*')", "undefined"),
        ("REGEXMATCH('a', '[b-a]')", "undefined"),
        // Look-around and back-references.
        ("REGEXMATCH('foobar', 'foo(?=bar)')", "true"),
        ("REGEXMATCH('foobaz', 'foo(?!baz)')", "false"),
        ("REGEXMATCH('abab', '^(ab)\\\\1$')", "true"),
        ("REGEXMATCH('ABAB', '(?<=a)b', 'i')", "true"),
    ]);
}

/// Where Perl and the underlying engines interpret a pattern differently, Perl's meaning applies.
#[test]
fn patterns_follow_perl() {
    check(&[
        ("REGEXMATCH('a<b', 'a\\\\<b')", "true"),
        ("REGEXMATCH('a&b', '^[a&&b]+$')", "true"),
        ("REGEXMATCH('ab', '[[a]b]')", "false"),
        ("REGEXMATCH('ab]', '[[a]b]')", "true"),
        ("REGEXMATCH('a-b', '[+--]')", "true"),
        ("REGEXMATCH('aaa', '^a*+a')", "false"),
        ("REGEXMATCH('a\\n', '^a$')", "true"),
        ("REGEXMATCH('a\\n\\n', '^a$')", "false"),
        ("REGEXMATCH('a\\n\\n', 'a\\\\Z')", "false"),
        ("REGEXMATCH('a\\n', 'a\\\\z')", "false"),
        ("REGEXMATCH('a\\n', '^a\\n$')", "true"),
        ("REGEXEXTRACT('ab\\n', 'b$')", r#""b""#),
        ("REGEXMATCH('ab\\n', 'b$?c?\\n')", "true"),
        ("REGEXMATCH('ab\\n', 'b$|c\\\\z')", "true"),
        ("REGEXMATCH('ab\\n', 'c$|b\\\\z')", "false"),
        ("REGEXMATCH('cafe', '\\\\h')", "false"),
        ("REGEXMATCH('a\\tb', 'a\\\\hb')", "true"),
        ("REGEXMATCH('a\\nb', 'a\\\\vb')", "true"),
        ("REGEXMATCH('a.b', '^\\\\Qa.b\\\\E$')", "true"),
        ("REGEXMATCH('aa', '(a)\\\\g{-1}')", "true"),
        ("REGEXMATCH('a #', '^[a #]+$', 'x')", "true"),
        ("REGEXMATCH('a', 'a**')", "undefined"),
    ]);
    let long = format!("REGEXMATCH('{}b\\n', 'b$')", "a".repeat(BACKTRACK_TEXT_BYTES_MAX));
    check(&[(&long, "true")]);
}

#[test]
fn regex_functions_take_strings_only() {
    check_wrong_types("REGEXMATCH", &["'a'", "'a'", "'i'"], &NOT_STRINGS);
    check_wrong_types("REGEXEXTRACT", &["'a'", "'a'", "'i'"], &NOT_STRINGS);
    check_wrong_types("REGEXREPLACE", &["'a'", "'a'", "'b'", "'i'"], &NOT_STRINGS);
}

#[test]
fn extracts_and_replaces() {
    check(&[
        ("REGEXEXTRACT('SKU-93821-BLUE', '[0-9]+')", r#""93821""#),
        ("REGEXEXTRACT('sku-1 sku-2', 'SKU-([0-9]+)', 'i', 1)", r#""1""#),
        ("REGEXEXTRACT('abc', '[0-9]+')", "undefined"),
        ("REGEXEXTRACT('abc', '(x)?b', '', 1)", "undefined"),
        ("REGEXEXTRACT('abc', 'b', '', 1)", "undefined"),
        ("REGEXEXTRACT('abc', 'b', '', -1)", "undefined"),
        ("REGEXEXTRACT('abc', 'b', '', 0.5)", "undefined"),
        ("REGEXEXTRACTALL('A12-B34-C56', '[0-9]+')", r#"["12","34","56"]"#),
        ("REGEXEXTRACTALL('A12-B34', '([A-Z])([0-9]+)', '', 2)", r#"["12","34"]"#),
        ("REGEXEXTRACTALL('abc', '[0-9]+')", "[]"),
        ("REGEXEXTRACTALL('aXbYc', '[a-z](?=[A-Z])')", r#"["a","b"]"#),
        ("REGEXREPLACE('A12-B34-C56', '[0-9]+', '#')", r##""A#-B34-C56""##),
        ("REGEXREPLACEALL('A12-B34-C56', '[0-9]+', '#')", r##""A#-B#-C#""##),
        ("REGEXREPLACEALL('abc', 'b', '$0')", r#""a$0c""#),
        ("REGEXREPLACEALL('abc', 'x', '#')", r#""abc""#),
        ("REGEXREPLACEALL('é1é', 'É', 'e', 'i')", r#""e1e""#),
    ]);
}

fn call_with(name: &str, arguments: &[&str]) -> Result<Option<Value>> {
    let values: Vec<Value> = arguments.iter().map(|text| Value::from(*text)).collect();
    let mut terms: Vec<Datum<'_>> = values.iter().map(|v| Some(Cow::Borrowed(v))).collect();
    with_context(BUDGET_BYTES, |cx| Ok((find(name).unwrap().call)(&mut terms, cx)?.map(Cow::into_owned)))
}

/// Patterns with catastrophic backtracking in other engines, or whose automaton has too many states.
#[test]
fn time_is_bounded() {
    let (mut seed, mut random) = (1u64, String::new());
    for _ in 0..1_000_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random.push(if seed >> 63 == 0 { 'a' } else { 'b' });
    }
    for pattern in ["a[ab]{800}[^ab]", "(?:a[ab]{100,2000}){3}[^ab]", "(?:[ab]{1,2000}a){3}[^ab]"] {
        assert_eq!(call_with("REGEXMATCH", &[&random, pattern]).unwrap_err().kind, Kind::Invalid, "{pattern}");
    }
    assert_eq!(call_with("REGEXMATCH", &[&random, "a{200}[^a]"]).unwrap(), Some(Value::Bool(false)));
    assert_eq!(call_with("REGEXMATCH", &[&random, r"\w+@\w+\.(?:\w{2}|\w{3})"]).unwrap(), Some(Value::Bool(false)));
    let text = format!("{}!", "a".repeat(1_000_000));
    assert_eq!(call_with("REGEXMATCH", &[&text, "^(a+)+$"]).unwrap(), Some(Value::Bool(false)));
    for pattern in ["^(?=(a+)+$)", r"^(a+)+\1$", "(?=(a|aa)+$)b"] {
        let text = &text[text.len() - BACKTRACK_TEXT_BYTES_MAX..];
        if let Err(error) = call_with("REGEXMATCH", &[text, pattern]) {
            assert_eq!(error.kind, Kind::Invalid, "{pattern}");
        }
    }
}

#[test]
fn limits_are_exact() {
    let (fits, long) = ("a".repeat(BACKTRACK_TEXT_BYTES_MAX), "a".repeat(BACKTRACK_TEXT_BYTES_MAX + 1));
    assert_eq!(call_with("REGEXMATCH", &[&fits, "^a(?=a)"]).unwrap(), Some(Value::Bool(true)));
    assert_eq!(call_with("REGEXMATCH", &[&long, "^a(?=a)"]).unwrap_err().kind, Kind::Invalid);
    let (fits, long) = ("a".repeat(BACKTRACK_ALL_TEXT_BYTES_MAX), "a".repeat(BACKTRACK_ALL_TEXT_BYTES_MAX + 1));
    assert!(call_with("REGEXEXTRACTALL", &[&fits, "a(?=a)"]).unwrap().is_some());
    assert_eq!(call_with("REGEXEXTRACTALL", &[&long, "a(?=a)"]).unwrap_err().kind, Kind::Invalid);
    assert!(call_with("REGEXEXTRACT", &[&long, "a(?=a)"]).unwrap().is_some());
    let long = "a".repeat(1_000_000);
    assert!(call_with("REGEXEXTRACTALL", &[&long, "a+"]).unwrap().is_some());
    assert_eq!(call_with("REGEXEXTRACTALL", &[&long, "a"]).unwrap_err().kind, Kind::Invalid);
    assert_eq!(call_with("REGEXMATCH", &["a", "(a{1000}){1000}"]).unwrap_err().kind, Kind::Invalid);
    assert!(call_with("REGEXMATCH", &["a", &"(".repeat(100_000)]).unwrap().is_none());
}

/// More patterns than the cache holds, repeatedly.
#[test]
fn cached_patterns_are_not_confused() {
    for round in 0..3 {
        for n in 0..20 {
            let (text, pattern) = (format!("x{n}y"), format!("^x{}y$", if round == 1 { n + 1 } else { n }));
            assert_eq!(call_with("REGEXMATCH", &[&text, &pattern]).unwrap(), Some(Value::Bool(round != 1)));
            assert_eq!(
                call_with("REGEXMATCH", &[&text, &pattern.to_uppercase(), "i"]).unwrap(),
                Some(Value::Bool(round != 1))
            );
        }
    }
}
