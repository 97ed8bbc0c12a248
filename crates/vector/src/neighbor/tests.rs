//! Proves: batches of any sizes return what a full sort returns.

use proptest::prelude::*;

use super::*;
use DistanceFunction::{Cosine, Euclidean};

#[test]
fn ties_go_the_way_of_the_distances() {
    let (a, b) = (Neighbor { distance: 1.0, docnum: 1 }, Neighbor { distance: 1.0, docnum: 2 });
    assert_eq!(a.order(&b, Euclidean), Ordering::Less);
    assert_eq!(a.order(&b, Cosine), Ordering::Greater);
}

proptest! {
    #[test]
    fn a_ranking_is_a_sort(
        distances in proptest::collection::vec(0u8..9, 0..60),
        counts in proptest::collection::vec(0usize..20, 0..20),
        function in prop_oneof![Just(Cosine), Just(Euclidean)],
    ) {
        let nears: Vec<Neighbor> =
            (1..).zip(&distances).map(|(docnum, d)| Neighbor { distance: f64::from(*d), docnum }).collect();
        let mut sorted = nears.clone();
        sorted.sort_by(|a, b| a.order(b, function));
        let mut ranking = NeighborList::new(nears, function);
        let mut given = Vec::new();
        for count in counts.into_iter().chain([usize::MAX]) {
            given.extend_from_slice(ranking.next(count));
        }
        prop_assert_eq!(given, sorted);
        prop_assert!(ranking.next(5).is_empty());
    }
}
