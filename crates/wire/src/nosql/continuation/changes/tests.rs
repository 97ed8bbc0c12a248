//! Issued positions are accepted unchanged; edited or foreign ones are not.

use super::*;
use pleiad_model::partition_key::EffectiveKey;
use proptest::collection::vec;
use proptest::prelude::*;

fn tokens() -> TokenSigner {
    TokenSigner::new(&[7; 32])
}

fn cursor(lsn: u64, min: &[u8], max: &[u8]) -> ChangeCursor {
    ChangeCursor { lsn, keys: EpkRange { min: EffectiveKey::from_bytes(min), max: EffectiveKey::from_bytes(max) } }
}

fn halves() -> Vec<ChangeCursor> {
    vec![cursor(812, &[], &[0x7F]), cursor(3, &[0x7F], &[0xFF])]
}

#[test]
fn one_range_is_its_lsn() {
    assert_eq!(tokens().issue_changes("AAAA", &[cursor(812, &[], &[0xFF])]).unwrap(), "\"812\"");
    for text in ["812", "\"812\""] {
        assert_eq!(tokens().redeem_changes("AAAA", text).unwrap(), ChangeFrom::Lsn(812));
    }
    assert_eq!(tokens().redeem_changes("AAAA", "*").unwrap(), ChangeFrom::Now);
}

#[test]
fn several_ranges_are_a_number_too() {
    let etag = tokens().issue_changes("AAAA", &halves()).unwrap();
    assert!(etag.starts_with("\"099000002000000000000000000003044"), "{etag}");
    assert!(etag.trim_matches('"').bytes().all(|digit| digit.is_ascii_digit()));
    assert_eq!(tokens().redeem_changes("AAAA", &etag).unwrap(), ChangeFrom::Cursors(halves()));
    assert!(tokens().redeem_changes("BBBB", &etag).is_err(), "a position of another container");
    assert!(TokenSigner::new(&[8; 32]).redeem_changes("AAAA", &etag).is_err(), "a position of another account");
}

#[test]
fn the_header_size_limits_the_number_of_ranges() {
    let many = |count| vec![cursor(1, &[0; 16], &[1; 16]); count];
    assert!(tokens().issue_changes("AAAA", &many(RANGES_MAX)).unwrap().len() < 12_000);
    assert!(tokens().issue_changes("AAAA", &many(RANGES_MAX + 1)).is_err());
}

#[test]
fn invalid_positions_are_rejected() {
    for text in ["", "\"\"", "+5", "-1", "12a", "99999999999999999999", "0x10", "\"1\",\"2\""] {
        assert!(tokens().redeem_changes("AAAA", text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn positions_round_trip(parts in vec((any::<u64>(), vec(any::<u8>(), 0..49), vec(any::<u8>(), 0..49)), 2..20)) {
        let cursors: Vec<ChangeCursor> = parts.iter().map(|(lsn, min, max)| cursor(*lsn, min, max)).collect();
        let etag = tokens().issue_changes("AAAA", &cursors).unwrap();
        prop_assert_eq!(tokens().redeem_changes("AAAA", &etag).unwrap(), ChangeFrom::Cursors(cursors));
    }

    #[test]
    fn an_edited_position_is_rejected(at in 1usize..175, digit in "[0-9]") {
        let etag = tokens().issue_changes("AAAA", &halves()).unwrap();
        let mut edited = etag.clone();
        edited.replace_range(at..=at, &digit);
        prop_assume!(edited != etag);
        prop_assert!(tokens().redeem_changes("AAAA", &edited).is_err());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        let _ = tokens().redeem_changes("AAAA", &text);
    }
}
