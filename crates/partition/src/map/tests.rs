use super::*;
use pleiad_model::partition_key::{KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition, initial_ranges};
use pleiad_model::path::PropertyPath;
use proptest::prelude::*;

fn definition() -> PartitionKeyDefinition {
    let paths = vec![PropertyPath::parse("/pk").unwrap()];
    PartitionKeyDefinition { paths, kind: KeyKind::Hash, version: KeyVersion::V2, system_key: false }
}

fn map(count: u32) -> PartitionMap {
    let ranges = initial_ranges(&definition(), count).into_iter().zip(0..);
    let range = |(keys, id)| Range { id, shard: u64::from(id) + 1, prefix: id, keys, parents: vec![], since: 1 };
    PartitionMap::new(1, ranges.map(range).collect()).unwrap()
}

fn epk(key: &str) -> EffectiveKey {
    PartitionKey::parse(&format!("[\"{key}\"]")).unwrap().effective(&definition())
}

#[test]
fn a_map_with_a_gap_is_refused() {
    let mut ranges = map(3).ranges().to_vec();
    ranges.remove(1);
    assert!(PartitionMap::new(2, ranges).is_err());
}

#[test]
fn s38_s43_many_keys_spread_evenly_over_partitions() {
    let map = map(5);
    let mut held = [0u32; 5];
    (0..100_000).for_each(|n| held[map.locate(&epk(&format!("key-{n}")))] += 1);
    assert!(held.iter().all(|&n| (18_000..=22_000).contains(&n)), "{held:?}");
}

#[test]
fn s166_more_keys_spread_more_evenly() {
    let map = map(5);
    let error = |keys: u32| {
        let mut held = [0.0f64; 5];
        (0..keys).for_each(|n| held[map.locate(&epk(&format!("host-{n}")))] += 1.0);
        held.map(|n| (n * 5.0 / f64::from(keys) - 1.0).abs()).into_iter().fold(0.0, f64::max)
    };
    let errors = [10, 100, 1_000, 10_000].map(error);
    assert!(errors.windows(2).all(|pair| pair[1] < pair[0]), "{errors:?}");
}

#[test]
fn s52_five_hundred_ranges_still_have_one_owner_per_key() {
    let map = map(500);
    for n in 0..1000 {
        let key = epk(&n.to_string());
        assert!(map.ranges()[map.locate(&key)].keys.contains(&key));
    }
}

proptest! {
    #[test]
    fn s36_the_owner_of_a_key_is_the_range_that_holds_it(count in 1u32..40, key in "\\PC{0,20}") {
        let map = map(count);
        let key = PartitionKey::parse(&pleiad_model::json::to_string(&Value::from(vec![Value::from(key)]))).unwrap().effective(&definition());
        let owners: Vec<_> = map.ranges().iter().filter(|range| range.keys.contains(&key)).collect();
        prop_assert_eq!(owners, vec![&map.ranges()[map.locate(&key)]]);
    }

    #[test]
    fn maps_round_trip_through_the_catalog(count in 1u32..40) {
        let map = map(count);
        prop_assert_eq!(PartitionMap::from_value(&map.to_value()).unwrap(), map);
    }
}
