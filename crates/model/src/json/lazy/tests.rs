//! Lazy access finds the same values as parsing.

use proptest::prelude::*;

use super::*;
use crate::json::tests::values;
use crate::json::{parse, to_string};

const ITEM: &[u8] =
    br#" { "id" : "a" , "tags" : [ "x" , [ ] , "]\"" , { "n" : 1 } ] , "n" : -5 , "a\"b" : { } , "e" : null } "#;

#[track_caller]
fn check(found: Option<&[u8]>, want: &str) {
    assert_eq!(found.map(|text| text.escape_ascii().to_string()), Some(want.replace('"', "\\\"")));
}

#[test]
fn a_property_is_the_text_of_its_value() {
    check(property(ITEM, "id"), "\"a\"");
    check(property(ITEM, "n"), "-5");
    check(property(ITEM, "a\"b"), "{ }");
    check(property(ITEM, "e"), "null");
    for missing in ["x", "", "i", "idd", "a\\\"b", "a"] {
        assert_eq!(property(ITEM, missing), None, "{missing}");
    }
}

#[test]
fn elements_are_counted_from_zero() {
    let tags = property(ITEM, "tags").unwrap();
    check(element(tags, 1), "[ ]");
    assert_eq!(string(element(tags, 2).unwrap()).unwrap(), "]\"");
    check(element(tags, 3), "{ \"n\" : 1 }");
    assert_eq!(element(tags, 4), None);
    assert_eq!(elements(b"[]").count(), 0);
    assert_eq!(properties(b"{}").count(), 0);
}

#[test]
fn only_objects_have_properties() {
    for text in ["[1,2]", "\"{}\"", "5", "null", "", " ", "{", "[", "{\"a\"", "{\"a\":", "{,", "[,", "{\"a\" 1}"] {
        assert_eq!(property(text.as_bytes(), "a"), None, "{text}");
        assert_eq!(properties(text.as_bytes()).count(), 0, "{text}");
    }
    assert_eq!(elements(b"{\"a\":1}").count(), 0);
}

#[test]
fn names_are_compared_unescaped() {
    let text = br#"{"caf\u00e9":1,"\ud83d\ude00":2,"\/":3,"\\":4,"\n":5}"#;
    for (name, want) in [("café", "1"), ("😀", "2"), ("/", "3"), ("\\", "4"), ("\n", "5")] {
        check(property(text, name), want);
    }
    for (name, _) in [("\\\\", 0), ("\\n", 0), ("caf\\u00e9", 0)] {
        assert_eq!(property(text, name), None);
    }
}

#[test]
fn a_string_is_borrowed_unless_it_has_escapes() {
    assert!(matches!(string(b"\"plain\""), Some(Cow::Borrowed("plain"))));
    assert!(matches!(string(br#""a\tb""#), Some(Cow::Owned(text)) if text == "a\tb"));
    for none in ["", "\"", "a", "1", "\"a", r#""\x""#] {
        assert_eq!(string(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn invalid_numbers_are_none() {
    for text in ["", "-", "+1", "inf", "-inf", "NaN", "1e999", "-1e999", "1.", ".5", "\"1\"", "1 2", "0x1", "true"] {
        assert_eq!(number(text.as_bytes()), None, "{text}");
    }
}

/// 32-bit FNV-1a, as published.
#[test]
fn name_hash_is_fnv_1a() {
    assert_eq!(name_hash(""), 0x811c9dc5);
    assert_eq!(name_hash("a"), 0xe40c292c);
    assert_eq!(name_hash("foobar"), 0xbf9cf968);
}

#[test]
fn the_first_byte_determines_the_type() {
    use JsonType::*;
    let kinds = [("null", Null), ("true", Bool), ("false", Bool), ("-1", Number), ("0", Number), ("\"\"", String)];
    for (text, want) in kinds.into_iter().chain([(" []", Array), ("{}", Object)]) {
        assert_eq!(json_type(text.as_bytes()), Some(want));
    }
    assert_eq!((json_type(b""), json_type(b"  "), json_type(b"x")), (None, None, None));
}

/// Compares every lazy access to a text with its parsed value.
fn check_agreement(text: &[u8], value: &Value) {
    assert_eq!(skip(text, 0), text.len());
    match value {
        Value::Array(items) => {
            let found: Vec<&[u8]> = elements(text).collect();
            assert_eq!((found.len(), element(text, items.len())), (items.len(), None));
            items.iter().zip(&found).for_each(|(item, text)| check_agreement(text, item));
        }
        Value::Object(object) => {
            assert_eq!(properties(text).count(), object.len());
            for ((name, value), found) in object.iter().zip(properties(text)) {
                assert_eq!(string(found.name).as_deref(), Some(name));
                assert!(text[found.value_at..].starts_with(found.value));
                assert_eq!(property(text, name), Some(found.value));
                check_agreement(found.value, value);
            }
        }
        scalar_value => assert_eq!(scalar(text).as_ref(), Some(scalar_value)),
    }
}

fn call_every_function(text: &[u8], depth: usize) {
    let _ = (json_type(text), scalar(text), number(text), string(text), string_equals(text, "a"), property(text, "a"));
    (0..=text.len() + 1).for_each(|at| assert!(skip(text, at) <= text.len().max(at)));
    if depth > 0 {
        elements(text).for_each(|text| call_every_function(text, depth - 1));
        properties(text).for_each(|found| call_every_function(found.value, depth - 1));
    }
}

/// Bytes that occur in JSON, in random order.
fn almost_json() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(&b"{{[[}}]],,::\"\"\"\"\\\\ut01-.e \nabn\xFF\xC3"[..]), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn lazy_access_agrees_with_parsing(value in values()) {
        let text = to_string(&value).into_bytes();
        // Parsed again, because a float may come back as an integer.
        check_agreement(&text, &parse(&text).unwrap());
    }

    #[test]
    fn numbers_agree_with_the_parser(text in "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?") {
        let parsed = parse(text.as_bytes()).ok();
        prop_assert_eq!(number(text.as_bytes()).map(Value::Number), parsed);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), almost in almost_json()) {
        call_every_function(&bytes, 2);
        call_every_function(&almost, 2);
    }
}
