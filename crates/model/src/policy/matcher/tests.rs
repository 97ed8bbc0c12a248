use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn paths(texts: &[&str]) -> Vec<IndexPath> {
    texts.iter().map(|text| IndexPath::parse(text).expect("the test's path is valid")).collect()
}

fn matcher(included: &[&str], excluded: &[&str]) -> IndexMatcher {
    IndexMatcher::new(&paths(included), &paths(excluded))
}

/// The node at `a.b`, with `[]` for the elements of an array.
fn node_at<'a>(matcher: &'a IndexMatcher, place: &str) -> PolicyNode<'a> {
    place.split('.').fold(matcher.root(), |node, step| if step == "[]" { node.element() } else { node.property(step) })
}

#[track_caller]
fn check(matcher: &IndexMatcher, indexed: &[&str], not_indexed: &[&str]) {
    for place in indexed {
        assert!(node_at(matcher, place).indexes_scalar(), "{place} is not indexed");
    }
    for place in not_indexed {
        assert!(!node_at(matcher, place).indexes_scalar(), "{place} is indexed");
    }
}

#[test]
fn by_default_everything_but_the_etag_is_indexed() {
    let matcher = matcher(&["/*"], &["/\"_etag\"/?"]);
    check(&matcher, &["a", "a.b", "tags.[]", "tags.[].x", "id", "_ts"], &["_etag"]);
}

#[test]
fn the_deeper_path_wins() {
    let matcher = matcher(&["/*", "/a/b/?"], &["/a/*"]);
    check(&matcher, &["a.b", "d"], &["a", "a.c", "a.b.c"]);
}

#[test]
fn at_equal_depth_the_scalar_wins() {
    check(&matcher(&["/*", "/a/?"], &["/a/*"]), &["a"], &["a.b"]);
    check(&matcher(&["/a/*"], &["/*", "/a/?"]), &["a.b"], &["a", "b"]);
}

#[test]
fn elements_are_their_own_step() {
    let matcher = matcher(&["/tags/[]/name/?", "/plain/[]/?"], &["/*"]);
    check(&matcher, &["tags.[].name", "plain.[]"], &["tags.name", "tags.[]", "plain", "plain.[].x"]);
}

#[test]
fn id_and_ts_are_always_indexed() {
    check(&matcher(&[], &["/*", "/id/?", "/_ts/?"]), &["id", "_ts"], &["a", "a.id"]);
}

/// S169: a policy with one included path serves that property and no other.
#[test]
fn s169_only_the_named_property() {
    check(&matcher(&["/department/?"], &["/*"]), &["department"], &["other", "department.x"]);
}

#[test]
fn mode_none_indexes_nothing() {
    let matcher = IndexMatcher::nothing();
    check(&matcher, &[], &["id", "_ts", "a"]);
    assert!(!matcher.root().may_index_below());
}

#[test]
fn a_tuple_does_not_index_single_properties() {
    check(&matcher(&["/a/[]/{x,y}/?"], &["/*"]), &[], &["a.[].x", "a.[].y"]);
}

#[test]
fn whole_subtrees_can_be_skipped() {
    let matcher = matcher(&["/*", "/a/b/[]/c/?"], &["/a/*", "/v/*"]);
    let may = |place: &str| node_at(&matcher, place).may_index_below();
    assert!(matcher.root().may_index_below() && may("a") && may("a.b") && may("a.b.[]") && may("other.deep"));
    assert!(!may("v") && !may("v.[]") && !may("a.c") && !may("a.b.[].c"));
}

#[test]
fn a_path_that_the_policy_names_is_explicit() {
    let matcher = matcher(&["/*", "/a/b/?", "/c/*", "/tags/[]/?", "/t/[]/{x,y}/?", "/_etag/?"], &["/c/d/*", "/c/?"]);
    let explicit: Vec<_> = matcher.explicit_paths().iter().map(|path| format!("{path:?}")).collect();
    assert_eq!(explicit, [r#"[Property("a"), Property("b")]"#]);
    for (place, is) in [("a.b", true), ("a", false), ("c", false), ("z", false), ("id", true), ("_ts", true)] {
        assert_eq!(matcher.is_explicit(&steps(&place.split('.').collect::<Vec<_>>())), is, "{place}");
    }
    assert!(!IndexMatcher::nothing().is_explicit(&steps(&["id"])));
}

#[test]
fn indexes_reports_whether_a_path_is_indexed() {
    let matcher = matcher(&["/*"], &["/a/*"]);
    for (place, is) in [("b", true), ("b.[].c", true), ("a", false), ("_ts", true), ("_etag", false), ("_rid", false)] {
        assert_eq!(matcher.indexes(&steps(&place.split('.').collect::<Vec<_>>())), is, "{place}");
    }
    assert!(!matcher.indexes(&[]), "the item itself is not an indexed value");
}

/// The documented rule: of the paths that cover the position, the most precise one decides.
fn naive(included: &[IndexPath], excluded: &[IndexPath], place: &[PathStep]) -> bool {
    if let [PathStep::Property(name)] = place
        && (name == "id" || name == "_ts")
    {
        return true;
    }
    let covers = |path: &IndexPath| match path.end {
        End::Scalar => path.steps == place,
        End::Subtree => place.starts_with(&path.steps),
        End::Tuple(_) => false,
    };
    let precision = |path: &IndexPath| (path.steps.len(), path.end == End::Scalar);
    let decisions = included.iter().map(|path| (path, true)).chain(excluded.iter().map(|path| (path, false)));
    decisions
        .filter(|(path, _)| covers(path))
        .max_by_key(|(path, _)| precision(path))
        .is_some_and(|(_, included)| included)
}

fn step() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", "id", "_ts", "[]"])
}

/// Distinct paths, each either included or excluded.
fn policy() -> impl Strategy<Value = Vec<(String, bool)>> {
    let path = (prop::collection::vec(step(), 0..4), any::<bool>()).prop_map(|(steps, scalar)| {
        let end = if scalar && !steps.is_empty() { "?" } else { "*" };
        steps.iter().fold(String::new(), |path, step| path + "/" + step) + "/" + end
    });
    prop::collection::hash_map(path, any::<bool>(), 0..12).prop_map(|paths| paths.into_iter().collect())
}

fn split(policy: &[(String, bool)]) -> (Vec<IndexPath>, Vec<IndexPath>) {
    let side =
        |wanted| policy.iter().filter(|(_, side)| *side == wanted).map(|(text, _)| text.as_str()).collect::<Vec<_>>();
    (paths(&side(true)), paths(&side(false)))
}

/// All paths of up to four steps, so that each policy is checked against each of them.
fn all_paths() -> Vec<Vec<&'static str>> {
    let mut all: Vec<Vec<&'static str>> = vec![vec![]];
    let mut longest = all.clone();
    for _ in 0..4 {
        let longer = longest
            .iter()
            .flat_map(|place| ["a", "b", "c", "id", "_ts", "[]", "z"].map(|step| [place.as_slice(), &[step]].concat()));
        longest = longer.collect();
        all.extend(longest.iter().cloned());
    }
    all
}

fn steps(place: &[&str]) -> Vec<PathStep> {
    let step = |step: &&str| if *step == "[]" { PathStep::Element } else { PathStep::Property((*step).to_owned()) };
    place.iter().map(step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The trie decides as the documented rule does, and skips nothing that is indexed.
    #[test]
    fn the_trie_decides_as_the_documented_rule(policy in policy()) {
        let (included, excluded) = split(&policy);
        let matcher = IndexMatcher::new(&included, &excluded);
        for place in all_paths() {
            let indexed = naive(&included, &excluded, &steps(&place));
            prop_assert_eq!(node_at_steps(&matcher, &place).indexes_scalar(), indexed, "{:?}", place);
            let reached = (0..place.len()).all(|depth| node_at_steps(&matcher, &place[..depth]).may_index_below());
            prop_assert!(!indexed || reached, "{:?} is skipped", place);
        }
    }
}

proptest! {
    // Each case checks the paths below every path, so few cases are enough.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Where `may_index_below` is true, some path below is indexed.
    #[test]
    fn may_index_below_is_exact(policy in policy()) {
        let (included, excluded) = split(&policy);
        let matcher = IndexMatcher::new(&included, &excluded);
        for place in all_paths().into_iter().filter(|place| place.len() < 4) {
            if node_at_steps(&matcher, &place).may_index_below() {
                let below = all_paths().into_iter().filter(|other| other.len() > place.len() && other.starts_with(&place));
                prop_assert!(below.into_iter().any(|other| naive(&included, &excluded, &steps(&other))), "{:?}", place);
            }
        }
    }
}

fn node_at_steps<'a>(matcher: &'a IndexMatcher, place: &[&str]) -> PolicyNode<'a> {
    place.iter().fold(matcher.root(), |node, step| if *step == "[]" { node.element() } else { node.property(step) })
}
