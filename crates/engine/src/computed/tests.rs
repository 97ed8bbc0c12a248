//! Queries and the index evaluate the same computed properties, also while their definitions change.

use super::*;
use crate::query::{CrossPartition, ItemQuery, PageSize};
use crate::testing::*;
use crate::{Container, Engine, FeedRange, Parameters, Verb, WriteOptions};
use pleiad_model::policy::PathStep;
use pleiad_model::{Kind, json};

const LOW_INDEXED: &str = r#"{"includedPaths":[{"path":"/*"},{"path":"/low/?"}],
                         "compositeIndexes":[[{"path":"/low"},{"path":"/n","order":"descending"}]]}"#;

async fn replace(engine: &Engine, policy: &str, computed: &str) -> Result<Arc<Container>> {
    let rid = admit(engine, "c").container().rid;
    let key = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
    let body =
        format!(r#"{{"id":"c","partitionKey":{key},"indexingPolicy":{policy},"computedProperties":[{computed}]}}"#);
    engine.catalog.replace_container(rid, |old| old.replace(&parse(&body))).await
}

fn low(scalar: &str) -> String {
    format!(r#"{{"name":"low","query":"SELECT VALUE {scalar} FROM c"}}"#)
}

async fn filled() -> Arc<Engine> {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    for n in 0..90 {
        let name = format!("{}{}", if n % 2 == 0 { "Name" } else { "NAME" }, n % 9);
        let body = format!(r#"{{"id":"{n}","pk":"{}","name":"{name}","low":{n},"n":{n}}}"#, n % 7);
        let (at, key) = (admit(&engine, "c"), pk(&(n % 7).to_string()));
        engine.create_item(&at, Some(&key), Verb::Create, parse(&body), &WriteOptions::default()).await.result.unwrap();
    }
    engine
}

async fn rows(engine: &Engine, sql: &str) -> Vec<Value> {
    let size = PageSize { rows: 1000, bytes: 1 << 20 };
    let (text, parameters, scope) = (sql.to_owned(), Parameters::default(), FeedRange::Container);
    let (across, from, report, enable_scan) = (CrossPartition::ByServer, None, crate::ReportOptions::default(), false);
    let resume = None;
    let query = ItemQuery { text, parameters, scope, cross_partition: across, size, from, resume, report, enable_scan };
    let page = engine.query_items(&admit(engine, "c"), query, None).await.result.unwrap();
    page.rows.iter().map(|row| json::parse(row).unwrap()).collect()
}

async fn count(engine: &Engine, filter: &str) -> usize {
    rows(engine, &format!("SELECT VALUE c.id FROM c WHERE {filter}")).await.len()
}

fn is_indexed(engine: &Engine) -> bool {
    admit(engine, "c").container().schema.usable_index().indexes(&[PathStep::Property("low".to_owned())])
}

async fn wait_until_reindexed(engine: &Engine) {
    while admit(engine, "c").container().index_transformation.is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_changed_definition_applies_immediately_and_is_indexed_later() {
    let engine = filled().await;
    assert_eq!((count(&engine, "c.low = 7").await, is_indexed(&engine)), (1, true));
    for (policy, scalar, filter, found) in [
        (LOW_INDEXED, "LOWER(c.name)", "c.low = 'name3'", 10),
        (LOW_INDEXED, "UPPER(c.name)", "c.low = 'NAME3'", 10),
        ("{}", "c.n % 2", "c.low = 1", 45),
        (LOW_INDEXED, "c.n % 3", "c.low = 1", 30),
    ] {
        replace(&engine, policy, &low(scalar)).await.unwrap();
        assert_eq!(count(&engine, filter).await, found, "{scalar}");
        assert_sound(&engine).await;
        wait_until_reindexed(&engine).await;
        assert_eq!((count(&engine, filter).await, is_indexed(&engine)), (found, policy == LOW_INDEXED), "{scalar}");
        assert_sound(&engine).await;
    }
    replace(&engine, "{}", "").await.unwrap();
    assert_eq!(count(&engine, "c.low = 7").await, 1, "the stored property is visible again");
    wait_until_reindexed(&engine).await;
    assert_eq!((count(&engine, "c.low = 7").await, is_indexed(&engine)), (1, true));
    assert_sound(&engine).await;
}

#[tokio::test]
async fn an_unindexed_computed_property_changes_without_a_rebuild() {
    let engine = filled().await;
    replace(&engine, "{}", &low("LOWER(c.name)")).await.unwrap();
    wait_until_reindexed(&engine).await;
    let before = admit(&engine, "c").container().schema.version;
    let after = replace(&engine, "{}", &low("UPPER(c.name)")).await.unwrap();
    assert!(after.index_transformation.is_none() && after.schema.version == before);
    assert_eq!(count(&engine, "c.low = 'NAME3'").await, 10);
}

#[tokio::test]
async fn a_restart_continues_the_transformation_to_a_new_definition() {
    let engine = filled().await;
    replace(&engine, LOW_INDEXED, &low("LOWER(c.name)")).await.unwrap();
    wait_until_reindexed(&engine).await;
    replace(&engine, LOW_INDEXED, &low("UPPER(c.name)")).await.unwrap();
    let (store, _) = engine.catalog.store_and_committer();
    engine.close().await;
    let again = reopen(store, LIMITS).await;
    assert_eq!(count(&again, "c.low = 'NAME3'").await, 10);
    wait_until_reindexed(&again).await;
    assert_eq!((count(&again, "c.low = 'NAME3'").await, is_indexed(&again)), (10, true));
    assert_sound(&again).await;
}

#[tokio::test]
async fn a_partition_key_cannot_be_computed() {
    let engine = filled().await;
    let refused = replace(&engine, "{}", r#"{"name":"pk","query":"SELECT VALUE 1 FROM c"}"#).await;
    assert_eq!(refused.err().unwrap().kind, Kind::Invalid);
}
