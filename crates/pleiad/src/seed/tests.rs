//! Declarations become the bodies that a client would send; items are read one at a time; errors name the position.

use std::path::Path;

use pleiad_model::{Result, Value, json};

use super::*;
use crate::config::TomlDocument;

fn declare(text: &str) -> Result<Declaration> {
    let document = TomlDocument::new(Path::new("conf/p.toml"), text);
    let table = document.parse()?;
    let entries = document.entries(&table, &["database"])?;
    Declaration::parse(&document, &entries[0])
}

/// The only container of the only database, from the lines of its table.
fn container_of(lines: &str) -> Result<SeedContainer> {
    let mut declaration = declare(&format!("[[database]]\nid = \"d\"\n[[database.container]]\n{lines}"))?;
    Ok(declaration.databases.remove(0).containers.remove(0))
}

#[track_caller]
fn assert_rejected(lines: &str, wanted: &str) {
    let error = container_of(lines).expect_err(lines);
    assert!(error.to_string().contains(wanted), "{error} should contain {wanted:?}");
}

#[test]
fn a_container_becomes_the_body_that_would_create_it() {
    let container = container_of(
        r#"
        id = "orders"
        partition-key = "/customer"
        default-ttl = 3600
        indexing-policy = { indexingMode = "consistent", excludedPaths = [{ path = "/note/?" }] }
        "#,
    );
    let body = json::to_string(&container.unwrap().body);
    assert_eq!(
        body,
        r#"{"id":"orders","partitionKey":{"paths":["/customer"],"kind":"Hash","version":2},"defaultTtl":3600,"indexingPolicy":{"indexingMode":"consistent","excludedPaths":[{"path":"/note/?"}]}}"#
    );
}

#[test]
fn several_paths_make_a_hierarchical_key() {
    let container = container_of("id = \"c\"\npartition-key = [\"/tenant\", \"/user\"]").unwrap();
    let key = container.body.get("partitionKey").unwrap();
    assert_eq!(key.get("kind").and_then(Value::as_str), Some("MultiHash"));
    assert_eq!(key.get("paths").and_then(Value::as_array).map(<[Value]>::len), Some(2));
}

#[test]
fn throughput_is_manual_or_autoscale_or_unspecified() {
    let throughput =
        |line: &str| container_of(&format!("id = \"c\"\npartition-key = \"/pk\"\n{line}")).map(|c| c.throughput);
    assert_eq!(throughput(""), Ok(None));
    assert_eq!(throughput("throughput = 400"), Ok(Some(SeedThroughput::Manual { ru_per_s: 400 })));
    assert_eq!(throughput("autoscale-max = 4_000"), Ok(Some(SeedThroughput::Autoscale { max_ru_per_s: 4000 })));
    assert!(throughput("throughput = 400\nautoscale-max = 4000").is_err());
    assert!(throughput("throughput = -1").is_err());
}

#[test]
fn databases_keep_the_order_of_the_file() {
    let text = "[[database]]\nid = \"z\"\nautoscale-max = 1000\n[[database.container]]\nid = \"c\"\npartition-key = \"/pk\"\n[[database]]\nid = \"a\"\n";
    let declaration = declare(text).unwrap();
    let ids: Vec<_> =
        declaration.databases.iter().map(|database| (database.id.as_str(), database.containers.len())).collect();
    assert_eq!(ids, [("z", 1), ("a", 0)]);
}

#[test]
fn errors_name_their_line() {
    assert_rejected("partition-key = \"/pk\"", "conf/p.toml:4: a container needs `id`");
    assert_rejected("id = \"c\"", "conf/p.toml:4: a container needs `partition-key`");
    assert_rejected("id = \"c\"\npartition-key = []", "conf/p.toml:5: `partition-key` must be a path");
    assert_rejected("id = \"c\"\npartition-key = \"/pk\"\nindexingPolicy = {}", "did you mean `indexing-policy`?");
    assert_rejected("id = \"c\"\npartition-key = \"/pk\"\nseed = \"x.csv\"", "conf/p.toml:6: `seed` must name a .json");
    assert_rejected("id = \"c\"\npartition-key = \"/pk\"\nitems = [1]", "`items` must be an array of items");
    assert_rejected("id = \"c\"\npartition-key = \"/pk\"\nitems = [{ id = \"1\", x = inf }]", "finite");
    assert_rejected("id = 7\npartition-key = \"/pk\"", "`id` must be a string");
}

#[test]
fn duplicate_ids_are_rejected() {
    let error = declare("[[database]]\nid = \"a\"\n[[database]]\nid = \"a\"").unwrap_err();
    assert!(error.to_string().contains("two databases with the id \"a\""), "{error}");
    assert!(declare("database = 3").unwrap_err().to_string().contains("[[database]]"));
}

#[test]
fn inline_items_keep_the_order_of_their_properties() {
    let container = container_of(
        "id = \"c\"\npartition-key = \"/pk\"\nitems = [{ pk = 1, id = \"1\", at = 2024-05-01, big = 9007199254740993 }]",
    );
    let items: Vec<Value> = container.unwrap().items.open().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(json::to_string(&items[0]), r#"{"pk":1,"id":"1","at":"2024-05-01","big":9007199254740993}"#);
}

fn items_in(name: &str, text: &str) -> Result<Vec<Value>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    Items::file(path)?.open()?.collect()
}

#[track_caller]
fn bad_items(name: &str, text: &str, wanted: &str) {
    let error = items_in(name, text).expect_err(text);
    assert!(error.to_string().contains(wanted), "{error} should contain {wanted:?}");
}

#[test]
fn a_seed_file_is_an_array_or_lines() {
    let array = items_in("a.json", r#"[{"id":"1"}, {"id":"2"}]"#).unwrap();
    let lines = items_in("a.ndjson", "{\"id\":\"1\"}\r\n\n{\"id\":\"2\"}").unwrap();
    assert_eq!(array, lines);
    assert_eq!(array.len(), 2);
    assert_eq!(items_in("empty.jsonl", ""), Ok(Vec::new()));
}

#[test]
fn a_bad_item_is_named_with_file_and_line() {
    bad_items("a.ndjson", "{\"id\":\"1\"}\n\n{\"id\":}\n{\"id\":\"3\"}", "a.ndjson:3: ");
    bad_items("a.ndjson", "{\"id\":\"1\"}\n7", "a.ndjson:2: an item must be a JSON object");
    bad_items("a.json", "[{\"id\":\"1\"}, 7]", "a.json: item 2: an item must be a JSON object");
    bad_items("a.json", "{}", "must hold a JSON array");
}

#[test]
fn reading_lines_stops_at_the_first_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ndjson");
    std::fs::write(&path, "1\n{\"id\":\"2\"}").unwrap();
    let mut items = Items::file(path).unwrap().open().unwrap();
    assert!(items.next().unwrap().is_err());
    assert!(items.next().is_none());
}

#[test]
fn a_missing_seed_file_is_named_when_it_is_opened() {
    let container = container_of("id = \"c\"\npartition-key = \"/pk\"\nseed = \"gone.ndjson\"").unwrap();
    let error = container.items.open().unwrap_err();
    assert!(error.to_string().contains("conf/gone.ndjson"), "{error}");
}
