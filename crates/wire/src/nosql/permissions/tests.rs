//! The complete matrix: every kind of permission, every scope and every operation allow exactly what the table at the
//! top of `permissions` states.

use super::*;
use crate::nosql::http::testing;
use http::Method;
use pleiad_model::partition_key::{KeyKind, KeyVersion};
use pleiad_model::path::PropertyPath;

/// A request of the matrix.
struct TestRequest {
    method: Method,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const KEY: &str = "x-ms-documentdb-partitionkey";
const QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "True");
const PLAN: (&str, &str) = ("x-ms-cosmos-is-query-plan-request", "True");
const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "True");
const A: (&str, &str) = (KEY, r#"["a"]"#);
const B: (&str, &str) = (KEY, r#"["b"]"#);

fn request(method: Method, path: &'static str, headers: &'static [(&'static str, &'static str)]) -> TestRequest {
    TestRequest { method, path, headers, body: "" }
}

/// A replace with this body.
fn replace_request(
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> TestRequest {
    TestRequest { body, ..request(Method::PUT, path, headers) }
}

fn grant(mode: &str, resource: &str, key: Option<&str>) -> PermissionScope {
    let key = key.map(|key| json::parse(key.as_bytes()).unwrap());
    let grant = PermissionGrant { mode: mode.to_owned(), resource: resource.to_owned(), key };
    check_grant(&grant).unwrap();
    PermissionScope::parse(&grant).unwrap()
}

fn is_allowed(scope: &PermissionScope, request: &TestRequest) -> bool {
    is_allowed_under(scope, request, &["/pk"], KeyKind::Hash)
}

fn is_allowed_under(scope: &PermissionScope, request: &TestRequest, paths: &[&str], kind: KeyKind) -> bool {
    let paths = paths.iter().map(|path| PropertyPath::parse(path).unwrap()).collect();
    is_allowed_in(
        scope,
        request,
        Some(&PartitionKeyDefinition { paths, kind, version: KeyVersion::V2, system_key: false }),
    )
}

fn is_allowed_in(scope: &PermissionScope, request: &TestRequest, key: Option<&PartitionKeyDefinition>) -> bool {
    let address = address::parse(request.path).unwrap();
    let parts = testing::request_parts(&request.method, request.path, request.headers);
    let mut operation = testing::decode(&parts, &address);
    operation.body = request.body.as_bytes().into();
    scope.mode != Mode::None && allows(scope, &operation, key).unwrap()
}

/// One column per scope: container, item `1` without a key, key `["a"]`, item `1` under key `["a"]`, procedure `s`, that under key
/// `["a"]`, trigger `t`. `r` is allowed in both modes, `w` in mode All, `-` in none.
fn matrix() -> Vec<(TestRequest, &'static str)> {
    use Method as M;
    const C: &str = "/dbs/d/colls/c";
    const DOCS: &str = "/dbs/d/colls/c/docs";
    const ONE: &str = "/dbs/d/colls/c/docs/1";
    const TWO: &str = "/dbs/d/colls/c/docs/2";
    vec![
        (request(M::GET, C, &[]), "rrrrrrr"),
        (request(M::PUT, C, &[]), "w------"),
        (request(M::DELETE, C, &[]), "w------"),
        (request(M::POST, C, &[]), "-------"),
        (request(M::GET, "/dbs/d/colls/c/pkranges", &[]), "rrrrrrr"),
        (request(M::POST, DOCS, &[PLAN]), "rrrrrrr"),
        (request(M::GET, ONE, &[A]), "r-rr---"),
        (request(M::GET, ONE, &[B]), "r------"),
        (request(M::GET, ONE, &[]), "r------"),
        (request(M::GET, TWO, &[A]), "r-r----"),
        (request(M::PUT, ONE, &[A]), "w-ww---"),
        (request(M::PUT, TWO, &[A]), "w-w----"),
        (request(M::PUT, ONE, &[B]), "w------"),
        (replace_request(ONE, &[A], r#"{"id":"1","pk":"a"}"#), "w-ww---"),
        (replace_request(ONE, &[A], r#"{"id":"2","pk":"a"}"#), "w-w----"),
        (replace_request("/dbs/d/colls/c/triggers/t", &[], r#"{"id":"mine"}"#), "w------"),
        (request(M::PATCH, ONE, &[A]), "w-ww---"),
        (request(M::DELETE, ONE, &[A]), "w-ww---"),
        (request(M::DELETE, TWO, &[B]), "w------"),
        (request(M::POST, DOCS, &[A]), "w-w----"),
        (request(M::POST, DOCS, &[B]), "w------"),
        (request(M::POST, DOCS, &[]), "w------"),
        (request(M::POST, DOCS, &[A, UPSERT]), "w-w----"),
        (request(M::GET, DOCS, &[]), "r------"),
        (request(M::GET, DOCS, &[A]), "r-r----"),
        (request(M::GET, DOCS, &[("a-im", "Incremental Feed")]), "r------"),
        (request(M::GET, DOCS, &[A, ("a-im", "Incremental Feed")]), "r-r----"),
        (request(M::POST, DOCS, &[QUERY]), "r------"),
        (request(M::POST, DOCS, &[A, QUERY]), "r-r----"),
        (request(M::POST, DOCS, &[B, QUERY]), "r------"),
        (request(M::GET, "/dbs/d/colls/c/sprocs", &[]), "r------"),
        (request(M::POST, "/dbs/d/colls/c/sprocs", &[A]), "w------"),
        (request(M::POST, "/dbs/d/colls/c/sprocs/s", &[A]), "w-w-ww-"),
        (request(M::POST, "/dbs/d/colls/c/sprocs/s", &[B]), "w---w--"),
        (request(M::GET, "/dbs/d/colls/c/triggers", &[]), "r------"),
        (request(M::POST, "/dbs/d/colls/c/udfs", &[]), "w------"),
        (request(M::GET, "/dbs/d/colls/c/conflicts", &[]), "r------"),
        (request(M::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[A]), "w-w----"),
        (request(M::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[B]), "w------"),
        (request(M::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[]), "w------"),
        (request(M::GET, "/dbs/d/colls/c/sprocs/s", &[]), "r---r--"),
        (request(M::PUT, "/dbs/d/colls/c/sprocs/s", &[A]), "w---w--"),
        (request(M::DELETE, "/dbs/d/colls/c/sprocs/s", &[]), "w---w--"),
        (request(M::POST, "/dbs/d/colls/c/sprocs/other", &[A]), "w-w----"),
        (request(M::GET, "/dbs/d/colls/c/triggers/t", &[]), "r-----r"),
        (request(M::PUT, "/dbs/d/colls/c/triggers/t", &[]), "w-----w"),
        (request(M::DELETE, "/dbs/d/colls/c/triggers/other", &[]), "w------"),
        (request(M::GET, "/dbs/d/colls/c/udfs/t", &[]), "r------"),
        (request(M::DELETE, "/dbs/d/colls/c/conflicts/x", &[]), "w------"),
        (request(M::GET, "/dbs/d/colls/c/docs/1/attachments", &[]), "-------"),
        (request(M::GET, "/dbs/d/users/u/permissions/p", &[]), "-------"),
        (request(M::GET, "/dbs/d/users", &[]), "-------"),
        (request(M::GET, "/dbs/d", &[]), "-------"),
        (request(M::GET, "/dbs", &[]), "-------"),
        (request(M::GET, "/offers", &[]), "-------"),
        (request(M::GET, "/dbs/d/clientencryptionkeys/k", &[]), "-------"),
    ]
}

#[test]
fn s131_every_permission_allows_exactly_what_the_table_lists() {
    let (container, item, key) = ("dbs/d/colls/c", "dbs/d/colls/c/docs/1", Some(r#"["a"]"#));
    let (procedure, trigger) = ("dbs/d/colls/c/sprocs/s", "dbs/d/colls/c/triggers/t");
    let scopes = [
        (container, None),
        (item, None),
        (container, key),
        (item, key),
        (procedure, None),
        (procedure, key),
        (trigger, None),
    ];
    for (request, by_scope) in matrix() {
        for ((resource, key), wanted) in scopes.iter().zip(by_scope.chars()) {
            let got = ["None", "Read", "All"].map(|mode| is_allowed(&grant(mode, resource, *key), &request));
            let wanted = [false, wanted == 'r', wanted != '-'];
            let TestRequest { method, path, headers, body } = &request;
            assert_eq!(
                got, wanted,
                "{method} {path} {headers:?} {body} with {resource} {key:?}, in modes None, Read, All"
            );
        }
    }
}

#[test]
fn items_must_be_addressed_in_the_form_of_the_permission() {
    let (by_rid, other) = ("/dbs/AQAAAA==/colls/AQAAAIAAAAE=/docs/AQAAAIAAAAEBAAAAAAAAAA==", "/dbs/d/colls/c/docs/1");
    let scope = grant("Read", by_rid, None);
    assert!(is_allowed(&scope, &request(Method::GET, by_rid, &[])));
    assert!(!is_allowed(&scope, &request(Method::GET, other, &[])));
    assert!(!is_allowed(&grant("Read", other, None), &request(Method::GET, by_rid, &[])));
}

/// Where all items have the same key, or none, an id identifies one item.
#[test]
fn an_item_permission_needs_a_key_where_several_items_can_have_the_id() {
    let (by_id, read) =
        (grant("Read", "dbs/d/colls/c/docs/1", None), request(Method::GET, "/dbs/d/colls/c/docs/1", &[]));
    assert!(is_allowed_in(&by_id, &read, None), "the container has no keys");
    assert!(!is_allowed(&by_id, &read), "the permission has no key");
    let migrated = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/pk").unwrap()],
        kind: KeyKind::Hash,
        version: KeyVersion::V2,
        system_key: true,
    };
    let read_missing_key = request(Method::GET, "/dbs/d/colls/c/docs/1", &[(KEY, "[]")]);
    assert!(is_allowed_in(&by_id, &read_missing_key, Some(&migrated)), "the missing key");
    let read_key = request(Method::GET, "/dbs/d/colls/c/docs/1", &[A]);
    assert!(!is_allowed_in(&by_id, &read_key, Some(&migrated)), "another key");
}

/// In a container without a partition key, a key identifies nothing.
#[test]
fn s131_a_key_permission_allows_nothing_in_a_container_without_a_key() {
    let read = request(Method::GET, "/dbs/d/colls/c/docs/1", &[A]);
    assert!(!is_allowed_in(&grant("All", "dbs/d/colls/c", Some(r#"["a"]"#)), &read, None));
    assert!(is_allowed_in(&grant("All", "dbs/d/colls/c", None), &read, None));
    let stored = PermissionGrant {
        mode: "All".to_owned(),
        resource: "dbs/d/colls/c".to_owned(),
        key: Some(Value::Array(vec![])),
    };
    assert!(check_grant(&stored).is_err());
    assert!(!is_allowed(&PermissionScope::parse(&stored).unwrap(), &read));
}

/// Some clients escape the names in a permission and some do not; a name that can be read as escaped is unescaped.
#[test]
fn names_in_permissions_may_be_escaped() {
    let may =
        |written: &str, path| is_allowed(&grant("Read", written, Some(r#"["a"]"#)), &request(Method::GET, path, &[A]));
    assert!(may("dbs/d/colls/c/docs/100%", "/dbs/d/colls/c/docs/100%25"));
    assert!(may("dbs/d/colls/c/docs/100%25", "/dbs/d/colls/c/docs/100%25"));
    assert!(may("dbs/d/colls/c/docs/x%2541", "/dbs/d/colls/c/docs/x%2541"));
    assert!(may("dbs/d/colls/c/docs/x%41", "/dbs/d/colls/c/docs/xA"));
    assert!(!may("dbs/d/colls/c/docs/x%41", "/dbs/d/colls/c/docs/x%2541"));
}

#[test]
fn a_permission_may_be_for_a_prefix_of_a_hierarchical_key() {
    let scope = grant("Read", "dbs/d/colls/c", Some(r#"["a"]"#));
    assert!(is_allowed(&scope, &request(Method::GET, "/dbs/d/colls/c/docs/1", &[(KEY, r#"["a","x"]"#)])));
    let scope = grant("Read", "dbs/d/colls/c", Some(r#"["a","x"]"#));
    assert!(!is_allowed(&scope, &request(Method::GET, "/dbs/d/colls/c/docs", &[A])));
}

/// SDKs use EPK ranges to read the changes of a key, and all keys with one prefix.
#[test]
fn s131_a_key_may_be_identified_by_its_epk_range() {
    const MIN: (&str, &str) = ("x-ms-start-epk", "3A5381E1114EB8D3FCC90795045B49B7");
    const NEXT: (&str, &str) = ("x-ms-end-epk", "3A5381E1114EB8D3FCC90795045B49B8");
    const BELOW: (&str, &str) = ("x-ms-end-epk", "3A5381E1114EB8D3FCC90795045B49B7FF");
    const BEYOND: (&str, &str) = ("x-ms-end-epk", "3A5381E1114EB8D3FCC90795045B49B9");
    const CHANGES: (&str, &str) = ("a-im", "Incremental Feed");
    const DOCS: &str = "/dbs/d/colls/c/docs";
    let scope = grant("All", "dbs/d/colls/c", Some(r#"["a"]"#));
    let whole = |asked: TestRequest| is_allowed(&scope, &asked);
    let prefix = |asked: TestRequest| is_allowed_under(&scope, &asked, &["/a", "/b"], KeyKind::MultiHash);
    assert!(whole(request(Method::GET, DOCS, &[MIN, NEXT, CHANGES])));
    assert!(whole(request(Method::POST, DOCS, &[MIN, NEXT, QUERY])));
    assert!(prefix(request(Method::GET, DOCS, &[MIN, BELOW, CHANGES])));
    assert!(!whole(request(Method::GET, DOCS, &[MIN, BEYOND, CHANGES])), "the range includes other keys");
    assert!(!prefix(request(Method::GET, DOCS, &[MIN, NEXT, CHANGES])));
    assert!(!whole(request(Method::GET, DOCS, &[MIN, CHANGES])), "the range has no upper bound");
    assert!(!whole(request(Method::GET, DOCS, &[B, MIN, NEXT])), "the key header takes precedence over the range");
    assert!(!whole(request(Method::POST, DOCS, &[MIN, NEXT])), "writes must send their partition key");
    assert!(!whole(request(Method::GET, "/dbs/d/colls/c/docs/1", &[MIN, NEXT])));
}

#[test]
fn a_permission_is_for_a_container_or_one_resource_in_it() {
    let check = |mode: &str, resource: &str| {
        check_grant(&PermissionGrant { mode: mode.to_owned(), resource: resource.to_owned(), key: None })
            .map_err(|error| error.kind)
    };
    assert_eq!(check("read", "/dbs/d/colls/c/"), Ok(()));
    assert_eq!(check("Some", "dbs/d/colls/c"), Err(pleiad_model::Kind::Invalid));
    for one in ["docs/1", "sprocs/s", "triggers/t", "udfs/f", "conflicts/x"] {
        assert_eq!(check("All", &format!("dbs/d/colls/c/{one}")), Ok(()), "{one}");
    }
    for wrong in ["dbs/d", "dbs/d/colls", "dbs/d/colls/c/docs", "dbs/d/users/u", "offers/o", "dbs/d/colls/c/pkranges/0"]
    {
        assert_eq!(check("Read", wrong), Err(pleiad_model::Kind::Invalid), "{wrong}");
    }
    assert_eq!(check("Read", "dbs/d/colls/c/docs/1/attachments/a"), Err(pleiad_model::Kind::Unsupported));
    assert_eq!(check("Read", "nowhere/d"), Err(pleiad_model::Kind::Invalid));
}
