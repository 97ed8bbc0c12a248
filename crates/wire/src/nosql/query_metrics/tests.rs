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
    let text = decoded(&index_utilization(&report, 0));
    assert!(text.contains(r#""UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/a/?","#), "{text}");
    assert!(text.contains(r#""PotentialCompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"],"#), "{text}");
    assert!(index_utilization_v2(&report, 0).starts_with("%7B%22UtilizedIndexes%22%3A"));
}

/// A header that a client cannot read fails its query: entries beyond the limit are dropped.
#[test]
fn index_metrics_stay_within_the_header_limit() {
    let long = format!("/{}/?", "x".repeat(250));
    let single = (0..128).map(|at| index(&[&format!("/{at}{long}")], at % 2 == 0)).collect();
    let report = QueryReport { single, composite: vec![index(&[long.as_str(); 8], false)], ..QueryReport::default() };
    for token_bytes in [0, 8 << 10] {
        let bytes_max = INDEXES_BYTES_MAX - token_bytes;
        for header in [index_utilization(&report, token_bytes), index_utilization_v2(&report, token_bytes)] {
            assert!((4 << 10..=bytes_max).contains(&header.len()), "{}", header.len());
        }
    }
    let text = decoded(&index_utilization(&report, 0));
    assert!(text.contains("/0/xxx") && text.contains(r#""PotentialCompositeIndexes":[]"#));
}

/// The service lists a name of 10,000 characters in full.
#[test]
fn long_names_are_listed() {
    let name = "a".repeat(10_000);
    let report = QueryReport { single: vec![index(&[&format!("/{name}/?")], true)], ..QueryReport::default() };
    for header in [decoded(&index_utilization(&report, 0)), index_utilization_v2(&report, 0)] {
        assert!(header.contains(&name));
    }
    let single = vec![index(&[&format!("/{name}/?")], true), index(&["/b/?"], true)];
    let composite = vec![index(&[&format!("/{name} ASC"), &format!("/x/{}", "é".repeat(1 << 20))], false)];
    let text = decoded(&index_utilization(&QueryReport { single, composite, ..QueryReport::default() }, 0));
    for spec in
        [format!("\"/{}…/?\"", "a".repeat(255)), "\"/b/?\"".to_owned(), "a… ASC\"".to_owned(), "é…\"".to_owned()]
    {
        assert!(text.contains(&spec), "{spec}: {text}");
    }
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
    let rule = |rule, parameters: &[&str]| Advice {
        rule,
        parameters: parameters.iter().map(|name| (*name).to_owned()).collect(),
    };
    let report = QueryReport { advice: vec![rule("QA1002", &[]), rule("PL1000", &["@min"])], ..QueryReport::default() };
    let text = percent_encoding::percent_decode_str(&advice(&report)).decode_utf8().unwrap().into_owned();
    assert_eq!(text, r#"[{"Id":"QA1002","Params":[]},{"Id":"PL1000","Params":["@min"]}]"#);
}

/// Regardless of the number of result rows: one of four loaded items passed the filter.
#[test]
fn the_utilization_ratio_counts_items() {
    let report = QueryReport { items: 4, items_matched: 1, rows: 3, ..QueryReport::default() };
    assert!(metrics(&report, Duration::ZERO, Duration::ZERO).ends_with("indexUtilizationRatio=0.25"));
    assert!(metrics(&QueryReport::default(), Duration::ZERO, Duration::ZERO).ends_with("indexUtilizationRatio=1.00"));
}

fn times(header: &str) -> Vec<(String, f64)> {
    let times = header.split(';').filter_map(|pair| pair.split_once("InMs="));
    times.map(|(name, ms)| (name.to_owned(), ms.parse().unwrap())).collect()
}

/// Clients subtract the parts from the whole, and report preparation and run times.
#[test]
fn times_are_never_zero_and_add_up() {
    let us = Duration::from_micros;
    let slow = QueryReport {
        compiling: us(400),
        looking_up: us(2_000),
        loading: us(9_000),
        calling: us(10),
        ..QueryReport::default()
    };
    let short = QueryReport { compiling: us(1), looking_up: us(2), loading: us(1), ..QueryReport::default() };
    for (report, took, wrote) in [(&slow, us(5_000), us(70)), (&slow, us(50_000), us(70)), (&short, us(9), us(1))] {
        let header = metrics(report, took, wrote);
        let times = times(&header);
        let ms = |wanted: &str| times.iter().find(|(name, _)| name == wanted).unwrap().1;
        let prepared =
            ["queryCompileTime", "queryLogicalPlanBuildTime", "queryPhysicalPlanBuildTime", "queryOptimizationTime"];
        let parts = ["indexLookupTime", "documentLoadTime", "writeOutputTime"];
        assert!(prepared.iter().chain(&parts).all(|name| ms(name) > 0.0), "{header}");
        let engine_ms = ms("VMExecutionTime") - parts.iter().map(|name| ms(name)).sum::<f64>();
        assert!(engine_ms > 0.005, "{header}");
        let all_ms = ms("VMExecutionTime") + prepared.iter().map(|name| ms(name)).sum::<f64>();
        assert!(ms("totalExecutionTime") > all_ms - 0.005, "{header}");
    }
    assert!(metrics(&slow, us(50_000), us(70)).starts_with("totalExecutionTimeInMs=50.00;queryCompileTimeInMs=0.37;"));
    assert!(metrics(&slow, us(50_000), us(70)).contains(";VMExecutionTimeInMs=49.60;indexLookupTimeInMs=2.00;"));
}
