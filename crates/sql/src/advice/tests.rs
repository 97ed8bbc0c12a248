//! Queries, and the rules that they match.

use super::*;
use crate::check;

#[track_caller]
fn check_advice(text: &str, rules: &[&str]) {
    let found: Vec<&str> =
        advice(&check::parse_and_check(text).unwrap(), &[]).iter().map(|advice| advice.rule).collect();
    assert_eq!(found, rules, "{text}");
}

#[test]
fn each_rule_matches_its_pattern() {
    check_advice("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, {\"a\": 1}, true)", &["QA1000"]);
    check_advice("SELECT DISTINCT c.id FROM c JOIN t IN c.tags WHERE t = 'x'", &["QA1001"]);
    check_advice("SELECT * FROM c WHERE CONTAINS(c.s, 'x')", &["QA1002"]);
    check_advice("SELECT * FROM c WHERE StartsWith(c.s, 'x', true)", &["QA1003"]);
    check_advice("SELECT * FROM c WHERE StringEquals(c.s, 'x', true)", &["QA1003"]);
    check_advice("SELECT * FROM c WHERE ENDSWITH(c.s, 'x', true)", &["QA1004"]);
    check_advice("SELECT COUNT(1) AS n FROM c GROUP BY LOWER(c.s)", &["QA1005"]);
    check_advice("SELECT * FROM c WHERE UPPER(c.s) = 'X'", &["QA1006"]);
    check_advice("SELECT * FROM c WHERE LOWER(c.s) IN ('x', 'y')", &["QA1006"]);
    check_advice("SELECT * FROM c WHERE c.at < GetCurrentDateTime()", &["QA1007"]);
    check_advice("SELECT * FROM c WHERE c.at < GetCurrentTicks()", &["QA1008"]);
    check_advice("SELECT * FROM c WHERE c.at < GetCurrentTimestamp()", &["QA1009"]);
}

#[test]
fn similar_queries_match_no_rule() {
    check_advice("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')", &[]);
    check_advice("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x', false)", &[]);
    check_advice("SELECT DISTINCT c.id FROM c", &[]);
    check_advice("SELECT c.id FROM c JOIN t IN c.tags", &[]);
    check_advice(
        "SELECT * FROM c WHERE STARTSWITH(c.s, 'x') AND ENDSWITH(c.s, 'y', false) AND StringEquals(c.s, 'z')",
        &[],
    );
    check_advice("SELECT c.a.b, COUNT(1) AS n FROM c GROUP BY c.a.b, c[\"s\"]", &[]);
    check_advice("SELECT UPPER(c.s) FROM c WHERE c.s = UPPER('x') AND c.t = LOWER(@t)", &[]);
    check_advice("SELECT GetCurrentDateTime() AS now, c.id FROM c WHERE c.at < GetCurrentTimestampStatic()", &[]);
}

#[test]
fn rules_are_sorted_and_unique() {
    let text = "SELECT VALUE c.id FROM c WHERE c.at < GetCurrentTicks() AND (CONTAINS(c.a, 'x') OR CONTAINS(c.b, 'x')) \
                AND EXISTS(SELECT VALUE t FROM t IN c.tags WHERE LOWER(t) = 'x' AND t != GetCurrentDateTime())";
    check_advice(text, &["QA1002", "QA1006", "QA1007", "QA1008"]);
    check_advice("SELECT VALUE (SELECT DISTINCT VALUE u FROM t IN c.tags JOIN u IN t) FROM c", &["QA1001"]);
}

#[test]
fn unbound_parameters_are_named() {
    let text =
        "SELECT TOP @n * FROM c WHERE CONTAINS(c.s, @s) AND EXISTS(SELECT 1 FROM t IN c.tags WHERE t = @t OR t = @s)";
    let select = check::parse_and_check(text).unwrap();
    assert_eq!(check::parameter_names(&select), ["@n", "@s", "@t"]);
    let advice = advice(&select, &["@s", "@t"]);
    let names = ["@s".to_owned(), "@t".to_owned()];
    assert_eq!(advice.iter().map(|advice| advice.rule).collect::<Vec<_>>(), ["QA1002", "PL1000"]);
    assert_eq!((advice[0].parameters.len(), advice[1].parameters.as_slice()), (0, names.as_slice()));
}
