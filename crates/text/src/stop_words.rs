//! Stop words: words that are neither indexed nor searched nor counted. Only English has them, as in the service.
//!
//! `data/stop_words_en.txt` is the list that the service publishes for `en-US`: 586 words in lower case, one per line.

use std::collections::HashSet;
use std::sync::LazyLock;

static ENGLISH: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| include_str!("../data/stop_words_en.txt").lines().collect());

pub fn is_english(word: &str) -> bool {
    ENGLISH.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_list_is_complete() {
        assert_eq!(ENGLISH.len(), 586);
        let is_plain = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'\'')
        };
        assert!(ENGLISH.iter().all(|word| is_plain(word)));
        assert!(["the", "a", "7", "x", "can't", "first", "were", "zero"].iter().all(|word| is_english(word)));
        assert!(["king", "10", "The", "united", "states", ""].iter().all(|word| !is_english(word)));
    }
}
