//! Which operation a request asks for, and how its headers become options.

use super::*;
use crate::nosql::address;
use crate::nosql::http::testing;
use pleiad_engine::SessionToken;

const DOCS: &str = "/dbs/d/colls/c/docs";
const ONE: &str = "/dbs/d/colls/c/docs/1";

fn kind_of(method: Method, path: &str, headers: &[(&str, &str)]) -> OperationKind {
    let (parts, address) = (testing::request_parts(&method, path, headers), address::parse(path).unwrap());
    testing::decode(&parts, &address).kind
}

/// Decodes a read of an item with these headers and passes its options on.
fn with_options<T>(headers: &[(&str, &str)], check: impl FnOnce(&OperationOptions<'_>) -> T) -> T {
    let (parts, address) = (testing::request_parts(&Method::GET, ONE, headers), address::parse(ONE).unwrap());
    check(&testing::decode(&parts, &address).options)
}

#[test]
fn method_address_and_headers_decide_the_kind() {
    use OperationKind as K;
    type Headers = &'static [(&'static str, &'static str)];
    let none: Headers = &[];
    let cases: [(Method, &str, Headers, K); 23] = [
        (Method::GET, "/", none, K::Read),
        (Method::GET, ONE, none, K::Read),
        (Method::GET, DOCS, none, K::List),
        (Method::GET, DOCS, &[("a-im", "Incremental Feed")], K::ChangeFeed),
        (Method::GET, "/dbs/d/colls/c/pkranges", &[("a-im", "Incremental Feed")], K::List),
        (Method::POST, DOCS, none, K::Create),
        (Method::POST, DOCS, &[("x-ms-documentdb-is-upsert", "True")], K::Upsert),
        (Method::POST, DOCS, &[("x-ms-documentdb-isquery", "true")], K::Query),
        (Method::POST, DOCS, &[("content-type", "application/query+json; charset=utf-8")], K::Query),
        (Method::POST, DOCS, &[("content-type", "application/sql")], K::Query),
        (Method::POST, DOCS, &[("content-type", "application/json")], K::Create),
        (Method::POST, DOCS, &[("x-ms-cosmos-is-query-plan-request", "True")], K::QueryPlan),
        (Method::POST, DOCS, &[("x-ms-cosmos-is-batch-request", "True")], K::Batch),
        (Method::POST, "/dbs/d/colls/c/sprocs/s", &[("x-ms-documentdb-isquery", "true")], K::Execute),
        (Method::POST, "/dbs/d/colls/c/operations/partitionkeydelete", none, K::DeleteByPartitionKey),
        (Method::POST, "/dbs/d/colls/c/operations/other", none, K::NotAllowed),
        (Method::PUT, ONE, none, K::Replace),
        (Method::PATCH, ONE, none, K::Patch),
        (Method::DELETE, ONE, none, K::Delete),
        (Method::PUT, DOCS, none, K::NotAllowed),
        (Method::DELETE, DOCS, none, K::NotAllowed),
        (Method::HEAD, ONE, none, K::NotAllowed),
        (Method::OPTIONS, DOCS, none, K::NotAllowed),
    ];
    for (method, path, headers, expected) in cases {
        assert_eq!(kind_of(method.clone(), path, headers), expected, "{method} {path} {headers:?}");
    }
}

#[test]
fn a_read_only_key_is_sufficient_for_reads_only() {
    assert!(is_read(&Method::HEAD, OperationKind::NotAllowed) && is_read(&Method::POST, OperationKind::Query));
    assert!(!is_read(&Method::POST, OperationKind::Execute) && !is_read(&Method::DELETE, OperationKind::NotAllowed));
}

#[test]
fn headers_become_typed_options() {
    let headers = [
        ("x-ms-documentdb-partitionkey", r#"["a"]"#),
        ("x-ms-documentdb-partitionkeyrangeid", "n7AmAPTJ480=,3"),
        ("x-ms-session-token", "3:-1#812"),
        ("x-ms-max-item-count", "-1"),
        ("x-ms-consistency-level", "eventual"),
        ("x-ms-cosmos-priority-level", "Low"),
        ("prefer", "respond-async, return=minimal"),
        ("if-modified-since", "Mon, 16 Nov 2026 03:20:00 UTC"),
        ("user-agent", "azsdk-python-cosmos/4.9.0"),
        ("x-forwarded-proto", "https, http"),
        ("host", "db.example:443"),
    ];
    with_options(&headers, |options| {
        assert_eq!(options.partition_key.get().unwrap(), Some(&PartitionKey::parse(r#"["a"]"#).unwrap()));
        assert_eq!(options.range_id.get().unwrap(), Some(&3));
        assert_eq!(options.session_token.get().unwrap(), Some(&SessionToken(vec![(3, 812)])));
        assert_eq!(options.page_size.get().unwrap(), Some(&PageRows::Dynamic));
        let level = RequestedConsistency::Level(Consistency::Eventual);
        assert_eq!(options.consistency.get().unwrap(), Some(&level));
        assert_eq!(options.priority.get().unwrap(), Some(&Priority::Low));
        assert!(options.minimal_reply && options.sdk == Sdk::Python);
        assert_eq!(options.since_s.get().unwrap(), Some(&1_794_799_200));
        assert_eq!((options.endpoint.scheme, &*options.endpoint.host), ("https", "db.example:443"));
    });
}

#[test]
fn forwarding_headers_count_only_if_the_peer_is_a_trusted_proxy() {
    let forwarded = [("x-forwarded-proto", "https"), ("x-forwarded-host", "evil.example"), ("host", "db.example")];
    let parts = testing::request_parts(&Method::GET, "/", &forwarded);
    let (address, local) = (address::parse("/").unwrap(), std::net::SocketAddr::from(([127, 0, 0, 1], 8081)));
    let endpoint = |from_proxy| {
        let origin = ConnectionOrigin { secure: false, local, peer: local };
        let Endpoint { scheme, host } = decode(&parts, &address, &origin, from_proxy).options.endpoint;
        format!("{scheme}://{host}")
    };
    assert_eq!([true, false].map(endpoint), ["https://evil.example", "http://db.example"]);
}

#[test]
fn a_malformed_option_is_an_error_when_it_is_used() {
    let headers = [("x-ms-max-item-count", "many"), ("x-ms-start-epk", "zz"), ("x-ms-offer-throughput", "lots")];
    with_options(&headers, |options| {
        assert!(options.page_size.get().unwrap_err().to_string().contains("PageSize many"));
        assert!(options.epk_range.get().is_err() && options.throughput.get().is_err());
        assert!(options.partition_key.get().unwrap().is_none());
    });
}

#[test]
fn of_a_header_that_occurs_twice_the_first_counts() {
    let headers = [("x-ms-max-item-count", "7"), ("x-ms-max-item-count", "9")];
    with_options(&headers, |options| assert_eq!(options.page_size.get().unwrap(), Some(&PageRows::AtMost(7))));
}

#[test]
fn a_read_strategy_takes_precedence_over_a_level() {
    let asked = |strategy, level| {
        let headers = [("x-ms-cosmos-read-consistency-strategy", strategy), ("x-ms-consistency-level", level)];
        with_options(&headers, |options| options.consistency.get().map(|found| found.copied()))
    };
    let strategy = RequestedConsistency::Strategy(ReadStrategy::LatestCommitted);
    assert_eq!(asked("LatestCommitted", "Eventual").unwrap(), Some(strategy));
    let level = RequestedConsistency::Level(Consistency::Eventual);
    assert_eq!(asked("Default", "Eventual").unwrap(), Some(level));
    assert!(asked("Sometimes", "").is_err() && asked("", "Sometimes").is_err());
    assert_eq!(asked("", "").unwrap(), None);
}
