//! text: full-text search: the analyzer, text queries and BM25 scores.
//!
//! Guarantees: pure functions of text and language. One version of the analyzer always gives the same words for the
//! same text, so the words in an index are those that a scan would find. The container's policy says which properties
//! are text and in which language; the partition stores the words in its index.
//!
//! Read in this order.
//!
//! ```text
//! "The Runners were running!"
//!    analyzer  text → words        the │ runners │ were │ running        UAX #29, lower case
//!                                        runner 1 │ run 3                stop words dropped, positions kept; stems
//!    query     a keyword, a phrase or a fuzzy word; how often it occurs
//!    bm25      the relevance of a text
//! ```

mod stop_words; // words that are not indexed
mod analyzer; // text to words
mod edit_distance; // Levenshtein distance, for fuzzy words
mod query; // keywords, phrases, fuzzy words
mod bm25; // relevance

pub use analyzer::{ANALYZER_VERSION, AnalyzedText, Analyzer, WORD_BYTES_MAX};
pub use bm25::{Statistics, bm25};
pub use query::{DISTANCE_MAX, TextQuery};
