use pleiad_model::Kind;
use proptest::prelude::*;

use super::*;

/// Describes an address in one line: resource, feed or single, by name or rid, the names, what is signed.
#[track_caller]
fn check(path: &str, want: &str) {
    let got = match parse(path) {
        Ok(address) => {
            // The same from names, as a protocol without paths has them.
            let from_names = Address::of_names(address.resource, &address.segments(), address.by_rid);
            assert_eq!(from_names.as_ref(), Some(&address), "{path}");
            show(&address)
        }
        Err(error) => format!("{:?}", error.kind),
    };
    assert_eq!(got, want, "{path}");
}

fn show(address: &Address) -> String {
    let Signing { resource_type, link, lower_case_link } = address.signing();
    let kind = if address.is_feed { "feed" } else { "one" };
    let by = if address.by_rid { "rid" } else { "name" };
    let names = address.segments().join("|");
    let case = if lower_case_link { " lower" } else { "" };
    format!("{:?} {kind} {by} [{names}] signs {resource_type:?} {link:?}{case}", address.resource)
}

#[test]
fn the_account_is_the_empty_path() {
    check("/", r#"Account one name [] signs "" """#);
    check("", r#"Account one name [] signs "" """#);
}

#[test]
fn feeds_sign_their_parent_and_resources_themselves() {
    check("/dbs", r#"Databases feed name [] signs "dbs" """#);
    check("/dbs/db", r#"Databases one name [db] signs "dbs" "dbs/db""#);
    check("/dbs/db/colls", r#"Containers feed name [db] signs "colls" "dbs/db""#);
    check("/dbs/db/colls/c", r#"Containers one name [db|c] signs "colls" "dbs/db/colls/c""#);
    check("/dbs/db/colls/c/docs", r#"Items feed name [db|c] signs "docs" "dbs/db/colls/c""#);
    check("/dbs/db/colls/c/docs/i", r#"Items one name [db|c|i] signs "docs" "dbs/db/colls/c/docs/i""#);
    check("/dbs/db/colls/c/pkranges", r#"Ranges feed name [db|c] signs "pkranges" "dbs/db/colls/c""#);
    check("/dbs/db/colls/c/sprocs/s", r#"StoredProcedures one name [db|c|s] signs "sprocs" "dbs/db/colls/c/sprocs/s""#);
    check("/dbs/db/users/u/permissions", r#"Permissions feed name [db|u] signs "permissions" "dbs/db/users/u""#);
    check(
        "/dbs/db/clientencryptionkeys/k",
        r#"ClientEncryptionKeys one name [db|k] signs "clientencryptionkeys" "dbs/db/clientencryptionkeys/k""#,
    );
}

#[test]
fn the_remaining_collections_are_known() {
    for (path, resource) in [
        ("/dbs/d/users/u", ResourceType::Users),
        ("/dbs/d/colls/c/triggers/t", ResourceType::Triggers),
        ("/dbs/d/colls/c/udfs/f", ResourceType::UserDefinedFunctions),
        ("/dbs/d/colls/c/conflicts", ResourceType::Conflicts),
        ("/dbs/d/colls/c/docs/i/attachments", ResourceType::Attachments),
        ("//addresses/", ResourceType::Addresses),
    ] {
        assert_eq!(parse(path).map(|address| address.resource), Ok(resource), "{path}");
    }
}

#[test]
fn an_operation_signs_its_container() {
    check(
        "/dbs/db/colls/c/operations/partitionkeydelete",
        r#"Operations one name [db|c|partitionkeydelete] signs "colls" "dbs/db/colls/c""#,
    );
    check(
        "/dbs/n7AmAA==/colls/n7AmAPTJ480=/operations/partitionkeydelete",
        r#"Operations one rid [n7AmAA==|n7AmAPTJ480=|partitionkeydelete] signs "colls" "n7AmAPTJ480=" lower"#,
    );
}

#[test]
fn names_that_do_not_fit_the_resource_have_no_address() {
    assert_eq!(Address::of_names(ResourceType::Items, &["db"], false), None);
    assert_eq!(Address::of_names(ResourceType::Items, &["db", "c", "i", "more"], false), None);
    // Names that look like resource ids are names if the protocol says so.
    let named = Address::of_names(ResourceType::Databases, &["n7AmAA=="], false).unwrap();
    assert_eq!(show(&named), r#"Databases one name [n7AmAA==] signs "dbs" "dbs/n7AmAA==""#);
}

#[test]
fn extra_slashes_are_ignored() {
    let want = r#"Items feed name [db|c] signs "docs" "dbs/db/colls/c""#;
    check("/dbs/db/colls/c/docs/", want);
    check("//dbs//db/colls/c//docs//", want);
    check("dbs/db/colls/c/docs", want);
}

#[test]
fn names_are_decoded_once() {
    check("/dbs/My%20Db/colls/c/docs", r#"Items feed name [My Db|c] signs "docs" "dbs/My Db/colls/c""#);
    check("/dbs/db/colls/c/docs/ID%20%C3%A9", r#"Items one name [db|c|ID é] signs "docs" "dbs/db/colls/c/docs/ID é""#);
    check("/dbs/a%2525", r#"Databases one name [a%25] signs "dbs" "dbs/a%25""#);
    check("/dbs/a%2Fb/colls", r#"Containers feed name [a/b] signs "colls" "dbs/a/b""#);
    check("/dbs/a+b", r#"Databases one name [a+b] signs "dbs" "dbs/a+b""#);
}

#[test]
fn invalid_percent_encoding_is_rejected() {
    check("/dbs/100%", "Invalid");
    check("/dbs/%zz", "Invalid");
    check("/dbs/%ff", "Invalid");
}

#[test]
fn resource_ids_are_recognized_by_the_database_segment() {
    check("/dbs/n7AmAA==", r#"Databases one rid [n7AmAA==] signs "dbs" "n7AmAA==" lower"#);
    check("/dbs/n7AmAA%3D%3D/", r#"Databases one rid [n7AmAA==] signs "dbs" "n7AmAA==" lower"#);
    check(
        "/dbs/n7AmAA==/colls/n7AmAPTJ480=/pkranges",
        r#"Ranges feed rid [n7AmAA==|n7AmAPTJ480=] signs "pkranges" "n7AmAPTJ480=" lower"#,
    );
    check("/dbs/ordinary", r#"Databases one name [ordinary] signs "dbs" "dbs/ordinary""#);
}

#[test]
fn offers_are_always_resource_ids() {
    check("/offers", r#"Offers feed rid [] signs "offers" "" lower"#);
    check("/offers/OOOO/", r#"Offers one rid [OOOO] signs "offers" "OOOO" lower"#);
}

#[test]
fn unknown_collections_are_not_found() {
    for path in ["/db", "/dbs/d/docs", "/dbs/d/colls/c/docs/i/j", "/DBS", "/dbs/d/colls/c/things", "/offers/o/x"] {
        assert_eq!(parse(path).map_err(|error| error.kind), Err(Kind::NotFound), "{path}");
    }
}

#[test]
fn the_link_of_a_feed_is_its_parent() {
    let address = parse("/dbs/db/colls/c/docs/").unwrap();
    assert_eq!((address.link(), address.path(), address.last()), ("dbs/db/colls/c", "dbs/db/colls/c/docs", Some("c")));
    assert_eq!((address.segment(0), address.segment(2)), (Some("db"), None));
}

fn encode(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

proptest! {
    #[test]
    fn any_name_round_trips(db in "\\PC{1,20}", item in "\\PC{1,40}") {
        let address = parse(&format!("/dbs/{}/colls/c/docs/{}", encode(&db), encode(&item))).unwrap();
        prop_assert_eq!(address.segments().to_vec(), [db.as_str(), "c", item.as_str()]);
    }

    #[test]
    fn no_path_panics(path in "(/|dbs|colls|docs|offers|%|%2|%F0|[a-z=é]){0,12}") {
        if let Ok(address) = parse(&path) {
            let _ = (address.signing(), address.segments(), address.last(), address.link());
        }
    }
}
