use super::*;
use crate::json;

#[track_caller]
fn check_invalid<T: std::fmt::Debug>(result: Result<T>, fact: Fact) {
    let error = result.expect_err("invalid");
    assert_eq!((error.kind, error.fact()), (crate::Kind::Invalid, Some(&fact)));
}

fn item(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("valid JSON")
}

#[test]
fn names_must_be_addressable_in_a_url() {
    for id in ["a", " leading space", "日本 😀", "a.b:c@d$&+,;=%20\"'<>"] {
        assert_eq!(check_item_id(id), Ok(()), "{id}");
        assert_eq!(check_resource_name(id), Ok(()), "{id}");
    }
    for id in ["a/b", "a\\b", "a#b", "a?b"] {
        check_invalid(check_item_id(id), Fact::NameCharacter { name: id.into() });
        check_invalid(check_resource_name(id), Fact::NameCharacter { name: id.into() });
    }
    check_invalid(check_item_id("a "), Fact::NameTrailingSpace { name: "a ".into() });
}

#[test]
fn name_lengths_are_limited() {
    assert_eq!(check_item_id(&"a".repeat(1023)), Ok(()));
    assert_eq!(check_resource_name(&"é".repeat(255)), Ok(()));
    let item = |id: &str| Fact::ItemIdLength { start: Box::new(NameStart::of(id)), bytes_max: 1023 };
    for id in [&"a".repeat(1024), ""] {
        check_invalid(check_item_id(id), item(id));
    }
    let name = |name: &str| Fact::ResourceNameLength { start: Box::new(NameStart::of(name)), chars_max: 255 };
    for id in [&"a".repeat(256), ""] {
        check_invalid(check_resource_name(id), name(id));
    }
}

#[test]
fn an_item_needs_a_string_id() {
    assert_eq!(item_id(&item(r#"{"id":"x"}"#)), Ok("x"));
    check_invalid(item_id(&item("{}")), Fact::IdMissing);
    check_invalid(item_id(&item("[]")), Fact::IdMissing);
    check_invalid(item_id(&item(r#"{"id":1}"#)), Fact::IdNotString);
    check_invalid(item_id(&item(r#"{"id":null}"#)), Fact::IdNotString);
}

#[test]
fn a_ttl_is_minus_one_or_positive() {
    for ttl in ["-1", "1", "10.0", "2147483647"] {
        assert_eq!(check_ttl(&item(&format!("{{\"ttl\":{ttl}}}"))), Ok(()), "{ttl}");
    }
    for ttl in ["0", "-2", "-10", "1.5", "2147483648", "\"5\"", "null", "true", "{}"] {
        let fact = Fact::TtlOutOfRange { ttl: Box::new(item(ttl)), seconds_max: 2_147_483_647 };
        check_invalid(check_ttl(&item(&format!("{{\"ttl\":{ttl}}}"))), fact);
    }
    assert_eq!(check_ttl(&item("{}")), Ok(()));
}
