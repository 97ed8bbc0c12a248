//! text: what full-text search sees of a string, and how well a string answers a search.
//!
//! Promise: pure functions of text and language. The same text gives the same words whenever it is asked, so that words
//! that an index holds are those a scan would find. Which properties are text, and in which language, is the
//! container's policy; who keeps words in an index is decided elsewhere.
//!
//! Read in this order.
//!
//! ```text
//! "The Runners were running!"
//!    words    text → words        the │ runners │ were │ running        UAX #29, lower case
//!                                       runner 1          run 3         stop words leave their place, stems
//!    search   a keyword, a phrase or a word with mistakes in it; how often it occurs
//!    score    how relevant that is: BM25
//! ```

mod analyzer; // text to words
mod stop_words; // words that say nothing

mod query; // what is looked for
mod edit_distance; // words with mistakes in them

mod bm25; // how relevant

pub use analyzer::{AnalyzedText, Analyzer, WORD_BYTES_MAX};
pub use bm25::{Statistics, bm25};
pub use query::{DISTANCE_MAX, TextQuery};
