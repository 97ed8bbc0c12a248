//! Queries, and the rules that they match.

use super::*;
use crate::check;

#[track_caller]
fn meets(text: &str, rules: &[&str]) {
    assert_eq!(advice(&check::read(text).unwrap()), rules, "{text}");
}

#[test]
fn each_rule_names_a_pattern() {
    meets("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, {\"a\": 1}, true)", &["QA1000"]);
    meets("SELECT DISTINCT c.id FROM c JOIN t IN c.tags WHERE t = 'x'", &["QA1001"]);
    meets("SELECT * FROM c WHERE CONTAINS(c.s, 'x')", &["QA1002"]);
    meets("SELECT * FROM c WHERE StartsWith(c.s, 'x', true)", &["QA1003"]);
    meets("SELECT * FROM c WHERE StringEquals(c.s, 'x', true)", &["QA1003"]);
    meets("SELECT * FROM c WHERE ENDSWITH(c.s, 'x', true)", &["QA1004"]);
    meets("SELECT COUNT(1) AS n FROM c GROUP BY LOWER(c.s)", &["QA1005"]);
    meets("SELECT * FROM c WHERE UPPER(c.s) = 'X'", &["QA1006"]);
    meets("SELECT * FROM c WHERE LOWER(c.s) IN ('x', 'y')", &["QA1006"]);
    meets("SELECT * FROM c WHERE c.at < GetCurrentDateTime()", &["QA1007"]);
    meets("SELECT * FROM c WHERE c.at < GetCurrentTicks()", &["QA1008"]);
    meets("SELECT * FROM c WHERE c.at < GetCurrentTimestamp()", &["QA1009"]);
}

#[test]
fn what_is_near_to_a_pattern_meets_no_rule() {
    meets("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')", &[]);
    meets("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x', false)", &[]);
    meets("SELECT DISTINCT c.id FROM c", &[]);
    meets("SELECT c.id FROM c JOIN t IN c.tags", &[]);
    meets("SELECT * FROM c WHERE STARTSWITH(c.s, 'x') AND ENDSWITH(c.s, 'y', false) AND StringEquals(c.s, 'z')", &[]);
    meets("SELECT c.a.b, COUNT(1) AS n FROM c GROUP BY c.a.b, c[\"s\"]", &[]);
    meets("SELECT UPPER(c.s) FROM c WHERE c.s = UPPER('x') AND c.t = LOWER(@t)", &[]);
    meets("SELECT GetCurrentDateTime() AS now, c.id FROM c WHERE c.at < GetCurrentTimestampStatic()", &[]);
}

#[test]
fn several_rules_come_in_order_and_once() {
    let text = "SELECT VALUE c.id FROM c WHERE c.at < GetCurrentTicks() AND (CONTAINS(c.a, 'x') OR CONTAINS(c.b, 'x')) \
                AND EXISTS(SELECT VALUE t FROM t IN c.tags WHERE LOWER(t) = 'x' AND t != GetCurrentDateTime())";
    meets(text, &["QA1002", "QA1006", "QA1007", "QA1008"]);
    meets("SELECT VALUE (SELECT DISTINCT VALUE u FROM t IN c.tags JOIN u IN t) FROM c", &["QA1001"]);
}
