//! The vector benchmark: the ANN graph of a diskANN index against exact k-NN, in speed and recall.
//!
//! Guarantees: both searches run on one server, for the same query vectors, in turns; exact k-NN is the truth that
//! recall is measured against. The same queries run after the load, after a restart and after a split.
//!
//! The vectors are synthetic: `CLUSTERS` centres with normally distributed elements, and points around each of them
//! with 0.6 of that spread. The seed is fixed. The query vectors are points of the same kind that are not stored.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::{self, Until};
use crate::server::{RU_PER_S, ServerMode, ServerUnderTest};
use crate::signed::{CONTAINER, DATABASE, RequestSigner, Requests};
use crate::{Result, report};

const DIMENSIONS: usize = 384;
const CLUSTERS: usize = 2_000;
const SPREAD: f32 = 0.6;
const NEAREST: usize = 10;
const QUERY_VECTORS: usize = 100;
const CONNECTIONS: usize = 16;
const SEED: u64 = 20_261_116;
/// How long building the graph may take.
const BUILD_TIMEOUT: Duration = Duration::from_secs(1_800);

const RECALL_MIN: f64 = 0.95;
const SPEED_MIN: f64 = 10.0;

/// The results of one phase.
struct BenchPhase {
    when: &'static str,
    /// Seconds until searches used the graph.
    ready_s: f64,
    recall: f64,
    every_ms: f64,
    graph_ms: f64,
    graph_p99_ms: f64,
}

/// `PLEIAD RESULT.json ITEMS [PAGE.md]`
pub fn command(words: &[&str]) -> Result {
    let (pleiad, result, items, page) = match words {
        [pleiad, result, items] => (pleiad, result, items, None),
        [pleiad, result, items, page] => (pleiad, result, items, Some(PathBuf::from(page))),
        _ => return Err("vector takes PLEIAD RESULT.json ITEMS [PAGE.md]".to_owned()),
    };
    let items: u64 = items.parse().map_err(|_| format!("`{items}` is not a number of items"))?;
    let (load_s, phases) = run(Path::new(pleiad), items)?;
    let table = table(items, load_s, &phases);
    println!("{table}");
    let json = json(items, load_s, &phases);
    fs::write(result, format!("{json:#}\n")).map_err(|e| format!("cannot write {result}: {e}"))?;
    let fenced = || format!("{}\n\n```text\n{}\n```", report::machine(), table.trim_matches('\n'));
    page.map_or(Ok(()), |page| report::write_between(&page, "bench-vector", &fenced()))
}

fn run(pleiad: &Path, items: u64) -> Result<(f64, Vec<BenchPhase>)> {
    let subject = ServerUnderTest::start(pleiad, ServerMode::Serve)?;
    create_container(&subject)?;
    eprintln!("loading {items} vectors…");
    let started = Instant::now();
    load::run(subject.address, Arc::new(VectorCreates::new()), CONNECTIONS, Until::Answered(items))?;
    let load_s = started.elapsed().as_secs_f64();
    let mut source = Points::new(SEED + 1);
    let query_vectors: Vec<Vec<f32>> = (0..QUERY_VECTORS).map(|_| source.point()).collect();
    let mut phases = vec![measure_phase(&subject, "after the load", &query_vectors)?];
    eprintln!("restarting…");
    let subject = subject.restart(pleiad, ServerMode::Serve)?;
    phases.push(measure_phase(&subject, "after a restart", &query_vectors)?);
    eprintln!("splitting…");
    let link = format!("_pleiad/v1/containers/{DATABASE}/{CONTAINER}/partitions/split");
    let split = RequestSigner::now().request("POST", &format!("{link}?wait=true"), "pleiad", &link, "", "");
    load::send_once(subject.address, &split)?;
    phases.push(measure_phase(&subject, "after a split", &query_vectors)?);
    Ok((load_s, phases))
}

fn create_container(subject: &ServerUnderTest) -> Result {
    let signer = RequestSigner::now();
    let database = json!({"id": DATABASE}).to_string();
    load::send_once(subject.address, &signer.request("POST", "dbs", "dbs", "", "", &database))?;
    let container = json!({
        "id": CONTAINER,
        "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": "cosine"}]},
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
            "vectorIndexes": [{"path": "/v", "type": "diskANN"}]},
    });
    let throughput = format!("x-ms-offer-throughput: {RU_PER_S}\r\n");
    let (path, link) = (format!("dbs/{DATABASE}/colls"), format!("dbs/{DATABASE}"));
    load::send_once(
        subject.address,
        &signer.request("POST", &path, "colls", &link, &throughput, &container.to_string()),
    )
    .map(drop)
}

// ---- vectors ----------------------------------------------------------------------------------------------

/// A pseudo-random source of points; the same seed gives the same points.
struct Points {
    state: u64,
    centres: Arc<Vec<Vec<f32>>>,
}

impl Points {
    fn new(seed: u64) -> Points {
        let mut points = Points { state: SEED | 1, centres: Arc::default() };
        let centres = (0..CLUSTERS).map(|_| (0..DIMENSIONS).map(|_| points.normal()).collect());
        points.centres = Arc::new(centres.collect());
        points.with_seed(seed)
    }

    /// The same centres with another seed for the points.
    fn with_seed(&self, seed: u64) -> Points {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (seed >> 7);
        Points { state: mixed | 1, centres: self.centres.clone() }
    }

    fn uniform(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Approximately normal: a sum of six uniform numbers, scaled to mean 0 and standard deviation 1.
    fn normal(&mut self) -> f32 {
        ((0..6).map(|_| self.uniform()).sum::<f32>() - 3.0) * std::f32::consts::SQRT_2
    }

    fn point(&mut self) -> Vec<f32> {
        let _ = self.uniform();
        let at = (self.uniform() * CLUSTERS as f32) as usize % CLUSTERS;
        let centres = self.centres.clone();
        centres[at].iter().map(|element| element + SPREAD * self.normal()).collect()
    }
}

fn vector_text(vector: &[f32]) -> String {
    let elements: Vec<String> = vector.iter().map(|element| format!("{element:.4}")).collect();
    format!("[{}]", elements.join(","))
}

/// Creates of one item each.
struct VectorCreates {
    points: Points,
    head: String,
}

impl VectorCreates {
    fn new() -> VectorCreates {
        let link = format!("dbs/{DATABASE}/colls/{CONTAINER}");
        let head = RequestSigner::now().head("POST", &format!("{link}/docs"), "docs", &link);
        VectorCreates { points: Points::new(SEED), head: format!("{head}content-type: application/json\r\n") }
    }
}

impl Requests for VectorCreates {
    fn write(&self, n: u64, out: &mut Vec<u8>) {
        let vector = vector_text(&self.points.with_seed(SEED + 1_000 + n).point());
        let body = format!(r#"{{"id":"{n}","n":{},"v":{vector}}}"#, n % 100);
        let (head, length) = (&self.head, body.len());
        let key = format!("x-ms-documentdb-partitionkey: [\"{n}\"]\r\ncontent-length: {length}\r\n\r\n");
        out.extend_from_slice(format!("{head}{key}{body}").as_bytes());
    }
}

// ---- searches ---------------------------------------------------------------------------------------------

#[derive(Clone, Copy)]
enum SearchMethod {
    Graph,
    Exact,
}

fn search_request(vector: &[f32], method: SearchMethod, signer: &RequestSigner) -> Vec<u8> {
    let brute_force = matches!(method, SearchMethod::Exact);
    let query = format!(
        "SELECT TOP {NEAREST} VALUE c.id FROM c ORDER BY VectorDistance(c.v, {}, {brute_force})",
        vector_text(vector)
    );
    let headers = "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\n\
                   x-ms-documentdb-query-enablecrosspartition: True\r\nx-pleiad-cross-partition: true\r\n\
                   x-ms-cosmos-populateindexmetrics: True\r\n";
    let link = format!("dbs/{DATABASE}/colls/{CONTAINER}");
    signer.request("POST", &format!("{link}/docs"), "docs", &link, headers, &json!({"query": query}).to_string())
}

fn result_ids(answer: &[u8]) -> Result<Vec<String>> {
    let body = answer.windows(4).position(|end| end == b"\r\n\r\n").map(|at| &answer[at + 4..]);
    let body: Value = serde_json::from_slice(body.unwrap_or_default()).map_err(|e| format!("the answer: {e}"))?;
    let rows = body["Documents"].as_array().ok_or("an answer without rows")?;
    Ok(rows.iter().filter_map(|row| row.as_str().map(str::to_owned)).collect())
}

/// The search requests, one after the other.
struct SearchRequests(Vec<Vec<u8>>);

impl Requests for SearchRequests {
    fn write(&self, n: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0[n as usize % self.0.len()]);
    }
}

fn measure_phase(subject: &ServerUnderTest, when: &'static str, query_vectors: &[Vec<f32>]) -> Result<BenchPhase> {
    let ready_s = wait_for_graph(subject, &query_vectors[0])?;
    let signer = RequestSigner::now();
    let mut hits = 0;
    for vector in query_vectors {
        let truth =
            result_ids(&load::send_once(subject.address, &search_request(vector, SearchMethod::Exact, &signer))?)?;
        let found =
            result_ids(&load::send_once(subject.address, &search_request(vector, SearchMethod::Graph, &signer))?)?;
        hits += truth.iter().filter(|id| found.contains(id)).count();
    }
    let run_searches = |method: SearchMethod| {
        let requests =
            SearchRequests(query_vectors.iter().map(|vector| search_request(vector, method, &signer)).collect());
        load::run(subject.address, Arc::new(requests), 1, Until::Answered(query_vectors.len() as u64))
    };
    let (exact, graph) = (run_searches(SearchMethod::Exact)?, run_searches(SearchMethod::Graph)?);
    let recall = hits as f64 / (query_vectors.len() * NEAREST) as f64;
    let [every_ms, graph_ms] = [&exact, &graph].map(|outcome| outcome.percentile_us(50) / 1e3);
    Ok(BenchPhase { when, ready_s, recall, every_ms, graph_ms, graph_p99_ms: graph.percentile_us(99) / 1e3 })
}

/// Waits until all partitions use the graph.
fn wait_for_graph(subject: &ServerUnderTest, vector: &[f32]) -> Result<f64> {
    let started = Instant::now();
    while started.elapsed() < BUILD_TIMEOUT {
        let answer =
            load::send_once(subject.address, &search_request(vector, SearchMethod::Graph, &RequestSigner::now()))?;
        let text = String::from_utf8_lossy(&answer);
        let plan = text.lines().find_map(|line| line.strip_prefix("x-pleiad-query-plan: ")).unwrap_or_default();
        if plan.contains("graph") && !plan.contains("every vector") && !plan.contains("scan") {
            return Ok(started.elapsed().as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Err("the graph was not ready within half an hour".to_owned())
}

// ---- output -----------------------------------------------------------------------------------------------

fn json(items: u64, load_s: f64, phases: &[BenchPhase]) -> Value {
    let phase_json = |phase: &BenchPhase| {
        json!({"when": phase.when, "ready_s": phase.ready_s, "recall": phase.recall, "every_ms": phase.every_ms,
               "graph_ms": phase.graph_ms, "graph_p99_ms": phase.graph_p99_ms})
    };
    json!({"items": items, "load_s": load_s, "moments": phases.iter().map(phase_json).collect::<Vec<_>>()})
}

fn table(items: u64, load_s: f64, phases: &[BenchPhase]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n{items} vectors of {DIMENSIONS} float32, cosine; loaded in {load_s:.0} s"); // into a String
    let _ = writeln!(
        out,
        "\nthe {NEAREST} nearest        graph ready   recall   every vector      graph   graph p99   faster"
    );
    for BenchPhase { when, ready_s, recall, every_ms, graph_ms, graph_p99_ms } in phases {
        let _ = writeln!(
            out,
            "  {when:<18} {ready_s:>9.1} s {recall:>8.3} {every_ms:>11.1} ms {graph_ms:>7.2} ms {graph_p99_ms:>8.2} ms {:>7.0}x",
            every_ms / graph_ms
        );
    }
    let _ = writeln!(out, "\ngoals");
    let lowest = |of: fn(&BenchPhase) -> f64| phases.iter().map(of).fold(f64::INFINITY, f64::min);
    let (recall, faster) = (lowest(|phase| phase.recall), lowest(|phase| phase.every_ms / phase.graph_ms));
    let mut goal = |holds: bool, what: &str, found: String| {
        let _ = writeln!(out, "  {:<7} {what:<34} {found}", if holds { "holds" } else { "MISSED" });
    };
    goal(recall >= RECALL_MIN, "recall of the ten nearest, lowest", format!("{recall:.3} (want ≥ {RECALL_MIN})"));
    goal(faster >= SPEED_MIN, "speedup over exact k-NN, lowest", format!("{faster:.0}x (want ≥ {SPEED_MIN}x)"));
    out
}
