//! Which definitions are accepted, and the values they compute.

use super::*;
use crate::document::PropertyName;
use std::borrow::Cow;

fn definition(name: &str, query: &str) -> ComputedProperty {
    ComputedProperty { name: name.to_owned(), query: query.to_owned() }
}

fn compiled(query: &str) -> Result<ComputedExprs> {
    ComputedExprs::compile(
        &[definition("made", query), definition("other", "SELECT VALUE 1 FROM c")],
        Geospatial::Geography,
    )
}

struct Text(Value);

impl Document for Text {
    fn property(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>> {
        self.0.get(&name.text).map(|value| Cow::Owned(json::to_string(value).into_bytes()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(json::to_string(&self.0).as_bytes());
    }
}

/// Checks the value that a query sees and the value that is indexed.
#[track_caller]
fn check_value(query: &str, item: &str, want: Option<&str>) {
    let (computed, item) = (compiled(query).unwrap(), json::parse(item.as_bytes()).unwrap());
    let (_, value) = computed.values(&item).next().unwrap();
    assert_eq!(value.as_ref().map(json::to_string).as_deref(), want, "{query}");
    let text = computed.text("made", &Text(item)).unwrap();
    assert_eq!(text.map(|text| String::from_utf8(text).unwrap()).as_deref(), want, "{query}");
}

#[track_caller]
fn check_rejected(query: &str, why: &str) {
    let error = compiled(query).err().unwrap_or_else(|| panic!("{query} was accepted"));
    assert!(error.to_string().contains(why), "{query}: {error}");
    assert!(error.to_string().contains("'made'"), "{error}");
}

#[test]
fn definitions_compute_values_from_items() {
    check_value("SELECT VALUE LOWER(c.name) FROM c", r#"{"name":"Ann"}"#, Some(r#""ann""#));
    check_value("SELECT VALUE LOWER(r.name) FROM root r", r#"{"name":7}"#, None);
    check_value("SELECT VALUE c.price * 0.9 FROM Any c", r#"{"price":10}"#, Some("9"));
    check_value("SELECT VALUE c.a.b[1] ?? null FROM c", r#"{"a":{"b":[1]}}"#, Some("null"));
    check_value(r#"SELECT VALUE {"x": c.x, "up": UPPER(c["y"])} FROM c"#, r#"{"y":"a"}"#, Some(r#"{"up":"A"}"#));
    check_value("SELECT VALUE c._ts / 2 FROM c", r#"{"_ts":10}"#, Some("5"));
    check_value("SELECT VALUE LOWER(c.made) FROM c", r#"{"made":"X"}"#, Some(r#""x""#));
}

#[test]
fn values_outside_json_are_undefined() {
    check_value("SELECT VALUE c.a / c.b FROM c", r#"{"a":1,"b":0}"#, None);
    check_value("SELECT VALUE [LOG(c.a)] FROM c", r#"{"a":0}"#, None);
}

#[test]
fn names_that_are_not_computed_have_no_value() {
    let computed = compiled("SELECT VALUE 1 FROM c").unwrap();
    let item = Text(json::parse(b"{}").unwrap());
    assert_eq!(computed.text("elsewhere", &item), None);
    assert!(ComputedExprs::compile(&[], Geospatial::Geography).unwrap().is_empty() && !computed.is_empty());
}

#[test]
fn definitions_select_one_value_of_one_item() {
    check_rejected("SELECT c.a FROM c", "SELECT VALUE");
    check_rejected("SELECT * FROM c", "SELECT VALUE");
    check_rejected("SELECT VALUE c.a FROM c WHERE c.a > 1", "no WHERE");
    check_rejected("SELECT VALUE c.a FROM c ORDER BY c.a", "no ORDER BY");
    check_rejected("SELECT VALUE c.a FROM c GROUP BY c.a", "no GROUP BY");
    check_rejected("SELECT DISTINCT VALUE c.a FROM c", "no DISTINCT");
    check_rejected("SELECT TOP 1 VALUE c.a FROM c", "no TOP");
    check_rejected("SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1", "no TOP, OFFSET or LIMIT");
    check_rejected("SELECT VALUE t FROM c JOIN t IN c.tags", "FROM");
    check_rejected("SELECT VALUE t FROM t IN c.tags", "FROM");
    check_rejected("SELECT VALUE 1", "FROM");
    check_rejected("SELECT VALUE COUNT(1) FROM c", "aggregate");
    check_rejected("SELECT VALUE c.a FROM", "Syntax error");
}

#[test]
fn definitions_depend_on_the_item_alone() {
    check_rejected("SELECT VALUE RAND() FROM c", "time or chance");
    check_rejected("SELECT VALUE c.t < GetCurrentTimestamp() FROM c", "time or chance");
    check_rejected("SELECT VALUE GetCurrentDateTimeStatic() FROM c", "time or chance");
    check_rejected("SELECT VALUE ST_DISTANCE(c.a, c.b) FROM c", "spatial");
    check_rejected("SELECT VALUE udf.f(c.a) FROM c", "user-defined");
    check_rejected("SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.tags) FROM c", "subquery");
    check_rejected("SELECT VALUE (SELECT VALUE 1) + c.a FROM c", "subquery");
    check_rejected("SELECT VALUE LOWER(c.other) FROM c", "no other computed property");
    check_rejected("SELECT VALUE c._etag FROM c", "only _ts");
    check_rejected("SELECT VALUE c FROM c", "not the item as a whole");
    check_rejected("SELECT VALUE c.a = @p FROM c", "no parameters");
}
