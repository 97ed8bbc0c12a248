//! The analyzer: text to words, by UAX #29 segmentation, lower case, stop words and Snowball stems.
//!
//! Guarantees: a word is lower case, stemmed, not empty and free of the byte 00; before stemming it has at most
//! `WORD_BYTES_MAX` bytes. Words keep their positions, also where a stop word was dropped between them, so a phrase is
//! found as it was written.
//!
//! Symbols outside of ASCII that touch no word are words, too, as in the service: a dash between spaces counts.
//!
//! ```text
//! "The king of rock"       king 1, rock 3             two words
//! "Rock – 1954–1977"       rock 0, – 1, 1954 2, 1977 3
//! ```

use std::borrow::Cow;
use std::ops::Range;

use pleiad_model::policy::Language;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

use crate::stop_words;

/// The version of the analyzer. It increases whenever any text gets other words than before: the rows of a full-text
/// index depend on it, and an index of an earlier version is rebuilt. An earlier Pleiad would not find the new rows, so
/// the directory's format increases with it.
///
/// 2: the service's English stop words; lone symbols are words.
pub const ANALYZER_VERSION: u8 = 2;

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
        let (mut words, mut position) = (Vec::new(), 0);
        each_token(text, &mut |token| {
            let word = lower(token);
            if !self.is_dropped(&word) {
                words.push((position, stemmer.stem(truncated(&word)).into_owned()));
            }
            position += 1;
        });
        AnalyzedText { words }
    }

    /// The number of words of a text, counted without stemming.
    pub fn count_words(self, text: &str) -> usize {
        let mut count = 0;
        each_token(text, &mut |token| count += usize::from(!self.is_dropped(&lower(token))));
        count
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

/// Visits the words of UAX #29 and the lone symbols between them, in order.
fn each_token<'t>(text: &'t str, visit: &mut dyn FnMut(&'t str)) {
    let mut end = 0;
    for (start, word) in text.unicode_word_indices() {
        each_lone_symbol(text, end..start, visit);
        visit(word);
        end = start + word.len();
    }
    each_lone_symbol(text, end..text.len(), visit);
}

/// Visits the runs of symbols in a gap between words that touch neither of the words.
fn each_lone_symbol<'t>(text: &'t str, gap: Range<usize>, visit: &mut dyn FnMut(&'t str)) {
    let (follows_word, precedes_word) = (gap.start > 0, gap.end < text.len());
    let between = text.get(gap).unwrap_or_default();
    if between.is_ascii() {
        return;
    }
    let mut runs = between.split(|c: char| c.is_ascii() || c.is_whitespace() || c.is_control()).peekable();
    let mut touches = follows_word;
    while let Some(run) = runs.next() {
        touches |= precedes_word && runs.peek().is_none();
        if !touches && run.chars().any(|c| !is_invisible(c)) {
            visit(run);
        }
        touches = false;
    }
}

/// Format characters and variation selectors: alone they are no symbol.
fn is_invisible(c: char) -> bool {
    const RANGES: [(char, char); 6] = [
        ('\u{AD}', '\u{AD}'),
        ('\u{200B}', '\u{200F}'),
        ('\u{202A}', '\u{202E}'),
        ('\u{2060}', '\u{206F}'),
        ('\u{FE00}', '\u{FE0F}'),
        ('\u{FEFF}', '\u{FEFF}'),
    ];
    RANGES.iter().any(|(first, last)| (*first..=*last).contains(&c))
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
