//! Clients can read the headers, whatever the query contains.

use super::*;

fn index(specs: &[&str], utilized: bool) -> IndexMetric {
    let specs = specs.iter().map(|spec| (*spec).to_owned()).collect();
    IndexMetric { specs, utilized, precise: true, impact_is_high: true }
}

fn decoded(header: &str) -> String {
    String::from_utf8(STANDARD.decode(header).unwrap()).unwrap()
}

#[test]
fn index_metrics_list_utilized_and_potential_indexes() {
    let report = QueryReport {
        single: vec![index(&["/a/?"], true), index(&["/b/?"], false)],
        composite: vec![index(&["/a ASC", "/b DESC"], false)],
        ..QueryReport::default()
    };
    let text = decoded(&index_utilization(&report));
    assert!(text.contains(r#""UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/a/?","#), "{text}");
    assert!(text.contains(r#""PotentialCompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"],"#), "{text}");
    assert!(index_utilization_v2(&report).starts_with("%7B%22UtilizedIndexes%22%3A"));
}

/// A header that a client cannot read fails its query: entries beyond the limit are dropped.
#[test]
fn index_metrics_stay_within_the_header_limit() {
    let long = format!("/{}/?", "x".repeat(500));
    let single = (0..64).map(|at| index(&[&format!("/{at}{long}")], at % 2 == 0)).collect();
    let report = QueryReport { single, composite: vec![index(&[long.as_str(); 8], false)], ..QueryReport::default() };
    for header in [index_utilization(&report), index_utilization_v2(&report)] {
        assert!((4 << 10..=INDEXES_BYTES_MAX).contains(&header.len()), "{}", header.len());
    }
    let text = decoded(&index_utilization(&report));
    assert!(text.contains("/0/xxx") && text.contains(r#""PotentialCompositeIndexes":[]"#));
    let enormous = QueryReport { single: vec![index(&[&"x".repeat(1 << 20)], true)], ..QueryReport::default() };
    assert!(decoded(&index_utilization(&enormous)).starts_with(r#"{"UtilizedSingleIndexes":[]"#));
}

#[test]
fn a_plan_is_ascii() {
    let access_paths = vec![("index /\"é x\"/?".to_owned(), 1), ("scan".to_owned(), 2)];
    let report = QueryReport { access_paths, ..QueryReport::default() };
    assert_eq!(plan(&report), r#"index /"\u{e9} x"/? on 1 partition; scan on 2 partitions"#);
    let access_paths = vec![("x".repeat(1 << 20), 1)];
    assert_eq!(plan(&QueryReport { access_paths, ..QueryReport::default() }).len(), PLAN_BYTES_MAX);
}

/// In the form that the Python SDK parses.
#[test]
fn advice_is_a_list_of_rules() {
    let report = QueryReport { advice: vec!["QA1002", "QA1009"], ..QueryReport::default() };
    let text = percent_encoding::percent_decode_str(&advice(&report)).decode_utf8().unwrap().into_owned();
    assert_eq!(text, r#"[{"Id":"QA1002","Params":[]},{"Id":"QA1009","Params":[]}]"#);
}

/// Regardless of the number of result rows: one of four loaded items passed the filter.
#[test]
fn the_utilization_ratio_counts_items() {
    let report = QueryReport { items: 4, items_matched: 1, rows: 3, ..QueryReport::default() };
    assert!(metrics(&report, Duration::ZERO, Duration::ZERO).ends_with("indexUtilizationRatio=0.25"));
    assert!(metrics(&QueryReport::default(), Duration::ZERO, Duration::ZERO).ends_with("indexUtilizationRatio=1.00"));
}
