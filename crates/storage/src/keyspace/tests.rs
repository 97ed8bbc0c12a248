//! Keys have the documented bytes and order; damaged keys are reported.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Compares with hex; spaces are ignored.
#[track_caller]
fn check_key(key: Bytes, want: &str) {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, want.replace(' ', ""));
}

#[test]
fn keys_match_the_documented_layout() {
    let hash = [0xAB; 16];
    let hashed = "abababababababababababababababab";
    check_key(doc(7, 42), "0000000000000007 64 000000000000002a");
    check_key(feed(7, 812, 1, 42), "0000000000000007 66 000000000000032c 00000001 000000000000002a");
    check_key(feed_from(7, 812).0, "0000000000000007 66 000000000000032c");
    check_key(log_from(7, 812).0, "0000000000000007 6c 000000000000032c");
    check_key(log(7, 812, 1, 42), "0000000000000007 6c 000000000000032c 00000001 000000000000002a");
    check_key(key_tombstone(7, &[0x7F, 0]), "0000000000000007 65 7f00ff0001");
    check_key(version(7, 812, 1, 42), "0000000000000007 76 000000000000032c 00000001 000000000000002a");
    check_key(versions_from(7, 812).0, "0000000000000007 76 000000000000032c");
    check_key(id(7, &[0x7F, 0], &hash), &format!("0000000000000007 69 7f00ff 0001 {hashed}"));
    check_key(key_stats(7, &[], &hash), &format!("0000000000000007 6b 0001 {hashed}"));
    check_key(member(7, &[0x7F, 0], 42), "0000000000000007 6d 7f00ff 0001 000000000000002a");
    check_key(state(7), "0000000000000007 73");
    check_key(ttl(7, 0x6543_2100, 42), "0000000000000007 74 65432100 000000000000002a");
    check_key(unique(7, 9, &[1], &hash), &format!("0000000000000007 75 0000000000000009 01 0001 {hashed}"));
    check_key(index(7, 9, b"v", 42), "0000000000000007 78 0000000000000009 76 000000000000002a");
    check_key(vector(7, 5, 42), "0000000000000007 7a 0000000000000005 000000000000002a");
    check_key(graph(7, 5, 42), "0000000000000007 67 0000000000000005 000000000000002a");
    check_key(catalog(3, b"db"), "0000000000000000 63 03 6462");
}

#[test]
fn docs_returns_the_keys_of_doc() {
    assert_eq!(docs(7, &[42, 1, u64::MAX]), [doc(7, 42), doc(7, 1), doc(7, u64::MAX)]);
    assert!(docs(7, &[]).is_empty());
}

#[test]
fn ranges_match_the_documented_layout() {
    check_key(shard_range(7).0, "0000000000000007");
    check_key(shard_range(7).1, "0000000000000007 ff");
    check_key(range(7, Tag::Doc).1, "0000000000000007 65");
    check_key(index_range(7, u64::MAX, &[]).1, "0000000000000007 79");
    check_key(index_range(7, 9, &[0x10, 0xFF]).1, "0000000000000007 78 0000000000000009 11");
    check_key(epk_exact(7, Tag::Member, &[0x7F]).0, "0000000000000007 6d 7f 0001");
    check_key(epk_exact(7, Tag::Member, &[0x7F]).1, "0000000000000007 6d 7f 0002");
    check_key(epk_range(7, Tag::Id, &[], None).1, "0000000000000007 6a");
    check_key(catalog_range(3, b"").1, "0000000000000000 63 04");
    check_key(catalog_range(0xFF, b"").1, "0000000000000000 64");
    check_key(vector_range(7, u64::MAX).1, "0000000000000007 7b");
    check_key(after(b"a"), "61 00");
}

#[test]
fn keys_with_the_longest_fields_fit() {
    let epk_v1_max = [0; 115]; // every byte escaped: the worst case
    assert!(unique(u64::MAX, u64::MAX, &epk_v1_max, &[0xFF; 16]).len() <= KEY_BYTES_MAX);
    assert!(index(u64::MAX, u64::MAX, &[0xFF; 2_048], u64::MAX).len() <= KEY_BYTES_MAX);
    assert_eq!(index(1, 1, &[0; INDEX_VALUE_BYTES_MAX], 1).len(), KEY_BYTES_MAX);
    assert_eq!(KEY_BYTES_MAX, 2_692);
    assert!(catalog(1, &[b'a'; 2_048]).len() <= KEY_BYTES_MAX);
}

#[test]
fn a_reused_buffer_gives_the_same_key() {
    let mut buffer = vec![9; 100];
    index_into(&mut buffer, 7, 9, b"v", 42);
    assert_eq!(buffer, index(7, 9, b"v", 42));
}

#[test]
fn placement_by_keyspace() {
    let (epk, hash) = ([0x7F, 0], [9; 16]);
    let at = RowPlacement::AtEpk(epk.to_vec());
    assert_eq!(placement(Tag::Id, &id(7, &epk, &hash)).unwrap(), at);
    assert_eq!(placement(Tag::Key, &key_stats(7, &epk, &hash)).unwrap(), at);
    assert_eq!(placement(Tag::Member, &member(7, &epk, 42)).unwrap(), at);
    assert_eq!(placement(Tag::Unique, &unique(7, 9, &epk, &hash)).unwrap(), at);
    assert_eq!(placement(Tag::Index, &index(7, 9, b"v", 42)).unwrap(), RowPlacement::WithItem(42));
    assert_eq!(placement(Tag::Vector, &vector(7, 9, 42)).unwrap(), RowPlacement::WithItem(42));
    assert_eq!(placement(Tag::Ttl, &ttl(7, 5, 42)).unwrap(), RowPlacement::WithItem(42));
    assert_eq!(placement(Tag::Doc, &doc(7, 42)).unwrap(), RowPlacement::InValue);
    assert!(placement(Tag::Log, &log(7, 1, 0, 42)).is_err() && placement(Tag::Id, &doc(7, 42)).is_err());
    assert!(COPIED_TAGS.is_sorted());
    assert_eq!(with_shard(&doc(7, 42), 8), doc(8, 42));
}

#[test]
fn damaged_keys_are_reported() {
    let good = member(7, &[1, 0, 2], 42);
    for cut in 0..good.len() {
        assert!(decode_member(&good[..cut]).is_err(), "cut at {cut}");
    }
    assert!(decode_member(&[&good[..], &[0]].concat()).is_err());
    assert!(decode_member(&doc(7, 42)).is_err());
    assert!(docnum_of_doc(&good).is_err());
    let mut bad_escape = good.to_vec();
    bad_escape[11] = 0x02;
    assert!(decode_member(&bad_escape).is_err());
    assert!(decode_index(&range(7, Tag::Index).0).is_err());
    assert!(shard_of(&good[..7]).is_err());
}

/// EPKs that often contain bytes near the escapes.
fn epk() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), Just(1), Just(0xFE), Just(0xFF), any::<u8>()], 0..20)
}

/// Numbers that are close to each other or far apart.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, any::<u64>(), Just(u64::MAX)]
}

/// Prefix-free, as `partition` encodes them: a length first.
fn value() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..4).prop_map(|bytes| [&[bytes.len() as u8], &bytes[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn members_sort_as_their_fields(a in (number(), epk(), number()), b in (number(), epk(), number())) {
        let key = |(shard, epk, docnum): &(u64, Vec<u8>, u64)| member(*shard, epk, *docnum);
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
    }

    #[test]
    fn ids_sort_as_their_fields(a in (epk(), any::<[u8; 16]>()), b in (epk(), any::<[u8; 16]>())) {
        let key = |(epk, hash): &(Vec<u8>, [u8; 16])| id(1, epk, hash);
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        let stats = |(epk, hash): &(Vec<u8>, [u8; 16])| key_stats(1, epk, hash);
        prop_assert_eq!(stats(&a).cmp(&stats(&b)), a.cmp(&b));
    }

    #[test]
    fn uniques_sort_as_their_fields(a in (number(), epk(), any::<[u8; 16]>()), b in (number(), epk(), any::<[u8; 16]>())) {
        let key = |(paths, epk, hash): &(u64, Vec<u8>, [u8; 16])| unique(1, *paths, epk, hash);
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
    }

    #[test]
    fn entries_sort_as_their_fields(a in (number(), value(), number()), b in (number(), value(), number())) {
        let key = |(path, value, docnum): &(u64, Vec<u8>, u64)| index(1, *path, value, *docnum);
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
    }

    #[test]
    fn changes_sort_as_their_fields(a in (number(), any::<u32>(), number()), b in (number(), any::<u32>(), number())) {
        prop_assert_eq!(feed(1, a.0, a.1, a.2).cmp(&feed(1, b.0, b.1, b.2)), a.cmp(&b));
        prop_assert_eq!(log(1, a.0, a.1, a.2).cmp(&log(1, b.0, b.1, b.2)), a.cmp(&b));
        prop_assert_eq!(feed(1, a.0, a.1, a.2) >= feed_from(1, b.0).0, a.0 >= b.0);
    }

    #[test]
    fn numbers_sort_as_numbers(a in (number(), any::<u32>()), b in (number(), any::<u32>())) {
        prop_assert_eq!(ttl(1, a.1, a.0).cmp(&ttl(1, b.1, b.0)), (a.1, a.0).cmp(&(b.1, b.0)));
        prop_assert_eq!(doc(a.0, b.0).cmp(&doc(b.0, a.0)), (a.0, b.0).cmp(&(b.0, a.0)));
    }

    #[test]
    fn keys_come_back_as_fields(shard in number(), epk in epk(), n in number(), m in any::<u32>(), hash in any::<[u8; 16]>(), value in value()) {
        prop_assert_eq!(shard_of(&state(shard)).unwrap(), shard);
        prop_assert_eq!(docnum_of_doc(&doc(shard, n)).unwrap(), n);
        prop_assert_eq!(decode_id(&id(shard, &epk, &hash)).unwrap(), (epk.clone(), hash));
        prop_assert_eq!(decode_key_stats(&key_stats(shard, &epk, &hash)).unwrap(), (epk.clone(), hash));
        prop_assert_eq!(decode_member(&member(shard, &epk, n)).unwrap(), (epk.clone(), n));
        let entry = index(shard, n, &value, n);
        prop_assert_eq!(decode_index(&entry).unwrap(), (n, &value[..], n));
        prop_assert_eq!(decode_ttl(&ttl(shard, m, n)).unwrap(), (m, n));
        prop_assert_eq!(decode_feed(&feed(shard, n, m, n)).unwrap(), (n, m, n));
        prop_assert_eq!(decode_log(&log(shard, n, m, n)).unwrap(), (n, m, n));
        prop_assert_eq!(decode_key_tombstone(&key_tombstone(shard, &epk)).unwrap(), epk.clone());
        prop_assert_eq!(decode_version(&version(shard, n, m, n)).unwrap(), (n, m, n));
    }

    #[test]
    fn a_key_is_in_its_ranges_and_in_no_other(shard in number(), other in number(), epk in epk(), bound in epk(), n in number()) {
        let within = |key: &Bytes, range: (Bytes, Bytes)| range.0 <= *key && *key < range.1;
        let key = member(shard, &epk, n);
        prop_assert_eq!(within(&key, shard_range(other)), shard == other);
        prop_assert!(within(&key, range(shard, Tag::Member)));
        prop_assert!(!within(&key, range(shard, Tag::Log)) && !within(&key, range(shard, Tag::State)));
        prop_assert_eq!(within(&key, epk_range(shard, Tag::Member, &bound, None)), epk >= bound);
        prop_assert_eq!(within(&key, epk_range(shard, Tag::Member, &[], Some(&bound))), epk < bound);
        prop_assert_eq!(within(&key, epk_exact(shard, Tag::Member, &bound)), epk == bound);
        prop_assert_eq!(within(&index(shard, n, &epk, n), index_range(shard, n, &[])), true);
    }

    #[test]
    fn any_bytes_decode_or_are_reported(bytes in vec(any::<u8>(), 0..60)) {
        let _ = (decode_id(&bytes), decode_key_stats(&bytes), decode_member(&bytes), decode_index(&bytes));
        let _ = (decode_ttl(&bytes), decode_feed(&bytes), decode_feed_v1(&bytes), decode_log(&bytes), docnum_of_doc(&bytes), shard_of(&bytes));
        let _ = (decode_version(&bytes), decode_key_tombstone(&bytes));
    }
}
