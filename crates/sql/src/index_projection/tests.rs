use super::*;
use pleiad_model::json;

#[track_caller]
fn check(definition: &str, item: &str, projected: &str) {
    let item = json::parse(item.as_bytes()).unwrap();
    let got = Projection::parse(definition).unwrap().apply(&item);
    assert_eq!(json::to_string(&got.into()), projected, "{definition}");
}

#[test]
fn properties_keep_their_last_name_and_missing_ones_are_null() {
    let item = r#"{"id":"7","name":{"first":"Ann"},"x":[1],"_ts":3}"#;
    check("SELECT c.id, c.name.first, c.total FROM c", item, r#"{"_id":"7","first":"Ann","total":null}"#);
    check(r#"select root["x"], root.name from root"#, item, r#"{"x":[1],"name":{"first":"Ann"}}"#);
    check("SELECT o.a.id2 FROM orders AS o", item, r#"{"id2":null}"#);
    check("SELECT * FROM c", item, r#"{"_id":"7","name":{"first":"Ann"},"x":[1]}"#);
}

#[test]
fn other_definitions_are_rejected() {
    for wrong in [
        "SELECT VALUE c.a FROM c",
        "SELECT c.a AS b FROM c",
        "SELECT c.a FROM c WHERE c.a > 1",
        "SELECT DISTINCT c.a FROM c",
        "SELECT TOP 1 c.a FROM c",
        "SELECT c.a FROM c ORDER BY c.a",
        "SELECT c.a FROM c GROUP BY c.a",
        "SELECT c.a FROM c OFFSET 1 LIMIT 1",
        "SELECT c.a FROM c JOIN t IN c.tags",
        "SELECT c.a FROM c IN c.items",
        "SELECT LOWER(c.a) FROM c",
        "SELECT c.a + 1 FROM c",
        "SELECT c.items[0] FROM c",
        "SELECT 1",
        "SELECT c FROM c",
        "SELECT c._etag FROM c",
        "SELECT c.a.x, c.b.x FROM c",
        "SELECT c.a.id FROM c",
        "SELECT c._id, c.id FROM c",
        "SELECT",
        "",
    ] {
        assert!(Projection::parse(wrong).is_err(), "{wrong:?}");
    }
}
