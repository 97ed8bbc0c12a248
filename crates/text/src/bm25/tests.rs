use proptest::prelude::*;

use super::*;

fn statistics(documents: f64, words: f64, hits: &[f64]) -> Statistics {
    Statistics { documents, words, hits: hits.to_vec() }
}

#[test]
fn a_score_computed_by_hand() {
    // 4 texts of 10 words on average; one of them, with 10 words, contains the term twice.
    let known = statistics(4.0, 40.0, &[1.0]);
    let idf = (1.0f64 + 3.5 / 1.5).ln();
    let want = idf * 2.0 * 2.2 / (2.0 + 1.2);
    assert!((bm25(&known, [2].into_iter(), 10) - want).abs() < 1e-12);
    assert_eq!(bm25(&known, [0].into_iter(), 10), 0.0);
}

#[test]
fn rare_terms_short_texts_and_many_hits_count_more() {
    let known = statistics(100.0, 1000.0, &[1.0, 90.0]);
    assert!(bm25(&known, [1, 0].into_iter(), 10) > bm25(&known, [0, 1].into_iter(), 10));
    assert!(bm25(&known, [1, 0].into_iter(), 5) > bm25(&known, [1, 0].into_iter(), 50));
    assert!(bm25(&known, [3, 0].into_iter(), 10) > bm25(&known, [1, 0].into_iter(), 10));
    assert!(bm25(&known, [0, 1].into_iter(), 10) > 0.0, "a term that most texts contain has a positive weight");
}

proptest! {
    #[test]
    fn scores_are_finite_and_not_negative(documents in -1e9f64..1e9, words in -1e9f64..1e9, hits in -1e9f64..1e9, occurs: u32, length: u16) {
        let score = bm25(&statistics(documents, words, &[hits]), [occurs].into_iter(), usize::from(length));
        prop_assert!(score.is_finite() && score >= 0.0, "{}", score);
    }
}
