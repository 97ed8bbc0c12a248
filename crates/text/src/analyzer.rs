//! The analyzer: text to words, by UAX #29 segmentation, lower case, stop words and Snowball stems.
//!
//! Guarantees: a word is lower case, stemmed, not empty and free of the byte 00; before stemming it has at most
//! `WORD_BYTES_MAX` bytes. Words keep their positions, also where a stop word was dropped between them, so a phrase is
//! found as it was written.
//!
//! ```text
//! "The king of rock"     king 1, rock 3         two words
//! ```

use std::borrow::Cow;

use pleiad_model::policy::Language;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

use crate::stop_words;

/// Longer words are truncated: words are index keys.
pub const WORD_BYTES_MAX: usize = 255;

/// Splits the texts of one language into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analyzer {
    language: Language,
}

/// The words of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalyzedText {
    /// Position and word, sorted by position.
    words: Vec<(u32, String)>,
}

impl Analyzer {
    pub fn new(language: Language) -> Analyzer {
        Analyzer { language }
    }

    pub fn language(self) -> Language {
        self.language
    }

    pub fn analyze(self, text: &str) -> AnalyzedText {
        let stemmer = Stemmer::create(algorithm(self.language));
        let mut words = Vec::new();
        for (position, word) in (0..).zip(text.unicode_words()) {
            let word = lower(word);
            if !self.is_dropped(&word) {
                words.push((position, stemmer.stem(truncated(&word)).into_owned()));
            }
        }
        AnalyzedText { words }
    }

    /// The number of words of a text, counted without stemming.
    pub fn count_words(self, text: &str) -> usize {
        text.unicode_words().filter(|word| !self.is_dropped(&lower(word))).count()
    }

    fn is_dropped(self, word: &str) -> bool {
        word.contains('\0') || self.language == Language::ENGLISH && stop_words::is_english(word)
    }
}

impl AnalyzedText {
    /// The number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Positions and words, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.words.iter().map(|(position, word)| (*position, word.as_str()))
    }

    /// The distinct words in byte order, each with its number of occurrences.
    pub fn word_counts(&self) -> Vec<(&str, u32)> {
        let mut words: Vec<&str> = self.words.iter().map(|(_, word)| word.as_str()).collect();
        words.sort_unstable();
        let groups = words.chunk_by(|a, b| a == b);
        groups.filter_map(|group| Some((*group.first()?, u32::try_from(group.len()).unwrap_or(u32::MAX)))).collect()
    }

    /// The word at a position; `None` if a stop word was there.
    pub(crate) fn at(&self, position: u32) -> Option<&str> {
        let index = self.words.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        self.words.get(index).map(|(_, word)| word.as_str())
    }
}

/// Borrows words that are lower case already, as most are.
fn lower(word: &str) -> Cow<'_, str> {
    match word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(word.to_lowercase()),
    }
}

fn truncated(word: &str) -> &str {
    let end = (0..=WORD_BYTES_MAX.min(word.len())).rev().find(|end| word.is_char_boundary(*end));
    end.and_then(|end| word.get(..end)).unwrap_or(word)
}

fn algorithm(language: Language) -> Algorithm {
    match language.as_str() {
        "de-DE" => Algorithm::German,
        "es-ES" => Algorithm::Spanish,
        "fr-FR" => Algorithm::French,
        "it-IT" => Algorithm::Italian,
        "pt-BR" | "pt-PT" => Algorithm::Portuguese,
        _ => Algorithm::English,
    }
}

#[cfg(test)]
mod tests;
