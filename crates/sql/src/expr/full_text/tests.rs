use pleiad_model::env::ManualEnv;
use pleiad_model::json;

use crate::Parameters;

/// Checks the values of an expression over one item, as JSON.
#[track_caller]
fn check(item: &str, expr: &str, want: &str) {
    let item = json::parse(item.as_bytes()).unwrap();
    let query = crate::parse(&format!("SELECT VALUE {expr} FROM c")).unwrap_or_else(|error| panic!("{expr}: {error}"));
    let rows = query.run_over(&Parameters::default(), &ManualEnv::default(), [&item].into_iter()).unwrap();
    let rows: Vec<_> = rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
    assert_eq!(rows.join(" "), want, "{expr}");
}

const BIKE: &str = r#"{"id":"1","t":"The Red Bicycles were running; a red one fell.","n":7,"word":"BICYCLE"}"#;

#[test]
fn contains() {
    check(BIKE, "FullTextContains(c.t, 'bicycle')", "true");
    check(BIKE, "FULLTEXTCONTAINS(c.t, 'Red Bicycles')", "true");
    check(BIKE, "FullTextContains(c.t, 'bicycle red')", "false");
    check(BIKE, "FullTextContains(c.t, 'blue')", "false");
    check(BIKE, "FullTextContainsAll(c.t, 'run', 'red', 'fell')", "true");
    check(BIKE, "FullTextContainsAll(c.t, 'run', 'blue')", "false");
    check(BIKE, "FullTextContainsAny(c.t, 'blue', 'run')", "true");
    check(BIKE, "FullTextContainsAny(c.t, 'blue', 'green')", "false");
    check(BIKE, "FullTextContains('red wine', 'wine')", "true");
}

#[test]
fn phrases_are_limited_to_a_hundred_words() {
    let phrase = |words: usize| format!("FullTextContains(c.t, '{}')", vec!["red"; words].join(" "));
    check(BIKE, &phrase(100), "false");
    let query = crate::parse(&format!("SELECT VALUE {} FROM c", phrase(101))).unwrap();
    let item = json::parse(BIKE.as_bytes()).unwrap();
    let error = query.run_over(&Parameters::default(), &ManualEnv::default(), [item].iter()).unwrap_err();
    assert!(error.to_string().contains("at most 100 words"), "{error}");
}

#[test]
fn computed_terms() {
    check(BIKE, "FullTextContains(c.t, c.word)", "true");
    check(BIKE, "FullTextContains(c.t, c.missing)", "");
    check(BIKE, "FullTextContains(c.t, c.n)", "");
}

#[test]
fn fuzzy_terms() {
    check(BIKE, "FullTextContains(c.t, {'term': 'bycicle', 'distance': 2})", "true");
    check(BIKE, "FullTextContains(c.t, {'term': 'bycicle', 'distance': 1})", "false");
    check(BIKE, "FullTextContainsAny(c.t, 'blue', {'term': 'rad', 'distance': 1})", "true");
    check(BIKE, "FullTextContains(c.t, {'term': 'red'})", "true");
    check(BIKE, "FullTextContains(c.t, {'word': 'red'})", "");
    let query = crate::parse("SELECT VALUE FullTextContains(c.t, {'term': 'red', 'distance': 3}) FROM c").unwrap();
    let error = query.run_over(&Parameters::default(), &ManualEnv::default(), [].into_iter()).unwrap_err();
    assert!(error.to_string().contains("from 0 to 2"), "{error}");
}

#[test]
fn non_string_values_are_undefined() {
    check(BIKE, "FullTextContains(c.n, '7')", "");
    check(BIKE, "FullTextContains(c.missing, 'red')", "");
    check(BIKE, "FullTextContains(c.t, 7)", "");
    check(BIKE, "FullTextContains(c.t, null)", "");
    check(BIKE, "NOT FullTextContains(c.t, 'blue')", "true");
}

#[test]
fn internal_functions_of_query_plans() {
    check(BIKE, "_FullTextWordCount(c.t)", "5");
    check(BIKE, "_FullTextWordCount(c.n)", "0");
    // Four texts with eight words on average; this one has five, with "red" twice. One other text contains "red".
    let rarity = (1.0f64 + 2.5 / 2.5).ln();
    let want = rarity * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 5.0 / 8.0));
    check(BIKE, &format!("ABS(_FullTextScore(c.t, ['red'], 4, 32, [2]) - {want}) < 1e-12"), "true");
    check(BIKE, "_FullTextScore(c.t, ['blue'], 4, 32, [0])", "0");
    check(BIKE, "_FullTextScore(c.n, ['red'], 4, 32, [2])", "");
}
