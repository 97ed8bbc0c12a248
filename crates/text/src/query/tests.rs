use pleiad_model::policy::Language;
use proptest::prelude::*;

use super::*;

const ENGLISH: fn() -> Analyzer = || Analyzer::new(Language::ENGLISH);

fn hits(search: &str, text: &str) -> u32 {
    TextQuery::new(ENGLISH(), search).occurrences(&ENGLISH().analyze(text))
}

#[test]
fn keywords_in_any_form() {
    assert_eq!(hits("Run", "She runs, he is running"), 2);
    assert_eq!(hits("run", "a runner"), 0);
}

#[test]
fn phrases_match_in_word_order() {
    assert_eq!(hits("United States", "the united states, not the states united"), 1);
    assert_eq!(hits("king of rock", "The King of Rock"), 1);
    assert_eq!(hits("king of rock", "a king rock"), 0);
    assert_eq!(hits("run run", "run run run"), 2);
}

#[test]
fn empty_queries_and_texts_match_nothing() {
    assert_eq!(hits("", "a text"), 0);
    assert_eq!(hits("the", "the text"), 0);
    assert_eq!(hits("text", ""), 0);
}

#[test]
fn fuzzy_queries() {
    let found = |search: &str, distance, text: &str| {
        TextQuery::fuzzy(ENGLISH(), search, distance).occurs_in(&ENGLISH().analyze(text))
    };
    assert!(found("red", 1, "a rad idea") && !found("red", 0, "a rad idea"));
    assert!(found("moutain bkie", 2, "the mountain bike") && !found("moutain bkie", 1, "the mountain bike"));
}

#[test]
fn required_words_and_keywords() {
    let required =
        |search: TextQuery| search.required_words().map(|words| words.map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(required(TextQuery::new(ENGLISH(), "running shoes")), Some(vec!["run".to_owned(), "shoe".to_owned()]));
    assert_eq!(required(TextQuery::fuzzy(ENGLISH(), "red", 1)), None);
    assert_eq!(TextQuery::new(ENGLISH(), "the runs").keyword(), Some("run"));
    assert_eq!(TextQuery::new(ENGLISH(), "red words").keyword(), None);
}

proptest! {
    #[test]
    fn every_phrase_of_a_text_occurs_in_it(text in "[a-d]{1,3}( [a-d]{1,3}){0,6}", from in 0usize..7, many in 1usize..4) {
        let all = ENGLISH().analyze(&text);
        let part: Vec<&str> = text.split(' ').skip(from).take(many).collect();
        let search = TextQuery::new(ENGLISH(), &part.join(" "));
        let is_nothing = search.required_words().is_some_and(|mut words| words.next().is_none());
        prop_assert!(is_nothing || search.occurs_in(&all), "{:?} in {}", part, text);
    }
}
