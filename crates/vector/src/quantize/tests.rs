//! Proves: estimated distances are close to the exact ones.

use proptest::prelude::*;

use super::*;
use DistanceFunction::{Cosine, DotProduct, Euclidean};

#[test]
fn codes_match_the_documented_example() {
    let codes = QuantizedVectors::new(3, Euclidean);
    let code = codes.encode(&[0.5, -1.0, 0.25]);
    assert_eq!(code.code, [64, -127, 32]);
    assert!((code.step - 1.0 / 127.0).abs() < 1e-6);
    assert_eq!(codes.encode(&[0.0, 0.0, 0.0]).code, [0, 0, 0]);
}

fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
    proptest::collection::vec(proptest::collection::vec(-10f32..10.0, 24..=24), 2..8)
}

proptest! {
    #[test]
    fn estimates_are_close_to_exact_distances(vectors in vectors()) {
        for function in [Cosine, DotProduct, Euclidean] {
            let mut codes = QuantizedVectors::new(24, function);
            for (at, vector) in (0u32..).zip(&vectors) {
                let code = codes.encode(vector);
                codes.put(at, &code);
            }
            let to = codes.encode(&vectors[0]);
            for (at, vector) in (0u32..).zip(&vectors) {
                let dot: f32 = vector.iter().zip(&vectors[0]).map(|(a, b)| a * b).sum();
                let (a, b): (f32, f32) = (vector.iter().map(|a| a * a).sum(), vectors[0].iter().map(|a| a * a).sum());
                let (want, size) = match function {
                    DotProduct => (-dot, (a * b).sqrt()),
                    Euclidean => (a + b - 2.0 * dot, a + b),
                    Cosine => (2.0 - 2.0 * dot / (a * b).sqrt(), 2.0),
                };
                prop_assert!((codes.distance_to(at, &to) - want).abs() < 0.03 * size, "{function:?}");
                prop_assert!((codes.distance_between(at, 0) - codes.graph_distance_to(at, &to)).abs() < 1e-3 * (a + b));
            }
        }
    }
}
