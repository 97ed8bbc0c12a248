//! Text queries: a keyword or a phrase, exact or fuzzy.
//!
//! Guarantees: a query is analyzed as texts are, so it finds other forms of its words. The words of a phrase match in
//! the given order; any word may be at the position of a stop word. A query without words matches nothing.

use crate::analyzer::{AnalyzedText, Analyzer};
use crate::edit_distance;

/// The largest edit distance that a fuzzy query may allow per word.
pub const DISTANCE_MAX: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// Words with their offsets from the first.
    words: Vec<(u32, String)>,
    /// The edit distance allowed in each word.
    distance: u8,
}

impl TextQuery {
    pub fn new(analyzer: Analyzer, text: &str) -> TextQuery {
        TextQuery::fuzzy(analyzer, text, 0)
    }

    pub fn fuzzy(analyzer: Analyzer, text: &str, distance: u8) -> TextQuery {
        let words = analyzer.analyze(text);
        let first = words.iter().next().map_or(0, |(position, _)| position);
        TextQuery {
            words: words.iter().map(|(position, word)| (position - first, word.to_owned())).collect(),
            distance,
        }
    }

    /// The number of words: the cost of comparing the query with one position of a text.
    pub fn word_count(&self) -> usize {
        self.words.len()
    }

    /// The number of occurrences.
    pub fn occurrences(&self, words: &AnalyzedText) -> u32 {
        let hits = self.positions(words).count();
        u32::try_from(hits).unwrap_or(u32::MAX)
    }

    pub fn occurs_in(&self, words: &AnalyzedText) -> bool {
        self.positions(words).next().is_some()
    }

    /// Words that every matching text contains; `None` for a fuzzy query, which requires no particular word.
    pub fn required_words(&self) -> Option<impl Iterator<Item = &str>> {
        (self.distance == 0).then(|| self.words.iter().map(|(_, word)| word.as_str()))
    }

    /// The word of a query that is a single exact word.
    pub fn keyword(&self) -> Option<&str> {
        match self.words.as_slice() {
            [(_, word)] if self.distance == 0 => Some(word),
            _ => None,
        }
    }

    fn positions<'s>(&'s self, words: &'s AnalyzedText) -> impl Iterator<Item = u32> + 's {
        let first = self.words.first().map(|(_, word)| word.as_str());
        let starts = words.iter().filter(move |(_, word)| first.is_some_and(|first| self.matches_word(first, word)));
        starts.map(|(position, _)| position).filter(|position| self.continues_at(words, *position))
    }

    fn continues_at(&self, words: &AnalyzedText, position: u32) -> bool {
        let rest = self.words.get(1..).unwrap_or_default();
        rest.iter()
            .all(|(offset, wanted)| words.at(position + offset).is_some_and(|word| self.matches_word(wanted, word)))
    }

    fn matches_word(&self, wanted: &str, word: &str) -> bool {
        wanted == word || self.distance > 0 && edit_distance::is_within(wanted, word, usize::from(self.distance))
    }
}

#[cfg(test)]
mod tests;
