use super::*;
use crate::Parameters;
use crate::document::PropertyName;
use crate::expr::CheckLimit;
use pleiad_model::env::ManualEnv;
use pleiad_model::{Kind, Value, json};
use std::borrow::Cow;

/// A change whose properties are those of a JSON object.
struct Change(Value);

impl Document for Change {
    fn property(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>> {
        self.0.get(&name.text).map(|value| Cow::Owned(json::to_string(value).into_bytes()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(json::to_string(&self.0).as_bytes());
    }
}

fn compile_text(text: &str, parameters: &str) -> Result<FeedQuery> {
    let parameters = Parameters::from_value(Some(&json::parse(parameters.as_bytes()).unwrap())).unwrap();
    let bind = BindContext {
        parameters: &parameters,
        geospatial: Geospatial::Geography,
        embeddings: &[],
        full_text: None,
        started_ms: Some(0),
    };
    FeedQuery::compile(text, bind)
}

fn row(query: &FeedQuery, change: &str) -> Option<String> {
    let change = Change(json::parse(change.as_bytes()).unwrap());
    let row = query.row(&change, &ManualEnv::default(), &CheckLimit::new(1024)).unwrap();
    row.map(|row| String::from_utf8(row).unwrap())
}

#[test]
fn changes_are_filtered_and_projected() {
    for (text, expected) in [
        ("SELECT * FROM c", Some(r#"{"id":"1","n":3,"tags":["a","b"]}"#)),
        ("SELECT * FROM c WHERE c.n > 3", None),
        ("SELECT * FROM c WHERE c.missing > 3", None),
        ("SELECT c.id, c.n + 1 AS next FROM c WHERE c.n > @least", Some(r#"{"id":"1","next":4}"#)),
        ("SELECT VALUE c.id FROM c", Some(r#""1""#)),
        ("SELECT VALUE c.missing FROM c", None),
        ("SELECT VALUE r.n FROM root r WHERE ARRAY_CONTAINS(r.tags, \"b\")", Some("3")),
        ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = \"b\")", Some(r#""1""#)),
    ] {
        let query = compile_text(text, r#"[{"name":"@least","value":2}]"#).unwrap();
        assert_eq!(row(&query, r#"{"id":"1","n":3,"tags":["a","b"]}"#).as_deref(), expected, "{text}");
    }
}

#[test]
fn what_depends_on_several_changes_is_rejected() {
    for (text, rule) in [
        ("SELECT VALUE 1", "its FROM names the container and nothing else"),
        ("SELECT VALUE t FROM t IN c.tags", "its FROM names the container and nothing else"),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", "its FROM names the container and nothing else"),
        ("SELECT DISTINCT c.n FROM c", "it has no DISTINCT"),
        ("SELECT TOP 1 * FROM c", "it has no TOP, OFFSET or LIMIT"),
        ("SELECT * FROM c OFFSET 1 LIMIT 1", "it has no TOP, OFFSET or LIMIT"),
        ("SELECT c.n FROM c GROUP BY c.n", "it has no GROUP BY"),
        ("SELECT * FROM c ORDER BY c.n", "it has no ORDER BY"),
        ("SELECT VALUE COUNT(1) FROM c", "it has no aggregate"),
    ] {
        let error = compile_text(text, "[]").err().unwrap();
        assert_eq!(error.kind, Kind::Invalid, "{text}");
        let expected = format!("The query of a change feed filters and projects single changes: {rule}.");
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn user_defined_functions_are_not_supported() {
    let error = compile_text("SELECT * FROM c WHERE udf.f(c.n)", "[]").err().unwrap();
    assert_eq!(error.kind, Kind::Unsupported);
}
