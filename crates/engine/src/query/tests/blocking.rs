//! Inline pages: a page whose rows are in memory runs on the async worker; any other page is refused there, has no
//! effect, and runs on a blocking thread.

use std::sync::Arc;

use pleiad_model::Object;
use pleiad_sql::testing::TestQuery;
use pleiad_storage::{Blocking, Memory, RocksOptions, RocksStore};

use crate::query::exam::item_query;
use crate::query::page::ItemQuery;
use crate::query::stop::PageRetry;
use crate::query::{PageSize, QueryPage};
use crate::testing::*;
use crate::throughput::ThroughputRequest;
use crate::{Admitted, Engine, EngineResponse, FaultKind, FeedRange, InjectedFault, Verb, WriteOptions};

const ITEMS: usize = 40;

fn query(text: &str) -> Arc<ItemQuery> {
    let asked = TestQuery { text: text.to_owned(), parameters: Vec::new() };
    Arc::new(item_query(&asked, FeedRange::Container, PageSize { rows: 1000, bytes: 1 << 20 }, None, false))
}

/// Items with text, 400 KB together: several blocks of a store on disk, and more than four write buffers of 64 KB.
async fn fill(engine: &Engine) {
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    container(engine, "c", &["/pk"], 4).await;
    let at = admit(engine, "c");
    for n in 0..ITEMS {
        let key = ["a", "b", "c", "d"][n % 4];
        let body = Object::new().with("id", n.to_string()).with("pk", key).with("text", "x".repeat(10_000));
        let options = WriteOptions::default();
        engine.create_item(&at, Some(&pk(key)), Verb::Create, body.into(), &options).await.result.unwrap();
    }
}

/// What the partitions were charged, and what they have reserved.
fn used_ru(engine: &Engine, at: &Admitted) -> f64 {
    let used = at.container().partitions.iter().map(|partition| partition.governor.used_ru(engine.now_ms()));
    used.sum()
}

fn rows(answer: Result<EngineResponse<QueryPage>, PageRetry>) -> usize {
    answer.unwrap().result.unwrap().rows.len()
}

async fn run_on_thread(engine: &Engine, at: &Admitted, text: &str) -> Result<EngineResponse<QueryPage>, PageRetry> {
    let task = engine.page_task(at, &query(text), None);
    tokio::task::spawn_blocking(move || task.run(Blocking::Thread)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_whose_rows_are_on_disk_is_refused_inline_without_effects() {
    let dir = tempfile::tempdir().unwrap();
    // Writers wait when more than three full write buffers are not flushed, so that the first items are in table files
    // when the store is opened again. Rows that only the log has would be in memory then.
    let options = RocksOptions { write_buffer_bytes: 64 << 10, ..RocksOptions::default() };
    let engine = open(RocksStore::open(dir.path(), options).unwrap(), LIMITS).await;
    fill(&engine).await;
    engine.close().await;
    drop(engine);
    let engine = open(disk(dir.path()), LIMITS).await;
    let at = admit(&engine, "c");
    for (text, want, runs_inline_later) in [
        ("SELECT VALUE c.id FROM c WHERE c.pk = 'a'", ITEMS / 4, true),
        ("SELECT * FROM c", ITEMS, false), // a full scan of a store on disk is never inline
    ] {
        let task = engine.page_task(&at, &query(text), None);
        let before_ru = used_ru(&engine, &at);
        if text.contains("'a'") {
            // The first query: nothing is in memory yet.
            assert_eq!(task.run(Blocking::Inline).map(|_| ()), Err(PageRetry::WouldBlock), "{text}");
            assert_eq!(task.run(Blocking::Inline).map(|_| ()), Err(PageRetry::WouldBlock), "{text}: it read nothing");
            assert_eq!(used_ru(&engine, &at), before_ru, "{text}: nothing is charged or reserved");
        }
        let answer = run_on_thread(&engine, &at, text).await;
        let charge_ru = answer.as_ref().unwrap().charge_ru;
        assert_eq!(rows(answer), want, "{text}");
        // Each of the four partitions rounds its part of the charge to hundredths.
        assert!((used_ru(&engine, &at) - before_ru - charge_ru).abs() <= 0.025, "{text}");
        match task.run(Blocking::Inline) {
            Err(retry) => assert_eq!((retry, runs_inline_later), (PageRetry::WouldBlock, false), "{text}"),
            answer => assert_eq!((rows(answer), runs_inline_later), (want, true), "{text}"),
        }
    }
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_rows_in_memory_runs_inline() {
    let engine = open(Memory::new(), LIMITS).await;
    fill(&engine).await;
    let at = admit(&engine, "c");
    for text in ["SELECT * FROM c", "SELECT VALUE c.id FROM c ORDER BY c.id", "SELECT VALUE COUNT(1) FROM c"] {
        let inline = rows(engine.page_task(&at, &query(text), None).run(Blocking::Inline));
        assert_eq!(inline, rows(run_on_thread(&engine, &at, text).await), "{text}");
    }
}

/// The fault counts a page once, although the page is first tried inline.
#[tokio::test]
async fn a_slow_partition_delays_a_page_without_blocking_its_worker() {
    let engine = open(Memory::new(), LIMITS).await;
    fill(&engine).await;
    let at = admit(&engine, "c");
    let range = at.container().partitions[0].range.id;
    let fault = InjectedFault { kind: FaultKind::Slow, delay_ms: 20, requests_left: Some(1), until_ms: None };
    engine.set_fault(&at, range, fault).unwrap();
    let (query, used_before_ru) = (query("SELECT * FROM c ORDER BY c.id"), used_ru(&engine, &at));
    let inline = engine.page_task(&at, &query, None).run(Blocking::Inline);
    assert_eq!(inline.map(|_| ()), Err(PageRetry::WouldBlock));
    assert_eq!(used_ru(&engine, &at), used_before_ru);
    assert_eq!(engine.faults(&whole(&engine)).unwrap()[0].fault.requests_left, Some(1));
    assert_eq!(rows(Ok(engine.query_items(&at, Arc::try_unwrap(query).ok().unwrap(), None).await)), ITEMS);
    assert_eq!(engine.faults(&whole(&engine)).unwrap()[0].fault.requests_left, Some(0));
}
