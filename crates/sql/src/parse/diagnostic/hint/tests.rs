use crate::parse::parse;

#[track_caller]
fn check(text: &str, part: &str) {
    let diagnostic = parse(text).expect_err(text);
    let hint = diagnostic.hint.unwrap_or_default();
    assert!(hint.contains(part), "{text}: {hint:?}");
}

#[test]
fn habits_from_other_dialects() {
    check("SELECT * FROM c WHERE c.a == 1", "one '='");
    check("SELECT * FROM c WHERE c.a && c.b", "Write AND");
    check("SELECT * FROM c WHERE !c.a", "Write NOT");
    check("SELECT * FROM c;", "without a semicolon");
    check("SELECT `name` FROM c", "c[\"name\"]");
    check("SELECT c.[name] FROM c", "c[\"name\"]");
    check("SELECT * FROM [c]", "c[\"name\"]");
    check("SELECT COUNT(*) FROM c", "COUNT(1)");
    check("SELECT c.* FROM c", "SELECT *");
    check("SELECT VALUE * FROM c", "SELECT *");
    check("SELECT *, c.a FROM c", "SELECT *");
    check("SELECT * FROM c LIMIT 10", "OFFSET 0 LIMIT 10");
    check("SELECT * FROM c OFFSET 10", "OFFSET needs LIMIT");
    check("SELECT * FROM c WHERE c.a IS NULL", "IS_NULL(c.name)");
    check("SELECT c.a IS NULL FROM c", "IS_NULL(c.name)");
    check("SELECT * FROM c JOIN d ON c.id = d.id", "JOIN x IN c.items");
    check("SELECT * FROM c x LEFT JOIN d", "JOIN x IN c.items");
    check("SELECT * FROM c GROUP BY c.a HAVING COUNT(1) > 1", "no HAVING");
    check("SELECT * FROM c UNION SELECT * FROM d", "One query at a time");
    check("SELECT CASE WHEN c.a THEN 1 END FROM c", "condition ? value : otherwise");
    check("DELETE FROM c", "only read");
    check("SELECT COUNT(DISTINCT c.a) FROM c", "SELECT DISTINCT VALUE");
    check("SELECT * FROM c WHERE c.a = $1", "begin with @");
    check("SELECT * FROM c WHERE c.a = :p", "begin with @");
    check("SELECT /* no */ 1", "--");
    check("SELECT 1 // no", "--");
    check("SELECT * FROM c WHERE c.a = “x”", "straight quotes");
}

#[test]
fn counts() {
    check("SELECT TOP -1 * FROM c", "whole number");
    check("SELECT TOP '1' * FROM c", "whole number");
    check("SELECT * FROM c OFFSET -1 LIMIT 1", "whole number");
    check("SELECT * FROM c OFFSET 0 limit (1)", "whole number");
}

#[test]
fn strings() {
    check("SELECT 'it''s'", "not doubled");
    check("SELECT * FROM c WHERE c.a = 'it''s'", "not doubled");
    check("SELECT 'open", "not closed");
}

#[test]
fn reserved_words() {
    check("SELECT c.order FROM c", "write [\"order\"]");
    check("SELECT c.a AS value FROM c", "another alias");
}

#[test]
fn the_service_s_message_comes_first() {
    let text = "SELECT * FROM c;";
    let error = parse(text).unwrap_err().into_error(text);
    let message = error.to_string();
    assert!(message.contains("\"Syntax error, incorrect syntax near ';'. A request"), "{message}");
}

#[test]
fn no_hint_without_a_known_mistake() {
    assert_eq!(parse("SELECT f(1 FROM c").unwrap_err().hint, None);
    assert_eq!(parse("SELECT * FROM c WHERE -").unwrap_err().hint, None);
}
