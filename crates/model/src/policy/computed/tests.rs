use super::super::testing::{array, body, check_rejected, check_returned, create};
use super::*;

fn members(count: usize) -> String {
    let property = |at| format!(r#"{{"name":"p{at}","query":"SELECT VALUE LOWER(c.name) FROM c"}}"#);
    format!(r#""computedProperties":{}"#, array(count, property))
}

#[test]
fn properties_are_returned_as_sent_and_omitted_when_empty() {
    let sent = r#"[{"name":"lower","query":"SELECT VALUE LOWER(c.name) FROM c"}]"#;
    check_returned(&format!(r#""computedProperties":{sent}"#), "computedProperties", sent);
    assert_eq!(create(&members(0)).to_object().get("computedProperties"), None);
}

#[test]
fn the_property_limit_is_exact() {
    create(&members(COMPUTED_PROPERTIES_MAX));
    check_rejected(&members(COMPUTED_PROPERTIES_MAX + 1), "has 21 computed properties");
}

#[test]
fn names_are_unique_and_not_reserved() {
    let one = |name: &str| format!(r#"{{"name":"{name}","query":"SELECT VALUE 1 FROM c"}}"#);
    for name in ["id", "_rid", "_ts", "_etag", "_self", ""] {
        check_rejected(&format!(r#""computedProperties":[{}]"#, one(name)), "cannot be called");
    }
    check_rejected(&format!(r#""computedProperties":[{},{}]"#, one("a"), one("a")), "there twice");
    check_rejected(r#""computedProperties":[{"name":"a","query":" "}]"#, "has no query");
}

#[test]
fn members_of_the_wrong_type_are_rejected() {
    for sent in [r#"{"name":"a","query":"q"}"#, r#""a""#, r#"["a"]"#, r#"[{"name":"a"}]"#, r#"[{"query":"q"}]"#] {
        check_rejected(&format!(r#""computedProperties":{sent}"#), "One of the specified inputs is invalid");
    }
}

#[test]
fn a_replace_changes_and_drops_them() {
    let old = create(&members(2));
    assert_eq!(old.replace(&body(&members(1))).map(|new| new.computed_properties.len()), Ok(1));
    assert_eq!(old.replace(&body("")).map(|new| new.computed_properties.len()), Ok(0));
}
