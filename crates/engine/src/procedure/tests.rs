//! Concurrent scripts and plain writes: nothing is lost, and no partial result is visible.
//!
//! The messages name the anomaly: a lost update, a dirty read, a non-repeatable read, a phantom, read skew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pleiad_model::resource_id::ScriptKind;
use pleiad_model::{Kind, Value};
use pleiad_storage::Memory;

use super::*;
use crate::testing::*;
use crate::{ContainerName, PartitionLimits, PutMode, ScriptDefinition, Target, ThroughputRequest, Verb};

/// Stores cursors in a list; the text of a cursor is its index.
#[derive(Default)]
struct CursorTable(Mutex<Vec<QueryCursor>>);

impl CursorCodec for CursorTable {
    fn write(&self, cursor: &QueryCursor) -> String {
        let mut known = self.0.lock();
        known.push(cursor.clone());
        (known.len() - 1).to_string()
    }

    fn read(&self, text: &str) -> Result<QueryCursor> {
        let found = text.parse::<usize>().ok().and_then(|at| self.0.lock().get(at).cloned());
        found.ok_or_else(|| Error::invalid("no such cursor"))
    }
}

/// The words of the protocol, which scripts get as clients do.
fn message(error: &Error) -> String {
    format!("told a client: {error}")
}

fn context() -> ScriptContext {
    let (quota_max, quota_used) = Default::default();
    ScriptContext { cursors: Arc::new(CursorTable::default()), message, quota_max, quota_used, is_logging: true }
}

async fn world(paths: &[&str]) -> Arc<Engine> {
    let engine = open(Memory::new(), PartitionLimits { partition_ru_initial: 10_000, ..LIMITS }).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    try_container(&engine, "db", "c", paths, ThroughputRequest::Manual(400)).await.unwrap();
    engine
}

async fn store(engine: &Engine, kind: ScriptKind, text: &str) {
    let definition = ScriptDefinition::parse(kind, &parse(text)).unwrap();
    let container = admit(engine, "c").container().rid;
    engine.catalog.put_script(container, kind, definition, PutMode::Create).await.unwrap();
}

async fn procedure(engine: &Engine, id: &str, body: &str) {
    let text = pleiad_model::json::to_string(&pleiad_model::Object::new().with("id", id).with("body", body).into());
    store(engine, ScriptKind::StoredProcedure, &text).await;
}

async fn run(engine: &Engine, id: &str, key: &str, arguments: &[&str]) -> Result<Result<Option<Value>, ScriptError>> {
    let at = admit(engine, "c");
    let script = at.container().scripts.named(ScriptKind::StoredProcedure, id).unwrap().clone();
    let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
    let answer = engine.execute_procedure(&at, Some(&pk(key)), &script, arguments, context()).await;
    answer.result.map(|executed| executed.result.map(|body| body.map(|text| parse(&text))))
}

async fn succeeds(engine: &Engine, id: &str, key: &str, arguments: &[&str]) -> Value {
    run(engine, id, key, arguments).await.unwrap().unwrap().unwrap_or(Value::Null)
}

async fn put(engine: &Engine, text: &str, key: &str) {
    let at = admit(engine, "c");
    let written = engine.create_item(&at, Some(&pk(key)), Verb::Upsert, parse(text), &Default::default()).await;
    written.result.unwrap();
}

async fn number(engine: &Engine, id: &str, key: &str) -> i64 {
    let record = read(engine, &admit(engine, "c"), id, key).await.result.unwrap();
    pleiad_model::json::parse(record.body()).unwrap().get("n").and_then(Value::as_i64).unwrap()
}

const INCREMENT: &str = "function (id) {
    __.readDocument(__.getAltLink() + '/docs/' + id, (e, doc) => {
        if (e) throw e;
        doc.n++;
        __.replaceDocument(doc._self, doc, (e, doc) => { if (e) throw e; __.response.setBody(doc.n) });
    });
}";

/// Moves an amount from one item to the other; the sum stays the same.
const TRANSFER: &str = "function (from, to, n) {
    __.queryDocuments(__.getAltLink(), 'SELECT * FROM c', (e, docs) => {
        const [a, b] = [from, to].map(id => docs.find(d => d.id == id));
        a.n -= n; b.n += n;
        __.replaceDocument(a._self, a);
        __.replaceDocument(b._self, b);
    });
}";

/// The sum of both, read in three ways, one after the other.
const SUM: &str = "function () {
    const link = __.getAltLink() + '/docs/', seen = [];
    __.readDocument(link + 'a', (e, a) => __.readDocument(link + 'b', (e, b) => {
        seen.push(a.n + b.n);
        __.queryDocuments(__.getAltLink(), 'SELECT VALUE SUM(c.n) FROM c', (e, rows) => {
            seen.push(rows[0]);
            __.readDocument(link + 'a', (e, again) => { seen.push(b.n + again.n); __.response.setBody(seen) });
        });
    }));
}";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s117_no_update_is_lost() {
    let engine = world(&["/pk"]).await;
    procedure(&engine, "increment", INCREMENT).await;
    put(&engine, r#"{"id":"x","pk":"a","n":0}"#, "a").await;
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    succeeds(&engine, "increment", "a", &["\"x\""]).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(number(&engine, "x", "a").await, 120, "a lost update");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s117_a_script_reads_one_snapshot() {
    let engine = world(&["/pk"]).await;
    procedure(&engine, "transfer", TRANSFER).await;
    procedure(&engine, "sum", SUM).await;
    put(&engine, r#"{"id":"a","pk":"k","n":500}"#, "k").await;
    put(&engine, r#"{"id":"b","pk":"k","n":500}"#, "k").await;
    let stop = Arc::new(AtomicBool::new(false));
    let movers: Vec<_> = [("\"a\"", "\"b\""), ("\"b\"", "\"a\"")]
        .into_iter()
        .map(|(from, to)| {
            let (engine, stop) = (engine.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    succeeds(&engine, "transfer", "k", &[from, to, "3"]).await;
                }
            })
        })
        .collect();
    for _ in 0..60 {
        let seen = succeeds(&engine, "sum", "k", &[]).await;
        assert_eq!(seen, parse("[1000,1000,1000]"), "read skew, or a non-repeatable read");
    }
    stop.store(true, Ordering::Relaxed);
    for mover in movers {
        mover.await.unwrap();
    }
    assert_eq!(number(&engine, "a", "k").await + number(&engine, "b", "k").await, 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s116_script_writes_are_atomic_and_confined_to_one_key() {
    let engine = world(&["/pk"]).await;
    let body = "function (other) {
        __.createDocument(__.getSelfLink(), { id: '1', pk: 'a' });
        __.createDocument(__.getSelfLink(), { id: '2', pk: other }, (e) => { if (e) throw new Error(e.number, e.message) });
    }";
    procedure(&engine, "make", body).await;
    let failed = run(&engine, "make", "a", &["\"b\""]).await.unwrap().unwrap_err();
    assert_eq!(failed.number, Some(400));
    assert!(failed.message.contains("told a client: the item is in another logical partition"), "{failed}");
    assert_eq!(read(&engine, &admit(&engine, "c"), "1", "a").await.result.unwrap_err().kind, Kind::NotFound);
    succeeds(&engine, "make", "a", &["\"a\""]).await;
    assert!(read(&engine, &admit(&engine, "c"), "2", "a").await.result.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s119_s121_a_script_sees_one_item_where_each_has_its_own_key() {
    let engine = world(&["/id"]).await;
    for id in ["1", "2", "3"] {
        put(&engine, &format!(r#"{{"id":"{id}"}}"#), id).await;
    }
    let body =
        "function () { __.readDocuments(__.getSelfLink(), (e, all) => __.response.setBody(all.map(d => d.id))) }";
    procedure(&engine, "all", body).await;
    assert_eq!(succeeds(&engine, "all", "2", &[]).await, parse(r#"["2"]"#));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s79_in_a_fixed_container_a_script_reaches_all_items() {
    let engine = account().await;
    let database = find_database(&engine, "db").unwrap().rid;
    let definition = pleiad_model::policy::ContainerDefinition::create(&parse(r#"{"id":"c"}"#)).unwrap();
    let new = crate::catalog::NewContainer { definition, throughput: ThroughputRequest::Unspecified };
    engine.catalog.create_container(database, new).await.unwrap();
    let at = admit(&engine, "c");
    for text in [r#"{"id":"a","pk":1,"n":1}"#, r#"{"id":"b","pk":2,"n":2}"#] {
        let made = engine.create_item(&at, None, Verb::Create, parse(text), &Default::default()).await;
        made.result.unwrap();
    }
    procedure(&engine, "transfer", TRANSFER).await;
    let at = admit(&engine, "c");
    let script = at.container().scripts.named(ScriptKind::StoredProcedure, "transfer").unwrap().clone();
    let arguments = ["\"a\"", "\"b\"", "5"].map(str::to_owned).to_vec();
    let done = engine.execute_procedure(&at, None, &script, arguments, context()).await;
    assert_eq!(done.result.unwrap().result, Ok(None));
    let text = engine.read_item(&at, None, Target::Named("b"), None, None).await.result.unwrap();
    assert_eq!(text.record.body(), br#"{"id":"b","pk":2,"n":7}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_partition_can_split_while_scripts_run() {
    let engine = world(&["/pk"]).await;
    procedure(&engine, "increment", INCREMENT).await;
    for key in ["a", "b", "c", "d"] {
        put(&engine, &format!(r#"{{"id":"x","pk":"{key}","n":0}}"#), key).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = ["a", "b", "c", "d"]
        .map(|key| {
            let (engine, stop) = (engine.clone(), stop.clone());
            tokio::spawn(async move {
                let mut times = 0;
                while !stop.load(Ordering::Relaxed) {
                    succeeds(&engine, "increment", key, &["\"x\""]).await;
                    times += 1;
                }
                times
            })
        })
        .into();
    let name = ContainerName::Named { database: "db", container: "c" };
    for _ in 0..2 {
        let job = engine.split(at_container(&engine, name).unwrap(), None, None).await.unwrap();
        engine.catalog.jobs().wait_ended(job).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for (task, key) in tasks.into_iter().zip(["a", "b", "c", "d"]) {
        assert_eq!(task.await.unwrap(), number(&engine, "x", key).await, "an update was lost, or applied twice");
    }
    assert_eq!(admit(&engine, "c").container().map.ranges().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paged_query_continues_after_its_items_are_deleted() {
    let engine = world(&["/pk"]).await;
    for n in 0..250 {
        put(&engine, &format!(r#"{{"id":"{n}","pk":"a","n":{n}}}"#), "a").await;
    }
    let body = "function (text) {
        let deleted = 0;
        const page = (continuation) => __.queryDocuments(__.getSelfLink(), text, { continuation, pageSize: 40 }, (e, docs, o) => {
            if (e) throw e;
            docs.forEach(d => __.deleteDocument(d._self, (e) => { if (e) throw e; deleted++; __.response.setBody(deleted) }));
            if (o.continuation) page(o.continuation);
        });
        page();
    }";
    procedure(&engine, "clear", body).await;
    let half = r#""SELECT * FROM c WHERE c.n % 2 = 0 ORDER BY c.n DESC""#;
    assert_eq!(succeeds(&engine, "clear", "a", &[half]).await, parse("125"));
    assert_eq!(succeeds(&engine, "clear", "a", &[r#""SELECT * FROM c""#]).await, parse("125"));
    assert_eq!(admit(&engine, "c").container().items(), 0);
}
