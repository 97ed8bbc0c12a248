//! Unique values while partitions split and merge: at most one item has a value at any time.

use std::collections::HashMap;

use parking_lot::Mutex;
use pleiad_model::Kind;
use pleiad_model::policy::ContainerDefinition;

use super::*;
use crate::catalog::NewContainer;

/// The id that owns a value, by partition key and value, according to the responses that clients got.
type Owners = Arc<Mutex<HashMap<(u64, u64), String>>>;

const KEYS: u64 = 24;
const VALUES: u64 = 3;

async fn create_unique_container(engine: &Engine) {
    let db = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}}"#;
    let definition = ContainerDefinition::create(&parse(body)).unwrap();
    let new = NewContainer { definition, throughput: ThroughputRequest::Manual(400) };
    engine.catalog.create_container(db.rid, new).await.unwrap();
}

/// Claims values that other tasks want as well, and releases some.
async fn claim(engine: Arc<Engine>, task: u64, stop: Arc<AtomicBool>, owners: Owners) -> u64 {
    let mut claimed = 0;
    for n in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (key, value, id) = ((n * 7 + task * 5) % KEYS, (n / KEYS + task) % VALUES, format!("{task}-{n}"));
        let text = format!(r#"{{"id":"{id}","pk":"{key}","mail":"{value}@x"}}"#);
        let (name, at) = (pk(&key.to_string()), admit(&engine, "c"));
        let options = WriteOptions::default();
        let made = engine.create_item(&at, Some(&name), Verb::Create, parse(&text), &options).await;
        drop(at);
        match made.result {
            Ok(_) => {
                claimed += 1;
                let before = owners.lock().insert((key, value), id.clone());
                assert_eq!(before, None, "{id} was created with a value that another item has");
            }
            Err(error) => assert_eq!(error.kind, Kind::Conflict, "{error}"),
        }
        let own_claim =
            owners.lock().iter().find(|(_, id)| id.starts_with(&format!("{task}-"))).map(|(at, id)| (*at, id.clone()));
        if let Some(((key, value), id)) = own_claim.filter(|_| n % 3 == 0) {
            // Before the delete: no other task can claim the value while the item exists.
            owners.lock().remove(&(key, value));
            delete(&engine, &admit(&engine, "c"), &id, &key.to_string()).await.result.unwrap();
        }
        tokio::task::yield_now().await;
    }
    claimed
}

#[tokio::test(flavor = "multi_thread")]
async fn s12_unique_values_stay_unique_while_partitions_split_and_merge() {
    let engine = open(Memory::new(), ONE).await;
    create_unique_container(&engine).await;
    let (stop, owners) = (Arc::new(AtomicBool::new(false)), Owners::default());
    let task = |n| tokio::spawn(claim(engine.clone(), n, stop.clone(), owners.clone()));
    let tasks: Vec<_> = (0..4).map(task).collect();
    while owners.lock().len() < 20 {
        tokio::task::yield_now().await;
    }
    for _ in 0..4 {
        for _ in 0..2 {
            wait_done(&engine, engine.split(at_container(&engine, C).unwrap(), None, None).await.unwrap()).await;
        }
        let all = ids(&engine);
        assert_eq!(all.len(), 3);
        wait_done(&engine, engine.merge(at_container(&engine, C).unwrap(), &all).await.unwrap()).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut claimed = 0;
    for task in tasks {
        claimed += task.await.unwrap();
    }
    assert!(claimed > 100, "only {claimed} values were claimed");
    let quota = crate::PageLimit { items: 10_000, bytes: 1 << 30 };
    let page = engine.list_items(&admit(&engine, "c"), &FeedRange::Container, None, quota, None).await.result.unwrap();
    let mut there: Vec<String> = page.records.iter().map(|record| record.id().to_owned()).collect();
    let mut claimed_ids: Vec<String> = owners.lock().values().cloned().collect();
    there.sort();
    claimed_ids.sort();
    assert_eq!(there, claimed_ids);
    assert_sound(&engine).await;
}
