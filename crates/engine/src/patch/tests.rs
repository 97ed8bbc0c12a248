//! Patches as a client sees them: no other write comes between the read and the write of a patch.

use pleiad_model::Kind;
use std::sync::Arc;

use super::*;
use crate::testing::*;

fn patch(text: &str) -> Patch {
    Patch::parse(&parse(text)).unwrap()
}

async fn world() -> (Arc<Engine>, Admitted) {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    create(&engine, &at, "1", "a").await.result.unwrap();
    (engine, at)
}

async fn apply(engine: &Engine, at: &Admitted, text: &str) -> EngineResponse<Written> {
    engine.patch_item(at, Some(&pk("a")), Target::Named("1"), &patch(text), &Precondition::None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_increment_is_lost() {
    let (engine, at) = world().await;
    let work = |_| {
        let (engine, at) = (engine.clone(), at.clone());
        tokio::spawn(async move {
            for _ in 0..25 {
                apply(&engine, &at, r#"[{"op":"incr","path":"/n","value":1}]"#).await.result.unwrap();
            }
        })
    };
    for task in (0..8).map(work).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let body = json::parse(read(&engine, &at, "1", "a").await.result.unwrap().body()).unwrap();
    assert_eq!(body.get("n").and_then(pleiad_model::Value::as_i64), Some(200));
    assert_sound(&engine).await;
}

#[tokio::test]
async fn the_response_is_the_new_version() {
    let (engine, at) = world().await;
    let written = apply(&engine, &at, r#"[{"op":"set","path":"/n","value":1}]"#).await.result.unwrap();
    let returned = written.record.unwrap();
    let stored = read(&engine, &at, "1", "a").await.result.unwrap();
    assert_eq!((returned.etag(), returned.lsn, returned.bytes()), (stored.etag(), written.lsn, stored.bytes()));
}

#[tokio::test]
async fn a_patch_costs_a_replace_and_its_operations() {
    let (engine, at) = world().await;
    let replaced = parse(r#"{"id":"1","pk":"a","n":1}"#);
    let options = WriteOptions::default();
    let replace = engine.replace_item(&at, Some(&pk("a")), Target::Named("1"), replaced, &options).await;
    apply(&engine, &at, r#"[{"op":"remove","path":"/n"}]"#).await.result.unwrap();
    let patch = apply(&engine, &at, r#"[{"op":"set","path":"/n","value":1}]"#).await;
    assert!((patch.charge_ru - replace.charge_ru - 0.4).abs() < 0.001, "{} {}", patch.charge_ru, replace.charge_ru);
}

#[tokio::test]
async fn s16_no_patch_changes_the_partition_key() {
    let engine = account().await;
    container(&engine, "c", &["/who/name"], 4).await;
    let at = admit(&engine, "c");
    let item = parse(r#"{"id":"1","who":{"name":"a"}}"#);
    engine.create_item(&at, Some(&pk("a")), Verb::Create, item, &WriteOptions::default()).await.result.unwrap();
    for text in [
        r#"[{"op":"set","path":"/who/name","value":"b"}]"#,
        r#"[{"op":"set","path":"/who","value":{"name":"b"}}]"#,
        r#"[{"op":"remove","path":"/who"}]"#,
        r#"[{"op":"move","from":"/who","path":"/whom"}]"#,
    ] {
        let kind = kind(apply(&engine, &at, text).await);
        assert!(matches!(kind, Kind::Invalid | Kind::KeyMismatch), "{text}: {kind:?}");
    }
    apply(&engine, &at, r#"[{"op":"set","path":"/who","value":{"name":"a","age":7}}]"#).await.result.unwrap();
}

/// As in a query: a computed property is visible, and hides the stored property of the same name.
#[tokio::test]
async fn conditions_see_computed_properties() {
    let engine = account().await;
    let mut definition = definition("c", &["/pk"]);
    let low = r#"[{"name":"low","query":"SELECT VALUE LOWER(c.name) FROM c"}]"#;
    definition.computed_properties = pleiad_model::policy::ComputedProperty::parse_all(&parse(low)).unwrap();
    let database = find_database(&engine, "db").unwrap().rid;
    let new = crate::catalog::NewContainer { definition, throughput: crate::ThroughputRequest::Manual(400) };
    engine.catalog.create_container(database, new).await.unwrap();
    let at = admit(&engine, "c");
    let item = parse(r#"{"id":"1","pk":"a","name":"Ann","low":"stored"}"#);
    engine.create_item(&at, Some(&pk("a")), Verb::Create, item, &WriteOptions::default()).await.result.unwrap();
    let on = |condition: &str| {
        format!(r#"{{"condition":"from c where {condition}","operations":[{{"op":"set","path":"/n","value":1}}]}}"#)
    };
    apply(&engine, &at, &on("c.low = 'ann' and c._ts > 0 and c.name = 'Ann'")).await.result.unwrap();
    assert_eq!(kind(apply(&engine, &at, &on("c.low = 'stored'")).await), Kind::PreconditionFailed);
}
