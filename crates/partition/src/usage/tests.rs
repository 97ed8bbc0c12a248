//! A partition's usage statistics, with a clock that the tests control.

use super::*;

#[test]
fn a_minute_reports_its_busiest_second() {
    let usage = Usage::default();
    for (now_ms, centi) in [(60_000, 10_000), (60_500, 20_000), (61_000, 5_000), (120_000, 60_000)] {
        usage.record_served(now_ms, centi, 100_000, None);
    }
    assert_eq!([0, 1, 2, 3].map(|minute| usage.normalized(minute)), [0.0, 0.3, 0.6, 0.0]);
    assert_eq!([60, 61, 62].map(|second| usage.second_ru(second)), [300.0, 50.0, 0.0]);
    assert_eq!((usage.total_ru(), usage.requests()), (950.0, 4));
    assert_eq!(usage.normalized_in_hour(130_000), 0.6);
}

#[test]
fn normalized_use_is_capped_at_the_share() {
    let usage = Usage::default();
    usage.record_served(0, 500, 100, None);
    assert_eq!(usage.normalized(0), 1.0);
}

#[test]
fn an_overwritten_ring_entry_reads_as_idle() {
    let usage = Usage::default();
    usage.record_served(5_000, 100, 100_000, None);
    usage.record_served(5_000 + 64_000, 300, 100_000, None);
    assert_eq!((usage.second_ru(5), usage.second_ru(69)), (0.0, 3.0));
}

#[test]
fn the_busiest_keys_of_this_minute_and_the_last() {
    let usage = Usage::default();
    let used = |now_ms, key: &[u8], centi| usage.record_served(now_ms, centi, 1_000, Some(key));
    used(0, b"old", 900);
    used(61_000, b"a", 300);
    used(119_000, b"b", 100);
    used(121_000, b"a", 200);
    let names = |now_ms| usage.busiest_keys(now_ms, 2).into_iter().map(|key| key.components).collect::<Vec<_>>();
    assert_eq!(names(121_000), [b"a", b"b"]);
    assert_eq!(names(181_000), [b"a"]);
    assert!(names(600_000).is_empty());
}
