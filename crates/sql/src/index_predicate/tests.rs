//! The index predicate of each kind of filter. `testing` shows that an index predicate never misses an item.

use pleiad_model::json;
use pleiad_model::policy::Geospatial;

use super::index_predicate;
use crate::Parameters;
use crate::check;
use crate::compile::{BindContext, compile};

const NONE: &str = "-";

fn explain(sql: &str) -> String {
    let list = json::parse(br#"[{"name":"@n","value":7},{"name":"@u"},{"name":"@list","value":[1,"a",[2]]}]"#).unwrap();
    let parameters = Parameters::from_value(Some(&list)).unwrap();
    let select = check::parse_and_check(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let bind = BindContext {
        parameters: &parameters,
        geospatial: Geospatial::Geography,
        embeddings: &[],
        full_text: None,
        started_ms: Some(0),
    };
    let block = compile(&select, sql, bind).unwrap_or_else(|error| panic!("{sql}: {error}"));
    index_predicate(&block).map_or(NONE.to_owned(), |condition| condition.to_string())
}

/// Filters of `SELECT * FROM c` and their index predicates; `-` if all items must be scanned.
#[track_caller]
fn check_filters(table: &[(&str, &str)]) {
    for (filter, want) in table {
        assert_eq!(explain(&format!("SELECT * FROM c WHERE {filter}")), *want, "{filter}");
    }
}

#[test]
fn comparisons_with_constants() {
    check_filters(&[
        ("c.a = 1", "/a = 1"),
        ("1 = c.a", "/a = 1"),
        ("c.a.b[\"c d\"] = 'x'", "/a/b/\"c d\" = \"x\""),
        ("c.a[0].b = 1", "/a/[]/b = 1"),
        ("c.a = @n + 1", "/a = 8"),
        ("c.a < 1", "/a < 1"),
        ("1 < c.a", "1 < /a"),
        ("c.a <= 'x'", "/a <= \"x\""),
        ("c.a >= null", "null <= /a"),
        ("c.a = [1]", "/a is an array"),
        ("c.a = {'x': 1}", "/a is an object"),
        ("c.a", "/a = true"),
        ("NOT c.a", "/a = false"),
        ("c.a BETWEEN 1 AND 2", "1 <= /a <= 2"),
        ("c.a IN (1, 'x', null)", "/a = 1 | /a = \"x\" | /a = null"),
    ]);
}

#[test]
fn filters_that_no_item_satisfies() {
    check_filters(&[
        ("c.a = undefined", "nothing"),
        ("c.a != undefined", "nothing"),
        ("c.a < @u", "nothing"),
        ("c.a < [1]", "nothing"),
        ("c.a > {}", "nothing"),
        ("c.a BETWEEN 1 AND 'x'", "nothing"),
        ("c.a BETWEEN null AND 5", "nothing"),
        ("c.a BETWEEN [1] AND [2]", "nothing"),
        ("c.a IN (undefined)", "()"),
        ("false", "nothing"),
        ("null", "nothing"),
        ("undefined", "nothing"),
        ("1", "nothing"),
        ("c.a = 1 AND false", "/a = 1 & nothing"),
        ("STARTSWITH(c.a, 5)", "nothing"),
    ]);
}

#[test]
fn filters_without_an_index_predicate() {
    check_filters(&[
        ("true", NONE),
        ("c.a != 1", NONE),
        ("NOT (c.a = 1)", NONE),
        ("NOT (c.a = 1 OR c.b = 1)", NONE),
        ("NOT IS_DEFINED(c.a)", NONE),
        ("c.a NOT IN (1, 2)", NONE),
        ("c.a NOT BETWEEN 1 AND 2", NONE),
        ("c.a NOT LIKE 'x%'", NONE),
        ("c.a = c.b", NONE),
        ("c.a IN (1, c.b)", NONE),
        ("c.a BETWEEN c.b AND 2", NONE),
        ("c.a BETWEEN @u AND 2", NONE),
        ("c.a + 1 = 2", NONE),
        ("(c.a ?? 1) = 1", NONE),
        ("(c.a = 1) = true", NONE),
        ("(c.a = 1) = false", NONE),
        ("IS_PRIMITIVE(c.a)", NONE),
        ("UPPER(c.a) = 'X'", NONE),
        ("CONTAINS(c.a, c.b)", NONE),
        ("ARRAY_CONTAINS(c.a, c.b)", NONE),
        ("ARRAY_LENGTH(c.a) > 1", NONE),
        ("ST_DISTANCE(c.a, c.b) < 1", NONE),
        ("ST_DISTANCE(c.a, {'type': 'Point', 'coordinates': [0, 0]}) > 1", NONE),
    ]);
}

#[test]
fn conjunctions_use_any_indexable_term_and_disjunctions_need_all() {
    check_filters(&[
        ("c.a = 1 AND c.b > 2", "/a = 1 & 2 < /b"),
        ("c.a = 1 AND c.b != 2", "/a = 1"),
        ("c.a != 1 AND c.b != 2", NONE),
        ("c.a = 1 OR c.b = 2", "/a = 1 | /b = 2"),
        ("c.a = 1 OR c.b != 2", NONE),
        ("c.a = 1 OR true", NONE),
        ("c.a = 1 OR undefined", "/a = 1 | nothing"),
        ("c.x = 1 AND (c.a = 1 OR c.b != 2)", "/x = 1"),
        ("(c.a = 1 AND c.b != 2) OR c.x = 3", "/a = 1 | /x = 3"),
        ("c.x = 1 AND (c.a = 1 OR (c.b = 2 AND c.d = 3))", "/x = 1 & (/a = 1 | (/b = 2 & /d = 3))"),
    ]);
}

#[test]
fn like_patterns_become_prefixes_equalities_or_string_tests() {
    check_filters(&[
        ("c.a LIKE 'ab%'", "/a ^ \"ab\""),
        ("c.a LIKE 'ab'", "/a = \"ab\""),
        ("c.a LIKE ''", "/a = \"\""),
        ("c.a LIKE '%b'", "/a ~ LIKE"),
        ("c.a LIKE 'a_c'", "/a ^ \"a\""),
        ("c.a LIKE 'a[bc]'", "/a ^ \"a\""),
        ("c.a LIKE '_b'", "/a ~ LIKE"),
        ("c.a LIKE 'a!%b%' ESCAPE '!'", "/a ^ \"a%b\""),
        ("c.a LIKE 'a!%' ESCAPE '!'", "/a = \"a%\""),
        ("c.a LIKE '!!%' ESCAPE '!'", "/a ^ \"!\""),
        ("c.a LIKE 'a!' ESCAPE '!'", "/a = \"a!\""),
        ("c.a LIKE 5", NONE),
        ("c.a LIKE c.b", NONE),
    ]);
}

#[test]
fn string_functions() {
    check_filters(&[
        ("STARTSWITH(c.a, 'x')", "/a ^ \"x\""),
        ("STARTSWITH(c.a, 'x', false)", "/a ^ \"x\""),
        ("STARTSWITH(c.a, 'x', true)", "/a ~ STARTSWITH"),
        ("STRINGEQUALS(c.a, 'x')", "/a = \"x\""),
        ("STRINGEQUALS(c.a, 'x', true)", "/a ~ STRINGEQUALS"),
        ("STRINGEQUALS('x', c.a)", NONE),
        ("CONTAINS(c.a, 'x')", "/a ~ CONTAINS"),
        ("ENDSWITH(c.a, 'x', true)", "/a ~ ENDSWITH"),
        ("REGEXMATCH(c.a, '^x', 'i')", "/a ~ REGEXMATCH"),
        ("LEFT(c.a, 2) = 'ab'", "/a ^ \"ab\""),
        ("SUBSTRING(c.a, 0, 2) = 'ab'", "/a ^ \"ab\""),
        ("SUBSTRING(c.a, 1, 2) = 'ab'", NONE),
    ]);
}

#[test]
fn type_checks() {
    check_filters(&[
        ("IS_DEFINED(c.a)", "/a is defined"),
        ("IS_NULL(c.a)", "/a = null"),
        ("IS_BOOL(c.a)", "/a is a boolean"),
        ("IS_NUMBER(c.a)", "/a is a number"),
        ("IS_INTEGER(c.a)", "/a is a number"),
        ("IS_STRING(c.a)", "/a is a string"),
        ("IS_ARRAY(c.a)", "/a is an array"),
        ("IS_OBJECT(c.a)", "/a is an object"),
    ]);
}

#[test]
fn arrays_and_their_elements() {
    check_filters(&[
        ("ARRAY_CONTAINS(c.t, 1)", "/t/[] = 1"),
        ("ARRAY_CONTAINS(c.t, [1])", "/t/[] is an array"),
        ("ARRAY_CONTAINS(c.t, {'a': 1, 'b': [2]}, true)", "/t/[]/a = 1 & /t/[]/b is an array & /t/[] is an object"),
        ("ARRAY_CONTAINS(c.t, {'a': 1})", "/t/[]/a = 1 & /t/[] is an object"),
        ("ARRAY_CONTAINS(['x', 1], c.a)", "/a = \"x\" | /a = 1"),
        ("ARRAY_CONTAINS(@list, c.a)", "/a = 1 | /a = \"a\" | /a is an array"),
        ("ARRAY_CONTAINS([], c.a)", "()"),
        ("ARRAY_CONTAINS_ANY(c.t, 1, 'x')", "/t/[] = 1 | /t/[] = \"x\""),
        ("ARRAY_CONTAINS_ALL(c.t, 1, 'x')", "/t/[] = 1 & /t/[] = \"x\""),
        ("EXISTS(SELECT VALUE x FROM x IN c.t WHERE x = 1)", "/t/[] = 1"),
        ("EXISTS(SELECT VALUE x FROM x IN c.t WHERE x.a > 1 AND x.b = c.b)", "1 < /t/[]/a"),
        ("EXISTS(SELECT VALUE y FROM x IN c.t JOIN y IN x.u WHERE y = 1 AND x.k = 2)", "/t/[]/u/[] = 1 & /t/[]/k = 2"),
        ("EXISTS(SELECT VALUE COUNT(1) FROM x IN c.t WHERE x = 1)", NONE),
        ("NOT EXISTS(SELECT VALUE x FROM x IN c.t WHERE x = 1)", NONE),
    ]);
    assert_eq!(explain("SELECT VALUE j FROM c JOIN j IN c.t WHERE j.a = 1 AND c.b = 2"), "/t/[]/a = 1 & /b = 2");
    assert_eq!(explain("SELECT VALUE j FROM j IN c.t WHERE j = 1"), "/t/[] = 1");
    assert_eq!(explain("SELECT VALUE j FROM c.o j WHERE j.a = 1"), "/o/a = 1");
    assert_eq!(explain("SELECT VALUE j FROM c JOIN (SELECT VALUE x FROM x IN c.t) AS j WHERE j = 1"), NONE);
}

#[test]
fn spatial_predicates() {
    let point = r#"{"type":"Point","coordinates":[0,0]}"#;
    check_filters(&[
        (&format!("ST_DISTANCE(c.l, {point}) < 5"), &format!("/l within 5 of {point}")),
        (&format!("5 >= ST_DISTANCE({point}, c.l)"), &format!("/l within 5 of {point}")),
        (&format!("ST_WITHIN(c.l, {point})"), &format!("/l within 0 of {point}")),
        (&format!("ST_INTERSECTS({point}, c.l)"), &format!("/l within 0 of {point}")),
    ]);
}
