use proptest::prelude::*;

use super::*;
use crate::json;

#[track_caller]
fn check(path: &str, want: &[&str]) {
    let path = PropertyPath::parse(path).expect("a path");
    assert_eq!(path.segments(), want);
}

#[track_caller]
fn check_invalid(path: &str, part: &str) {
    let error = PropertyPath::parse(path).expect_err("not a path");
    assert_eq!(error.kind, crate::Kind::Invalid);
    assert!(error.to_string().contains(part), "{error} does not contain {part:?}");
}

#[test]
fn s4_s5_s6_plain_and_nested_paths() {
    check("/department", &["department"]);
    check("/properties/name", &["properties", "name"]);
    check("/id", &["id"]);
}

#[test]
fn s7_quoted_segments() {
    check(r#"/"department name""#, &["department name"]);
    check(r#"/"level' 1*()"/"le/vel2""#, &["level' 1*()", "le/vel2"]);
    check(r#"/'x"y'/z"#, &["x\"y", "z"]);
    check(r#"/"say \"hi\" \\"/b"#, &["say \"hi\" \\", "b"]);
}

#[test]
fn s8_a_path_has_no_wildcard() {
    check_invalid("/department/?", "index paths");
    check_invalid("/department/*", "index paths");
    check_invalid("/tags/[]", "index paths");
    check_invalid("/a*", "outside quotes");
    check_invalid("/a[0]", "outside quotes");
}

#[test]
fn s9_bare_segments_have_letters_digits_and_underscore() {
    check("/user_Id2/sub_1", &["user_Id2", "sub_1"]);
    let class: String = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['_']).collect();
    check(&format!("/{class}"), &[&class]);
    check("/straße/kebab-case", &["straße", "kebab-case"]);
    check_invalid("/a b", "outside quotes");
}

#[test]
fn invalid_paths_report_the_reason() {
    check_invalid("", "begins with '/'");
    check_invalid("a", "begins with '/'");
    check_invalid("/", "a segment is empty");
    check_invalid("/a/", "a segment is empty");
    check_invalid("//a", "a segment is empty");
    check_invalid("/\"a", "not closed");
    check_invalid("/\"a\\", "ends after");
    check_invalid("/\"a\"b", "begins with '/'");
}

#[test]
fn find_follows_objects_only() {
    let item = json::parse(br#"{"a":{"b":[{"c":1}],"":2},"a b":null}"#).expect("valid");
    let find = |path: &str| PropertyPath::parse(path).expect("a path").find(&item).map(json::to_string);
    assert_eq!(find("/a/b").as_deref(), Some(r#"[{"c":1}]"#));
    assert_eq!(find("/\"a b\"").as_deref(), Some("null"));
    assert_eq!(find("/a/b/c"), None);
    assert_eq!(find("/a/b/0"), None);
    assert_eq!(find("/missing/b"), None);
}

#[test]
fn quoted_and_bare_spellings_are_equal() {
    let (bare, quoted) =
        (PropertyPath::parse("/a/b").expect("a path"), PropertyPath::parse("/\"a\"/'b'").expect("a path"));
    assert_eq!(bare, quoted);
    assert_eq!(quoted.as_str(), "/\"a\"/'b'");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_name_can_be_quoted(names in prop::collection::vec(any::<String>(), 1..4)) {
        let quote = |name: &String| format!("/\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
        let text: String = names.iter().map(quote).collect();
        let path = PropertyPath::parse(&text).expect("quoted names");
        prop_assert_eq!(path.segments(), names);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[/\"'\\\\a*é]{0,12}") {
        let _ = PropertyPath::parse(&text);
    }
}
