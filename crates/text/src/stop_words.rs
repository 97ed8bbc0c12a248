//! Stop words. The service drops them from English text only.

/// The stop words of Lucene's English analyzer, sorted for binary search.
const ENGLISH: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];

pub fn is_english(word: &str) -> bool {
    ENGLISH.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(ENGLISH.is_sorted());
        assert!(is_english("the") && is_english("a") && is_english("with") && !is_english("king"));
    }
}
