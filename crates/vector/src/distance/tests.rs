//! Proves: distances follow the formulas, and the nearest sorts first under every function.

use proptest::prelude::*;

use super::*;
use DistanceFunction::{Cosine, DotProduct, Euclidean};

#[track_caller]
fn check(function: DistanceFunction, left: &[f32], right: &[f32], want: Option<f64>) {
    assert_eq!(distance(function, left, right), want, "{function:?} {left:?} {right:?}");
}

#[test]
fn small_vectors_by_hand() {
    check(Cosine, &[1.0, 0.0], &[0.0, 2.0], Some(0.0));
    check(Cosine, &[1.0, 2.0, 2.0], &[2.0, 4.0, 4.0], Some(1.0));
    check(Cosine, &[1.0, 0.0], &[-3.0, 0.0], Some(-1.0));
    check(DotProduct, &[1.0, 2.0, 3.0], &[4.0, -5.0, 6.0], Some(12.0));
    check(Euclidean, &[0.0, 3.0], &[4.0, 0.0], Some(5.0));
    check(Euclidean, &[], &[], Some(0.0));
}

#[test]
fn some_pairs_have_no_distance() {
    check(Cosine, &[0.0, 0.0], &[1.0, 1.0], None);
    check(Cosine, &[], &[], None);
    for function in [Cosine, DotProduct, Euclidean] {
        check(function, &[1.0], &[1.0, 2.0], None);
    }
}

#[test]
fn the_nearest_comes_first() {
    assert_eq!(compare_nearness(Cosine, 0.9, 0.1), Ordering::Less);
    assert_eq!(compare_nearness(DotProduct, -3.0, 3.0), Ordering::Greater);
    assert_eq!(compare_nearness(Euclidean, 0.1, 0.9), Ordering::Less);
}

fn pair() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
    (0usize..70).prop_flat_map(|n| {
        let vector = || proptest::collection::vec(-100f32..100.0, n..=n);
        (vector(), vector())
    })
}

proptest! {
    #[test]
    fn lane_sums_match_a_sequential_sum((left, right) in pair()) {
        let both = || left.iter().zip(&right).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        let dot: f64 = both().map(|(a, b)| a * b).sum();
        let apart: f64 = both().map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        prop_assert!((distance(DotProduct, &left, &right).unwrap() - dot).abs() <= 1e-6 * dot.abs().max(1.0));
        prop_assert!((distance(Euclidean, &left, &right).unwrap() - apart).abs() <= 1e-6 * apart.max(1.0));
        prop_assert_eq!(distance(Cosine, &left, &right), distance(Cosine, &right, &left));
    }
}
