use super::*;
use crate::partition_key::{KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition, initial_ranges};
use crate::path::PropertyPath;
use proptest::prelude::*;

fn definition() -> PartitionKeyDefinition {
    let paths = vec![PropertyPath::parse("/pk").unwrap()];
    PartitionKeyDefinition { paths, kind: KeyKind::Hash, version: KeyVersion::V2, system_key: false }
}

fn map(count: u32) -> PartitionMap {
    let ranges = initial_ranges(&definition(), count).into_iter().zip(0..);
    let range =
        |(keys, id)| PartitionKeyRange { id, shard: u64::from(id) + 1, prefix: id, keys, parents: vec![], since: 1 };
    PartitionMap::new(1, ranges.map(range).collect()).unwrap()
}

fn epk(key: &str) -> EffectiveKey {
    PartitionKey::parse(&format!("[\"{key}\"]")).unwrap().effective(&definition())
}

#[test]
fn a_map_with_a_gap_is_rejected() {
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
        let key = PartitionKey::parse(&crate::json::to_string(&Value::from(vec![Value::from(key)]))).unwrap().effective(&definition());
        let owners: Vec<_> = map.ranges().iter().filter(|range| range.keys.contains(&key)).collect();
        prop_assert_eq!(owners, vec![&map.ranges()[map.locate(&key)]]);
    }

    #[test]
    fn maps_round_trip_through_the_catalog(count in 1u32..40) {
        let map = map(count);
        prop_assert_eq!(PartitionMap::from_value(&map.to_value()).unwrap(), map);
    }
}

/// The map after a split of its `n`th range at an effective key.
fn split(map: &PartitionMap, n: usize, at: EffectiveKey) -> PartitionMap {
    let parent = &map.ranges()[n];
    let keys = [
        EpkRange { min: parent.keys.min.clone(), max: at.clone() },
        EpkRange { min: at, max: parent.keys.max.clone() },
    ];
    let parents = ancestry(&[parent]);
    let child = |(id, keys)| PartitionKeyRange {
        id,
        shard: 100 + u64::from(id),
        prefix: id,
        keys,
        parents: parents.clone(),
        since: 0,
    };
    let children: Vec<PartitionKeyRange> = (map.next_id()..).zip(keys).map(child).collect();
    map.replaced(&[parent.id], &children).unwrap()
}

#[test]
fn the_keys_of_a_replaced_range_stay_known() {
    let one = map(1);
    let two = split(&one, 0, epk("a"));
    let three = split(&two, 1, epk("b").max(epk("a")));
    assert_eq!(three.keys_of(0), Some(&EpkRange::FULL));
    assert_eq!(three.keys_of(2), Some(&two.ranges()[1].keys), "{three:?}");
    assert_eq!(three.keys_of(1), Some(&three.ranges()[0].keys));
    assert_eq!((three.keys_of(9), three.by_id(0)), (None, None));
    assert_eq!(PartitionMap::from_value(&three.to_value()).unwrap(), three);
    let mut many = one;
    for _ in 0..FORMER_MAX + 1 {
        let only = many.ranges()[0].clone();
        many = many.replaced(&[only.id], &[PartitionKeyRange { id: only.id + 1, ..only }]).unwrap();
    }
    assert_eq!((many.keys_of(0), many.keys_of(1)), (None, Some(&EpkRange::FULL)), "old former ranges are dropped");
}

#[test]
fn s45_children_have_new_ids_name_all_their_ancestors_and_cover_the_parent() {
    let one = map(1);
    let two = split(&one, 0, epk("a"));
    assert_eq!(
        two.ranges().iter().map(|range| (range.id, &range.parents[..])).collect::<Vec<_>>(),
        [(1, &[0][..]), (2, &[0])]
    );
    assert!(two.epoch == 2 && two.ranges().iter().all(|range| range.since == 2));
    let lower = two.locate(&epk("z").min(epk("b")));
    let at = two.ranges()[lower].keys.min.clone().max(EffectiveKey::parse("0001").unwrap());
    let three = split(&two, lower, at);
    let newest: Vec<_> = three.ranges().iter().filter(|range| range.since == 3).collect();
    assert_eq!(newest.iter().map(|range| range.id).collect::<Vec<_>>(), [3, 4]);
    assert!(newest.iter().all(|range| range.parents == [0, two.ranges()[lower].id]));
}

#[test]
fn only_neighbors_merge_and_ids_are_never_reused() {
    let three = map(3);
    assert!(three.neighbors(&[0, 2]).is_err() && three.neighbors(&[1, 9]).is_err());
    let parents = three.neighbors(&[2, 1]).unwrap();
    let keys = EpkRange { min: parents[0].keys.min.clone(), max: parents[1].keys.max.clone() };
    let child =
        PartitionKeyRange { id: three.next_id(), shard: 9, prefix: 3, keys, parents: ancestry(&parents), since: 0 };
    let merged = three.replaced(&[1, 2], &[child]).unwrap();
    assert_eq!(merged.ranges().iter().map(|range| range.id).collect::<Vec<_>>(), [0, 3]);
    assert_eq!((merged.ranges()[1].parents.clone(), merged.next_id()), (vec![1, 2], 4));
}

#[test]
fn a_range_lists_only_its_latest_ancestors() {
    let then = map(1);
    let mut now = then.clone();
    for _ in 0..FORMER_MAX {
        now = then.restored_over(&split(&now, 0, epk("a")));
    }
    let only = &now.ranges()[0];
    assert_eq!((only.parents.len(), only.parents.last()), (FORMER_MAX, Some(&(only.id - 1))), "newest ancestors stay");
    assert_eq!(now.next_id(), only.id + 1);
    assert_eq!(then.restored_after_drop(2, 5000).ranges()[0].parents.len(), FORMER_MAX);
}

/// Its container was deleted, and the last map is unknown.
#[test]
fn a_restored_map_is_the_child_of_every_id_that_may_have_existed() {
    let then = map(2);
    let known = split(&then, 0, EffectiveKey::parse("0001").unwrap());
    assert_eq!(then.restored_after_drop(1, 2), then, "no newer map exists");
    let restored = then.restored_after_drop(known.epoch, known.next_id());
    assert!(restored.epoch > known.epoch);
    assert_eq!(restored.ranges().iter().map(|range| range.id).collect::<Vec<_>>(), [4, 5]);
    for range in restored.ranges() {
        assert_eq!((range.parents.as_slice(), range.since), (&[0, 1, 2, 3][..], restored.epoch));
    }
    assert_eq!(restored.keys_of(0), Some(&then.ranges()[0].keys), "the keys of former ranges stay known");
}

/// A map after splits at some keys.
fn splits(map: &PartitionMap, keys: &[String]) -> PartitionMap {
    keys.iter().fold(map.clone(), |map, key| {
        let at = epk(key);
        let n = map.locate(&at);
        if map.ranges()[n].keys.min == at { map } else { split(&map, n, at) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Clients know `now`: the earlier map is restored as if it were split and merged from it.
    #[test]
    fn an_earlier_map_is_restored_under_unused_ids(
        count in 1u32..4,
        before in prop::collection::vec("[a-z]{1,3}", 0..4),
        since in prop::collection::vec("[a-z]{1,3}", 0..6),
    ) {
        let then = splits(&map(count), &before);
        let now = splits(&then, &since);
        let restored = then.restored_over(&now);
        let places = |map: &PartitionMap| -> Vec<(EpkRange, u64, u32)> {
            map.ranges().iter().map(|range| (range.keys.clone(), range.shard, range.prefix)).collect()
        };
        prop_assert_eq!(places(&restored), places(&then), "the shards are unchanged");
        if now == then {
            prop_assert_eq!(restored, then);
            return Ok(());
        }
        prop_assert!(restored.epoch > now.epoch && restored.ranges().iter().all(|range| range.since == restored.epoch));
        for range in restored.ranges() {
            prop_assert!(now.keys_of(range.id).is_none() && range.id < restored.next_id());
            for former in now.ranges().iter().filter(|former| former.keys.intersect(&range.keys).is_some()) {
                prop_assert!(range.parents.contains(&former.id));
            }
        }
        for former in then.ranges().iter().chain(now.ranges()) {
            prop_assert_eq!(restored.keys_of(former.id), Some(&former.keys));
        }
        prop_assert_eq!(restored.restored_over(&restored), restored.clone());
        prop_assert!(then.restored_over(&restored).ranges().iter().all(|range| restored.keys_of(range.id).is_none()));
        prop_assert_eq!(PartitionMap::from_value(&restored.to_value()).unwrap(), restored);
    }
}
