//! Proves: batches of any sizes return what a full sort returns.

use proptest::prelude::*;

use super::*;
use DistanceFunction::{Cosine, Euclidean};

#[test]
fn of_equal_distances_the_highest_docnum_is_first() {
    let (a, b) = (Neighbor { distance: 1.0, docnum: 1 }, Neighbor { distance: 1.0, docnum: 2 });
    assert_eq!(a.order(&b, Euclidean), Ordering::Greater);
    assert_eq!(a.order(&b, Cosine), Ordering::Greater);
}

proptest! {
    #[test]
    fn batches_equal_a_full_sort(
        distances in proptest::collection::vec(0u8..9, 0..60),
        counts in proptest::collection::vec(0usize..20, 0..20),
        function in prop_oneof![Just(Cosine), Just(Euclidean)],
    ) {
        let neighbors: Vec<Neighbor> =
            (1..).zip(&distances).map(|(docnum, d)| Neighbor { distance: f64::from(*d), docnum }).collect();
        let mut sorted = neighbors.clone();
        sorted.sort_by(|a, b| a.order(b, function));
        let mut list = NeighborList::new(neighbors, function);
        let mut returned = Vec::new();
        for count in counts.into_iter().chain([usize::MAX]) {
            returned.extend_from_slice(list.next(count));
        }
        prop_assert_eq!(returned, sorted);
        prop_assert!(list.next(5).is_empty());
    }
}
