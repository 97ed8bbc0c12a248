//! Full-text terms: one index row per distinct word of a text, and one for its length.
//!
//! Invariant: every text at the path of a full-text index has a row for each of its words, and one for its length. So a
//! search that reads the rows of a word misses no text with that word, and sums of lengths and counts of rows equal
//! those of a scan. Values that are not strings have no rows.
//!
//! ```text
//! word     word │ 00 │ occurrences u32      "run" twice    72 75 6e │ 00 │ 00 00 00 02
//! length   00 │ words u32                   12 words       00 │ 00 00 00 0c
//! ```
//!
//! No word is empty or contains the byte 00. The path hash depends on the language and on the version of the analyzer:
//! each has its own words. Rows of an earlier version are in the way of none; they are dropped, and the index is built
//! again.

use pleiad_model::Value;
use pleiad_model::policy::{FullTextIndex, FullTextPolicy, Language, PathStep};
use pleiad_storage::keyspace::INDEX_VALUE_BYTES_MAX;
use pleiad_text::{Analyzer, WORD_BYTES_MAX};

use super::path::{full_text_id, obsolete_full_text_ids};
use super::{IndexTerm, TermRange};

const END: u8 = 0x00;
/// Sorts after all rows of a word, and after all lengths.
const AFTER_END: u8 = 0x01;

// A stem may be longer than its word, by a few bytes.
const _: () = assert!(2 * WORD_BYTES_MAX + size_of_val(&END) + size_of::<u32>() <= INDEX_VALUE_BYTES_MAX);

/// One full-text index of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct TextRule {
    pub steps: Vec<PathStep>,
    pub language: Language,
}

impl TextRule {
    pub fn new(index: &FullTextIndex, policy: Option<&FullTextPolicy>) -> TextRule {
        let steps: Vec<PathStep> = index.path.segments().iter().cloned().map(PathStep::Property).collect();
        let language = policy.map_or(Language::ENGLISH, |policy| policy.language(&steps));
        TextRule { steps, language }
    }

    /// The path hash of its rows.
    pub fn id(&self) -> u64 {
        full_text_id(&self.steps, self.language)
    }

    /// The path hashes of the rows that earlier versions of the analyzer wrote.
    pub fn obsolete_ids(&self) -> impl Iterator<Item = u64> {
        obsolete_full_text_ids(&self.steps, self.language)
    }

    pub fn collect(&self, item: &Value, found: &mut Vec<IndexTerm>) {
        let Some(text) = self.text(item) else { return };
        let (path, words) = (self.id(), Analyzer::new(self.language).analyze(text));
        found.push(IndexTerm::index(path, length_row(u32::try_from(words.len()).unwrap_or(u32::MAX))));
        found
            .extend(words.word_counts().into_iter().map(|(word, count)| IndexTerm::index(path, word_row(word, count))));
    }

    fn text<'v>(&self, item: &'v Value) -> Option<&'v str> {
        let value = self.steps.iter().try_fold(item, |value, step| match step {
            PathStep::Property(name) => value.get(name),
            PathStep::Element => None,
        });
        value?.as_str()
    }
}

fn word_row(word: &str, count: u32) -> Vec<u8> {
    [word.as_bytes(), &[END], &count.to_be_bytes()].concat()
}

fn length_row(words: u32) -> Vec<u8> {
    [&[END][..], &words.to_be_bytes()].concat()
}

/// The rows of the texts with this word.
pub fn word_range(word: &str) -> TermRange {
    let row = |end| [word.as_bytes(), &[end]].concat();
    TermRange { from: row(END), to: row(AFTER_END) }
}

/// The rows with the lengths of texts.
pub fn length_range() -> TermRange {
    TermRange { from: vec![END], to: vec![AFTER_END] }
}

/// The number of words in a row of `length_range`.
pub fn decode_length(value: &[u8]) -> Option<u32> {
    let (end, words) = value.split_first()?;
    (*end == END).then(|| words.try_into().map(u32::from_be_bytes).ok())?
}

#[cfg(test)]
mod tests;
