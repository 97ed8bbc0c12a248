use super::super::testing::{array, check_rejected, check_returned, create, value};
use super::*;
use crate::json;

/// Checks the policy as it is returned.
#[track_caller]
fn check(policy: &str, wanted: &str) {
    check_returned(&format!(r#""indexingPolicy":{policy}"#), "indexingPolicy", wanted);
}

#[track_caller]
fn check_policy_rejected(policy: &str, message: &str) {
    check_rejected(&format!(r#""indexingPolicy":{policy}"#), message);
}

const DEFAULT: &str = r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}"#;

#[test]
fn an_empty_policy_is_the_default_policy() {
    check_returned("", "indexingPolicy", DEFAULT);
    check("null", DEFAULT);
    check("{}", DEFAULT);
    check(r#"{"includedPaths":[{"path":"/*"}]}"#, DEFAULT);
    check(r#"{"indexingMode":"Consistent","automatic":true,"includedPaths":[],"excludedPaths":[]}"#, DEFAULT);
    check(DEFAULT, DEFAULT);
}

#[test]
fn legacy_index_definitions_are_dropped() {
    let hash = r#"[{"kind":"Hash","dataType":"String","precision":3},{"kind":"Spatial","dataType":"Point"}]"#;
    check(&format!(r#"{{"includedPaths":[{{"path":"/*","indexes":{hash}}}]}}"#), DEFAULT);
}

#[test]
fn the_etag_is_appended_to_the_excluded_paths() {
    let policy = create(r#""indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"a\"/*"}]}"#);
    let excluded: Vec<_> = policy.indexing.excluded.iter().map(IndexPath::as_str).collect();
    assert_eq!(excluded, ["/\"a\"/*", ETAG]);
}

#[test]
fn the_legacy_root_path_stays_one_entry() {
    let policy = create(r#""indexingPolicy":{"includedPaths":[{"path":"/"}]}"#).indexing;
    assert_eq!(policy.included.iter().map(IndexPath::as_str).collect::<Vec<_>>(), ["/"]);
    assert!(policy.matcher().root().property("a").property("b").indexes_scalar());
}

#[test]
fn an_included_etag_is_not_excluded() {
    let policy = create(r#""indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":"/_etag/?"}]}"#).indexing;
    assert!(policy.excluded.is_empty());
    assert!(policy.matcher().root().property("_etag").indexes_scalar());
    assert!(!create("").indexing.matcher().root().property("_etag").indexes_scalar());
}

#[test]
fn mode_none_has_no_paths_and_no_index() {
    let wanted = r#"{"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]}"#;
    check(r#"{"indexingMode":"none","automatic":false}"#, wanted);
    check(r#"{"indexingMode":"none"}"#, wanted);
    let matcher = create(r#""indexingPolicy":{"indexingMode":"none"}"#).indexing.matcher();
    assert!(!matcher.root().property("id").indexes_scalar());
}

#[test]
fn the_root_must_be_in_one_of_the_lists() {
    let missing = "The special mandatory indexing path \"/\" is not provided";
    check_policy_rejected(r#"{"includedPaths":[{"path":"/a/?"}]}"#, missing);
    check_policy_rejected(r#"{"excludedPaths":[{"path":"/a/?"}]}"#, missing);
    create(r#""indexingPolicy":{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#);
}

#[test]
fn duplicate_paths_are_rejected() {
    check_policy_rejected(r#"{"includedPaths":[{"path":"/*"},{"path":"/a/?"},{"path":"/\"a\"/?"}]}"#, "there twice");
    check_policy_rejected(r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/*"}]}"#, "there twice");
    check_policy_rejected(r#"{"includedPaths":[{"path":"/*"},{"path":"/"}]}"#, "there twice");
    create(r#""indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/a/*"}]}"#);
}

#[test]
fn tuples_are_included_only() {
    create(r#""indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":"/a/[]/{x,y}/?"}]}"#);
    let excluded = r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/[]/{x,y}/?"}]}"#;
    check_policy_rejected(excluded, "included path only");
}

#[test]
fn members_of_the_wrong_type_are_rejected() {
    let wrong = "One of the specified inputs is invalid";
    for policy in ["[]", "1", r#"{"includedPaths":{}}"#, r#"{"includedPaths":["/*"]}"#, r#"{"includedPaths":[{}]}"#] {
        check_policy_rejected(policy, wrong);
    }
    check_policy_rejected(r#"{"automatic":"yes"}"#, wrong);
    check_policy_rejected(r#"{"indexingMode":"eager"}"#, "is not consistent or none");
    check_policy_rejected(
        r#"{"includedPaths":[{"path":"/*"},{"path":"/a"}]}"#,
        "The indexing path '/a' could not be accepted",
    );
}

#[test]
fn path_limits_are_exact() {
    let paths = |count: usize, root: &str| array(count, |at| if at == 0 { root.into() } else { entry(at) });
    fn entry(at: usize) -> String {
        format!(r#"{{"path":"/p{at}/?"}}"#)
    }
    let root = r#"{"path":"/*"}"#;
    let included = |count| format!(r#""indexingPolicy":{{"includedPaths":{}}}"#, paths(count, root));
    create(&included(INCLUDED_PATHS_MAX));
    check_rejected(&included(INCLUDED_PATHS_MAX + 1), "1501 included paths");
    let excluded = |count| format!(r#""indexingPolicy":{{"excludedPaths":{}}}"#, paths(count, root));
    create(&excluded(EXCLUDED_PATHS_MAX));
    check_rejected(&excluded(EXCLUDED_PATHS_MAX + 1), "1501 excluded paths");
}

#[test]
fn a_full_policy_read_back_is_accepted_again() {
    // The `_etag` that the service adds does not count against the limit.
    let mut paths: Vec<_> = (0..EXCLUDED_PATHS_MAX - 1).map(|at| format!(r#"{{"path":"/p{at}/?"}}"#)).collect();
    paths.push(r#"{"path":"/*"}"#.into());
    let members = format!(r#""indexingPolicy":{{"excludedPaths":[{}]}}"#, paths.join(","));
    let first = create(&members);
    assert_eq!(super::super::ContainerDefinition::create(&first.to_object().into()), Ok(first));
}

#[test]
fn the_policy_is_rendered_in_cosmos_s_order() {
    let policy = IndexingPolicy::parse(Some(&value(
        r#"{"fullTextIndexes":[{"path":"/t"}],"vectorIndexes":[{"path":"/v","type":"flat"}],
            "spatialIndexes":[{"path":"/l/*","types":["Point"]}],
            "compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]}"#,
    )));
    let text = json::to_string(&policy.expect("the policy is accepted").to_value());
    let tail = r#","compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]],"spatialIndexes":[{"path":"/l/*","types":["Point"]}],"vectorIndexes":[{"path":"/v","type":"flat"}],"fullTextIndexes":[{"path":"/t"}]}"#;
    assert_eq!(text, DEFAULT.strip_suffix('}').unwrap_or_default().to_owned() + tail);
}
