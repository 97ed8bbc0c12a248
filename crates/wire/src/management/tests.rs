use super::*;

fn parsed(path: &str) -> Result<String> {
    let names = names(below_root(path).unwrap())?;
    ManagementRoute::parse(&names).map(|route| format!("{route:?}"))
}

#[test]
fn paths_name_resources() {
    assert!(parsed("/_pleiad/v1/containers/My%20Db/c/partitions/").unwrap().contains("database: \"My Db\""));
    assert!(parsed("/_pleiad/v1/containers/d/c").unwrap().starts_with("Container"));
    assert!(parsed("/_pleiad/v1/databases/d/throughput").unwrap().contains("Database(\"d\")"));
    for nowhere in ["/_pleiad", "/_pleiad/v2/jobs", "/_pleiad/v1", "/_pleiad/v1/containers/d", "/_pleiad/v1/jobs/x"] {
        let error = parsed(nowhere).unwrap_err();
        assert_eq!(error.kind, pleiad_model::Kind::NotFound, "{nowhere}");
    }
}

#[test]
fn other_paths_are_not_management_paths() {
    assert_eq!(below_root("/dbs"), None);
    assert_eq!(below_root("/_pleiadx/v1"), None);
    assert_eq!(below_root("/_pleiad"), Some(""));
}

#[test]
fn the_decoded_path_is_signed() {
    let names = names("/v1/containers/My%20Db/c%2Fd/keys").unwrap();
    assert_eq!(link(&names), "_pleiad/v1/containers/My Db/c/d/keys");
    assert!(super::names("/v1/%GG").is_err());
}

fn management_request<'a>(query: &'a str, body: &'static str) -> ManagementRequest<'a> {
    ManagementRequest {
        verb: ManagementVerb::Get,
        names: Vec::new(),
        query: Some(query),
        body: bytes::Bytes::from_static(body.as_bytes()),
    }
}

#[test]
fn parameters_are_decoded() {
    assert_eq!(management_request("top=5&by=a%20b", "").param("by").unwrap().as_deref(), Some("a b"));
    assert_eq!(management_request("top=5", "").param("by").unwrap(), None);
    assert!(management_request("by=%zz", "").param("by").is_err());
    assert!(management_request("", "").object().unwrap().is_empty());
    assert!(management_request("", "[1]").object().is_err() && management_request("", "{").object().is_err());
}
