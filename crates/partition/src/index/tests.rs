//! Tables of items, policies and the resulting terms.

use super::*;
use crate::schema::IndexingConfig;
use pleiad_model::json;
use pleiad_model::policy::{CompositeIndex, Geospatial, IndexingPolicy, PathStep};
use std::collections::BTreeSet;

fn policy(text: &str) -> IndexingPolicy {
    IndexingPolicy::parse(Some(&json::parse(text.as_bytes()).unwrap())).unwrap()
}

fn indexing(text: &str) -> IndexingConfig {
    let (geospatial, computed) = (Geospatial::Geography, ComputedDefinitions::default());
    IndexingConfig { policy: policy(text), geospatial, embeddings: Vec::new(), full_text: None, computed }
}

fn rules(text: &str) -> IndexRules {
    indexing(text).rules()
}

fn terms(item: &str, policy: &str) -> Vec<IndexTerm> {
    rules(policy).terms(&json::parse(item.as_bytes()).unwrap(), 7)
}

fn steps(path: &str) -> Vec<PathStep> {
    let step = |step: &str| if step == "[]" { PathStep::Element } else { PathStep::Property(step.to_owned()) };
    path.split('.').map(step).collect()
}

/// `a.b=5` as a term; a value may also be `undefined`.
fn term(text: &str) -> IndexTerm {
    let (path, value) = text.split_once('=').unwrap();
    let value = match value {
        "undefined" => encoding::encode_undefined(),
        value => encoding::encode_scalar(&json::parse(value.as_bytes()).unwrap()),
    };
    IndexTerm::index(PathHash::of(&steps(path)).finish(), value)
}

/// The item has these terms and those that every item has.
#[track_caller]
fn check(item: &str, policy: &str, wanted: &[&str]) {
    let wanted: BTreeSet<IndexTerm> = wanted.iter().chain(&["id=\"1\"", "_ts=7"]).map(|text| term(text)).collect();
    let found: BTreeSet<IndexTerm> = terms(item, policy).into_iter().collect();
    assert_eq!(found, wanted, "{item} under {policy}");
}

const ALL: &str = "{}";
const NAMED: &str = r#"{"includedPaths":[{"path":"/a/b/?"},{"path":"/c/*"},{"path":"/d/[]/?"}],
                        "excludedPaths":[{"path":"/*"}]}"#;

#[test]
fn s8_every_value_on_an_indexed_path_is_a_term() {
    let table: [(&str, &str, &[&str]); 9] = [
        (r#"{"id":"1"}"#, ALL, &[]),
        (r#"{"id":"1","a":{"b":2,"c":null}}"#, ALL, &["a={}", "a.b=2", "a.c=null"]),
        (r#"{"id":"1","t":[true,"x","x"]}"#, ALL, &["t=[]", "t.[]=true", "t.[]=\"x\""]),
        (r#"{"id":"1","t":[[],{"x":1}]}"#, ALL, &["t=[]", "t.[]=[]", "t.[]={}", "t.[].x=1"]),
        (r#"{"id":"1","e":{},"f":[]}"#, ALL, &["e={}", "f=[]"]),
        (r#"{"id":"1","z":9}"#, NAMED, &["a.b=undefined", "c=undefined"]),
        (r#"{"id":"1","a":{"b":1,"z":2},"c":3,"d":[4,[5]]}"#, NAMED, &["a.b=1", "c=3", "d.[]=4", "d.[]=[]"]),
        (r#"{"id":"1","a":5,"c":{"x":1},"d":6}"#, NAMED, &["a.b=undefined", "c={}", "c.x=1"]),
        (r#"{"id":"1","a":{"b":[1]},"c":null}"#, NAMED, &["a.b=[]", "c=null"]),
    ];
    table.iter().for_each(|(item, policy, wanted)| check(item, policy, wanted));
}

#[test]
fn mode_none_indexes_nothing() {
    let policy = r#"{"indexingMode":"none","automatic":false,"includedPaths":[{"path":"/*"},{"path":"/a/?"}],
                     "compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]}"#;
    assert_eq!(terms(r#"{"id":"1","a":1}"#, policy), []);
}

#[test]
fn no_property_name_collides_with_another_path() {
    let hash = |path: &[&str]| {
        PathHash::of(&path.iter().map(|name| PathStep::Property((*name).to_owned())).collect::<Vec<_>>()).finish()
    };
    let element = PathHash::ROOT.property("a").element().finish();
    let all = [hash(&["a", "b"]), hash(&["a/b"]), hash(&["ab"]), hash(&["a", "[]"]), element, hash(&["a"])];
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), all.len());
    assert_ne!(PathHash::spatial_root().property("a").finish(), hash(&["a"]));
}

fn composite(text: &str) -> CompositeIndex {
    policy(&format!(r#"{{"compositeIndexes":[{text}]}}"#)).composite.remove(0)
}

#[test]
fn a_composite_index_has_one_row_for_every_item() {
    let text = r#"[{"path":"/a"},{"path":"/b/c","order":"descending"},{"path":"/_ts"}]"#;
    let (index, rules) = (composite(text), rules(&format!(r#"{{"compositeIndexes":[{text}]}}"#)));
    let table = [
        (r#"{"id":"1","a":1,"b":{"c":null}}"#, "05bff0000000000000 fe 05c01c000000000000"),
        (r#"{"id":"1","b":3}"#, "00 ff 05c01c000000000000"),
        (r#"{"id":"1","a":[1],"b":{"c":{}}}"#, "0a f4 05c01c000000000000"),
    ];
    for (item, wanted) in table {
        let terms = rules.terms(&json::parse(item.as_bytes()).unwrap(), 7);
        let rows: Vec<&IndexTerm> = terms.iter().filter(|term| term.path == composite_id(&index)).collect();
        let [row] = rows[..] else { panic!("{} rows for {item}", rows.len()) };
        let hex: String = row.value.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, wanted.replace(' ', ""), "{item}");
    }
}

#[test]
fn composite_indexes_are_distinguished_by_paths_and_orders() {
    let texts = [
        r#"[{"path":"/a"},{"path":"/b"}]"#,
        r#"[{"path":"/b"},{"path":"/a"}]"#,
        r#"[{"path":"/a"},{"path":"/b","order":"descending"}]"#,
        r#"[{"path":"/a"},{"path":"/b"},{"path":"/c"}]"#,
    ];
    let ids: BTreeSet<u64> = texts.map(|text| composite_id(&composite(text))).into();
    assert_eq!(ids.len(), texts.len());
    let spelled = composite(r#"[{"path":"/a","order":"ascending"},{"path":"/\"b\""}]"#);
    assert_eq!(composite_id(&spelled), composite_id(&composite(texts[0])), "two spellings, one index");
    let mirrored = composite(r#"[{"path":"/a","order":"descending"},{"path":"/b"}]"#);
    assert_eq!(composite_id(&mirrored), composite_id(&composite(texts[2])), "the same index, read backward");
}

#[test]
fn composite_indexes_over_elements_or_generated_properties_have_no_rows() {
    for path in ["/a/[]/b", "/_etag"] {
        let rules = rules(&format!(r#"{{"compositeIndexes":[[{{"path":"/x"}},{{"path":"{}"}}]]}}"#, path));
        assert!(rules.composites().is_empty(), "{path}");
    }
}

/// During an index transformation, only the paths and indexes of every policy are usable.
#[test]
fn what_is_usable_is_in_every_policy_version() {
    let old = r#"{"includedPaths":[{"path":"/a/?"},{"path":"/b/?"}],"excludedPaths":[{"path":"/*"}],
                  "compositeIndexes":[[{"path":"/a"},{"path":"/b"}],[{"path":"/a"},{"path":"/c"}]]}"#;
    let new = r#"{"includedPaths":[{"path":"/*"},{"path":"/b/?"}],"excludedPaths":[{"path":"/a/?"}],
                  "compositeIndexes":[[{"path":"/a"},{"path":"/b"}],[{"path":"/b"},{"path":"/c"}]]}"#;
    let item = json::parse(br#"{"id":"1","a":1,"c":3}"#).unwrap();
    let versions = PolicyVersions::new(rules(new), vec![rules(old)]);
    let usable = versions.usable();
    for (path, indexed, explicit) in
        [("a", false, false), ("b", true, true), ("c", false, false), ("id", true, true), ("_ts", true, true)]
    {
        assert_eq!((usable.indexes(&steps(path)), usable.is_explicit(&steps(path))), (indexed, explicit), "{path}");
    }
    assert_eq!(usable.composites().len(), 1);
    let (certain, possible) = (versions.certain_terms(&item, 7), versions.possible_terms(&item, 7));
    assert!(certain.contains(&term("b=undefined")) && !certain.contains(&term("c=3")));
    assert!(possible.contains(&term("a=1")) && possible.contains(&term("c=3")));
    for rules in [rules(old), rules(new)] {
        let terms = rules.terms(&item, 7);
        assert!(certain.iter().all(|term| terms.contains(term)) && terms.iter().all(|term| possible.contains(term)));
    }
    let single = PolicyVersions::new(rules(new), vec![]);
    assert!(single.usable().indexes(&steps("c")) && single.usable().composites().len() == 2);
    assert_eq!(single.certain_terms(&item, 7), single.possible_terms(&item, 7));
}

#[test]
fn an_unindexed_item_has_one_unpriced_term() {
    let terms = unindexed();
    assert_eq!((terms.len(), terms[0].path, count_priced(&terms)), (1, UNINDEXED, 0));
}

/// The number of cells of an item's geometry at a path.
fn spatial_rows(item: &str, rules: &IndexRules, path: &str) -> usize {
    let id = spatial_id(&steps(path));
    let terms = rules.terms(&json::parse(item.as_bytes()).unwrap(), 7);
    terms.iter().filter(|term| term.path == id).count()
}

#[test]
fn geometry_has_rows_at_its_own_path() {
    let rules = rules(r#"{"spatialIndexes":[{"path":"/loc/*","types":["Point"]},{"path":"/at/[]/?"}]}"#);
    let point = r#"{"type":"Point","coordinates":[8.5,47.4]}"#;
    let table = [
        (format!(r#"{{"id":"1","loc":{point}}}"#), "loc", 1),
        (format!(r#"{{"id":"1","loc":{{"a":{point},"b":[{point}]}}}}"#), "loc.a", 1),
        (format!(r#"{{"id":"1","loc":{{"a":{point},"b":[{point}]}}}}"#), "loc.b.[]", 1),
        (format!(r#"{{"id":"1","at":[{point},{{"x":{point}}}]}}"#), "at.[]", 1),
        (format!(r#"{{"id":"1","at":[{{"x":{point}}}]}}"#), "at.[].x", 0),
        (format!(r#"{{"id":"1","other":{point}}}"#), "other", 0),
        (r#"{"id":"1","loc":{"type":"Point","coordinates":[8.5,147.4]}}"#.to_owned(), "loc", 0),
        (r#"{"id":"1","loc":"here"}"#.to_owned(), "loc", 0),
    ];
    for (item, path, rows) in table {
        assert_eq!(spatial_rows(&item, &rules, path), rows, "{item}");
    }
    let line = r#"{"id":"1","loc":{"type":"LineString","coordinates":[[0,0],[50,50]]}}"#;
    assert!(
        (1..=8).contains(&spatial_rows(line, &rules, "loc")),
        "types that the policy does not list are indexed, too: no geometry may be missed"
    );
}

#[test]
fn a_spatial_index_is_usable_if_every_policy_version_has_it() {
    let (old, new) =
        (r#"{"spatialIndexes":[{"path":"/a/*"},{"path":"/b/?"}]}"#, r#"{"spatialIndexes":[{"path":"/a/x/?"}]}"#);
    let versions = PolicyVersions::new(rules(new), vec![rules(old)]);
    assert!(versions.usable().spatial(&steps("a.x")).is_some());
    assert!(versions.usable().spatial(&steps("a")).is_none() && versions.usable().spatial(&steps("b")).is_none());
    let flat = IndexingConfig { geospatial: Geospatial::Geometry, ..indexing(new) }.rules();
    assert!(PolicyVersions::new(flat, vec![rules(old)]).usable().spatial(&steps("a.x")).is_none(), "the cells differ");
}
