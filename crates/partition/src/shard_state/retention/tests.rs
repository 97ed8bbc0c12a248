//! Splits and merges against a list of keys, each with its own LSN.

use super::*;
use proptest::prelude::*;

fn key(byte: u8) -> EffectiveKey {
    EffectiveKey::from_bytes(&[byte])
}

fn keys(min: u8, max: u8) -> EpkRange {
    EpkRange { min: key(min), max: key(max) }
}

fn at_key(watermark: &RetentionWatermark, byte: u8) -> u64 {
    watermark.lsn_of(&KeyScope::Key(key(byte)))
}

#[test]
fn a_merge_keeps_the_watermark_of_each_parents_keys() {
    let (low, high) = (keys(0, 0x80), keys(0x80, 0xFF));
    let mut watermark = RetentionWatermark::merged(
        [(&low, RetentionWatermark::at(22)), (&high, RetentionWatermark::at(116))].into_iter(),
    );
    let of = |watermark: &RetentionWatermark, keys: &EpkRange| watermark.lsn_of(&KeyScope::Keys(keys.clone()));
    assert_eq!(
        (of(&watermark, &low), of(&watermark, &high), of(&watermark, &keys(0x7F, 0x81)), watermark.latest()),
        (22, 116, 116, 116)
    );
    let child = watermark.within(&keys(0x40, 0x90));
    assert_eq!((of(&child, &low), of(&child, &high)), (22, 116));
    assert_eq!(watermark.within(&low), RetentionWatermark::at(22), "a child has the watermarks of its own keys only");
    watermark.raise(100);
    assert_eq!((of(&watermark, &low), of(&watermark, &high)), (100, 116));
    watermark.raise(130);
    assert_eq!(watermark, RetentionWatermark::at(130));
}

#[test]
fn too_many_ranges_collapse_to_the_latest_lsn() {
    let ranges: Vec<EpkRange> = (0..40).map(|n| keys(n, n + 1)).collect();
    let watermark =
        RetentionWatermark::merged(ranges.iter().zip(1..).map(|(keys, lsn)| (keys, RetentionWatermark::at(lsn))));
    assert_eq!(watermark, RetentionWatermark::at(40));
}

#[test]
fn encoding_matches_the_documented_layout() {
    let watermark = RetentionWatermark::merged(
        [(&keys(0, 0x80), RetentionWatermark::at(22)), (&keys(0x80, 0xFF), RetentionWatermark::at(116))].into_iter(),
    );
    let mut out = Vec::new();
    watermark.encode_later(&mut out);
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
        let mut watermark = RetentionWatermark::merged(both.into_iter().filter(|(keys, _)| !keys.is_empty()));
        let halves = [watermark.within(&low), watermark.within(&high)];
        for (n, lsn) in (0u8..).zip(&lsns) {
            prop_assert_eq!(at_key(&watermark, n), *lsn);
            prop_assert_eq!(at_key(&halves[usize::from(n >= cut)], n), *lsn);
        }
        watermark.raise(raised);
        for (n, lsn) in (0u8..).zip(&lsns) {
            prop_assert_eq!(at_key(&watermark, n), (*lsn).max(raised));
        }
    }

    #[test]
    fn parts_round_trip(lsn: u64, parts in proptest::collection::vec((any::<u64>(), proptest::collection::vec(any::<u8>(), 0..60), proptest::collection::vec(any::<u8>(), 0..60)), 0..LATER_MAX)) {
        let later = |(lsn, min, max): (u64, Vec<u8>, Vec<u8>)| {
            LaterRange { keys: EpkRange { min: EffectiveKey::from_bytes(&min), max: EffectiveKey::from_bytes(&max) }, lsn }
        };
        let watermark = RetentionWatermark { lsn, later: parts.into_iter().map(later).collect() };
        let mut out = Vec::new();
        watermark.encode_later(&mut out);
        prop_assert_eq!(RetentionWatermark::decode(lsn, &out), Some(watermark));
        prop_assert_eq!(RetentionWatermark::decode(lsn, &out[..out.len() - 1]), None);
        out.push(0);
        prop_assert_eq!(RetentionWatermark::decode(lsn, &out), None);
    }
}
