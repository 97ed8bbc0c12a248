//! Locations and codes in error messages.

use super::*;

#[track_caller]
fn check(text: &str, token: &str, location_json: &str) {
    let start = text.find(token).unwrap();
    let error = Diagnostic::syntax(Span { start, end: start + token.len() }, text).into_error(text);
    let error = json::parse(error.to_string().as_bytes()).unwrap();
    let location = error.get("errors").and_then(|errors| errors.as_array()?.first()?.get("location").cloned());
    assert_eq!(json::to_string(&location.unwrap()), location_json);
}

#[test]
fn locations_have_offsets_line_and_column() {
    check("SELECT * FORM c", "FORM", r#"{"start":9,"end":13,"line":1,"column":10}"#);
    check("SELECT *\nFROM c\n  WHER 1", "WHER", r#"{"start":18,"end":22,"line":3,"column":3}"#);
    check("SELECT *\r\nFORM c", "FORM", r#"{"start":10,"end":14,"line":2,"column":1}"#);
    check("SELECT *\rFORM c", "FORM", r#"{"start":9,"end":13,"line":2,"column":1}"#);
    check("SELECT '\u{1F600}' FORM c", "FORM", r#"{"start":12,"end":16,"line":1,"column":13}"#);
}

#[test]
fn a_code_of_digits_is_a_number_without_a_location() {
    let entry = |code| Diagnostic::coded(Span::default(), code, "No.").entry("");
    assert_eq!(entry("2206").get("code"), Some(&Value::from(2206_i64)));
    assert_eq!(entry("2206").get("location"), None);
    assert!(entry("SC2001").get("location").is_some());
    assert_eq!(entry("SC2001").get("code"), Some(&Value::from("SC2001")));
}

#[test]
fn reported_errors_are_limited() {
    let many = |count: usize| (0..count).map(|at| Diagnostic::plain(Span::default(), at.to_string()));
    let reported =
        |count: usize| Diagnostic::combine([Diagnostic::combine(many(count)).unwrap()]).unwrap().others.len() + 1;
    assert_eq!(
        (reported(1), reported(DIAGNOSTICS_MAX), reported(DIAGNOSTICS_MAX + 1)),
        (1, DIAGNOSTICS_MAX, DIAGNOSTICS_MAX)
    );
    assert_eq!(Diagnostic::combine(many(0)), None);
}
