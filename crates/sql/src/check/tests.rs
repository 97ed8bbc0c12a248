//! Proves: invalid queries return the service's code, message and location.

use pleiad_model::{Kind, Value, json};

use super::{JOINS_MAX, USER_FUNCTIONS_MAX, check_parameters, counts, parse_and_check};
use crate::Parameters;
use crate::parse::{NESTING_MAX, TEXT_BYTES_MAX, parse};

#[track_caller]
fn accepts(text: &str) {
    if let Err(error) = parse_and_check(text) {
        panic!("{text}: {error:?}");
    }
}

#[track_caller]
fn errors_of(text: &str) -> Vec<Value> {
    let error = parse_and_check(text).expect_err(text);
    assert_eq!(error.kind, Kind::Invalid, "{text}: {error:?}");
    let body = json::parse(error.to_string().as_bytes()).unwrap_or_else(|_| panic!("{text}: {error}"));
    body.get("errors").and_then(Value::as_array).unwrap().to_vec()
}

/// Code (empty if there is none), message, location (0 to 0 if there is none).
fn error_parts(error: &Value) -> (String, String, (i64, i64)) {
    let text_of = |name: &str| error.get(name).map_or_else(String::new, plain_text);
    let offset = |name: &str| error.get("location").and_then(|l| l.get(name)).and_then(Value::as_i64).unwrap_or(0);
    (text_of("code"), text_of("message"), (offset("start"), offset("end")))
}

/// The first error.
#[track_caller]
fn error_of(text: &str) -> (String, String, (i64, i64)) {
    error_parts(&errors_of(text)[0])
}

/// The codes of all errors, and the text at their locations.
#[track_caller]
fn codes_and_texts(text: &str) -> Vec<(String, &str)> {
    let at = |error: &Value| {
        let (code, _, (start, end)) = error_parts(error);
        (code, &text[start as usize..end as usize])
    };
    errors_of(text).iter().map(at).collect()
}

/// A string without quotes, a number as JSON.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| json::to_string(value), str::to_owned)
}

#[track_caller]
fn check(text: &str, code: &str, part: &str) {
    let (found, message, _) = error_of(text);
    assert_eq!(found, code, "{text}: {message}");
    assert!(message.contains(part), "{text}: {message}");
}

/// Checks the text at the location of the error.
#[track_caller]
fn check_at(text: &str, code: &str, at: &str) {
    let (found, message, (start, end)) = error_of(text);
    assert_eq!((found.as_str(), &text[start as usize..end as usize]), (code, at), "{text}: {message}");
}

#[test]
fn common_client_queries_are_accepted() {
    for text in [
        "SELECT 1",
        "SELECT * FROM c",
        "SELECT * FROM x IN c.items",
        "SELECT VALUE root FROM root WHERE (root[\"a\"] >= \"x\")",
        "SELECT VALUE x0 FROM root JOIN x0 IN root[\"a\"] JOIN y IN x0.b WHERE y.c",
        "SELECT c.a, (SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t = c.b) AS n FROM c",
        "SELECT VALUE r0 FROM (SELECT DISTINCT VALUE root.a FROM root) AS r0",
        "SELECT VALUE v FROM c JOIN (SELECT VALUE c.x) v",
        "SELECT c.a, COUNT(1) AS n, MAX(c.b) FROM c GROUP BY c.a",
        "SELECT VALUE {n: c.a, total: SUM(c.b) / COUNT(1)} FROM c GROUP BY c.a",
        "SELECT COUNT(1), 5 AS five FROM c",
        "SELECT DISTINCT TOP 5 VALUE c.n FROM c",
        "SELECT * FROM c ORDER BY c.a, c[\"b\"].d DESC OFFSET 0 LIMIT 4294967295",
        "SELECT TOP 4294967295 * FROM c.children x ORDER BY x.name",
        "SELECT c._rid, [{\"item\": c.k}] AS orderByItems, c AS payload FROM c WHERE ((c.p) AND (true)) ORDER BY c.k",
        "SELECT VALUE EXISTS(SELECT VALUE c FROM c IN c.list) FROM c",
        "SELECT c.n, (SELECT VALUE MAX(x) FROM x IN (SELECT VALUE [1, 2])) AS m FROM c GROUP BY c.n",
    ] {
        accepts(text);
    }
}

#[test]
fn names_resolve() {
    check("SELECT name FROM c", "SC2001", "Identifier 'name' could not be resolved. Write c.name");
    check_at("SELECT name FROM c", "SC2001", "name");
    check("SELECT c.name", "SC2001", "write FROM c");
    check("SELECT x FROM c.list[2]", "SC2001", "FROM c.list[0] AS x");
    check("SELECT c.a FROM c x", "SC2001", "Identifier 'c' could not be resolved. FROM calls it x.");
    check("SELECT C.a FROM c", "SC2001", "case-sensitive: write c");
    check("SELECT * FROM c WHERE c.a = NULL", "SC2001", "null in lower case");
    check("SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN d.tags)", "SC2001", "'d'");
    check("SELECT t FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags)", "SC2001", "'t'");
    check("SELECT 1 FROM c JOIN d", "SC2001", "'d'");
    check("SELECT 1 FROM c JOIN x IN y.z JOIN y IN c.a", "SC2001", "'y'");
    check("SELECT 1 FROM c JOIN c.a JOIN a IN c.b", "", "FROM names 'a' twice");
    check("SELECT c.a, c.b.a FROM c", "SC2022", "'a' specified more than once");
    check("SELECT c.a AS x, c.b AS x FROM c", "SC2022", "'x' specified more than once");
    check("SELECT 1, c['$1'] FROM c", "SC2022", "'$1' specified more than once");
}

#[test]
fn array_indexes_do_not_depend_on_rows() {
    let text = "SELECT VALUE [1, 2, 3][root[\"x\"]] FROM root";
    check(text, "SC2990", "The specified query includes 'member indexer' which is currently not supported.");
    assert_eq!(error_of(text).2, (13, 33));
    check_at("SELECT VALUE c.a[c.i] FROM c", "SC2990", "c.a[c.i]");
    check_at(
        "SELECT 1 FROM c JOIN v1 IN c.a WHERE v1[(ARRAY_LENGTH(c.b) % 2)]",
        "SC2990",
        "v1[(ARRAY_LENGTH(c.b) % 2)]",
    );
    check_at("SELECT c.a[(SELECT VALUE 0)] FROM c", "SC2990", "c.a[(SELECT VALUE 0)]");
    check_at("SELECT c.a[udf.f()] FROM c", "SC2990", "c.a[udf.f()]");
    for index in ["0", "-1", "(1)", "\"b\"", "@i", "1 + 1", "@i.j", "undefined"] {
        accepts(&format!("SELECT c.a[{index}] FROM c"));
    }
}

#[test]
fn functions_exist_and_get_their_arguments() {
    check("SELECT BADFUNC(r.age) FROM Root r", "SC2005", "'BADFUNC' is not a recognized built-in function name.");
    check_at("SELECT BADFUNC(r.age) FROM Root r", "SC2005", "BADFUNC");
    check("SELECT LEN(c.a) FROM c", "SC2005", "Write LENGTH(text).");
    check("SELECT SUBSTR(c.a, 1) FROM c", "SC2005", "SUBSTRING");
    check("SELECT GETDATE()", "SC2005", "GetCurrentDateTime");
    check("SELECT ISNULL(c.a) FROM c", "SC2005", "IS_NULL");
    check("SELECT LOWRE(c.a) FROM c", "SC2005", "Did you mean LOWER?");
    check("SELECT UPER(c.a) FROM c", "SC2005", "Did you mean UPPER?");
    check("SELECT FLOORS(c.a) FROM c", "SC2005", "Did you mean FLOOR?");
    check(
        "SELECT * FROM Root r WHERE STARTSWITH(r.key, 'a', 'b', 'c')",
        "SC2050",
        "The STARTSWITH function requires 2 to 3 argument(s).",
    );
    check("SELECT abs() FROM c", "SC2050", "The ABS function requires 1 argument(s).");
    check("SELECT COUNT() FROM c", "SC2050", "The COUNT function requires 1 argument(s).");
    check("SELECT sum(c.a, c.b) FROM c", "SC2050", "The SUM function requires 1 argument(s).");
}

#[test]
fn select_star_needs_one_source() {
    check("SELECT *", "SC2040", "'SELECT *' is only valid with a single input set.");
    check_at("SELECT * FROM c JOIN x IN c.a", "SC2040", "*");
    check_at("SELECT * FROM c GROUP BY c.a", "SC2041", "*");
    check("SELECT * FROM c GROUP BY c.a", "SC2041", "'SELECT *' is not allowed with GROUP BY.");
}

#[test]
fn aggregates_are_allowed_in_select_and_do_not_nest() {
    check(
        "SELECT VALUE MAX(MIN(r)) From r",
        "SC2101",
        "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.",
    );
    check_at("SELECT VALUE MAX(MIN(r)) FROM r", "SC2101", "MAX(MIN(r))");
    check_at("SELECT 1 + SUM(ABS(AVG(MIN(r)))) FROM r", "SC2101", "SUM(ABS(AVG(MIN(r))))");
    check_at("SELECT VALUE SUM((SELECT VALUE c.a)) FROM c", "SC2101", "SUM((SELECT VALUE c.a))");
    accepts("SELECT VALUE (SELECT VALUE SUM((SELECT VALUE MAX(n.x) FROM n IN a.list)) FROM a IN c.arr) FROM c");
    check("SELECT c.a FROM c WHERE COUNT(1) > 1", "", "cannot stand in WHERE");
    check("SELECT c.a FROM c GROUP BY COUNT(1)", "", "cannot stand in GROUP BY");
    check("SELECT c.a FROM c ORDER BY COUNT(1)", "", "cannot stand in ORDER BY");
}

#[test]
fn groups_expose_only_keys_and_aggregates() {
    check(
        "SELECT s.score, COUNT(1) AS n FROM s GROUP BY s.name",
        "SC2102",
        "Property reference 's.score' is invalid in the select list because it is not contained in either an aggregate \
         function or the GROUP BY clause.",
    );
    check_at("SELECT s.score, COUNT(1) AS n FROM s GROUP BY s.name", "SC2102", "s.score");
    check_at("SELECT COUNT(1), c.a FROM c", "SC2102", "c.a");
    check_at("SELECT VALUE c FROM c GROUP BY c.a", "SC2102", "c");
    check_at("SELECT c.a + c.b FROM c GROUP BY c.a", "SC2102", "c.b");
    check_at("SELECT c.a, (SELECT VALUE c.b) AS b FROM c GROUP BY c.a", "SC2102", "c.b");
    let both = "SELECT c.a, c.b, COUNT(1), c.c FROM c GROUP BY c.a";
    assert_eq!(codes_and_texts(both), [("SC2102".to_owned(), "c.b"), ("SC2102".to_owned(), "c.c")]);
    let element = "SELECT VALUE v1[0] FROM c JOIN v1 IN c.list GROUP BY c.a";
    check(element, "SC2102", "Property reference 'v1' is invalid");
    check_at(element, "SC2102", "v1");
    check_at("SELECT VALUE c.b[\"x\"] FROM c GROUP BY c.a", "SC2102", "c.b[\"x\"]");
    check_at("SELECT VALUE c.b[0].d[1] FROM c GROUP BY c.a", "SC2102", "c.b");
    let sorted = "SELECT root[\"Int\"], root.a FROM root GROUP BY root.a ORDER BY root[\"Int\"] ASC, root.a, root.b";
    let want = [("SC2102", "root[\"Int\"]"), ("SC2103", "root[\"Int\"]"), ("SC2103", "root.b")];
    assert_eq!(codes_and_texts(sorted), want.map(|(code, at)| (code.to_owned(), at)));
    check(
        "SELECT root.a FROM root GROUP BY root.a ORDER BY root[\"Int\"]",
        "SC2103",
        "Property reference 'root[\"Int\"]' is invalid in the ORDER BY clause because it is not contained in either an \
         aggregate function or the GROUP BY clause.",
    );
    accepts("SELECT COUNT(1) FROM c ORDER BY c.a");
    check("SELECT c.a FROM c GROUP BY c.a, 1", "", "A constant cannot be a GROUP BY key");
    check("SELECT c.a FROM c GROUP BY (SELECT VALUE c.a)", "", "A subquery cannot be a GROUP BY key");
    accepts("SELECT ABS(c.a) AS b FROM c GROUP BY c.a");
    accepts("SELECT UPPER(c.a) AS b FROM c GROUP BY UPPER(c.a)");
}

#[test]
fn subqueries_do_not_sort_or_page() {
    let inner = |select: &str| format!("SELECT ARRAY({select}) FROM c");
    let sorted = inner("SELECT VALUE x FROM x IN c.a ORDER BY x.a, x[\"b\"] ASC");
    check(&sorted, "SC2202", "'ORDER BY' is not supported in subqueries.");
    check_at(&sorted, "SC2202", "ORDER BY x.a, x[\"b\"] ASC");
    let top = inner("SELECT TOP 10 VALUE x FROM x IN c.a");
    check(&top, "SC2203", "'TOP' is not supported in subqueries.");
    check_at(&top, "SC2203", "TOP 10");
    let paged = inner("SELECT VALUE x FROM x IN c.a OFFSET 10 LIMIT 10");
    check(&paged, "SC2204", "'OFFSET LIMIT' clause is not supported in subqueries.");
    check_at(&paged, "SC2204", "OFFSET 10 LIMIT 10");
    let nested = "SELECT 1 FROM c JOIN (SELECT TOP 2 VALUE EXISTS(SELECT 1 FROM x IN c.a ORDER BY x.b OFFSET 0 LIMIT 1) \
                  FROM c JOIN y IN c.b ORDER BY y.c) v ORDER BY c.d OFFSET 0 LIMIT 5";
    let want =
        [("SC2202", "ORDER BY x.b"), ("SC2204", "OFFSET 0 LIMIT 1"), ("SC2202", "ORDER BY y.c"), ("SC2203", "TOP 2")];
    assert_eq!(codes_and_texts(nested), want.map(|(code, at)| (code.to_owned(), at)));
    check("SELECT ARRAY(SELECT VALUE x FROM x IN c.a ORDER BY RANK RRF(x)) FROM c", "SC2228", "ORDER BY RANK");
}

#[test]
fn order_by_takes_paths_of_the_item() {
    const UNMAPPED: &str = "ORDER BY item expression could not be mapped to a document path.";
    check("SELECT * FROM root WHERE root.key = 'key' ORDER BY LOWER(root.field) ASC", "2206", UNMAPPED);
    check("SELECT * FROM c ORDER BY c.a, c.b + 1", "2206", UNMAPPED);
    for text in [
        "SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY t.name",
        "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.id, t",
        "SELECT VALUE t FROM t IN c.tags ORDER BY t.name",
    ] {
        let message = parse_and_check(text).unwrap_err().to_string();
        assert!(message.contains(r#"{"Errors":["Order-by over correlated collections is not supported."]}"#), "{text}");
    }
    check("SELECT VALUE x FROM (SELECT VALUE c.a + 1 FROM c) x ORDER BY x.b", "2206", UNMAPPED);
    accepts("SELECT VALUE x FROM (SELECT VALUE c.a FROM c) x ORDER BY x.b");
    check("SELECT * FROM c ORDER BY c", "2206", UNMAPPED);
}

#[test]
fn groups_are_sorted_by_their_keys() {
    accepts("SELECT c.a, COUNT(1) FROM c GROUP BY c.a ORDER BY c.a DESC");
    accepts("SELECT VALUE MAX(c.n) FROM c JOIN t IN c.tags GROUP BY c.a, c.o ORDER BY c.o.x, c[\"a\"]");
    check("SELECT c.a FROM c GROUP BY c.a ORDER BY c.b", "SC2103", "'c.b' is invalid in the ORDER BY clause");
    check("SELECT UPPER(c.a) FROM c GROUP BY UPPER(c.a) ORDER BY UPPER(c.a)", "2206", "document path.");
    let joined = parse_and_check("SELECT t FROM c JOIN t IN c.tags GROUP BY t ORDER BY t").unwrap_err().to_string();
    assert!(joined.contains("Order-by over correlated collections is not supported."), "{joined}");
}

#[test]
fn counts_are_integers() {
    const TOP: &str = "The count value provided for a TOP clause must be an integer.";
    check("SELECT TOP 1.5 * FROM c", "SC2060", TOP);
    check("SELECT TOP 4294967296 * FROM c", "SC2060", TOP);
    check_at("SELECT TOP 4294967296 * FROM c", "SC2060", "4294967296");
    check(
        "SELECT * FROM c OFFSET 4294967296 LIMIT 1",
        "SC2062",
        "The OFFSET count value exceeds the maximum allowed value.",
    );
    check(
        "SELECT * FROM c OFFSET 1 LIMIT 4294967296",
        "SC2061",
        "The LIMIT count value exceeds the maximum allowed value.",
    );
    check("SELECT * FROM c OFFSET 0.5 LIMIT 1", "SC2062", "must be an integer");
    check("SELECT TOP 1 * FROM c OFFSET 0 LIMIT 1", "", "TOP cannot be combined with OFFSET LIMIT");
}

#[test]
fn count_parameters_are_integers() {
    let parameters = |text: &str| Parameters::from_value(Some(&json::parse(text.as_bytes()).unwrap())).unwrap();
    let check = |text: &str, given: &str| check_parameters(&parse(text).unwrap(), &parameters(given), text);
    let message = |text: &str, given: &str| check(text, given).expect_err(text).to_string();
    assert!(message("SELECT TOP @n 1", "[]").contains("SC2060"));
    assert!(message("SELECT TOP @n 1", r#"[{"name": "@n", "value": "5"}]"#).contains("SC2060"));
    assert!(message("SELECT TOP @n 1", r#"[{"name": "@n", "value": -1}]"#).contains("SC2060"));
    assert!(check("SELECT TOP @n @n, @u", r#"[{"name": "@n", "value": 5}, {"name": "@u"}]"#).is_ok());
    let paged = parse("SELECT 1 OFFSET @o LIMIT 3").unwrap();
    let found = counts(&paged, &parameters(r#"[{"name": "@o", "value": 7.0}]"#)).unwrap();
    assert_eq!((found.top, found.offset_limit), (None, Some((7, 3))));
}

#[test]
fn join_and_user_function_limits_are_exact() {
    let joins =
        |n: usize| format!("SELECT 1 FROM c{}", (0..n).map(|i| format!(" JOIN x{i} IN c.a")).collect::<String>());
    accepts(&joins(JOINS_MAX));
    check(&joins(JOINS_MAX + 1), "", "more than 10 JOINs");
    let calls = |n: usize| format!("SELECT {}", (0..n).map(|i| format!("udf.f{i}(1)")).collect::<Vec<_>>().join(", "));
    accepts(&calls(USER_FUNCTIONS_MAX));
    check(&calls(USER_FUNCTIONS_MAX + 1), "SC3005", "The allowed limit is 10.");
    accepts(&format!("SELECT {}", ["udf.f(1)"; 30].join(", ")));
}

#[test]
fn text_and_nesting_limits_are_exact() {
    let padded = |bytes: usize| format!("SELECT 1{}", " ".repeat(bytes - 8));
    accepts(&padded(TEXT_BYTES_MAX));
    let error = parse_and_check(&padded(TEXT_BYTES_MAX + 1)).unwrap_err();
    assert!(error.to_string().contains("the limit is 524288"), "{error:?}");
    let nested = |levels: usize| format!("SELECT VALUE {}1{}", "(".repeat(levels), ")".repeat(levels));
    accepts(&nested(NESTING_MAX - 1));
    check(&nested(NESTING_MAX), "", "nests deeper than 256 levels");
}

#[test]
fn order_by_vector_distance_takes_no_direction() {
    accepts("SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.v, [1, 2])");
    accepts("SELECT TOP 1 c.id FROM c ORDER BY _VectorScore(c.v, @v, true, {'dataType': 'Int8'})");
    for direction in ["ASC", "DESC"] {
        check(
            &format!("SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.v, [1, 2]) {direction}"),
            "",
            "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.",
        );
    }
    check("SELECT * FROM c ORDER BY c.a, VectorDistance(c.v, [1, 2])", "2206", "document path");
    let options = |options: &str| format!("SELECT VALUE VectorDistance(c.v, [1], false, {options}) FROM c");
    for (wrong, message) in [
        (
            r#"{"notAValidFieldName": "dotproduct"}"#,
            "'notAValidFieldName' is not a valid option name for VectorDistance function options argument.",
        ),
        (
            r#"{"distanceFunction": "x"}"#,
            "VectorDistance function options argument property value 'x' is not a valid value for option 'distanceFunction'.",
        ),
    ] {
        check(&options(wrong), "SC2210", message);
        check_at(&options(wrong), "SC2210", wrong);
    }
    accepts(&options("{'distanceFunction': @f, 'dataType': 'Int8'}"));
    check(
        "SELECT VALUE VectorDistance(c.v) FROM c",
        "SC2050",
        "The VECTORDISTANCE function requires 2 to 4 argument(s).",
    );
    check(
        "SELECT * FROM c WHERE EXISTS(SELECT 1 FROM t IN c.t ORDER BY VectorDistance(t.v, [1]))",
        "SC2202",
        "subqueries",
    );
}

#[test]
fn full_text_functions() {
    accepts("SELECT FullTextContains(c.t, 'a') FROM c WHERE FullTextContainsAny(c.t, 'a', @b)");
    check("SELECT FullTextContains(c.t) FROM c", "SC2050", "The FULLTEXTCONTAINS function requires 2 argument(s).");
    check("SELECT FullTextContainsAll(c.t) FROM c", "SC2050", "requires at least 2 argument(s).");
    let elsewhere = "SELECT FullTextScore(c.t, 'a') FROM c";
    check(elsewhere, "SC2240", "The FullTextScore function is only allowed in the ORDER BY RANK clause.");
    check_at(elsewhere, "SC2240", "FullTextScore(c.t, 'a')");
    check("SELECT * FROM c WHERE RRF(c.a, c.b) > 1", "SC2005", "'RRF' is not a recognized built-in function name.");
    let fused = "SELECT * FROM c WHERE RRF(FullTextScore(c.a, 'x'), RRF(c.n, FullTextScore(c.b, 'y'))) > 0";
    let want = [
        ("SC2240", "FullTextScore(c.a, 'x')"),
        ("SC2240", "FullTextScore(c.b, 'y')"),
        ("SC2005", "RRF"),
        ("SC2005", "RRF"),
    ];
    assert_eq!(codes_and_texts(fused), want.map(|(code, at)| (code.to_owned(), at)));
}

#[test]
fn order_by_rank_rules() {
    accepts("SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, 'a')");
    accepts(
        "SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore(c.t.u, @a, 'b'), VectorDistance(c.v, [1, 2]), [-1, 2.5])",
    );
    accepts("SELECT * FROM c ORDER BY _FullTextScore(c.t, ['a'], 1, 2, [3]) DESC");
    accepts("SELECT * FROM c ORDER BY _VectorScore(c.v, [1]) DESC");
    check(
        "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.t, 'a') DESC",
        "",
        "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.",
    );
    check("SELECT * FROM c ORDER BY RANK ABS(c.n)", "SC2221", "VectorDistance and/or a FullTextScore");
    check_at("SELECT * FROM c ORDER BY RANK ABS(c.n)", "SC2221", "ORDER BY RANK ABS(c.n)");
    for few in ["RRF(FullTextScore(c.t, 'a'))", "RRF()", "RRF(FullTextScore(c.t, 'a'), [1])", "RRF(c.n)"] {
        let text = format!("SELECT * FROM c ORDER BY RANK {few} OFFSET 0 LIMIT 1");
        check(&text, "SC2221", "VectorDistance and/or a FullTextScore function call. RRF takes two or more");
        check_at(&text, "SC2221", &format!("ORDER BY RANK {few}"));
    }
    let nested = "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), RRF(FullTextScore(c.t, 'b'), c.n))";
    check(nested, "SC2005", "'RRF' is not a recognized built-in function name.");
    let weights = |weights: &str| {
        format!("SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'), {weights})")
    };
    accepts(&weights("[1, 2]"));
    accepts(&weights("@w"));
    for wrong in ["[1]", "[1, 2, 3]", "[1, 'a']", "7"] {
        check(&weights(wrong), "SC2229", "literal array of numbers");
    }
    let fused = |count: usize| {
        let scores = vec!["FullTextScore(c.t, 'a')"; count].join(", ");
        format!("SELECT * FROM c ORDER BY RANK RRF({scores})")
    };
    accepts(&fused(100));
    check(&fused(101), "", "at most 100 component scores");
    let terms =
        |count: usize| format!("SELECT * FROM c ORDER BY RANK FullTextScore(c.t, {})", vec!["'a'"; count].join(", "));
    accepts(&terms(30));
    check(&terms(31), "", "at most 30 search terms");
    let score = "ORDER BY RANK FullTextScore(c.t, 'a')";
    let unnested = format!("SELECT * FROM c IN c.list {score}");
    check(&unnested, "SC2223", "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.");
    check_at(&unnested, "SC2223", "c IN c.list");
    let joined = format!("SELECT c FROM root c JOIN x IN c.list {score}");
    check(&joined, "SC2224", "The JOIN operator is not allowed with the ORDER BY RANK clause.");
    let want = [("SC2224", "root c JOIN x IN c.list"), ("SC2223", "x IN c.list")];
    assert_eq!(codes_and_texts(&joined), want.map(|(code, at)| (code.to_owned(), at)));
    let derived = format!("SELECT * FROM (SELECT TOP 1 VALUE c FROM c) AS c {score}");
    check(&derived, "SC2225", "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.");
    let want = [("SC2225", "(SELECT TOP 1 VALUE c FROM c)"), ("SC2203", "TOP 1")];
    assert_eq!(codes_and_texts(&derived), want.map(|(code, at)| (code.to_owned(), at)));
    check(&format!("SELECT DISTINCT c.a FROM c {score}"), "", "DISTINCT");
    check(&format!("SELECT VALUE COUNT(1) FROM c {score}"), "", "aggregate");
    check("SELECT * FROM c ORDER BY RANK FullTextScore('text', 'a')", "", "property of the item");
    check("SELECT * FROM c ORDER BY RANK FullTextScore(d.t, 'a')", "SC2001", "'d'");
}
