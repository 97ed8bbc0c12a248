use super::super::testing::{array, body, check_rejected, check_returned, create};
use super::*;
use crate::Kind;

/// One constraint per count, each with that many paths.
fn members(paths_counts: &[usize]) -> String {
    let key = |at: usize| {
        let count = paths_counts.get(at).copied().unwrap_or_default();
        format!(r#"{{"paths":{}}}"#, array(count, |path| format!("\"/p{at}/n{path}\"")))
    };
    format!(r#""uniqueKeyPolicy":{{"uniqueKeys":{}}}"#, array(paths_counts.len(), key))
}

#[test]
fn keys_are_returned_as_sent_and_omitted_when_empty() {
    let sent = r#"{"uniqueKeys":[{"paths":["/name","/address/zip"]},{"paths":["/mail"]}]}"#;
    check_returned(&format!(r#""uniqueKeyPolicy":{sent}"#), "uniqueKeyPolicy", sent);
    assert_eq!(create(&members(&[])).to_object().get("uniqueKeyPolicy"), None);
}

#[test]
fn key_and_path_limits_are_exact() {
    create(&members(&[1; UNIQUE_KEYS_MAX]));
    check_rejected(&members(&[1; UNIQUE_KEYS_MAX + 1]), "has 11 unique keys");
    create(&members(&[UNIQUE_PATHS_MAX]));
    create(&members(&[UNIQUE_PATHS_MAX - 1, 1]));
    check_rejected(&members(&[UNIQUE_PATHS_MAX, 1]), "has 17 paths in all");
    check_rejected(&members(&[0]), "has no paths");
}

#[test]
fn duplicates_and_wildcards_are_rejected() {
    let keys = |keys: &str| format!(r#""uniqueKeyPolicy":{{"uniqueKeys":{keys}}}"#);
    check_rejected(&keys(r#"[{"paths":["/a","/\"a\""]}]"#), "twice in one unique key");
    check_rejected(&keys(r#"[{"paths":["/a"]},{"paths":["/a"]}]"#), "same unique key");
    check_rejected(&keys(r#"[{"paths":["/a/?"]}]"#), "The unique key path '/a/?' could not be accepted");
    check_rejected(&keys(r#"{"paths":["/a"]}"#), "One of the specified inputs is invalid");
    check_rejected(&keys(r#"[["/a"]]"#), "One of the specified inputs is invalid");
}

#[test]
fn system_properties_cannot_be_unique_keys() {
    for name in SYSTEM_PROPERTIES {
        let members = format!(r#""uniqueKeyPolicy":{{"uniqueKeys":[{{"paths":["/a","/{name}"]}}]}}"#);
        check_rejected(&members, &format!("The unique key path '/{name}' could not be accepted"));
    }
    create(r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a/_ts","/id"]}]}"#);
}

#[test]
fn keys_are_immutable() {
    let old = create(&members(&[2]));
    for (old, next) in [(&old, ""), (&old, &members(&[1])), (&create(""), &members(&[1]))] {
        assert_eq!(old.replace(&body(next)).unwrap_err().kind, Kind::Forbidden, "{next}");
    }
    let requoted = members(&[2]).replace("/p0/n0", "/\\\"p0\\\"/n0");
    assert_eq!(old.replace(&body(&requoted)), Ok(old.clone()));
}
