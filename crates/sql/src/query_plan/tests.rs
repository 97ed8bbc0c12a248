//! Proves: clients get plans that they can execute. The expected plans are the service's own.

mod client; // a client that executes plans

use pleiad_model::partition_key::{KeyKind, KeyVersion, PartitionKeyDefinition};
use pleiad_model::path::PropertyPath;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Kind, Result, Value, json};

use super::{needs_merge, query_plan};
use crate::Parameters;
use crate::compile::BindContext;
use crate::parse::parse;

const JAVASCRIPT: &str = "NonValueAggregate,Aggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,\
    CompositeAggregate,GroupBy,MultipleAggregates,NonStreamingOrderBy,ListAndSetAggregate,CountIf,HybridSearch,\
    WeightedRankFusion,HybridSearchSkipOrderByRewrite";
const DOTNET: &str = "Aggregate, Distinct, GroupBy, MultipleOrderBy, MultipleAggregates, OffsetAndLimit, OrderBy, Top, \
    NonValueAggregate, DCount, NonStreamingOrderBy, CountIf, HybridSearch, WeightedRankFusion";
const JAVA: &str = "Aggregate, CompositeAggregate, MultipleOrderBy, MultipleAggregates, OrderBy, OffsetAndLimit, \
    Distinct, GroupBy, Top, DCount, NonValueAggregate, NonStreamingOrderBy, HybridSearch, WeightedRankFusion";
const PYTHON: &str = "Aggregate,CompositeAggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,\
    NonStreamingOrderBy,HybridSearch,CountIf,WeightedRankFusion";
const RUST: &str = "Distinct,MultipleOrderBy,NonStreamingOrderBy,OffsetAndLimit,OrderBy,Top";

fn plan_for(text: &str, features: &str) -> Result<Value> {
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/key")?],
        kind: KeyKind::Hash,
        version: KeyVersion::V2,
        system_key: false,
    };
    let parameters = r#"[{"name": "@n", "value": 42}, {"name": "@m", "value": 1337}]"#;
    let parameters = Parameters::from_value(Some(&json::parse(parameters.as_bytes())?))?;
    let bind = BindContext {
        parameters: &parameters,
        geospatial: Geospatial::Geography,
        embeddings: &[],
        full_text: None,
        started_ms: None,
    };
    query_plan(text, bind, Some(&definition), features)
}

#[track_caller]
fn info(text: &str) -> Value {
    let features = format!("{JAVASCRIPT},DCount");
    let plan = plan_for(text, &features).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    plan.get("queryInfo").cloned().unwrap()
}

/// The members of `queryInfo` that `want` names, and the rewritten text.
#[track_caller]
fn check_plan(text: &str, want: &str, rewritten: &str) {
    let info = info(text);
    assert_eq!(info.get("rewrittenQuery").and_then(Value::as_str), Some(rewritten), "{text}");
    let want = json::parse(want.as_bytes()).unwrap();
    for (name, value) in want.as_object().unwrap().iter() {
        assert_eq!(info.get(name).map(json::to_string), Some(json::to_string(value)), "{text}: {name}");
    }
    if !rewritten.is_empty() {
        let sent = rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true");
        crate::check::parse_and_check(&sent).unwrap_or_else(|error| panic!("{sent}: {error:?}"));
    }
}

#[test]
fn a_query_without_anything_to_merge_passes_through() {
    let plan = json::to_string(&plan_for("SELECT * FROM c", "").unwrap());
    let want = r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":null,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"groupByExpressions":[],"groupByAliases":[],"aggregates":[],"groupByAliasToAggregateType":{},"rewrittenQuery":"","hasSelectValue":false,"dCountInfo":null,"hasNonStreamingOrderBy":false},"queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]}"#;
    assert_eq!(plan, want);
    check_plan("SELECT VALUE c.a FROM c WHERE c.b > 1", r#"{"hasSelectValue": true}"#, "");
    check_plan(
        "SELECT c.name, s FROM c JOIN (SELECT VALUE x FROM x IN c.scores GROUP BY x) s",
        r#"{"groupByExpressions": []}"#,
        "",
    );
}

#[test]
fn value_aggregates() {
    let none = r#""groupByAliasToAggregateType": {}, "groupByAliases": [], "hasSelectValue": true"#;
    let check = |text: &str, aggregate: &str, rewritten: &str| {
        check_plan(text, &format!(r#"{{"aggregates": ["{aggregate}"], {none}}}"#), rewritten);
    };
    check("SELECT VALUE COUNT(1) FROM c", "Count", r#"SELECT VALUE [{"item": COUNT(1)}] FROM c"#);
    check(
        "SELECT VALUE sum(c.x) FROM c WHERE c.y = 1",
        "Sum",
        r#"SELECT VALUE [{"item": SUM(c.x)}] FROM c WHERE c.y = 1"#,
    );
    check(
        "SELECT VALUE AVG(c.x) FROM c",
        "Average",
        r#"SELECT VALUE [{"item": {"sum": SUM(c.x), "count": COUNT(c.x)}}] FROM c"#,
    );
    check(
        "SELECT VALUE MIN(c.x) FROM c",
        "Min",
        r#"SELECT VALUE [{"item": MIN(c.x), "item2": {"min": MIN(c.x), "count": COUNT(c.x)}}] FROM c"#,
    );
    check(
        "SELECT VALUE MAX(c.x) FROM c",
        "Max",
        r#"SELECT VALUE [{"item": MAX(c.x), "item2": {"max": MAX(c.x), "count": COUNT(c.x)}}] FROM c"#,
    );
    check("SELECT VALUE COUNTIF(c.x) FROM c", "CountIf", r#"SELECT VALUE [{"item": COUNTIF(c.x)}] FROM c"#);
    check("SELECT VALUE MAKELIST(c.x) FROM c", "MakeList", r#"SELECT VALUE [{"item": MAKELIST(c.x)}] FROM c"#);
    check("SELECT VALUE MAKESET(c.x) FROM c", "MakeSet", r#"SELECT VALUE [{"item": MAKESET(c.x)}] FROM c"#);
}

#[test]
fn listed_aggregates_are_one_group() {
    check_plan(
        "SELECT COUNT(c.x) FROM c",
        r#"{"aggregates": [], "groupByExpressions": [], "groupByAliases": ["$1"], "groupByAliasToAggregateType": {"$1": "Count"}, "hasSelectValue": false}"#,
        r#"SELECT {"$1": {"item": COUNT(c.x)}} AS payload FROM c"#,
    );
    check_plan(
        "SELECT SUM(c.x) AS s FROM c",
        r#"{"groupByAliasToAggregateType": {"s": "Sum"}}"#,
        r#"SELECT {"s": {"item": SUM(c.x)}} AS payload FROM c"#,
    );
    check_plan(
        "SELECT SUM(c.x) AS a, SUM(c.x), MAX(c.x) AS b FROM c",
        r#"{"groupByAliases": ["a", "$1", "b"], "groupByAliasToAggregateType": {"a": "Sum", "$1": "Sum", "b": "Max"}}"#,
        r#"SELECT {"a": {"item": SUM(c.x)}, "$1": {"item": SUM(c.x)}, "b": {"item": MAX(c.x), "item2": {"max": MAX(c.x), "count": COUNT(c.x)}}} AS payload FROM c"#,
    );
}

#[test]
fn group_by() {
    check_plan(
        "SELECT c.n, AVG(c.a) FROM c GROUP BY c.n",
        r#"{"aggregates": [], "groupByExpressions": ["c.n"], "groupByAliases": ["n", "$1"], "groupByAliasToAggregateType": {"n": null, "$1": "Average"}}"#,
        r#"SELECT [{"item": c.n}] AS groupByItems, {"n": c.n, "$1": {"item": {"sum": SUM(c.a), "count": COUNT(c.a)}}} AS payload FROM c GROUP BY c.n"#,
    );
    check_plan(
        "SELECT c.t, COUNT(1) AS n FROM c WHERE c.x GROUP BY c.t",
        r#"{"groupByAliasToAggregateType": {"t": null, "n": "Count"}}"#,
        r#"SELECT [{"item": c.t}] AS groupByItems, {"t": c.t, "n": {"item": COUNT(1)}} AS payload FROM c WHERE c.x GROUP BY c.t"#,
    );
    check_plan(
        "SELECT MIN(c.a) AS low FROM c GROUP BY c.t, UPPER(c.u)",
        r#"{"groupByExpressions": ["c.t", "UPPER(c.u)"]}"#,
        r#"SELECT [{"item": c.t}, {"item": UPPER(c.u)}] AS groupByItems, {"low": {"item": MIN(c.a), "item2": {"min": MIN(c.a), "count": COUNT(c.a)}}} AS payload FROM c GROUP BY c.t, UPPER(c.u)"#,
    );
    let value =
        r#"{"groupByAliases": [], "groupByAliasToAggregateType": {}, "hasSelectValue": true, "aggregates": []}"#;
    check_plan(
        "SELECT VALUE c.a FROM c GROUP BY c.a",
        value,
        r#"SELECT [{"item": c.a}] AS groupByItems, c.a AS payload FROM c GROUP BY c.a"#,
    );
    check_plan(
        "SELECT VALUE {\"x\": c.a} FROM c GROUP BY c.a",
        value,
        r#"SELECT [{"item": c.a}] AS groupByItems, {"x": c.a} AS payload FROM c GROUP BY c.a"#,
    );
    check_plan(
        "SELECT VALUE AVG(c.b) FROM c GROUP BY c.a",
        r#"{"aggregates": ["Average"], "groupByAliasToAggregateType": {}, "hasSelectValue": true}"#,
        r#"SELECT [{"item": c.a}] AS groupByItems, [{"item": {"sum": SUM(c.b), "count": COUNT(c.b)}}] AS payload FROM c GROUP BY c.a"#,
    );
    check_plan(
        "SELECT TOP 5 VALUE c.n FROM c GROUP BY c.n",
        r#"{"top": 5}"#,
        r#"SELECT [{"item": c.n}] AS groupByItems, c.n AS payload FROM c GROUP BY c.n"#,
    );
}

#[test]
fn order_by() {
    check_plan(
        "SELECT * FROM c ORDER BY c.k",
        r#"{"orderBy": ["Ascending"], "orderByExpressions": ["c.k"], "hasNonStreamingOrderBy": false}"#,
        r#"SELECT c._rid, [{"item": c.k}] AS orderByItems, c AS payload FROM c WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY c.k"#,
    );
    check_plan(
        "SELECT c.a, c.b x FROM root c WHERE c.p = 1 OR c.q ORDER BY c.k DESC, c.l",
        r#"{"orderBy": ["Descending", "Ascending"], "orderByExpressions": ["c.k", "c.l"]}"#,
        r#"SELECT c._rid, [{"item": c.k}, {"item": c.l}] AS orderByItems, {"a": c.a, "x": c.b} AS payload FROM root AS c WHERE ((c.p = 1 OR c.q) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.k DESC, c.l"#,
    );
    check_plan(
        "SELECT VALUE r.a FROM r ORDER BY r.b",
        r#"{"hasSelectValue": true}"#,
        r#"SELECT r._rid, [{"item": r.b}] AS orderByItems, r.a AS payload FROM r WHERE (({documentdb-formattableorderbyquery-filter}) AND IS_DEFINED(r.a)) ORDER BY r.b"#,
    );
    check_plan(
        "SELECT TOP @n * FROM c ORDER BY c.k",
        r#"{"top": 42}"#,
        r#"SELECT TOP 42 c._rid, [{"item": c.k}] AS orderByItems, c AS payload FROM c WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY c.k"#,
    );
    check_plan(
        "SELECT * FROM c WHERE c.l = 5 ORDER BY c.k OFFSET 1 LIMIT 2",
        r#"{"offset": 1, "limit": 2}"#,
        r#"SELECT c._rid, [{"item": c.k}] AS orderByItems, c AS payload FROM c WHERE ((c.l = 5) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.k OFFSET 0 LIMIT 3"#,
    );
}

#[test]
fn one_partition_sorts_by_itself() {
    let none = r#""orderBy": [], "orderByExpressions": [], "offset": null, "limit": null"#;
    for (text, top) in [
        ("SELECT * FROM Root r WHERE r.key = 'key' ORDER BY r.key", "null"),
        ("SELECT TOP 3 r.a FROM r WHERE r.key = 'key' ORDER BY r.a DESC, r.b", "3"),
        ("SELECT VALUE r.a FROM r WHERE r.key = 'key' ORDER BY r.a OFFSET 1 LIMIT 2", "null"),
    ] {
        check_plan(text, &format!(r#"{{{none}, "top": {top}}}"#), "");
        check_missing(text, "Top", &[]);
    }
    check_plan(
        "SELECT * FROM r WHERE r.key IN ('a', 'b') ORDER BY r.k",
        r#"{"orderBy": ["Ascending"]}"#,
        r#"SELECT r._rid, [{"item": r.k}] AS orderByItems, r AS payload FROM r WHERE ((r.key IN ("a", "b")) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY r.k"#,
    );
    check_plan(
        "SELECT DISTINCT r.a FROM r WHERE r.key = 'key' ORDER BY r.a",
        r#"{"distinctType": "Unordered", "orderBy": ["Ascending"]}"#,
        r#"SELECT r._rid, [{"item": r.a}] AS orderByItems, {"a": r.a} AS payload FROM r WHERE ((r.key = "key") AND ({documentdb-formattableorderbyquery-filter})) ORDER BY r.a"#,
    );
    check_plan(
        "SELECT TOP 1 r.id FROM r WHERE r.key = 'key' ORDER BY VectorDistance(r.v, [1])",
        r#"{"top": 1, "orderBy": ["Descending"], "hasNonStreamingOrderBy": true}"#,
        r#"SELECT TOP 1 r._rid, [{"item": VectorDistance(r.v, [1])}] AS orderByItems, {"id": r.id} AS payload FROM r WHERE ((r.key = "key") AND ({documentdb-formattableorderbyquery-filter})) ORDER BY VectorDistance(r.v, [1])"#,
    );
}

#[test]
fn vector_direction_follows_the_distance_function() {
    for (options, direction) in [
        ("", "Descending"),
        (", true, {\"distanceFunction\": \"dotproduct\"}", "Descending"),
        (", false, {\"distanceFunction\": \"euclidean\"}", "Ascending"),
    ] {
        let call = format!("VECTORDISTANCE(c.v, [1, 2]{options})");
        check_plan(
            &format!("SELECT TOP 3 c.id FROM c ORDER BY {call}"),
            &format!(
                r#"{{"top": 3, "orderBy": ["{direction}"], "orderByExpressions": [{}], "hasNonStreamingOrderBy": true}}"#,
                json::to_string(&Value::from(call.as_str()))
            ),
            &format!(
                r#"SELECT TOP 3 c._rid, [{{"item": {call}}}] AS orderByItems, {{"id": c.id}} AS payload FROM c WHERE ({{documentdb-formattableorderbyquery-filter}}) ORDER BY {call}"#
            ),
        );
    }
    let text = "SELECT TOP 3 * FROM c ORDER BY VectorDistance(c.v, [1])";
    for features in [JAVASCRIPT, DOTNET, JAVA, PYTHON, RUST] {
        check_missing(text, features, &[]);
    }
    check_missing(text, "OrderBy,Top", &["NonStreamingOrderBy"]);
}

#[test]
fn distinct() {
    check_plan("SELECT DISTINCT c.x FROM c", r#"{"distinctType": "Unordered"}"#, "");
    check_plan(
        "SELECT DISTINCT VALUE c.x FROM c ORDER BY c.x",
        r#"{"distinctType": "Ordered", "orderBy": ["Ascending"]}"#,
        r#"SELECT c._rid, [{"item": c.x}] AS orderByItems, c.x AS payload FROM c WHERE (({documentdb-formattableorderbyquery-filter}) AND IS_DEFINED(c.x)) ORDER BY c.x"#,
    );
    check_plan(
        "SELECT DISTINCT TOP 3 c.x, c.y FROM c ORDER BY c.x",
        r#"{"distinctType": "Unordered", "top": 3}"#,
        r#"SELECT c._rid, [{"item": c.x}] AS orderByItems, {"x": c.x, "y": c.y} AS payload FROM c WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY c.x"#,
    );
    check_plan(
        "SELECT DISTINCT TOP 5 VALUE c.n FROM c",
        r#"{"distinctType": "Unordered", "top": 5}"#,
        "SELECT DISTINCT VALUE c.n FROM c",
    );
    check_plan(
        "SELECT DISTINCT * FROM c WHERE c.key = 5 OFFSET 1 LIMIT 2",
        r#"{"distinctType": "Unordered", "offset": 1, "limit": 2}"#,
        "SELECT DISTINCT * FROM c WHERE c.key = 5",
    );
}

#[test]
fn distinct_values_are_counted_by_the_client() {
    check_plan(
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c WHERE c.y)",
        r#"{"dCountInfo": {"dCountAlias": ""}, "distinctType": "Unordered", "aggregates": [], "hasSelectValue": true}"#,
        "SELECT DISTINCT VALUE c.x FROM c WHERE c.y",
    );
    check_plan(
        "SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.x, c.y FROM c) d",
        r#"{"dCountInfo": {"dCountAlias": "n"}, "groupByAliasToAggregateType": {}}"#,
        "SELECT DISTINCT c.x, c.y FROM c",
    );
    let error = plan_for("SELECT VALUE r FROM (SELECT DISTINCT VALUE c.x FROM c) r", JAVASCRIPT).unwrap_err();
    assert_eq!(error.kind, Kind::Unsupported);
}

#[test]
fn whole_items_need_no_distinct() {
    let select = |inner: &str| format!("SELECT VALUE r0.a FROM ({inner}) AS r0 WHERE r0.b > 1");
    for inner in [
        "SELECT DISTINCT VALUE root FROM root",
        "SELECT DISTINCT VALUE r FROM root r WHERE r.a",
        "SELECT DISTINCT * FROM root",
    ] {
        check_plan(&select(inner), r#"{"distinctType": "None"}"#, "");
        assert!(!needs_merge(&parse(&select(inner)).unwrap()), "{inner}");
    }
    check_plan(
        "SELECT VALUE r0 FROM (SELECT DISTINCT VALUE root FROM root) AS r0 OFFSET 1 LIMIT 2",
        r#"{"offset": 1, "limit": 2}"#,
        "SELECT VALUE r0 FROM (SELECT DISTINCT VALUE root FROM root) AS r0 OFFSET 0 LIMIT 3",
    );
    for inner in [
        "SELECT DISTINCT VALUE root.a FROM root",
        "SELECT DISTINCT VALUE root FROM root.a root",
        "SELECT DISTINCT VALUE root FROM root IN root.list",
        "SELECT DISTINCT VALUE root FROM root JOIN x IN root.list",
        "SELECT DISTINCT VALUE root FROM (SELECT VALUE c.a FROM c) root",
        "SELECT DISTINCT root FROM root",
    ] {
        assert_eq!(plan_for(&select(inner), JAVASCRIPT).expect_err(inner).kind, Kind::Unsupported);
    }
}

#[test]
fn counts() {
    check_plan("SELECT TOP 5 * FROM c", r#"{"top": 5, "offset": null, "limit": null}"#, "");
    check_plan("SELECT TOP @n * FROM c", r#"{"top": 42}"#, "");
    check_plan("SELECT TOP 0 * FROM c WHERE c.key = 5", r#"{"top": 0}"#, "");
    check_plan("SELECT TOP 2 5", r#"{"top": null}"#, "");
    check_plan("SELECT DISTINCT TOP 2 VALUE x FROM x IN (SELECT VALUE [1, 1, 2, 3])", r#"{"top": null}"#, "");
    check_plan("SELECT 5 OFFSET 1 LIMIT 2", r#"{"offset": null, "limit": null}"#, "");
    check_plan("SELECT TOP 0 VALUE COUNT(1)", r#"{"top": 0}"#, r#"SELECT VALUE [{"item": COUNT(1)}]"#);
    check_plan(
        "SELECT * FROM c OFFSET 1 LIMIT 2",
        r#"{"top": null, "offset": 1, "limit": 2}"#,
        "SELECT * FROM c OFFSET 0 LIMIT 3",
    );
    check_plan(
        "SELECT * FROM c OFFSET @n LIMIT @m",
        r#"{"offset": 42, "limit": 1337}"#,
        "SELECT * FROM c OFFSET 0 LIMIT 1379",
    );
    check_plan("SELECT * FROM c OFFSET 0 LIMIT 0", r#"{"offset": 0, "limit": 0}"#, "SELECT * FROM c OFFSET 0 LIMIT 0");
    check_plan("SELECT * FROM c WHERE c.key = 5 OFFSET 1 LIMIT 2", r#"{"offset": null, "limit": null}"#, "");
    check_plan(
        "SELECT * FROM c OFFSET 4294967295 LIMIT 9",
        r#"{"offset": 4294967295, "limit": 9}"#,
        "SELECT * FROM c OFFSET 0 LIMIT 4294967295",
    );
    check_plan(
        "SELECT TOP 5 VALUE AVG(c.x) FROM c",
        r#"{"top": 5}"#,
        r#"SELECT VALUE [{"item": {"sum": SUM(c.x), "count": COUNT(c.x)}}] FROM c"#,
    );
    check_plan(
        "SELECT VALUE COUNT(1) FROM c WHERE c.key = 5 OFFSET 1 LIMIT 2",
        r#"{"offset": 1, "limit": 2}"#,
        r#"SELECT VALUE [{"item": COUNT(1)}] FROM c WHERE c.key = 5"#,
    );
    check_plan(
        "SELECT c.n FROM c WHERE c.key = 5 GROUP BY c.n OFFSET 1 LIMIT 2",
        r#"{"offset": 1, "limit": 2}"#,
        r#"SELECT [{"item": c.n}] AS groupByItems, {"n": c.n} AS payload FROM c WHERE c.key = 5 GROUP BY c.n"#,
    );
}

#[track_caller]
fn check_ranges(text: &str, want: &str) {
    let plan = plan_for(text, JAVASCRIPT).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(plan.get("queryRanges").map(json::to_string).as_deref(), Some(want), "{text}");
}

#[test]
fn ranges() {
    check_ranges("SELECT 5", r#"[{"min":"","max":"","isMinInclusive":true,"isMaxInclusive":true}]"#);
    check_ranges("SELECT * FROM c WHERE 1 = 2", r#"[{"min":"","max":"","isMinInclusive":true,"isMaxInclusive":true}]"#);
    check_ranges(
        "SELECT * FROM c WHERE c.key = 5",
        r#"[{"min":"19C08621B135968252FB34B4CF66F811","max":"19C08621B135968252FB34B4CF66F811","isMinInclusive":true,"isMaxInclusive":true}]"#,
    );
    check_ranges(
        "SELECT VALUE COUNT(1) FROM c WHERE c.key IN ('pk', 5)",
        r#"[{"min":"19C08621B135968252FB34B4CF66F811","max":"19C08621B135968252FB34B4CF66F811","isMinInclusive":true,"isMaxInclusive":true},{"min":"20FD8FE780DCFA0692905152C35E10D9","max":"20FD8FE780DCFA0692905152C35E10D9","isMinInclusive":true,"isMaxInclusive":true}]"#,
    );
}

/// Otherwise every partition would return the rows, though they belong to none.
#[test]
fn queries_without_a_container_run_once() {
    let nothing = r#"[{"min":"","max":"","isMinInclusive":true,"isMaxInclusive":true}]"#;
    for text in [
        "SELECT VALUE COUNT(1)",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE null)",
        "SELECT VALUE COUNT(1) FROM (SELECT VALUE 1) AS a",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE x FROM (SELECT VALUE 1) x)",
        "SELECT VALUE SUM(x) FROM x IN (SELECT VALUE [1, 2])",
        "SELECT VALUE x FROM x IN ARRAY_CONCAT([1], [2])",
        "SELECT * FROM (SELECT VALUE 1) AS a",
        "SELECT a, b FROM (SELECT VALUE [1]) a JOIN b IN a",
    ] {
        check_ranges(text, nothing);
        let select = crate::check::parse_and_check(text).unwrap();
        assert!(!select.reads_items() && crate::derived_table::split_derived_table(&select).is_none(), "{text}");
    }
    check_plan(
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE null)",
        r#"{"aggregates": ["Count"], "dCountInfo": null}"#,
        r#"SELECT VALUE [{"item": COUNT(1)}] FROM (SELECT DISTINCT VALUE null)"#,
    );
    check_ranges(
        "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a FROM c)",
        r#"[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}]"#,
    );
}

#[track_caller]
fn check_missing(text: &str, features: &str, missing: &[&str]) {
    let message = match plan_for(text, features) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let reported: Vec<&str> = message
        .lines()
        .filter_map(|line| {
            line.strip_prefix("Query contained ")?.strip_suffix(", which the calling client does not support.")
        })
        .collect();
    assert_eq!(reported, missing, "{text} for {features}: {message}");
}

#[test]
fn no_client_gets_a_plan_that_it_cannot_execute() {
    let group = "SELECT c.a, COUNT(1) AS n, AVG(c.b) AS m FROM c GROUP BY c.a";
    check_missing(group, JAVASCRIPT, &[]);
    check_missing(group, DOTNET, &[]);
    check_missing(group, JAVA, &[]);
    check_missing(group, PYTHON, &["NonValueAggregate", "MultipleAggregates", "GroupBy"]);
    check_missing(group, RUST, &["NonValueAggregate", "MultipleAggregates", "GroupBy"]);
    check_missing("SELECT VALUE COUNT(1) FROM c", PYTHON, &[]);
    check_missing("SELECT VALUE COUNT(1) FROM c", RUST, &["Aggregate"]);
    check_missing("SELECT COUNT(1) FROM c", PYTHON, &["NonValueAggregate"]);
    check_missing("SELECT VALUE COUNTIF(c.a) FROM c", JAVA, &["CountIf"]);
    check_missing("SELECT VALUE MAKELIST(c.a) FROM c", DOTNET, &["ListAndSetAggregate"]);
    check_missing("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", JAVASCRIPT, &["DCount"]);
    check_missing("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)", DOTNET, &[]);
    for text in [
        "SELECT * FROM c",
        "SELECT * FROM c ORDER BY c.a, c.b",
        "SELECT DISTINCT TOP 3 VALUE c.a FROM c",
        "SELECT * FROM c OFFSET 1 LIMIT 2",
    ] {
        for features in [JAVASCRIPT, DOTNET, JAVA, PYTHON, RUST] {
            check_missing(text, features, &[]);
        }
    }
    check_missing("SELECT TOP 1 * FROM c ORDER BY c.a, c.b", "None", &["OrderBy", "MultipleOrderBy", "Top"]);
    check_missing("SELECT DISTINCT c.a FROM c OFFSET 0 LIMIT 1", "", &["Distinct", "OffsetAndLimit"]);
    check_missing("SELECT * FROM c WHERE c.key = 1 OFFSET 0 LIMIT 1", "", &[]);
}

/// Clients merge groups without an order: the plan sorts nothing, and each range sorts its own groups.
#[test]
fn groups_with_order_by() {
    check_plan(
        "SELECT c.n, COUNT(1) AS k FROM c WHERE c.a > 1 GROUP BY c.n, c.m ORDER BY c.m DESC, c.n OFFSET 1 LIMIT 2",
        r#"{"groupByExpressions": ["c.n", "c.m"], "orderBy": [], "orderByExpressions": [], "offset": 1, "limit": 2}"#,
        "SELECT [{\"item\": c.n}, {\"item\": c.m}] AS groupByItems, {\"n\": c.n, \"k\": {\"item\": COUNT(1)}} AS payload \
         FROM c WHERE c.a > 1 GROUP BY c.n, c.m ORDER BY c.m DESC, c.n",
    );
    check_plan(
        "SELECT VALUE c.n FROM c WHERE c.key = 1 GROUP BY c.n ORDER BY c.n ASC",
        r#"{"groupByExpressions": ["c.n"], "orderBy": [], "hasSelectValue": true}"#,
        "SELECT [{\"item\": c.n}] AS groupByItems, c.n AS payload FROM c WHERE c.key = 1 GROUP BY c.n ORDER BY c.n ASC",
    );
    check_missing("SELECT c.n FROM c GROUP BY c.n ORDER BY c.n", "GroupBy", &[]);
}

/// LINQ sorts an object that it has selected before.
#[test]
fn order_by_over_a_derived_object() {
    check_plan(
        r#"SELECT VALUE r FROM (SELECT VALUE {"id": root["id"], "n": root["n"] + 1} FROM root) AS r ORDER BY r["id"] ASC"#,
        r#"{"orderBy": ["Ascending"], "orderByExpressions": ["root[\"id\"]"], "hasSelectValue": true}"#,
        "SELECT root._rid, [{\"item\": root[\"id\"]}] AS orderByItems, {\"id\": root[\"id\"], \"n\": root[\"n\"] + 1} AS payload \
         FROM root WHERE (({documentdb-formattableorderbyquery-filter}) AND IS_DEFINED({\"id\": root[\"id\"], \"n\": root[\"n\"] + 1})) \
         ORDER BY root[\"id\"] ASC",
    );
}

#[test]
fn one_row_is_distinct() {
    assert_eq!(info("SELECT DISTINCT VALUE 1").get("distinctType").and_then(Value::as_str), Some("None"));
    assert_eq!(info("SELECT DISTINCT VALUE 1 FROM c").get("distinctType").and_then(Value::as_str), Some("Unordered"));
}

#[test]
fn aggregates_that_no_client_can_merge() {
    let composed = r#"{"Errors":["Compositions of aggregates and other expressions are not allowed."]}"#;
    for text in [
        "SELECT VALUE {'sum': SUM(r.a)} FROM r",
        "SELECT VALUE [SUM(r.a)] FROM r",
        "SELECT VALUE FLOOR(AVG(r.a)) FROM r",
        "SELECT c.n, ABS(AVG(c.a)) AS x FROM c GROUP BY c.n",
        "SELECT udf.f(COUNT(r.a)) FROM r",
        "SELECT c.n, COUNT(1) + 1 AS x FROM c WHERE c.key = 1 GROUP BY c.n ORDER BY c.n",
    ] {
        assert_eq!(plan_for(text, JAVASCRIPT).expect_err(text).to_string(), composed, "{text}");
    }
    let many = |n: usize| {
        let sums: Vec<String> = (0..n).map(|i| format!("SUM(c.a{i})")).collect();
        plan_for(&format!("SELECT {} FROM c GROUP BY c.n", sums.join(", ")), JAVASCRIPT)
    };
    assert!(many(21).is_ok());
    assert!(many(22).unwrap_err().to_string().contains("at most 21 aggregates"));
}

#[test]
fn query_errors_are_reported_by_plans() {
    let message = |text: &str| plan_for(text, JAVASCRIPT).expect_err(text).to_string();
    assert!(message("SELECT * FORM c").contains("SC1001"));
    assert!(message("SELECT TOP 4294967296 * FROM c").contains("SC2060"));
    assert!(message("SELECT TOP @missing * FROM c").contains("SC2060"));
}

#[test]
fn queries_that_need_a_merge() {
    let check = |text: &str, want: bool| assert_eq!(needs_merge(&parse(text).unwrap()), want, "{text}");
    for text in [
        "SELECT * FROM c ORDER BY c.a",
        "SELECT TOP 1 * FROM c",
        "SELECT * FROM c OFFSET 0 LIMIT 1",
        "SELECT DISTINCT c.a FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.a, ABS(SUM(c.b)) FROM c",
        "SELECT c.a FROM c GROUP BY c.a",
        "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.a FROM c) x",
    ] {
        check(text, true);
    }
    check("SELECT c.a, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c JOIN x IN c.list WHERE c.b > 1", false);
    check("SELECT 1", false);
}

#[test]
fn rewritten_queries_over_the_nesting_limit_are_rejected() {
    let nested =
        |levels: usize| format!("SELECT * FROM c WHERE {}c.a{} ORDER BY c.k", "[".repeat(levels), "]".repeat(levels));
    assert!(plan_for(&nested(200), JAVASCRIPT).is_ok());
    let error = plan_for(&nested(254), JAVASCRIPT).unwrap_err();
    assert!(error.to_string().contains("nests too deeply"), "{error:?}");
}
