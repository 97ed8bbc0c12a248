use super::*;

#[track_caller]
fn check_invalid<T: std::fmt::Debug>(result: Result<T>, part: &str) {
    let error = result.expect_err("invalid");
    assert_eq!(error.kind, crate::Kind::Invalid);
    assert!(error.message.contains(part), "{} does not contain {part:?}", error.message);
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
        check_invalid(check_item_id(id), "must not contain");
        check_invalid(check_resource_name(id), "must not contain");
    }
    check_invalid(check_item_id("a "), "must not end with a space");
}

#[test]
fn name_lengths_are_limited() {
    assert_eq!(check_item_id(&"a".repeat(1023)), Ok(()));
    assert_eq!(check_resource_name(&"é".repeat(255)), Ok(()));
    let item = "Ensure to provide a unique non-empty string less than '1024' characters.";
    check_invalid(check_item_id(&"a".repeat(1024)), item);
    check_invalid(check_item_id(""), item);
    let name = "Ensure to provide a unique non-empty string less than '255' characters.";
    check_invalid(check_resource_name(&"a".repeat(256)), name);
    check_invalid(check_resource_name(""), name);
}

#[test]
fn an_item_needs_a_string_id() {
    assert_eq!(item_id(&item(r#"{"id":"x"}"#)), Ok("x"));
    check_invalid(item_id(&item("{}")), "the required properties - 'id; ' - are missing");
    check_invalid(item_id(&item("[]")), "are missing");
    check_invalid(item_id(&item(r#"{"id":1}"#)), "not a string");
    check_invalid(item_id(&item(r#"{"id":null}"#)), "not a string");
}

#[test]
fn a_ttl_is_minus_one_or_positive() {
    for ttl in ["-1", "1", "10.0", "2147483647"] {
        assert_eq!(check_ttl(&item(&format!("{{\"ttl\":{ttl}}}"))), Ok(()), "{ttl}");
    }
    for ttl in ["0", "-2", "-10", "1.5", "2147483648", "\"5\"", "null", "true", "{}"] {
        check_invalid(
            check_ttl(&item(&format!("{{\"ttl\":{ttl}}}"))),
            "less than or equal to '2147483647', or '-1' which means never expire.",
        );
    }
    assert_eq!(check_ttl(&item("{}")), Ok(()));
}
