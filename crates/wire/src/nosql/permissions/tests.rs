//! The complete matrix: every kind of permission, every scope and every operation allow exactly what the table at the
//! top of `permissions` states.

use super::*;
use crate::listener::ConnectionOrigin;
use http::{HeaderMap, HeaderName, HeaderValue};
use pleiad_model::partition_key::{KeyKind, KeyVersion};
use pleiad_model::path::PropertyPath;

/// A request of the matrix.
struct Asked {
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

fn asked(method: Method, path: &'static str, headers: &'static [(&'static str, &'static str)]) -> Asked {
    Asked { method, path, headers, body: "" }
}

/// A replace with this body.
fn replaced(path: &'static str, headers: &'static [(&'static str, &'static str)], body: &'static str) -> Asked {
    Asked { body, ..asked(Method::PUT, path, headers) }
}

fn grant(mode: &str, resource: &str, key: Option<&str>) -> PermissionScope {
    let key = key.map(|key| json::parse(key.as_bytes()).unwrap());
    let grant = PermissionGrant { mode: mode.to_owned(), resource: resource.to_owned(), key };
    check_grant(&grant).unwrap();
    PermissionScope::read(&grant).unwrap()
}

fn is_allowed(scope: &PermissionScope, asked: &Asked) -> bool {
    is_allowed_under(scope, asked, &["/pk"], KeyKind::Hash)
}

fn is_allowed_under(scope: &PermissionScope, asked: &Asked, paths: &[&str], kind: KeyKind) -> bool {
    let paths = paths.iter().map(|path| PropertyPath::parse(path).unwrap()).collect();
    is_allowed_in(
        scope,
        asked,
        Some(&PartitionKeyDefinition { paths, kind, version: KeyVersion::V2, system_key: false }),
    )
}

fn is_allowed_in(scope: &PermissionScope, asked: &Asked, key: Option<&PartitionKeyDefinition>) -> bool {
    let address = address::parse(asked.path).unwrap();
    let headers: HeaderMap = asked
        .headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let origin = ConnectionOrigin { secure: false, local: nowhere, peer: nowhere };
    let (method, address) = (&asked.method, &address);
    let body = asked.body.as_bytes().into();
    let request = Request { method, address, headers: &headers, body, origin: &origin, authority: None };
    scope.mode != Mode::None && allows(scope, &request, key).unwrap()
}

/// One column per scope: container, item `1`, key `["a"]`, item `1` under key `["a"]`, procedure `s`, that under key
/// `["a"]`, trigger `t`. `r` is allowed in both modes, `w` in mode All, `-` in none.
fn matrix() -> Vec<(Asked, &'static str)> {
    use Method as M;
    const C: &str = "/dbs/d/colls/c";
    const DOCS: &str = "/dbs/d/colls/c/docs";
    const ONE: &str = "/dbs/d/colls/c/docs/1";
    const TWO: &str = "/dbs/d/colls/c/docs/2";
    vec![
        (asked(M::GET, C, &[]), "rrrrrrr"),
        (asked(M::PUT, C, &[]), "w------"),
        (asked(M::DELETE, C, &[]), "w------"),
        (asked(M::POST, C, &[]), "-------"),
        (asked(M::GET, "/dbs/d/colls/c/pkranges", &[]), "rrrrrrr"),
        (asked(M::POST, DOCS, &[PLAN]), "rrrrrrr"),
        (asked(M::GET, ONE, &[A]), "rrrr---"),
        (asked(M::GET, ONE, &[B]), "rr-----"),
        (asked(M::GET, ONE, &[]), "rr-----"),
        (asked(M::GET, TWO, &[A]), "r-r----"),
        (asked(M::PUT, ONE, &[A]), "wwww---"),
        (asked(M::PUT, TWO, &[A]), "w-w----"),
        (asked(M::PUT, ONE, &[B]), "ww-----"),
        (replaced(ONE, &[A], r#"{"id":"1","pk":"a"}"#), "wwww---"),
        (replaced(ONE, &[A], r#"{"id":"2","pk":"a"}"#), "w-w----"),
        (replaced("/dbs/d/colls/c/triggers/t", &[], r#"{"id":"mine"}"#), "w------"),
        (asked(M::PATCH, ONE, &[A]), "wwww---"),
        (asked(M::DELETE, ONE, &[A]), "wwww---"),
        (asked(M::DELETE, TWO, &[B]), "w------"),
        (asked(M::POST, DOCS, &[A]), "w-w----"),
        (asked(M::POST, DOCS, &[B]), "w------"),
        (asked(M::POST, DOCS, &[]), "w------"),
        (asked(M::POST, DOCS, &[A, UPSERT]), "w-w----"),
        (asked(M::GET, DOCS, &[]), "r------"),
        (asked(M::GET, DOCS, &[A]), "r-r----"),
        (asked(M::GET, DOCS, &[("a-im", "Incremental Feed")]), "r------"),
        (asked(M::GET, DOCS, &[A, ("a-im", "Incremental Feed")]), "r-r----"),
        (asked(M::POST, DOCS, &[QUERY]), "r------"),
        (asked(M::POST, DOCS, &[A, QUERY]), "r-r----"),
        (asked(M::POST, DOCS, &[B, QUERY]), "r------"),
        (asked(M::GET, "/dbs/d/colls/c/sprocs", &[]), "r------"),
        (asked(M::POST, "/dbs/d/colls/c/sprocs", &[A]), "w------"),
        (asked(M::POST, "/dbs/d/colls/c/sprocs/s", &[A]), "w-w-ww-"),
        (asked(M::POST, "/dbs/d/colls/c/sprocs/s", &[B]), "w---w--"),
        (asked(M::GET, "/dbs/d/colls/c/triggers", &[]), "r------"),
        (asked(M::POST, "/dbs/d/colls/c/udfs", &[]), "w------"),
        (asked(M::GET, "/dbs/d/colls/c/conflicts", &[]), "r------"),
        (asked(M::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[A]), "w-w----"),
        (asked(M::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[B]), "w------"),
        (asked(M::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[]), "w------"),
        (asked(M::GET, "/dbs/d/colls/c/sprocs/s", &[]), "r---r--"),
        (asked(M::PUT, "/dbs/d/colls/c/sprocs/s", &[A]), "w---w--"),
        (asked(M::DELETE, "/dbs/d/colls/c/sprocs/s", &[]), "w---w--"),
        (asked(M::POST, "/dbs/d/colls/c/sprocs/other", &[A]), "w-w----"),
        (asked(M::GET, "/dbs/d/colls/c/triggers/t", &[]), "r-----r"),
        (asked(M::PUT, "/dbs/d/colls/c/triggers/t", &[]), "w-----w"),
        (asked(M::DELETE, "/dbs/d/colls/c/triggers/other", &[]), "w------"),
        (asked(M::GET, "/dbs/d/colls/c/udfs/t", &[]), "r------"),
        (asked(M::DELETE, "/dbs/d/colls/c/conflicts/x", &[]), "w------"),
        (asked(M::GET, "/dbs/d/colls/c/docs/1/attachments", &[]), "-------"),
        (asked(M::GET, "/dbs/d/users/u/permissions/p", &[]), "-------"),
        (asked(M::GET, "/dbs/d/users", &[]), "-------"),
        (asked(M::GET, "/dbs/d", &[]), "-------"),
        (asked(M::GET, "/dbs", &[]), "-------"),
        (asked(M::GET, "/offers", &[]), "-------"),
        (asked(M::GET, "/dbs/d/clientencryptionkeys/k", &[]), "-------"),
    ]
}

#[test]
fn s131_every_permission_allows_exactly_what_the_table_says() {
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
    for (asked, by_scope) in matrix() {
        for ((resource, key), wanted) in scopes.iter().zip(by_scope.chars()) {
            let got = ["None", "Read", "All"].map(|mode| is_allowed(&grant(mode, resource, *key), &asked));
            let wanted = [false, wanted == 'r', wanted != '-'];
            let Asked { method, path, headers, body } = &asked;
            assert_eq!(
                got, wanted,
                "{method} {path} {headers:?} {body} with {resource} {key:?}, in modes None, Read, All"
            );
        }
    }
}

#[test]
fn items_are_named_in_the_same_way() {
    let (by_rid, other) = ("/dbs/AQAAAA==/colls/AQAAAIAAAAE=/docs/AQAAAIAAAAEBAAAAAAAAAA==", "/dbs/d/colls/c/docs/1");
    let scope = grant("Read", by_rid, None);
    assert!(is_allowed(&scope, &asked(Method::GET, by_rid, &[])));
    assert!(!is_allowed(&scope, &asked(Method::GET, other, &[])));
    assert!(!is_allowed(&grant("Read", other, None), &asked(Method::GET, by_rid, &[])));
}

/// In a container without a partition key, a key identifies nothing.
#[test]
fn s131_a_key_permits_nothing_where_there_is_none() {
    let read = asked(Method::GET, "/dbs/d/colls/c/docs/1", &[A]);
    assert!(!is_allowed_in(&grant("All", "dbs/d/colls/c", Some(r#"["a"]"#)), &read, None));
    assert!(is_allowed_in(&grant("All", "dbs/d/colls/c", None), &read, None));
    let stored = PermissionGrant {
        mode: "All".to_owned(),
        resource: "dbs/d/colls/c".to_owned(),
        key: Some(Value::Array(vec![])),
    };
    assert!(check_grant(&stored).is_err());
    assert!(!is_allowed(&PermissionScope::read(&stored).unwrap(), &read));
}

/// Some clients escape the names in a permission and some do not; a name that can be read as escaped is unescaped.
#[test]
fn names_are_escaped_or_not() {
    let may = |written: &str, path| is_allowed(&grant("Read", written, None), &asked(Method::GET, path, &[]));
    assert!(may("dbs/d/colls/c/docs/100%", "/dbs/d/colls/c/docs/100%25"));
    assert!(may("dbs/d/colls/c/docs/100%25", "/dbs/d/colls/c/docs/100%25"));
    assert!(may("dbs/d/colls/c/docs/x%2541", "/dbs/d/colls/c/docs/x%2541"));
    assert!(may("dbs/d/colls/c/docs/x%41", "/dbs/d/colls/c/docs/xA"));
    assert!(!may("dbs/d/colls/c/docs/x%41", "/dbs/d/colls/c/docs/x%2541"));
}

#[test]
fn of_a_hierarchical_key_the_beginning_is_enough() {
    let scope = grant("Read", "dbs/d/colls/c", Some(r#"["a"]"#));
    assert!(is_allowed(&scope, &asked(Method::GET, "/dbs/d/colls/c/docs/1", &[(KEY, r#"["a","x"]"#)])));
    let scope = grant("Read", "dbs/d/colls/c", Some(r#"["a","x"]"#));
    assert!(!is_allowed(&scope, &asked(Method::GET, "/dbs/d/colls/c/docs", &[A])));
}

/// SDKs use EPK ranges to read the changes of a key, and all keys with one prefix.
#[test]
fn s131_a_key_may_be_named_by_where_it_lies() {
    const MIN: (&str, &str) = ("x-ms-start-epk", "3A5381E1114EB8D3FCC90795045B49B7");
    const NEXT: (&str, &str) = ("x-ms-end-epk", "3A5381E1114EB8D3FCC90795045B49B8");
    const BELOW: (&str, &str) = ("x-ms-end-epk", "3A5381E1114EB8D3FCC90795045B49B7FF");
    const BEYOND: (&str, &str) = ("x-ms-end-epk", "3A5381E1114EB8D3FCC90795045B49B9");
    const CHANGES: (&str, &str) = ("a-im", "Incremental Feed");
    const DOCS: &str = "/dbs/d/colls/c/docs";
    let scope = grant("All", "dbs/d/colls/c", Some(r#"["a"]"#));
    let whole = |asked: Asked| is_allowed(&scope, &asked);
    let prefix = |asked: Asked| is_allowed_under(&scope, &asked, &["/a", "/b"], KeyKind::MultiHash);
    assert!(whole(asked(Method::GET, DOCS, &[MIN, NEXT, CHANGES])));
    assert!(whole(asked(Method::POST, DOCS, &[MIN, NEXT, QUERY])));
    assert!(prefix(asked(Method::GET, DOCS, &[MIN, BELOW, CHANGES])));
    assert!(!whole(asked(Method::GET, DOCS, &[MIN, BEYOND, CHANGES])), "the range includes other keys");
    assert!(!prefix(asked(Method::GET, DOCS, &[MIN, NEXT, CHANGES])));
    assert!(!whole(asked(Method::GET, DOCS, &[MIN, CHANGES])), "the range has no upper bound");
    assert!(!whole(asked(Method::GET, DOCS, &[B, MIN, NEXT])), "the key header takes precedence over the range");
    assert!(!whole(asked(Method::POST, DOCS, &[MIN, NEXT])), "writes must send their partition key");
    assert!(!whole(asked(Method::GET, "/dbs/d/colls/c/docs/1", &[MIN, NEXT])));
}

#[test]
fn a_permission_is_for_a_container_or_one_thing_in_it() {
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
    assert_eq!(check("Read", "dbs/d/colls/c/docs/1/attachments/a"), Err(pleiad_model::Kind::Refused));
    assert_eq!(check("Read", "nowhere/d"), Err(pleiad_model::Kind::Invalid));
}
