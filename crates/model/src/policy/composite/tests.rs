use super::super::testing::{array, check_rejected, check_returned, create};
use super::*;

fn members(indexes: &str) -> String {
    format!(r#""indexingPolicy":{{"compositeIndexes":{indexes}}}"#)
}

/// An index with this many paths that no other index has.
fn index(at: usize, paths_count: usize) -> String {
    array(paths_count, |path| format!(r#"{{"path":"/p{at}_{path}","order":"descending"}}"#))
}

#[test]
fn indexes_are_returned_as_sent() {
    let sent = r#"[[{"path":"/n","order":"ascending"},{"path":"/s","order":"descending"}],[{"path":"/a/[]/b"},{"path":"/\"x y\""}]]"#;
    let definition = create(&members(sent));
    assert_eq!(super::to_value(&definition.indexing.composite), super::super::testing::value(sent));
    let orders: Vec<_> =
        definition.indexing.composite.iter().flat_map(|index| &index.paths).map(CompositePath::order).collect();
    assert_eq!(orders, [SortOrder::Ascending, SortOrder::Descending, SortOrder::Ascending, SortOrder::Ascending]);
    check_returned(&members(sent), "id", r#""c""#);
}

#[test]
fn an_index_has_two_to_eight_paths() {
    create(&members(&format!("[{}]", index(0, COMPOSITE_PATHS_PER_INDEX_MIN))));
    create(&members(&format!("[{}]", index(0, COMPOSITE_PATHS_PER_INDEX_MAX))));
    check_rejected(&members(&format!("[{}]", index(0, COMPOSITE_PATHS_PER_INDEX_MIN - 1))), "has 1 paths");
    check_rejected(&members(&format!("[{}]", index(0, COMPOSITE_PATHS_PER_INDEX_MAX + 1))), "has 9 paths");
}

#[test]
fn all_indexes_together_have_at_most_100_paths() {
    let pairs = |count| members(&array(count, |at| index(at, 2)));
    create(&pairs(COMPOSITE_PATHS_MAX / 2));
    check_rejected(&pairs(COMPOSITE_PATHS_MAX / 2 + 1), "102 paths in all");
}

#[test]
fn duplicate_paths_and_indexes_are_rejected() {
    check_rejected(
        &members(r#"[[{"path":"/a"},{"path":"/\"a\"","order":"descending"}]]"#),
        "twice in one composite index",
    );
    let same = r#"[[{"path":"/a"},{"path":"/b"}],[{"path":"/a","order":"ascending"},{"path":"/b"}]]"#;
    check_rejected(&members(same), "same composite index");
    create(&members(
        r#"[[{"path":"/a"},{"path":"/b"}],[{"path":"/b"},{"path":"/a"}],[{"path":"/a","order":"descending"},{"path":"/b"}]]"#,
    ));
}

#[test]
fn wildcards_and_wrong_types_are_rejected() {
    check_rejected(&members(r#"[[{"path":"/a/?"},{"path":"/b"}]]"#), "could not be accepted");
    check_rejected(&members(r#"[[{"path":"/a/*"},{"path":"/b"}]]"#), "could not be accepted");
    check_rejected(&members(r#"[[{"path":"/a","order":"up"},{"path":"/b"}]]"#), "not ascending or descending");
    check_rejected(&members(r#"[{"path":"/a"}]"#), "One of the specified inputs is invalid");
    check_rejected(&members(r#"[["/a","/b"]]"#), "One of the specified inputs is invalid");
}
