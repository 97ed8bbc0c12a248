//! The script benchmark: the cost of scripts and batches, against the same work without them.
//!
//! Guarantees: every figure is a ratio of two loads that took turns on one server: an empty stored procedure against a
//! point read; a procedure that inserts a hundred items, or a batch of a hundred, against a hundred creates on one
//! connection; a query that calls a function for each item against the same query without the call.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::round;
use crate::load;
use crate::measure::{LoadFigures, median, share};
use crate::server::{self, ServerMode, ServerUnderTest};
use crate::signed::{CONTAINER, DATABASE, Reads, RequestSigner, Requests};
use crate::{Result, item, report};

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(1000);
const ITEMS: u64 = 100_000;
/// How often each query runs.
const QUERIES: usize = 15;
/// The number of items that one procedure call or batch writes.
const ITEMS_PER_CALL: u64 = 100;
/// The distance between the item numbers of two loads, so that no item is created twice.
const NUMBER_STRIDE: u64 = 1_000_000_000;

const EMPTY_CPU_MAX: f64 = 4.0;
const CALL_US_MAX: f64 = 1.0;
const BATCH_RATE_MIN: f64 = 5.0;

const EMPTY: &str = "function () {}";
const INSERT: &str = "function (documents) { documents.forEach(d => { if (!__.createDocument(__.getSelfLink(), d)) throw new Error('late') }) }";
const FUNCTION: &str = "function (n) { return n % 7 }";
const QUERY_WITHOUT_CALL: &str = "SELECT VALUE COUNT(1) FROM c WHERE c.count % 7 = 3";
const QUERY_WITH_CALL: &str = "SELECT VALUE COUNT(1) FROM c WHERE udf.f(c.count) = 3";

/// The results of one run.
struct ScriptFindings {
    read: LoadFigures,
    empty: LoadFigures,
    empty_cpu: f64,
    /// Items per second: single creates, a procedure, a batch.
    single: f64,
    inserted: f64,
    batched: f64,
    plain_ms: f64,
    calling_ms: f64,
}

/// `PLEIAD RESULT.json [PAGE.md]`
pub fn command(words: &[&str]) -> Result {
    let (pleiad, result, page) = match words {
        [pleiad, result] => (pleiad, result, None),
        [pleiad, result, page] => (pleiad, result, Some(PathBuf::from(page))),
        _ => return Err("scripts takes PLEIAD RESULT.json [PAGE.md]".to_owned()),
    };
    let findings = run(Path::new(pleiad))?;
    let table = table(&findings);
    println!("{table}");
    let json = findings.json();
    fs::write(result, format!("{json:#}\n")).map_err(|e| format!("cannot write {result}: {e}"))?;
    let fenced = || format!("{}\n\n```text\n{}\n```", report::machine(), table.trim_matches('\n'));
    page.map_or(Ok(()), |page| report::write_between(&page, "bench-scripts", &fenced()))
}

fn run(pleiad: &Path) -> Result<ScriptFindings> {
    let subject = ServerUnderTest::start(pleiad, ServerMode::Serve)?;
    let signer = RequestSigner::now();
    server::create_container(subject.address, &signer)?;
    server::fill(subject.address, &signer, ITEMS)?;
    create_script(&subject, &signer, "sprocs", "empty", EMPTY)?;
    create_script(&subject, &signer, "sprocs", "insert", INSERT)?;
    create_script(&subject, &signer, "udfs", "f", FUNCTION)?;
    std::thread::sleep(Duration::from_secs(1)); // let the store flush what filling wrote
    let (read, empty, empty_cpu) = empty_calls(&subject)?;
    let [single, inserted, batched] = writes(&subject)?;
    let (plain_ms, calling_ms) = queries(&subject)?;
    Ok(ScriptFindings { read, empty, empty_cpu, single, inserted, batched, plain_ms, calling_ms })
}

fn container_link() -> String {
    format!("dbs/{DATABASE}/colls/{CONTAINER}")
}

fn create_script(subject: &ServerUnderTest, signer: &RequestSigner, feed: &str, id: &str, body: &str) -> Result {
    let text = json!({"id": id, "body": body}).to_string();
    let request = signer.request("POST", &format!("{}/{feed}", container_link()), feed, &container_link(), "", &text);
    load::send_once(subject.address, &request).map(drop)
}

// ---- an empty call ----------------------------------------------------------------------------------------

fn empty_calls(subject: &ServerUnderTest) -> Result<(LoadFigures, LoadFigures, f64)> {
    let reads: Arc<dyn Requests> = Arc::new(Reads::sign(&RequestSigner::now(), 10_000));
    let calls: Arc<dyn Requests> =
        Arc::new(RepeatedRequest(call_request(&RequestSigner::now(), "empty", &item::partition_key(0), "[]")));
    let one =
        |requests: &Arc<dyn Requests>| round(subject.pid(), subject.address, requests.clone(), CONNECTIONS, ROUND);
    one(&reads)?; // warm-up
    one(&calls)?;
    let (mut read, mut called) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        read.push(one(&reads)?);
        called.push(one(&calls)?);
    }
    let cpu = share(&called, &read, |figures| figures.cpu_us);
    Ok((LoadFigures::median(&read), LoadFigures::median(&called), cpu))
}

/// The same request every time.
struct RepeatedRequest(Vec<u8>);

impl Requests for RepeatedRequest {
    fn write(&self, _: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

fn call_request(signer: &RequestSigner, id: &str, key: &str, arguments: &str) -> Vec<u8> {
    let path = format!("{}/sprocs/{id}", container_link());
    let key = format!("content-type: application/json\r\nx-ms-documentdb-partitionkey: [\"{key}\"]\r\n");
    signer.request("POST", &path, "sprocs", &path, &key, arguments)
}

// ---- a hundred items --------------------------------------------------------------------------------------

/// All items have one partition key, and all requests use one connection.
fn writes(subject: &ServerUnderTest) -> Result<[f64; 3]> {
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..=ROUNDS as u64 {
        let methods: [(Arc<dyn Requests>, u64); 3] = [
            (Arc::new(Writes::new(WriteMethod::Single, turn)), 1),
            (Arc::new(Writes::new(WriteMethod::Procedure, turn)), ITEMS_PER_CALL),
            (Arc::new(Writes::new(WriteMethod::Batch, turn)), ITEMS_PER_CALL),
        ];
        for (rates, (requests, items)) in rates.iter_mut().zip(methods) {
            let figures = round(subject.pid(), subject.address, requests, 1, ROUND)?;
            if turn > 0 {
                rates.push(figures.per_second * items as f64);
            }
        }
    }
    Ok(rates.map(median))
}

#[derive(Clone, Copy, PartialEq)]
enum WriteMethod {
    Single,
    Procedure,
    Batch,
}

struct Writes {
    method: WriteMethod,
    first: u64,
    head: String,
}

impl Writes {
    fn new(method: WriteMethod, turn: u64) -> Writes {
        let (link, signer) = (container_link(), RequestSigner::now());
        let head = match method {
            WriteMethod::Single => signer.head("POST", &format!("{link}/docs"), "docs", &link),
            WriteMethod::Procedure => {
                let path = format!("{link}/sprocs/insert");
                signer.head("POST", &path, "sprocs", &path)
            }
            WriteMethod::Batch => {
                let head = signer.head("POST", &format!("{link}/docs"), "docs", &link);
                format!("{head}x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n")
            }
        };
        let first = NUMBER_STRIDE * (1 + method as u64) + turn * (NUMBER_STRIDE / 100);
        Writes { method, first, head: format!("{head}content-type: application/json\r\n") }
    }

    fn body(&self, n: u64) -> String {
        match self.method {
            WriteMethod::Single => document(self.first + n),
            WriteMethod::Procedure => format!("[[{}]]", self.documents(n, "", "")),
            WriteMethod::Batch => {
                format!("[{}]", self.documents(n, r#"{"operationType":"Create","resourceBody":"#, "}"))
            }
        }
    }

    fn documents(&self, n: u64, before: &str, after: &str) -> String {
        let documents =
            (0..ITEMS_PER_CALL).map(|i| format!("{before}{}{after}", document(self.first + n * ITEMS_PER_CALL + i)));
        documents.collect::<Vec<_>>().join(",")
    }
}

impl Requests for Writes {
    fn write(&self, n: u64, out: &mut Vec<u8>) {
        let (head, body) = (&self.head, self.body(n));
        let length = body.len();
        out.extend_from_slice(
            format!("{head}x-ms-documentdb-partitionkey: [\"one\"]\r\ncontent-length: {length}\r\n\r\n{body}")
                .as_bytes(),
        );
    }
}

/// An item of 1 KB with the partition key `one`.
fn document(n: u64) -> String {
    let mut text = String::with_capacity(item::ITEM_BYTES);
    item::write_body(n, &mut text);
    text.replacen(&format!("\"pk\":\"{}\"", item::partition_key(n)), "\"pk\":\"one\"", 1)
}

// ---- a function for each item -----------------------------------------------------------------------------

/// The shortest time of each query: one query is short, and other work on the machine only makes it longer.
fn queries(subject: &ServerUnderTest) -> Result<(f64, f64)> {
    let (mut plain, mut calling) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..QUERIES {
        plain = plain.min(query_ms(subject, QUERY_WITHOUT_CALL)?);
        calling = calling.min(query_ms(subject, QUERY_WITH_CALL)?);
    }
    Ok((plain, calling))
}

/// Runs one query; returns its time in milliseconds.
fn query_ms(subject: &ServerUnderTest, text: &str) -> Result<f64> {
    let headers = "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\n\
                   x-ms-documentdb-query-enablecrosspartition: True\r\nx-pleiad-cross-partition: true\r\n";
    let body = json!({"query": text}).to_string();
    let request = RequestSigner::now().request(
        "POST",
        &format!("{}/docs", container_link()),
        "docs",
        &container_link(),
        headers,
        &body,
    );
    let started = Instant::now();
    load::send_once(subject.address, &request)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

// ---- output -----------------------------------------------------------------------------------------------

impl ScriptFindings {
    /// The time of the calls is the difference between the two queries.
    fn call_us(&self) -> f64 {
        (self.calling_ms - self.plain_ms) * 1e3 / ITEMS as f64
    }

    fn json(&self) -> Value {
        json!({
            "read": self.read.json(), "empty": self.empty.json(), "empty_cpu": self.empty_cpu,
            "items_per_second": {"single": self.single, "procedure": self.inserted, "batch": self.batched},
            "query_ms": {"plain": self.plain_ms, "calling": self.calling_ms}, "call_us": self.call_us(),
        })
    }
}

fn table(findings: &ScriptFindings) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n16 connections                      ops/s       p50 µs     CPU µs each"); // into a String
    for (what, figures) in [("point read", &findings.read), ("empty stored procedure", &findings.empty)] {
        let LoadFigures { per_second, p50_us, cpu_us, .. } = figures;
        let _ = writeln!(out, "  {what:<28} {per_second:>10.0} {p50_us:>12.0} {cpu_us:>15.1}");
    }
    let _ = writeln!(out, "\none connection, durable           items/s    share of creates");
    let rates = [
        ("creates, one by one", findings.single),
        ("procedure that inserts 100", findings.inserted),
        ("batch of 100", findings.batched),
    ];
    for (what, rate) in rates {
        let _ = writeln!(out, "  {what:<28} {rate:>10.0} {:>18.1}x", rate / findings.single);
    }
    let _ = writeln!(out, "\na query over {ITEMS} items             ms");
    let _ = writeln!(out, "  without a call               {:>10.1}", findings.plain_ms);
    let _ = writeln!(out, "  with a call for each         {:>10.1}", findings.calling_ms);
    goals(&mut out, findings);
    out
}

fn goals(out: &mut String, findings: &ScriptFindings) {
    let _ = writeln!(out, "\ngoals");
    let mut goal = |holds: bool, what: &str, found: String| {
        let _ = writeln!(out, "  {:<7} {what:<46} {found}", if holds { "holds" } else { "MISSED" });
    };
    let (cpu, call_us, batch) = (findings.empty_cpu, findings.call_us(), findings.batched / findings.single);
    goal(
        cpu <= EMPTY_CPU_MAX,
        "empty procedure, CPU against a point read",
        format!("{cpu:.2}x (want ≤ {EMPTY_CPU_MAX}x)"),
    );
    goal(
        call_us <= CALL_US_MAX,
        "user-defined function, per call",
        format!("{call_us:.2} µs (want ≤ {CALL_US_MAX} µs)"),
    );
    goal(
        batch >= BATCH_RATE_MIN,
        "batch of 100, rate against creates",
        format!("{batch:.1}x (want ≥ {BATCH_RATE_MIN}x)"),
    );
}
