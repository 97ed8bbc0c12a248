use pleiad_model::json;
use proptest::prelude::*;

use super::*;

fn rule(language: Language) -> TextRule {
    TextRule { steps: vec![PathStep::Property("t".to_owned())], language }
}

fn rows(item: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    rule(Language::ENGLISH).collect(&json::parse(item.as_bytes()).unwrap(), &mut found);
    found.into_iter().map(|term| term.value).collect()
}

#[test]
fn encoding_matches_the_documented_layout() {
    let want: [&[u8]; 3] = [b"\x00\x00\x00\x00\x03", b"dog\x00\x00\x00\x00\x01", b"run\x00\x00\x00\x00\x02"];
    assert_eq!(rows(r#"{"t":"A dog runs and runs."}"#), want);
    assert_eq!(rows(r#"{"t":""}"#), [b"\x00\x00\x00\x00\x00"]);
    assert!(rows(r#"{"t":["dog"]}"#).is_empty() && rows(r#"{"u":"dog"}"#).is_empty());
    assert_eq!(decode_length(b"\x00\x00\x00\x00\x0c"), Some(12));
    assert_eq!((decode_length(b"run\x00\x00\x00\x00\x02"), decode_length(b"\x00\x01")), (None, None));
}

#[test]
fn languages_have_rows_of_their_own() {
    let ids: Vec<u64> = Language::ALL.into_iter().map(|language| rule(language).id()).collect();
    assert!(ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id)));
}

/// The path hash of version 1 is that of format 4 and earlier: it never changes.
#[test]
fn versions_of_the_analyzer_have_rows_of_their_own() {
    let rule = rule(Language::ENGLISH);
    let obsolete: Vec<u64> = rule.obsolete_ids().collect();
    assert_eq!(obsolete, [0x3ED4_0180_F79E_EC77]);
    assert!(!obsolete.contains(&rule.id()));
}

proptest! {
    #[test]
    fn a_word_is_found_in_its_range_and_in_no_other(text in "[a-c]{1,3}( [a-c]{1,3}){0,5}", other in "[a-c]{1,4}") {
        let words = Analyzer::new(Language::ENGLISH).analyze(&text);
        let rows = rows(&json::to_string(&pleiad_model::Object::new().with("t", text.as_str()).into()));
        let range = word_range(&other);
        let found = rows.iter().filter(|row| **row >= range.from && **row < range.to).count();
        prop_assert_eq!(found, usize::from(words.word_counts().iter().any(|(word, _)| *word == other)));
        let lengths: Vec<_> = rows.iter().filter_map(|row| decode_length(row)).collect();
        prop_assert_eq!(lengths, [words.len() as u32]);
    }
}
