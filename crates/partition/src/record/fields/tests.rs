use super::*;
use pleiad_model::{Object, json};
use proptest::prelude::*;

fn find_property<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let fields = FieldOffsets::of(body.as_bytes());
    let (count, entries) = fields.as_bytes().split_first_chunk::<2>().unwrap();
    let found = match entries_bytes(u16::from_be_bytes(*count)) {
        Some(bytes) => find(&entries[..bytes], body.as_bytes(), name, lazy::name_hash(name)),
        None => lazy::property(body.as_bytes(), name),
    };
    found.map(|text| std::str::from_utf8(text).unwrap())
}

#[test]
fn encoding_matches_the_documented_layout() {
    let fields = FieldOffsets::of(br#"{"id":"a1","n":5}"#);
    let hex: String = fields.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "000237386ae000000006eb0c34310000000f");
}

#[test]
fn a_listed_property_is_found_and_a_missing_one_is_not() {
    let body = r#"{"id":"a1","n":5,"deep":{"n":6,"list":[1,{"id":2}]},"":0,"caf\u00e9":7,"\"":8}"#;
    let pairs = [("id", "\"a1\""), ("n", "5"), ("deep", "{\"n\":6,\"list\":[1,{\"id\":2}]}"), ("", "0")];
    for (name, want) in pairs.into_iter().chain([("café", "7"), ("\"", "8")]) {
        assert_eq!(find_property(body, name), Some(want), "{name}");
    }
    for name in ["list", "d", "deep2", "\\\""] {
        assert_eq!(find_property(body, name), None, "{name}");
    }
    assert_eq!(find_property("{}", "a"), None);
}

/// Found by search: two names with one hash.
#[test]
fn names_with_equal_hashes_are_distinguished() {
    let (a, b) = ("costarring", "liquid");
    assert_eq!(lazy::name_hash(a), lazy::name_hash(b));
    assert_eq!(find_property(r#"{"costarring":1,"liquid":2}"#, b), Some("2"));
    assert_eq!(find_property(r#"{"costarring":1,"liquid":2}"#, a), Some("1"));
    assert_eq!(find_property(r#"{"costarring":1}"#, b), None);
}

#[test]
fn an_item_with_too_many_properties_is_scanned() {
    let many = |count: usize| {
        let body = (0..count).fold(String::from("{\"first\":1"), |body, n| body + &format!(",\"p{n}\":{n}"));
        body + "}"
    };
    for count in [65_533, 65_534, 65_535, 70_000] {
        let body = many(count);
        let unlisted = FieldOffsets::of(body.as_bytes()).as_bytes().len() == 2;
        assert_eq!(unlisted, count + 1 >= 65_535, "{count}");
        let last = count - 1;
        assert_eq!(find_property(&body, &format!("p{last}")), Some(last.to_string().as_str()));
        assert_eq!(find_property(&body, "missing"), None);
    }
}

proptest! {
    #[test]
    fn the_list_finds_what_a_scan_finds(names in prop::collection::vec("[a-c\"\\\\,:{é\n]{0,4}", 0..8), ask_for in "[a-c\"\\\\,:{é\n]{0,4}") {
        let object = names.iter().enumerate().fold(Object::new(), |object, (n, name)| object.with(name.as_str(), n as i64));
        let body = json::to_string(&object.into());
        for name in names.iter().chain([&ask_for]) {
            let walked = lazy::property(body.as_bytes(), name).map(|text| std::str::from_utf8(text).unwrap());
            prop_assert_eq!(find_property(&body, name), walked);
        }
    }

    #[test]
    fn any_list_over_any_text_does_not_panic(entries in prop::collection::vec(any::<u8>(), 0..64), body in prop::collection::vec(any::<u8>(), 0..64), hash: u32) {
        let hash = entries.first_chunk::<4>().map_or(hash, |hash| u32::from_be_bytes(*hash));
        let _ = find(&entries, &body, "a", hash);
    }
}
