use pleiad_model::env::ManualEnv;
use pleiad_model::{Error, Kind, Result, Value, json};
use proptest::prelude::*;

use super::in_memory::RUN_BYTES_MAX;
use super::parse;
use crate::Parameters;
use crate::parse::TEXT_BYTES_MAX;

/// A metadata feed of three databases.
const FEED: &str = r#"[
    {"id":"a","_rid":"AAAAAA==","n":1,"a":{"b":1},"x":"p","y":true},
    {"id":"b","_rid":"BBBBBB==","n":2,"a":{"b":1},"x":"q","y":false},
    {"id":"c","_rid":"CCCCCC==","n":3,"a":[5,6]}
]"#;

fn run_with(text: &str, parameters: &str) -> Result<String> {
    let feed = json::parse(FEED.as_bytes())?;
    let parameters = Parameters::from_value(Some(&json::parse(parameters.as_bytes())?))?;
    let rows = parse(text)?.run_over(&parameters, &ManualEnv::default(), feed.as_array().unwrap_or_default().iter())?;
    let mut text = b"[".to_vec();
    rows.join(&mut text);
    text.push(b']');
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn run(text: &str) -> Result<String> {
    run_with(text, r#"[{"name":"@id","value":"b"},{"name":"@n","value":2},{"name":"@unused","value":[]}]"#)
}

#[track_caller]
fn check(text: &str, want: &str) {
    assert_eq!(run(text).unwrap_or_else(|e| panic!("{text}: {e}")), want, "{text}");
}

#[track_caller]
fn error_of(text: &str) -> Error {
    run(text).map(|rows| panic!("{text} gave {rows}")).unwrap_or_else(|error| error)
}

#[test]
fn sdk_queries_over_metadata_feeds() {
    check("SELECT VALUE r.id FROM r", r#"["a","b","c"]"#);
    check("SELECT VALUE r.id FROM root r WHERE r.id = @id", r#"["b"]"#);
    check("SELECT VALUE r.n FROM root r WHERE r.id=@id", "[2]");
    check("select value c.id from c where c.n > 1", r#"["b","c"]"#);
    check("SELECT VALUE root.id FROM root WHERE (root[\"id\"] = \"a\")", r#"["a"]"#);
    check("SELECT r.id, r._rid AS rid FROM root r WHERE r.id = 'a'", r#"[{"id":"a","rid":"AAAAAA=="}]"#);
    check("SELECT VALUE r.id FROM root r WHERE r.a.b = 1 AND (r[\"x\"] IN ('p', 'z') OR NOT r.y)", r#"["a","b"]"#);
}

#[test]
fn select_star_returns_whole_rows_in_input_order() {
    let feed = json::to_string(&json::parse(FEED.as_bytes()).unwrap());
    check("select * from c", &feed);
    check("SELECT * FROM root r", &feed);
    check("SELECT VALUE r FROM root AS r", &feed);
}

#[test]
fn only_true_keeps_a_row() {
    for filter in
        ["false", "null", "undefined", "0", "1", "'true'", "[]", "{}", "r.missing", "NOT r.missing", "r.missing = 1"]
    {
        check(&format!("SELECT * FROM r WHERE {filter}"), "[]");
    }
    check("SELECT VALUE r.id FROM r WHERE r.y", r#"["a"]"#);
    check("SELECT VALUE r.id FROM r WHERE r.x != 'p'", r#"["b"]"#);
}

#[test]
fn select_lists_name_their_items() {
    let check = |list, want| check(&format!("SELECT {list} FROM c WHERE c.id = 'c'"), want);
    check("c.id, c.n", r#"[{"id":"c","n":3}]"#);
    check("c['id']", r#"[{"id":"c"}]"#);
    check("c.a[0]", r#"[{"$1":5}]"#);
    check("c.n + 1, c.id, 'x', [c.n], {k: 1}", r#"[{"$1":4,"id":"c","$2":"x","$3":[3],"$4":{"k":1}}]"#);
    check("c.id name, c.n AS number", r#"[{"name":"c","number":3}]"#);
    check("c.id AS a, c.a.b", r#"[{"a":"c"}]"#);
    check("c.missing", "[{}]");
    check("VALUE c.missing", "[]");
    check("VALUE c.id AS ignored", r#"["c"]"#);
    check("@n", r#"[{"$1":2}]"#);
    check("c.a c", r#"[{"c":[5,6]}]"#);
}

#[test]
fn an_alias_of_from_names_the_whole_item() {
    check("SELECT c.a FROM c.a c", r#"[{},{},{}]"#);
    check("SELECT b FROM c.a.b", r#"[{"b":1},{"b":1}]"#);
}

#[test]
fn a_source_can_be_a_path() {
    check("SELECT * FROM c.a", r#"[{"b":1},{"b":1},[5,6]]"#);
    check("SELECT VALUE a.b FROM c.a", "[1,1]");
    check("SELECT VALUE x FROM c.a[1] x", "[6]");
    check("SELECT * FROM c['a'][0]", "[5]");
    check("SELECT * FROM c.missing", "[]");
}

#[test]
fn without_from_there_is_one_row() {
    check(r#"SELECT "Cosmic", "Works""#, r#"[{"$1":"Cosmic","$2":"Works"}]"#);
    check("SELECT VALUE 1", "[1]");
    check("SELECT VALUE undefined", "[]");
    check("SELECT 1 WHERE false", "[]");
    check("SELECT TOP 0 1", "[]");
}

#[test]
fn top_counts_rows_that_pass_the_filter() {
    check("SELECT TOP 2 VALUE r.id FROM r", r#"["a","b"]"#);
    check("SELECT TOP 1 VALUE r.id FROM r WHERE r.n > 1", r#"["b"]"#);
    check("SELECT TOP 1 VALUE r.x FROM r WHERE r.n > 1 OR r.n = 1", r#"["p"]"#);
    check("SELECT TOP @n VALUE r.id FROM r", r#"["a","b"]"#);
    check("SELECT TOP 0 * FROM r", "[]");
    check("SELECT TOP 2.0 VALUE r.id FROM r", r#"["a","b"]"#);
    check("SELECT TOP 4294967295 VALUE r.id FROM r", r#"["a","b","c"]"#);
    for top in ["4294967296", "1.5", "1e999", "@id", "@unused"] {
        let error = error_of(&format!("SELECT TOP {top} * FROM r"));
        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.to_string().contains("SC2060"), "{error}");
    }
}

#[test]
fn errors_are_the_json_that_sdks_parse() {
    let check = |text: &str, want: &str| {
        let error = error_of(text);
        assert_eq!((error.kind, error.to_string().as_str()), (Kind::Invalid, want), "{text}");
    };
    check(
        "SELECT * FROM c WHERE -",
        r#"{"errors":[{"severity":"Error","location":{"start":22,"end":23,"line":1,"column":23},"code":"SC1001","message":"Syntax error, incorrect syntax near '-'."}]}"#,
    );
    check(
        "SELECT * FROM x y WHERE x.a",
        r#"{"errors":[{"severity":"Error","location":{"start":24,"end":25,"line":1,"column":25},"code":"SC2001","message":"Identifier 'x' could not be resolved. FROM calls it y."}]}"#,
    );
    check(
        "SELECT '😀', name FROM c",
        r#"{"errors":[{"severity":"Error","location":{"start":13,"end":17,"line":1,"column":14},"code":"SC2001","message":"Identifier 'name' could not be resolved. Write c.name for a property of the item."}]}"#,
    );
    check(
        "SELECT *",
        r#"{"errors":[{"severity":"Error","location":{"start":7,"end":8,"line":1,"column":8},"code":"SC2040","message":"'SELECT *' is only valid with a single input set. Add FROM c."}]}"#,
    );
}

#[test]
fn names_must_be_bound() {
    for text in [
        "SELECT c.a",
        "SELECT * FROM c WHERE id = 1",
        "SELECT C.id FROM c",
        "SELECT * FROM c WHERE TRUE",
        "SELECT c FROM c[0]",
    ] {
        assert!(error_of(text).to_string().contains("SC2001"), "{text}");
    }
}

#[test]
fn a_name_cannot_be_selected_twice() {
    for list in ["c.a, c.b.a", "c.a, c.b AS a", "1, c['$1']"] {
        let error = error_of(&format!("SELECT {list} FROM c"));
        assert!(error.kind == Kind::Invalid && error.to_string().contains("SC2022"), "{error}");
    }
    assert!(
        error_of("SELECT VALUE {a: 1, b: 2, 'a': 3} FROM c")
            .to_string()
            .contains("property name 'a' specified more than once")
    );
}

#[test]
fn unsupported_features_are_rejected_by_name() {
    for (text, feature) in [
        ("SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", "ORDER BY RANK"),
        ("SELECT * FROM c WHERE udf.tax(c.n)", "udf.tax"),
        ("SELECT * FROM (SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) x", "GROUP BY"),
    ] {
        let error = error_of(text);
        assert_eq!(error.kind, Kind::Unsupported, "{text}: {error}");
        assert!(error.to_string().contains(feature), "{text}: {error}");
    }
}

#[test]
fn syntax_errors_take_precedence_over_unsupported_features() {
    assert_eq!(error_of("SELECT COUNT(1 FROM c").kind, Kind::Invalid);
    assert_eq!(error_of("SELECT * FROM c JOIN x IN c.a WHERE").kind, Kind::Invalid);
}

#[test]
fn missing_parameters_are_undefined() {
    assert_eq!(run_with("SELECT * FROM c WHERE c.id = @ID", r#"[{"name":"@id","value":1}]"#).unwrap(), "[]");
    assert_eq!(run_with("SELECT @p AS v", "[]").unwrap(), "[{}]");
    let twice = json::parse(br#"[{"name":"@p","value":1},{"name":"@p","value":1}]"#).unwrap();
    assert!(Parameters::from_value(Some(&twice)).unwrap_err().to_string().contains("duplicate parameter name '@p'"));
    assert_eq!(run_with("SELECT VALUE @p", r#"[{"name":"@p","value":{"a":[null]}}]"#).unwrap(), r#"[{"a":[null]}]"#);
    assert_eq!(run_with("SELECT VALUE @p", r#"[{"name":"@p"}]"#).unwrap(), "[]");
}

#[test]
fn parameters_are_a_list_of_names_and_values() {
    let parameters = |text: &str| Parameters::from_value(Some(&json::parse(text.as_bytes()).unwrap()));
    for good in ["null", "[]", r#"[{"name":"@a","value":1}]"#, r#"[{"name":"@a"},{"value":[],"name":"@b"}]"#] {
        assert!(parameters(good).is_ok(), "{good}");
    }
    for bad in ["{}", "1", "[1]", "[{}]", r#"[{"name":1}]"#, r#"[{"name":"a","value":1}]"#] {
        assert_eq!(parameters(bad).unwrap_err().kind, Kind::Invalid, "{bad}");
    }
    assert_eq!(Parameters::from_value(None).unwrap(), Parameters::default());
}

#[test]
fn query_text_length_limit_is_exact() {
    let text = |bytes: usize| format!("SELECT VALUE 1{}", " ".repeat(bytes - 14));
    check(&text(TEXT_BYTES_MAX), "[1]");
    let error = error_of(&text(TEXT_BYTES_MAX + 1));
    assert!(error.kind == Kind::Invalid && error.to_string().contains("524288"), "{error}");
}

#[test]
fn a_short_text_cannot_build_a_huge_result() {
    let big = Value::from("x".repeat(1024 * 1024));
    let list = Value::Array(vec![pleiad_model::Object::new().with("name", "@p").with("value", big).into()]);
    let parameters = Parameters::from_value(Some(&list)).unwrap();
    let times = RUN_BYTES_MAX / (1024 * 1024);
    let run = |text: String| {
        parse(&text).unwrap().run_over(&parameters, &ManualEnv::default(), [].iter()).map(|rows| rows.len())
    };
    let items = |n: usize| vec!["@p"; n].join(",");
    let sum = |n: usize| vec!["@p"; n].join("||");
    assert_eq!(run(format!("SELECT VALUE [{}]", items(times - 1))), Ok(1));
    assert_eq!(run(format!("SELECT VALUE {}", sum(times - 1))), Ok(1));
    for text in [format!("SELECT VALUE [{}]", items(times)), format!("SELECT VALUE {}", sum(times + 1))] {
        assert_eq!(run(text).unwrap_err().kind, Kind::TooLarge);
    }
}

/// Deep and wide queries run with half the stack size of the server's threads.
#[test]
fn deeply_nested_queries_run() {
    let run = || {
        let climb = "1 || 1 | 1 ^ 1 & 1 = 1 < 1 << 1 + 1 * - (";
        check(&format!("SELECT VALUE {}1{}", "(".repeat(250), ")".repeat(250)), "[1]");
        check(&format!("SELECT VALUE {}1{}", "- ".repeat(250), ""), "[1]");
        check(&format!("SELECT {}1{} AS x", climb.repeat(20), ")".repeat(20)), "[{}]");
        let deep = format!("{}1{}", "[".repeat(250), "]".repeat(250));
        check(&format!("SELECT VALUE {deep}"), &format!("[{deep}]"));
        check(&format!("SELECT VALUE r.id FROM r WHERE r.n = 0{}", " OR r.n = 1".repeat(40_000)), r#"["a"]"#);
        check(&format!("SELECT VALUE 0{}", " + 1".repeat(100_000)), "[100000]");
        check(&format!("SELECT r{} FROM r", ".a".repeat(100_000)), "[{},{},{}]");
        let subqueries = format!("{}r.n{}", "(SELECT VALUE (".repeat(80), "))".repeat(80));
        check(&format!("SELECT VALUE {subqueries} FROM r"), "[1,2,3]");
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_token_sequence_returns(text in crate::parse::parser::tests::token_soup()) {
        let _ = run(&text);
    }

    /// A filter and its negation never keep the same row.
    #[test]
    fn a_filter_and_its_negation_are_disjoint(left in operand(), op in operator(), right in operand()) {
        let count = |filter: String| run(&format!("SELECT VALUE 1 FROM r WHERE {filter}")).map(|rows| rows.matches('1').count());
        let kept = count(format!("{left} {op} {right}"))?;
        let rejected = count(format!("NOT ({left} {op} {right})"))?;
        prop_assert!(kept + rejected <= 3);
    }
}

fn operand() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &["r.n", "r.x", "r.y", "r.a", "r.missing", "1", "'p'", "true", "null", "[5,6]", "undefined", "@n"][..],
    )
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["=", "!=", "<", ">=", "AND", "OR", "+", "||", "??", "LIKE"][..])
}

#[test]
fn a_property_of_a_group_key_can_be_selected() {
    check("SELECT DISTINCT VALUE {\"b\": c.a.b} FROM c GROUP BY c.a", r#"[{},{"b":1}]"#);
    check("SELECT c.a.b AS b, COUNT(1) AS n FROM c WHERE IS_OBJECT(c.a) GROUP BY c.a", r#"[{"b":1,"n":2}]"#);
}

#[test]
fn group_keys_match_other_spellings() {
    check(r#"SELECT c["n"] AS n, COUNT(1) AS k FROM c WHERE c.n = 1 GROUP BY c.n"#, r#"[{"n":1,"k":1}]"#);
    check("SELECT toString(c.n) AS n FROM c WHERE c.n = 1 GROUP BY TOSTRING(c['n'])", r#"[{"n":"1"}]"#);
    check("SELECT c['a'].b AS b, COUNT(1) AS n FROM c WHERE IS_OBJECT(c.a) GROUP BY c.a", r#"[{"b":1,"n":2}]"#);
    assert!(error_of("SELECT c.N FROM c GROUP BY c.n").to_string().contains("SC2102"));
}

/// A path can be as long as the query text.
#[test]
fn long_paths_are_matched_to_group_keys_quickly() {
    let path = format!("c{}", ".a".repeat(100_000));
    assert!(error_of(&format!("SELECT {path} FROM c GROUP BY c.b")).to_string().contains("SC2102"));
    assert_eq!(run(&format!("SELECT {path} AS x FROM c GROUP BY c.a")).unwrap(), "[{},{}]");
}

#[test]
fn order_by_has_no_effect_on_a_single_row() {
    check("SELECT VALUE COUNT(1) FROM c ORDER BY c.n", "[3]");
}

/// The memory limit applies to the values in memory at the same time, independent of the length of the query text.
#[test]
fn memory_per_row_is_bounded() {
    let list = vec![Value::from("x".repeat(1000)); 1000];
    let item = Value::from(pleiad_model::Object::new().with("list", list));
    let run = |text: &str| {
        let rows = parse(text).unwrap().run_over(&Parameters::default(), &ManualEnv::default(), [item.clone()].iter());
        rows.map(|rows| rows.len())
    };
    let many = |what: &str| vec![what; 100].join(", ");
    for text in [
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE c.list FROM x IN c.list)) FROM c".to_owned(),
        format!("SELECT VALUE ARRAY_LENGTH([{}]) FROM c", many("c.list ?? 1")),
        format!("SELECT VALUE ARRAY_LENGTH(ARRAY_CONCAT({})) FROM c", many("c.list")),
        format!(
            "SELECT VALUE {{{}}}[\"p0\"] FROM c",
            (0..100).map(|n| format!("p{n}: c.list")).collect::<Vec<_>>().join(", ")
        ),
    ] {
        assert_eq!(run(&text).unwrap_err().kind, Kind::TooLarge, "{text}");
    }
    // Released temporaries do not count.
    assert_eq!(
        run("SELECT VALUE 1 FROM c JOIN x IN c.list WHERE ARRAY_LENGTH(ARRAY_SLICE(c.list, 1)) = 999").unwrap(),
        1000
    );
    assert_eq!(
        run("SELECT VALUE COUNT(1) FROM c JOIN x IN c.list WHERE LENGTH(CONCAT(x, ToString(c.list))) > 5").unwrap(),
        1
    );
}

/// Rows that filters drop count, too.
#[test]
fn work_per_item_is_bounded() {
    let list: Vec<Value> = (0..1000i64).map(Value::from).collect();
    let item = Value::from(pleiad_model::Object::new().with("list", list).with("none", Vec::<Value>::new()));
    let run = |text: &str| {
        parse(text).unwrap().run_over(&Parameters::default(), &ManualEnv::default(), [item.clone()].iter()).unwrap_err()
    };
    for text in [
        "SELECT VALUE 1 FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list WHERE a + b + d = -1",
        "SELECT VALUE 1 FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list JOIN z IN c.none",
        "SELECT VALUE EXISTS(SELECT 1 FROM a IN c.list JOIN b IN c.list JOIN d IN c.list WHERE a + b + d = -1) FROM c",
    ] {
        let error = run(text);
        assert!(matches!(error.kind, Kind::Invalid | Kind::TimedOut), "{text}: {error}");
    }
}
