use super::*;

fn property(name: &str) -> PathStep {
    PathStep::Property(name.to_owned())
}

#[track_caller]
fn check(text: &str, steps: &[PathStep], end: End) {
    let path = IndexPath::parse(text).expect("the path parses");
    assert_eq!((path.steps.as_slice(), &path.end, path.as_str()), (steps, &end, text));
}

#[track_caller]
fn check_malformed(text: &str, at: usize) {
    let error = IndexPath::parse(text).expect_err("the path is malformed");
    assert!(error.to_string().contains(&format!("failed near position '{at}'")), "{error}");
}

#[test]
fn a_path_ends_in_a_scalar_or_a_subtree() {
    check("/a/b/?", &[property("a"), property("b")], End::Scalar);
    check("/a/*", &[property("a")], End::Subtree);
    check("/*", &[], End::Subtree);
    check("/", &[], End::Subtree);
    check("/a/[]/b/?", &[property("a"), PathStep::Element, property("b")], End::Scalar);
    check("/tags/[]/?", &[property("tags"), PathStep::Element], End::Scalar);
}

/// S8: index paths have wildcards, which partition key paths may not have.
#[test]
fn s8_wildcards_are_for_index_paths() {
    check("/department/?", &[property("department")], End::Scalar);
    check("/department/*", &[property("department")], End::Subtree);
}

#[test]
fn quoted_names_hold_any_character() {
    check(r#"/"x y"/?"#, &[property("x y")], End::Scalar);
    check(r#"/'a/b'/"c\"d"/*"#, &[property("a/b"), property("c\"d")], End::Subtree);
    check(r#"/"[]"/"?"/?"#, &[property("[]"), property("?")], End::Scalar);
    check("/größe/?", &[property("größe")], End::Scalar);
}

#[test]
fn tuples_describe_the_elements_of_an_array() {
    let fields = |names: &[&[&str]]| {
        End::Tuple(names.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect())
    };
    check("/a/[]/{x,y}/?", &[property("a"), PathStep::Element], fields(&[&["x"], &["y"]]));
    check("/a/[]/{ x , y/z }/?", &[property("a"), PathStep::Element], fields(&[&["x"], &["y", "z"]]));
}

#[test]
fn malformed_paths_name_the_position() {
    check_malformed("", 0);
    check_malformed("a/?", 0);
    check_malformed("/a", 2);
    check_malformed("/a/", 3);
    check_malformed("/?", 1);
    check_malformed("//?", 1);
    check_malformed("/a b/?", 2);
    check_malformed("/a/*/b/?", 3);
    check_malformed("/a/?/b/*", 3);
    check_malformed("/a/?x", 4);
    check_malformed("/a/[0]/?", 4);
    check_malformed(r#"/"a/?"#, 5);
    check_malformed(r#"/"a\"#, 4);
}

#[test]
fn malformed_tuples_name_the_position() {
    check_malformed("/a/{x,y}/?", 3);
    check_malformed("/[]/{x,y}/?", 4);
    check_malformed("/a/[]/{x,y}", 11);
    check_malformed("/a/[]/{x,y}/*", 6);
    check_malformed("/a/[]/{{x,y}}/?", 7);
    check_malformed("/a/[]/{/x,y}/?", 7);
    check_malformed("/a/[]/{x,[]}/?", 9);
    check_malformed("/a/[]/{x,}/?", 9);
    check_malformed("/a/[]/{x,y/?", 11);
}

#[test]
fn bare_paths_have_no_end() {
    let path = IndexPath::parse_bare("/d/[]/name").expect("the path parses");
    assert_eq!(
        (path.steps.as_slice(), &path.end),
        (&[property("d"), PathStep::Element, property("name")][..], &End::Scalar)
    );
    for text in ["", "/", "/a/?", "/a/*", "a", "/a/[]/{x,y}"] {
        assert!(IndexPath::parse_bare(text).is_err(), "{text}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]

    /// Any property can be named in quotes, and any text is either a path or an error.
    #[test]
    fn every_name_can_be_quoted(name in ".*", other in ".*") {
        let quoted = name.replace('\\', r"\\").replace('"', "\\\"");
        let path = IndexPath::parse(&format!("/\"{quoted}\"/?")).expect("quoted names parse");
        proptest::prop_assert_eq!(path.steps, vec![PathStep::Property(name)]);
        let _ = IndexPath::parse(&other);
        let _ = IndexPath::parse_bare(&other);
    }

    #[test]
    fn anything_made_of_the_syntax_is_a_path_or_an_error(text in "[/a\"'\\[\\]{},?*\\\\ ]{0,16}") {
        if let Ok(path) = IndexPath::parse(&text) {
            proptest::prop_assert_eq!(path.as_str(), text);
        }
    }
}
