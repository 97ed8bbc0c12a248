//! Proves S101 and S111: a filter that fixes the key selects the partitions of that key and no others; and no filter
//! excludes a partition that holds a matching item.

use pleiad_model::env::ManualEnv;
use pleiad_model::partition_key::{EffectiveKey, KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition};
use pleiad_model::path::PropertyPath;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Value, json};
use proptest::prelude::*;

use super::{PrunedKeys, prune, ranges};
use crate::Parameters;
use crate::compile::BindContext;
use crate::parse::parse;

fn definition(paths: &[&str]) -> PartitionKeyDefinition {
    PartitionKeyDefinition {
        paths: paths.iter().map(|path| PropertyPath::parse(path).unwrap()).collect(),
        kind: if paths.len() > 1 { KeyKind::MultiHash } else { KeyKind::Hash },
        version: KeyVersion::V2,
        system_key: false,
    }
}

fn parameters() -> Parameters {
    let values = r#"[{"name": "@p", "value": "a"}, {"name": "@list", "value": ["a", 1, null]}, {"name": "@u"}]"#;
    Parameters::from_value(Some(&json::parse(values.as_bytes()).unwrap())).unwrap()
}

fn pruned(text: &str, definition: &PartitionKeyDefinition) -> PrunedKeys {
    let bind = BindContext {
        parameters: &parameters(),
        geospatial: Geospatial::Geography,
        embeddings: &[],
        full_text: None,
        started_ms: None,
    };
    prune(&parse(text).unwrap_or_else(|diagnostic| panic!("{text}: {diagnostic:?}")), bind, definition)
}

/// Keys in their header form, sorted; `*` for all keys.
fn key_list(pruned: &PrunedKeys) -> String {
    match pruned {
        PrunedKeys::All => "*".to_owned(),
        PrunedKeys::None => String::new(),
        PrunedKeys::Keys(keys) => {
            let mut keys: Vec<String> = keys.iter().map(PartitionKey::to_json).collect();
            keys.sort();
            keys.join(" ")
        }
    }
}

#[track_caller]
fn check(filter: &str, want: &str) {
    let text = format!("SELECT * FROM c WHERE {filter}");
    assert_eq!(key_list(&pruned(&text, &definition(&["/k"]))), want, "{filter}");
}

#[test]
fn filters_that_narrow_the_keys() {
    check("c.k = 'a'", r#"["a"]"#);
    check("'a' = c[\"k\"]", r#"["a"]"#);
    check("c.k = @p AND c.n > 1", r#"["a"]"#);
    check("c['k'] = 5", "[5]");
    check("c.k = null", "[null]");
    check("c.k IN ('a', 1, 'a', true)", r#"["a"] [1] [true]"#);
    check("c.k = 'a' OR c.k = 'b' OR (c.k = 'c' AND c.n = 1)", r#"["a"] ["b"] ["c"]"#);
    check("c.k IN ('a', 'b') AND c.k IN ('b', 'c')", r#"["b"]"#);
    check("c.k", "[true]");
    check("NOT c.k", "[false]");
    check("ABS(c.k) = 5", "[-5] [5]");
    check("abs(c.k) = 2 + 3", "[-5] [5]");
    check("ARRAY_CONTAINS(['a', 1], c.k)", r#"["a"] [1]"#);
    check("_try_array_contains(['a', 1], c.k)", r#"["a"] [1]"#);
    check("ARRAY_CONTAINS(@list, c.k)", r#"["a"] [1] [null]"#);
    check("IS_NULL(c.k)", "[null]");
    check("IS_BOOL(c.k)", "[false] [true]");
    check("c.k LIKE 'a'", r#"["a"]"#);
    check("StringEquals(c.k, 'a')", r#"["a"]"#);
    check("StringEquals('a', c.k, false)", r#"["a"]"#);
    check("c.k = (true ? 'a' : 'b')", r#"["a"]"#);
    check("c.k = 'a' AND (true OR c.n = 1)", r#"["a"]"#);
    check("true AND c.k = UPPER('a')", r#"["A"]"#);
}

#[test]
fn arrays_and_objects_have_the_undefined_key() {
    check("c.k = [1, 2]", "[{}]");
    check("c.k = {a: 1}", "[{}]");
}

#[test]
fn filters_that_do_not_narrow_the_keys() {
    for filter in [
        "c.n = 1",
        "c.k > 'a'",
        "c.k >= 'a' AND c.k <= 'a'",
        "c.k BETWEEN 1 AND 1",
        "c.k != 'a'",
        "c.k NOT IN ('a')",
        "c.k = c.n",
        "c.k = 'a' OR c.n = 1",
        "c.k IN ('a', c.n)",
        "IS_STRING(c.k)",
        "IS_DEFINED(c.k)",
        "c.k LIKE 'a%'",
        "c.k LIKE 'a_'",
        "c.k NOT LIKE 'a'",
        "StringEquals(c.k, 'a', true)",
        "LOWER(c.k) = 'a'",
        "NOT (c.k = 'a')",
        "c.k.x = 'a'",
        "c = 'a'",
        "EXISTS(SELECT 1 FROM c IN c.list WHERE c.k = 'a')",
    ] {
        check(filter, "*");
    }
}

#[test]
fn contradictions_and_constants() {
    check("c.k = 'a' AND c.k = 'b'", "");
    check("false", "");
    check("c.k = 'a' AND 1 = 2", "");
    check("c.k = undefined", "");
    check("c.k = @u", "");
    check("ABS(c.k) = -1", "");
    check("ABS(c.k) = 'a'", "");
    check("'true'", "");
    check("true", "*");
    check("1 = 1 OR c.k = 'a'", "*");
    assert_eq!(pruned("SELECT 5", &definition(&["/k"])), PrunedKeys::None);
    assert_eq!(pruned("SELECT * FROM c", &definition(&["/k"])), PrunedKeys::All);
    assert_eq!(pruned("SELECT * FROM (SELECT VALUE c.a FROM c) x", &definition(&["/k"])), PrunedKeys::All);
}

#[test]
fn zero_is_routed_as_by_the_service() {
    check("c.k = 0", "[0]");
    check("c.k = -0.0", "[-0.0] [0]");
}

#[test]
fn only_paths_from_the_item_alias_name_the_key() {
    let key = definition(&["/a/k"]);
    assert_eq!(key_list(&pruned("SELECT * FROM c WHERE c.a.k = 1", &key)), "[1]");
    assert_eq!(key_list(&pruned("SELECT * FROM c.a x WHERE x.k = 1", &key)), "[1]");
    assert_eq!(key_list(&pruned("SELECT 1 FROM c JOIN x IN c.list WHERE x.a.k = 1", &key)), "*");
    assert_eq!(key_list(&pruned("SELECT * FROM x IN c.a WHERE x.k = 1", &key)), "*");
    assert_eq!(key_list(&pruned("SELECT * FROM (SELECT VALUE c FROM c) x WHERE x.a.k = 1", &key)), "*");
}

#[test]
fn levels_of_a_hierarchical_key() {
    let key = definition(&["/t", "/u", "/s"]);
    let check = |filter: &str, want: &str| {
        assert_eq!(key_list(&pruned(&format!("SELECT * FROM c WHERE {filter}"), &key)), want, "{filter}");
    };
    check("c.t = 1", "[1]");
    check("c.t = 1 AND c.u = 2", "[1,2]");
    check("c.s = 3 AND c.u = 2 AND c.t = 1", "[1,2,3]");
    check("c.t = 1 AND c.s = 3", "[1]");
    check("c.u = 2", "*");
    check("c.t IN (1, 2) AND c.u IN (3, 4)", "[1,3] [1,4] [2,3] [2,4]");
    check("(c.t = 1 AND c.u = 2) OR c.t = 1", "[1]");
    check("(c.t = 1 AND c.u = 2) OR (c.t = 3 AND c.u = 4)", "[1,2] [3,4]");
    check("(c.t = 1 AND c.u = 2) OR c.u = 2", "*");
}

#[test]
fn the_missing_key_of_a_migrated_container() {
    let key = PartitionKeyDefinition { system_key: true, ..definition(&["/k"]) };
    let pruned = pruned("SELECT * FROM c WHERE c.k = [1]", &key);
    assert_eq!(key_list(&pruned), "[]");
    assert!(pruned.single(&key).is_some());
    let range = &ranges(&pruned, &key)[0];
    assert_eq!((range.min.as_str(), range.max.as_str(), range.max_inclusive), ("", "00", false));
}

#[track_caller]
fn check_ranges(filter: &str, paths: &[&str], want: &[(&str, &str, bool)]) {
    let key = definition(paths);
    let found = ranges(&pruned(&format!("SELECT * FROM c WHERE {filter}"), &key), &key);
    let found: Vec<_> = found.iter().map(|r| (r.min.as_str(), r.max.as_str(), r.max_inclusive)).collect();
    assert_eq!(found, want, "{filter}");
}

#[test]
fn ranges_are_effective_keys() {
    const ONE: &str = "20CD98B339BA78A5D0CF6953B87070B0";
    const FIVE: &str = "19C08621B135968252FB34B4CF66F811";
    const REDMOND: &str = "22E342F38A486A088463DFF7838A5963";
    check_ranges("c.k = 1", &["/k"], &[(ONE, ONE, true)]);
    check_ranges("c.k IN (1, 5)", &["/k"], &[(FIVE, FIVE, true), (ONE, ONE, true)]);
    check_ranges("c.n = 1", &["/k"], &[("", "FF", false)]);
    check_ranges("false", &["/k"], &[("", "", true)]);
    check_ranges("c.t = 'redmond'", &["/t", "/u"], &[(REDMOND, &format!("{REDMOND}FF"), false)]);
}

#[test]
fn key_lists_are_kept_up_to_the_limit() {
    let list = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let count = |n: usize| match pruned(&format!("SELECT * FROM c WHERE c.k IN ({})", list(n)), &definition(&["/k"])) {
        PrunedKeys::Keys(keys) => keys.len(),
        _ => 0,
    };
    assert_eq!(count(10_000), 10_000);
    assert_eq!(count(crate::pruning::KEYS_MAX), crate::pruning::KEYS_MAX);
    assert_eq!(count(crate::pruning::KEYS_MAX + 1), 0);
}

const VALUES: [&str; 9] = ["0", "1", "-1", "'a'", "'b'", "null", "true", "false", "[1]"];

fn filter() -> impl Strategy<Value = String> {
    let value = || prop::sample::select(&VALUES[..]);
    let key = || prop::sample::select(&["c.k", "c['u']", "c.n"][..]);
    let leaf = prop_oneof![
        4 => (key(), value()).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => (key(), value()).prop_map(|(key, value)| format!("{value} = {key}")),
        2 => (key(), value(), value()).prop_map(|(key, a, b)| format!("{key} IN ({a}, {b})")),
        1 => (key(), value(), value()).prop_map(|(key, a, b)| format!("ARRAY_CONTAINS([{a}, {b}], {key})")),
        1 => (key(), value()).prop_map(|(key, value)| format!("ABS({key}) = {value}")),
        1 => (key(), value()).prop_map(|(key, value)| format!("{key} < {value}")),
        1 => (key(), value()).prop_map(|(key, value)| format!("StringEquals({key}, {value})")),
        1 => (key(), prop::sample::select(&["IS_NULL", "IS_BOOL", "IS_STRING", "NOT", ""][..]))
            .prop_map(|(key, function)| format!("{function}({key})")),
        1 => key().prop_map(|key| format!("{key} LIKE 'a'")),
        1 => value().prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|terms| format!("({})", terms.join(" AND "))),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|terms| format!("({})", terms.join(" OR "))),
            1 => inner.prop_map(|term| format!("NOT ({term})")),
        ]
    })
}

/// One item per combination of key values, including `undefined`.
fn items() -> Vec<Value> {
    let values: Vec<Option<String>> =
        VALUES.iter().map(|value| Some(value.replace('\'', "\""))).chain([None, Some("{}".to_owned())]).collect();
    let mut items = Vec::new();
    for k in &values {
        for u in &values {
            let member = |name: &str, value: &Option<String>| value.as_ref().map(|v| format!("\"{name}\": {v}"));
            let members: Vec<String> = [member("k", k), member("u", u)].into_iter().flatten().collect();
            items.push(json::parse(format!("{{{}}}", members.join(", ")).as_bytes()).unwrap());
        }
    }
    items
}

fn satisfies(text: &str, item: &Value) -> bool {
    let query = crate::parse(text).unwrap();
    let rows = query.run_over(&parameters(), &ManualEnv::default(), std::iter::once(item)).unwrap();
    !rows.is_empty()
}

fn contains_key(pruned: &PrunedKeys, key: &PartitionKey) -> bool {
    match pruned {
        PrunedKeys::All => true,
        PrunedKeys::None => false,
        PrunedKeys::Keys(keys) => keys.iter().any(|prefix| key.components().starts_with(prefix.components())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_item_outside_the_pruned_keys_satisfies_the_filter(filter in filter(), two_levels in any::<bool>()) {
        let definition = definition(if two_levels { &["/k", "/u"] } else { &["/k"] });
        let text = format!("SELECT VALUE 1 FROM c WHERE {filter}");
        let pruned = pruned(&text, &definition);
        let ranges = ranges(&pruned, &definition);
        for item in items() {
            if satisfies(&text, &item) {
                let key = PartitionKey::extract(&definition, &item);
                prop_assert!(contains_key(&pruned, &key), "{} misses {:?}: {:?}", filter, item, pruned);
                let at = key.effective(&definition).to_string();
                let is_in = |r: &crate::pruning::QueryRange| r.min <= at && (at < r.max || (r.max_inclusive && at == r.max));
                prop_assert!(ranges.iter().any(is_in));
            }
        }
        for pair in ranges.windows(2) {
            prop_assert!(pair[0].max < pair[1].min || (pair[0].max == pair[1].min && !pair[0].max_inclusive));
        }
        for range in &ranges {
            prop_assert!(EffectiveKey::parse(&range.min).is_ok() && EffectiveKey::parse(&range.max).is_ok());
        }
    }
}
