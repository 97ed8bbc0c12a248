//! BM25: the relevance of a text to a query, over the statistics of a whole container.
//!
//! ```text
//! score  = Σ IDF(t) · f · (k1 + 1) / (f + k1 · (1 - b + b · length / average length))       k1 = 1.2, b = 0.75
//! IDF(t) = ln(1 + (N - n + 0.5) / (n + 0.5))                     N texts, n of them with t
//! ```
//!
//! The sum is over the terms of the query; f is how often a term, a keyword or a phrase, occurs in the text. The 1
//! inside the logarithm keeps the weight of a term positive when more than half of the texts contain it.

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Statistics over all texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    pub documents: f64,
    /// The number of words in all texts together.
    pub words: f64,
    /// For each term of a query, the number of texts that contain it.
    pub hits: Vec<f64>,
}

/// The score of a text of `length` words with these `occurrences` of each term. It is never negative, and zero if no
/// term occurs.
pub fn bm25(statistics: &Statistics, occurrences: impl Iterator<Item = u32>, length: usize) -> f64 {
    let average = statistics.words / statistics.documents;
    let norm = if average > 0.0 { length as f64 / average } else { 1.0 };
    let terms = statistics.hits.iter().zip(occurrences);
    terms.map(|(hits, occurs)| term_score(idf(statistics.documents, *hits), f64::from(occurs), norm)).sum()
}

fn term_score(idf: f64, frequency: f64, norm: f64) -> f64 {
    idf * frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * norm))
}

fn idf(documents: f64, hits: f64) -> f64 {
    let without = (documents - hits).max(0.0);
    (1.0 + (without + 0.5) / (hits.max(0.0) + 0.5)).ln()
}

#[cfg(test)]
mod tests;
