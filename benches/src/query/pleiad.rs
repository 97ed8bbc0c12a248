//! `pleiad serve` on cached data, queried over HTTP, as any client does.
//!
//! Guarantees: the items were created through the protocol, in a container with one partition, which may hold fifty
//! times as much. A query is one signed POST per page on a keep-alive connection; its time runs from sending the first
//! request, which is signed before, until the last page has arrived. The server merges the partitions' results, so that
//! a page is part of the final answer and not input for an SDK's merge.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{QueryAnswer, TimedAnswer};
use super::dataset_cache::DatasetCache;
use super::{CACHE_MB, PINNED_CORE, data};
use crate::load::{self, Until};
use crate::process::{self, ChildProcess};
use crate::signed::{self, CONTAINER, DATABASE, RequestSigner, Requests};
use crate::{Result, answer};

/// Makes the server execute the whole of a query without a partition key, merging included.
const CROSS_PARTITION_HEADER: &str = "x-pleiad-cross-partition";

/// The throughput that one physical partition gets here.
const CONTAINER_RU_PER_S: &str = "1000000";

/// The scanned property is not indexed, and no query filters by description.
const INDEXING_POLICY: &str = r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/quantity/?"},{"path":"/description/?"}]}"#;

/// The number of creates under one signature, which is valid for a quarter of an hour.
const CREATES_PER_SIGNATURE: u64 = 50_000;
const CREATE_CONNECTIONS: usize = 64;

/// A connection that was used this recently is still open: no other system ran in between.
const REUSE_WITHIN: Duration = Duration::from_millis(50);

const CHUNK_BYTES: usize = 256 << 10;

/// How long the background work after loading may take.
const SETTLE_MAX: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    One,
    All,
}

pub struct Pleiad {
    process: ChildProcess,
    address: SocketAddr,
    stream: TcpStream,
    last_used: Instant,
    cores: Cores,
    last_core: usize,
    /// Receive buffer.
    chunk: Vec<u8>,
}

impl Pleiad {
    /// `format` identifies the version of the data format on disk.
    pub fn open(pleiad: &Path, format: &str, cache: &DatasetCache, items: u64) -> Result<Pleiad> {
        let recipe = format!("{format}{INDEXING_POLICY}{CONTAINER_RU_PER_S}");
        let dir = cache.load_once("pleiad", &recipe, |dir| fill(pleiad, dir, items))?;
        Pleiad::start(pleiad, &dir)
    }

    fn start(pleiad: &Path, dir: &Path) -> Result<Pleiad> {
        let mut command = Command::new(pleiad);
        command.args(["serve", "--port=0", "--quiet", "--durability=written", "--rate-limit=false", "--data"]).arg(dir);
        command.args(["--block-cache-mb", &CACHE_MB.to_string()]).stderr(Stdio::null());
        command.env("PLEIAD_PRIMARY_KEY", signed::key());
        command.env("PLEIAD_PARTITION_MAX_RU", CONTAINER_RU_PER_S);
        command.env("PLEIAD_PARTITION_INITIAL_RU", CONTAINER_RU_PER_S);
        let process = ChildProcess::start(&mut command, |line| line.contains("\"ready\":true"))?;
        let ready: Value = serde_json::from_str(&process.ready).map_err(|e| format!("the ready line: {e}"))?;
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let address = SocketAddr::from(([127, 0, 0, 1], port.ok_or("a ready line without port")?));
        let (stream, last_used, chunk) = (connect(address)?, Instant::now(), vec![0; CHUNK_BYTES]);
        let last_core = std::thread::available_parallelism().map_or(1, |cores| cores.get()) - 1;
        Ok(Pleiad { process, address, stream, last_used, cores: Cores::All, last_core, chunk })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn stop(self) -> Result {
        self.process.terminate()
    }

    /// Sets the CPU affinity of the server's threads, and those they start, and of this client: otherwise the kernel's
    /// placement of the client decides more than the server does.
    pub fn run_on(&mut self, cores: Cores) -> Result {
        if self.cores == cores {
            return Ok(());
        }
        let list = match cores {
            Cores::One => PINNED_CORE.to_string(),
            Cores::All => format!("0-{}", self.last_core),
        };
        set_affinity(&["-a", "-c", "-p", &list, &self.pid().to_string()])?;
        set_affinity(&["-c", "-p", &list, &std::process::id().to_string()])?; // the main thread, which is the client
        self.cores = cores;
        Ok(())
    }

    pub fn run_query(&mut self, sql: &str, times: usize) -> Result<Vec<TimedAnswer>> {
        let signer = RequestSigner::now();
        self.ensure_connection(&signer)?;
        let first = query(&signer, sql, None);
        let timed_pages = (0..times).map(|_| self.pages(&signer, sql, &first)).collect::<Result<Vec<_>>>()?;
        self.last_used = Instant::now();
        timed_pages.into_iter().map(|(ms, pages)| Ok(TimedAnswer { ms, answer: answer_of(&pages)? })).collect()
    }

    /// Fetches all pages of an answer; returns the time and the pages.
    fn pages(&mut self, signer: &RequestSigner, sql: &str, first: &[u8]) -> Result<(f64, Vec<Vec<u8>>)> {
        let started = Instant::now();
        let mut pages = vec![self.page(first)?];
        while let Some(token) = pages.last().map_or(Ok(None), |page| header(page, "x-ms-continuation"))? {
            pages.push(self.page(&query(signer, sql, Some(&token)))?);
        }
        Ok((started.elapsed().as_secs_f64() * 1e3, pages))
    }

    /// Ensures an open connection: the server may have closed an idle one while other systems were measured.
    fn ensure_connection(&mut self, signer: &RequestSigner) -> Result {
        if self.last_used.elapsed() < REUSE_WITHIN {
            return Ok(());
        }
        self.stream = connect(self.address)?;
        self.page(&signer.request("GET", "", "", "", "", "")).map(drop)
    }

    fn page(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.stream.write_all(request).map_err(|e| format!("cannot send: {e}"))?;
        let mut received = Vec::new();
        loop {
            match self.stream.read(&mut self.chunk).map_err(|e| format!("cannot receive: {e}"))? {
                0 => return Err("the server closed the connection".to_owned()),
                got => received.extend_from_slice(&self.chunk[..got]),
            }
            if answer::response_bytes(&received).map_err(|_| error_line(&received))?.is_some() {
                return Ok(received);
            }
        }
    }
}

fn set_affinity(words: &[&str]) -> Result {
    match Command::new("taskset").args(words).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("`taskset` cannot choose cores".to_owned()),
    }
}

fn connect(to: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(to).map_err(|e| format!("cannot connect to {to}: {e}"))?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    Ok(stream)
}

fn query(signer: &RequestSigner, sql: &str, continuation: Option<&str>) -> Vec<u8> {
    let link = format!("dbs/{DATABASE}/colls/{CONTAINER}");
    let mut headers = format!(
        "content-type: application/query+json\r\nx-ms-documentdb-isquery: True\r\nx-ms-max-item-count: -1\r\n\
         x-ms-documentdb-query-enablecrosspartition: true\r\n{CROSS_PARTITION_HEADER}: true\r\n"
    );
    if let Some(token) = continuation {
        headers.push_str(&format!("x-ms-continuation: {token}\r\n"));
    }
    let body = json!({"query": sql, "parameters": []}).to_string();
    signer.request("POST", &format!("{link}/docs"), "docs", &link, &headers, &body)
}

/// The status line and the message of an error response, in one line.
fn error_line(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let error: Value = serde_json::from_str(body).unwrap_or_default();
    let message = error["message"].as_str().unwrap_or(body);
    format!("{}: {}", head.lines().next().unwrap_or_default(), message.lines().next().unwrap_or_default())
}

fn header(answer: &[u8], name: &str) -> Result<Option<String>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut headers);
    head.parse(answer).map_err(|e| format!("not an HTTP answer: {e}"))?;
    let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    Ok(found.map(|header| String::from_utf8_lossy(header.value).into_owned()).filter(|value| !value.is_empty()))
}

fn answer_of(pages: &[Vec<u8>]) -> Result<QueryAnswer> {
    let rows = pages.iter().map(|page| rows(page)).collect::<Result<Vec<_>>>()?.concat();
    Ok(QueryAnswer::of_json(&rows))
}

/// The `Documents` of a page.
fn rows(page: &[u8]) -> Result<Vec<Value>> {
    let at = page.windows(4).position(|four| four == b"\r\n\r\n").ok_or("an answer without a body")?;
    let mut body: Value = serde_json::from_slice(&page[at + 4..]).map_err(|e| format!("the page is not JSON: {e}"))?;
    match body["Documents"].take() {
        Value::Array(rows) => Ok(rows),
        _ => Err("a page without Documents".to_owned()),
    }
}

// ---- loading --------------------------------------------------------------------------------------------

fn fill(pleiad: &Path, dir: &Path, items: u64) -> Result {
    let server = Pleiad::start(pleiad, dir)?;
    create_container(server.address)?;
    let mut first = 0;
    while first < items {
        let count = CREATES_PER_SIGNATURE.min(items - first);
        load::run(server.address, Arc::new(DatasetCreates::sign(first)), CREATE_CONNECTIONS, Until::Answered(count))?;
        first += count;
        eprintln!("  {first} of {items}");
    }
    wait_until_idle(server.pid())?;
    server.stop()
}

fn create_container(to: SocketAddr) -> Result {
    let signer = RequestSigner::now();
    load::send_once(to, &signer.request("POST", "dbs", "dbs", "", "", &json!({"id": DATABASE}).to_string()))?;
    let container = format!(
        r#"{{"id":"{CONTAINER}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},"indexingPolicy":{INDEXING_POLICY}}}"#
    );
    let throughput = format!("x-ms-offer-throughput: {CONTAINER_RU_PER_S}\r\n");
    let (path, link) = (format!("dbs/{DATABASE}/colls"), format!("dbs/{DATABASE}"));
    load::send_once(to, &signer.request("POST", &path, "colls", &link, &throughput, &container)).map(drop)
}

/// Waits until flushing and compaction have finished.
pub fn wait_until_idle(pid: u32) -> Result {
    let started = Instant::now();
    while started.elapsed() < SETTLE_MAX {
        let before = process::cpu_ns_of_threads(pid)?;
        std::thread::sleep(Duration::from_secs(1));
        if process::cpu_ns_of_threads(pid)?.saturating_sub(before) < 20_000_000 {
            return Ok(());
        }
    }
    Err("the server is still busy after loading".to_owned())
}

/// Creates of the items from `first` on.
struct DatasetCreates {
    head: String,
    first: u64,
}

impl DatasetCreates {
    fn sign(first: u64) -> DatasetCreates {
        let link = format!("dbs/{DATABASE}/colls/{CONTAINER}");
        let head = RequestSigner::now().head("POST", &format!("{link}/docs"), "docs", &link);
        let head = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n", data::ITEM_BYTES);
        DatasetCreates { head, first }
    }
}

impl Requests for DatasetCreates {
    fn write(&self, n: u64, out: &mut Vec<u8>) {
        let n = self.first + n;
        let mut text = String::with_capacity(self.head.len() + data::ITEM_BYTES + 64);
        text.push_str(&self.head);
        text.push_str(&format!("x-ms-documentdb-partitionkey: [\"{}\"]\r\n\r\n", data::partition_key(n)));
        data::write_body(n, &mut text);
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_rows_and_a_continuation() {
        let page =
            b"HTTP/1.1 200 OK\r\nX-MS-Continuation: next\r\ncontent-length: 22\r\n\r\n{\"Documents\":[1,{}]}\r\n";
        assert_eq!(header(page, "x-ms-continuation").unwrap().as_deref(), Some("next"));
        assert_eq!(header(page, "x-ms-request-charge").unwrap(), None);
        assert_eq!(rows(page).unwrap().len(), 2);
    }

    #[test]
    fn an_error_is_shown_in_one_line() {
        let answer = b"HTTP/1.1 501 Not Implemented\r\ncontent-length: 41\r\n\r\n{\"message\":\"Joins: not built.\\r\\nActivityId: 1\"}";
        assert_eq!(error_line(answer), "HTTP/1.1 501 Not Implemented: Joins: not built.");
    }
}
