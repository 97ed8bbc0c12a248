use proptest::prelude::*;

use super::*;

fn words(text: &str) -> String {
    let words = Analyzer::new(Language::ENGLISH).analyze(text);
    words.iter().map(|(position, word)| format!("{word} {position}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn words_are_lower_case_stems_with_positions() {
    assert_eq!(words("The Runners were running!"), "runner 1, run 3");
    assert_eq!(words("The king of rock"), "king 1, rock 3");
    assert_eq!(words("e-mail: won't, 3.14 café_au"), "mail 1, 3.14 3, café_au 4");
    assert_eq!(words(" \u{0}!? the of"), "");
}

#[test]
fn stop_words_are_those_that_the_service_publishes() {
    assert_eq!(words("First, second and third: 7 of the 10 best things"), "10 7, thing 9");
    assert_eq!(words("Can't stop; NOTHING COMPARES"), "stop 1, compar 3");
}

#[test]
fn symbols_that_touch_no_word_are_words() {
    assert_eq!(words("Rock – 1954–1977"), "rock 0, – 1, 1954 2, 1977 3");
    assert_eq!(words("– “rock”, «roll» … ("), "– 0, rock 1, roll 2, … 3");
    assert_eq!(words("rock— roll -- - ——, €"), "rock 0, roll 1, —— 2, € 3");
    assert_eq!(words("a\u{200B} \u{FEFF} rock \u{A0}\u{3000}"), "rock 1");
    assert_eq!(words("…"), "… 0");
}

fn analyzer_for(tag: &str) -> Analyzer {
    Analyzer::new(Language::ALL.into_iter().find(|language| language.as_str() == tag).unwrap())
}

#[test]
fn every_language_is_stemmed_and_only_english_has_stop_words() {
    let of = |tag: &str, text: &str| {
        let words = analyzer_for(tag).analyze(text);
        words.iter().map(|(_, word)| word.to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("de-DE", "die Häuser in the"), "die haus in the");
    assert_eq!(of("es-ES", "corriendo corrieron"), "corr corr");
    assert_eq!(of("fr-FR", "continuellement continuer"), "continuel continu");
    assert_eq!(of("it-IT", "abbandonata abbandonate"), "abbandon abbandon");
    assert_eq!(of("pt-BR", "quilométricas quilométricos"), of("pt-PT", "quilométricas quilométricos"));
}

#[test]
fn words_are_counted() {
    let words = Analyzer::new(Language::ENGLISH).analyze("Run, runs and a dog: RUNNING");
    assert_eq!(words.word_counts(), [("dog", 1), ("run", 3)]);
    assert_eq!((words.len(), words.at(0), words.at(2)), (4, Some("run"), None));
}

#[test]
fn long_words_are_truncated_at_character_boundaries() {
    let long = "ß".repeat(400);
    let words = Analyzer::new(Language::ENGLISH).analyze(&long);
    assert_eq!(words.iter().map(|(_, word)| word.len()).collect::<Vec<_>>(), [254]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Stemmers slice strings: no text may make one panic, in any language.
    #[test]
    fn any_text_is_analyzed(text in ".{0,40}", letters in "[a-zàâäçéèêëîïôöùûüñõãß' ]{0,40}", language in 0usize..7) {
        let analyzer = Analyzer::new(Language::ALL[language]);
        for text in [text, letters] {
            let words = analyzer.analyze(&text);
            prop_assert_eq!(words.len(), analyzer.count_words(&text));
            prop_assert!(words.iter().all(|(_, word)| !word.is_empty() && !word.contains('\0')));
            prop_assert_eq!(words.word_counts().iter().map(|(_, count)| *count as usize).sum::<usize>(), words.len());
        }
    }
}
