use pleiad_model::partition_key::EffectiveKey;
use proptest::prelude::*;

use super::*;

const KB: usize = 1024;

fn tokens() -> TokenSigner {
    TokenSigner::new(&[7; 32])
}

fn keys() -> impl Strategy<Value = EpkRange> {
    let key = || prop::collection::vec(any::<u8>(), 0..116).prop_map(|bytes| EffectiveKey::from_bytes(&bytes));
    (key(), key()).prop_map(|(min, max)| EpkRange { min, max })
}

fn binding() -> impl Strategy<Value = CursorBinding> {
    prop_oneof![
        (any::<u64>(), keys()).prop_map(|(fingerprint, stretch)| CursorBinding::Query { fingerprint, stretch }),
        any::<u64>().prop_map(CursorBinding::QueryAndKey),
    ]
}

fn at() -> impl Strategy<Value = CursorPosition> {
    let range =
        (keys(), any::<u64>(), any::<u64>()).prop_map(|(keys, docnum, rows)| RangeCursor { keys, docnum, rows });
    prop_oneof![
        prop::collection::vec(range, 0..3).prop_map(CursorPosition::Ranges),
        (prop::collection::vec(any::<u8>(), 0..200), 0usize..300)
            .prop_map(|(key, bytes)| CursorPosition::Key(ResumeKey::whole(key).truncated_to(bytes))),
        any::<u64>().prop_map(CursorPosition::Row),
    ]
}

prop_compose! {
    fn cursor()(bound_to in binding(), skip: u64, take in prop::option::of(0u64..u64::MAX - 1), passed: u64, at in at()) -> QueryCursor {
        QueryCursor { bound_to, skip, take, passed, at }
    }
}

proptest! {
    #[test]
    fn cursors_round_trip(cursor in cursor()) {
        let token = tokens().issue_query("AAAA", &cursor, usize::MAX);
        prop_assert!(token.is_ascii());
        prop_assert_eq!(tokens().redeem_query("AAAA", &token, None).unwrap(), cursor);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn an_edited_token_is_rejected(cursor in cursor(), at: prop::sample::Index, to in "[A-Za-z0-9_-]") {
        let token = tokens().issue_query("AAAA", &cursor, usize::MAX);
        let at = at.index(token.len() - 1);
        let mut edited = token.clone();
        edited.replace_range(at..=at, &to);
        prop_assume!(edited != token);
        prop_assert!(tokens().redeem_query("AAAA", &edited, None).is_err());
    }
}

/// S107 requires a single order: the next page must continue after the last key even if that key is very long.
#[test]
fn a_key_too_long_for_the_limit_is_truncated() {
    let whole = ResumeKey::whole(vec![8; 5000]);
    let at = CursorPosition::Key(whole.clone());
    let cursor = QueryCursor { bound_to: CursorBinding::QueryAndKey(1), skip: 2, take: Some(9), passed: 40, at };
    let token = tokens().issue_query("AAAA", &cursor, KB);
    assert!(token.len() <= KB);
    let redeemed = tokens().redeem_query("AAAA", &token, None).unwrap();
    assert_eq!((redeemed.skip, redeemed.take), (2, Some(9)));
    let CursorPosition::Key(key) = redeemed.at else { panic!("{redeemed:?}") };
    let held = key.parts().0.len();
    assert_eq!(key, whole.truncated_to(held));
    assert!((600..700).contains(&held), "{held}");
    let token = tokens().issue_query("AAAA", &cursor, 16 * KB);
    assert_eq!(tokens().redeem_query("AAAA", &token, None).unwrap(), cursor);
}

#[test]
fn feed_and_query_tokens_are_distinct() {
    let position = pleiad_engine::FeedCursor::after(EpkRange::FULL, 7);
    assert!(tokens().redeem_query("AAAA", &tokens().issue("AAAA", &position), None).is_err());
    let bound_to = CursorBinding::QueryAndKey(1);
    let cursor = QueryCursor { bound_to, skip: 0, take: None, passed: 0, at: CursorPosition::Row(7) };
    assert!(tokens().redeem("AAAA", &tokens().issue_query("AAAA", &cursor, KB)).is_err());
}

/// Given out by a version whose tokens had no stretch.
#[test]
fn an_older_token_is_accepted() {
    let older = "AgECAwQFBgcIAAAFAQEAAf8JAnEN2q0n_4olD3saZHgxeiYpjMfxolRwCJUrpfkUOlwg";
    let at = CursorPosition::Ranges(vec![RangeCursor { keys: EpkRange::FULL, docnum: 9, rows: 2 }]);
    let bound_to = CursorBinding::QueryAndKey(0x0102_0304_0506_0708);
    let cursor = QueryCursor { bound_to, skip: 0, take: None, passed: 5, at };
    assert_eq!(tokens().redeem_query("AAAA", older, None).unwrap(), cursor);
}

#[test]
fn the_json_of_a_token_fits_into_the_limit() {
    let at = CursorPosition::Key(ResumeKey::whole(vec![8; 5000]));
    let bound_to = CursorBinding::Query { fingerprint: 1, stretch: EpkRange::FULL };
    let cursor = QueryCursor { bound_to, skip: 0, take: None, passed: 0, at };
    let text = tokens().issue_gateway_query("AAAA", &cursor, KB);
    assert!(text.len() <= KB && text.starts_with("{\"token\":\""), "{text}");
    assert!(text.ends_with("\",\"range\":{\"min\":\"\",\"max\":\"FF\"}}"), "{text}");
    assert!(tokens().redeem_query("AAAA", &text, None).is_ok());
}
