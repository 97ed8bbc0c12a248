//! Splits and merges against a list of keys, each with its own LSN.

use super::*;
use proptest::prelude::*;

fn key(byte: u8) -> EffectiveKey {
    EffectiveKey::from_bytes(&[byte])
}

fn keys(min: u8, max: u8) -> EpkRange {
    EpkRange { min: key(min), max: key(max) }
}

fn at_key(kept: &RetentionWatermark, byte: u8) -> u64 {
    kept.lsn_of(&KeyScope::Key(key(byte)))
}

#[test]
fn a_merge_leaves_each_parents_keys_as_they_were() {
    let (low, high) = (keys(0, 0x80), keys(0x80, 0xFF));
    let mut kept = RetentionWatermark::merged(
        [(&low, RetentionWatermark::at(22)), (&high, RetentionWatermark::at(116))].into_iter(),
    );
    let of = |kept: &RetentionWatermark, keys: &EpkRange| kept.lsn_of(&KeyScope::Keys(keys.clone()));
    assert_eq!((of(&kept, &low), of(&kept, &high), of(&kept, &keys(0x7F, 0x81)), kept.latest()), (22, 116, 116, 116));
    let child = kept.within(&keys(0x40, 0x90));
    assert_eq!((of(&child, &low), of(&child, &high)), (22, 116));
    assert_eq!(kept.within(&low), RetentionWatermark::at(22), "a child has the watermarks of its own keys only");
    kept.raise(100);
    assert_eq!((of(&kept, &low), of(&kept, &high)), (100, 116));
    kept.raise(130);
    assert_eq!(kept, RetentionWatermark::at(130));
}

#[test]
fn too_many_parts_are_as_good_as_the_latest() {
    let ranges: Vec<EpkRange> = (0..40).map(|n| keys(n, n + 1)).collect();
    let kept =
        RetentionWatermark::merged(ranges.iter().zip(1..).map(|(keys, lsn)| (keys, RetentionWatermark::at(lsn))));
    assert_eq!(kept, RetentionWatermark::at(40));
}

#[test]
fn later_parts_are_written_as_drawn() {
    let kept = RetentionWatermark::merged(
        [(&keys(0, 0x80), RetentionWatermark::at(22)), (&keys(0x80, 0xFF), RetentionWatermark::at(116))].into_iter(),
    );
    let mut out = Vec::new();
    kept.encode_later(&mut out);
    assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 0, 0x74, 1, 0x80, 1, 0xFF]);
}

proptest! {
    #[test]
    fn every_key_keeps_its_own_lsn(lsns in proptest::collection::vec(0u64..50, 1..20), cut in 0u8..20, raised in 0u64..50) {
        let ranges: Vec<EpkRange> = (0..lsns.len() as u8).map(|n| keys(n, n + 1)).collect();
        let parts = |from: usize, to: usize| {
            let parts = ranges.iter().zip(&lsns).skip(from).take(to - from);
            RetentionWatermark::merged(parts.map(|(keys, lsn)| (keys, RetentionWatermark::at(*lsn))))
        };
        let cut = cut % lsns.len() as u8;
        let (low, high) = (keys(0, cut), keys(cut, 0xFF));
        let both = [(&low, parts(0, cut.into())), (&high, parts(cut.into(), lsns.len()))];
        let mut kept = RetentionWatermark::merged(both.into_iter().filter(|(keys, _)| !keys.is_empty()));
        let halves = [kept.within(&low), kept.within(&high)];
        for (n, lsn) in (0u8..).zip(&lsns) {
            prop_assert_eq!(at_key(&kept, n), *lsn);
            prop_assert_eq!(at_key(&halves[usize::from(n >= cut)], n), *lsn);
        }
        kept.raise(raised);
        for (n, lsn) in (0u8..).zip(&lsns) {
            prop_assert_eq!(at_key(&kept, n), (*lsn).max(raised));
        }
    }

    #[test]
    fn parts_round_trip(lsn: u64, parts in proptest::collection::vec((any::<u64>(), proptest::collection::vec(any::<u8>(), 0..60), proptest::collection::vec(any::<u8>(), 0..60)), 0..LATER_MAX)) {
        let later = |(lsn, min, max): (u64, Vec<u8>, Vec<u8>)| {
            Later { keys: EpkRange { min: EffectiveKey::from_bytes(&min), max: EffectiveKey::from_bytes(&max) }, lsn }
        };
        let kept = RetentionWatermark { lsn, later: parts.into_iter().map(later).collect() };
        let mut out = Vec::new();
        kept.encode_later(&mut out);
        prop_assert_eq!(RetentionWatermark::decode(lsn, &out), Some(kept));
        prop_assert_eq!(RetentionWatermark::decode(lsn, &out[..out.len() - 1]), None);
        out.push(0);
        prop_assert_eq!(RetentionWatermark::decode(lsn, &out), None);
    }
}
