use super::*;
use pleiad_model::json;
use pleiad_model::policy::IndexingPolicy;

fn matcher(policy: Option<&str>) -> IndexMatcher {
    let policy = policy.map(|text| json::parse(text.as_bytes()).unwrap());
    IndexingPolicy::parse(policy.as_ref()).unwrap().matcher()
}

fn count(item: &str, policy: Option<&str>) -> usize {
    terms(&json::parse(item.as_bytes()).unwrap(), &matcher(policy)).len()
}

#[test]
fn every_scalar_is_a_term_by_default() {
    assert_eq!(count(r#"{"id":"1","a":{"b":2,"c":null},"t":[true,"x"]}"#, None), 5);
}

#[test]
fn equal_elements_of_an_array_are_one_term() {
    assert_eq!(count(r#"{"id":"1","t":["x","x","y"]}"#, None), 3);
}

#[test]
fn an_element_is_not_a_property() {
    let one = terms(&json::parse(br#"{"id":"1","t":["x"]}"#).unwrap(), &matcher(None));
    let other = terms(&json::parse(br#"{"id":"1","t":{"[]":"x"}}"#).unwrap(), &matcher(None));
    assert_ne!(one, other);
}

#[test]
fn s8_index_paths_may_have_wildcards_and_excluded_paths_have_no_terms() {
    let policy = r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    // `id` is always indexed.
    assert_eq!(count(r#"{"id":"1","a":1,"b":2,"c":{"a":3}}"#, Some(policy)), 2);
}

#[test]
fn mode_none_indexes_nothing() {
    assert_eq!(count(r#"{"id":"1","a":1}"#, Some(r#"{"indexingMode":"none","automatic":false}"#)), 0);
}
