//! Scripts survive a restart, are limited in number, and are deleted with their container.

use std::sync::Arc;

use super::*;
use crate::Engine;
use crate::testing::*;
use pleiad_storage::Memory;

fn procedure(id: &str) -> ScriptDefinition {
    ScriptDefinition { id: id.to_owned(), body: "function () {}".to_owned(), trigger: None }
}

async fn create_procedure(engine: &Engine, container: ContainerRid, id: &str) -> Result<Arc<Script>> {
    let put = engine.catalog.put_script(container, ScriptKind::StoredProcedure, procedure(id), PutMode::Create);
    put.await.map(|(script, _)| script)
}

#[tokio::test]
async fn s3_scripts_survive_a_restart_and_are_deleted_with_their_container() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"id":"t","body":"x\u2028\u0085","triggerType":"pre","triggerOperation":"all"}"#;
    let engine = open(disk(dir.path()), LIMITS).await;
    engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
    let kept = container(&engine, "a", &["/pk"], 4).await.rid;
    let dropped = container(&engine, "b", &["/pk"], 4).await.rid;
    let definition = ScriptDefinition::parse(ScriptKind::Trigger, &parse(text)).unwrap();
    let put = engine.catalog.put_script(kept, ScriptKind::Trigger, definition, PutMode::Create);
    let (made, is_new) = put.await.unwrap();
    assert!(is_new);
    create_procedure(&engine, dropped, "s").await.unwrap();
    engine.catalog.delete_container(dropped).await.unwrap();
    engine.close().await;
    drop(engine);
    let engine = open(disk(dir.path()), LIMITS).await;
    let scripts = admit(&engine, "a").container().scripts.clone();
    let again = scripts.get(made.rid).unwrap();
    assert_eq!(again.definition.to_object(), *parse(text).as_object().unwrap());
    assert_eq!((again.version, scripts.iter().count()), (made.version, 1));
    let anew = container(&engine, "b", &["/pk"], 4).await;
    assert_eq!(anew.scripts.iter().count(), 0);
}

#[tokio::test]
async fn a_container_has_at_most_100_stored_procedures() {
    let engine = open(Memory::new(), LIMITS).await;
    engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
    let rid = container(&engine, "c", &["/pk"], 4).await.rid;
    for n in 0..STORED_PROCEDURES_MAX {
        create_procedure(&engine, rid, &n.to_string()).await.unwrap();
    }
    assert_eq!(create_procedure(&engine, rid, "more").await.err().unwrap().kind, Kind::QuotaExceeded);
    let first = admit(&engine, "c").container().scripts.named(ScriptKind::StoredProcedure, "0").unwrap().rid;
    engine.catalog.delete_script(first).await.unwrap();
    let made = create_procedure(&engine, rid, "more").await.unwrap();
    assert_eq!(admit(&engine, "c").container().scripts.of(ScriptKind::StoredProcedure).last().unwrap().rid, made.rid);
}

#[test]
fn the_item_size_limit_applies_to_scripts() {
    let of = |bytes: usize| {
        let value = Object::new().with("id", "s").with("body", "x".repeat(bytes)).into();
        ScriptDefinition::parse(ScriptKind::StoredProcedure, &value)
    };
    assert!(of(SCRIPT_BYTES_MAX).is_ok());
    assert_eq!(of(SCRIPT_BYTES_MAX + 1).err().unwrap().kind, Kind::TooLarge);
}
