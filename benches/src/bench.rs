//! The load benchmark: point reads against a bare HTTP server, durable creates against a bare store.
//!
//! Guarantees: the server and its ceiling take turns, round by round, so that both run on the same machine under the
//! same conditions. The reads run before the creates, so that no compaction runs during the reads.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::ceiling::http;
use crate::ceiling::store::{BareStore, CommitGrouping};
use crate::load::{self, Until};
use crate::measure::LoadFigures;
use crate::report::{self, LoadFindings, LoadRow};
use crate::server::{self, ServerMode, ServerUnderTest};
use crate::signed::{CreateRequests, Reads, RequestSigner, Requests};
use crate::start;
use crate::{Result, process};

pub const CONNECTIONS: [usize; 3] = [1, 16, 64];
pub const ITEMS: u64 = 10_000;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(1000);

/// The number of transactions prepared for one round of the store: more than it can commit in that time.
fn max_batches(threads: usize) -> usize {
    (threads * 1000).min(20_000)
}

pub fn run(pleiad: &Path, result: &Path, page: Option<&Path>) -> Result {
    eprintln!("measuring start-up and idle cost…");
    let (serve, dev) = (start::measure(pleiad, ServerMode::Serve)?, start::measure(pleiad, ServerMode::Dev)?);
    let subject = start_filled(pleiad)?;
    eprintln!("measuring point reads…");
    let reads = reads(&subject)?;
    eprintln!("measuring creates…");
    let creates = creates(&subject)?;
    let findings = LoadFindings { reads, creates, serve, dev };
    let table = report::table(&findings);
    println!("{table}");
    let json = report::json(&findings);
    fs::write(result, format!("{json:#}\n")).map_err(|e| format!("cannot write {}: {e}", result.display()))?;
    let fenced = || format!("{}\n\n```text\n{}\n```", report::machine(), table.trim_matches('\n'));
    page.map_or(Ok(()), |page| report::write_between(page, "bench", &fenced()))
}

/// Runs one load on a fresh server and prints the process ID to profile.
pub fn run_one_load(pleiad: &Path, kind: &str, connections: usize, seconds: u64) -> Result {
    let subject = start_filled(pleiad)?;
    let signer = RequestSigner::now();
    let requests: Arc<dyn Requests> = match kind {
        "reads" => Arc::new(Reads::sign(&signer, ITEMS)),
        "creates" => Arc::new(CreateRequests::sign(&signer, ITEMS)),
        _ => return Err(format!("`{kind}` is neither reads nor creates")),
    };
    println!("{}", subject.pid());
    let figures = round(subject.pid(), subject.address, requests, connections, Duration::from_secs(seconds))?;
    println!("{}", figures.json());
    Ok(())
}

fn start_filled(pleiad: &Path) -> Result<ServerUnderTest> {
    let subject = ServerUnderTest::start(pleiad, ServerMode::Serve)?;
    let signer = RequestSigner::now();
    server::create_container(subject.address, &signer)?;
    server::fill(subject.address, &signer, ITEMS)?;
    std::thread::sleep(Duration::from_secs(1)); // let the store flush what filling wrote
    Ok(subject)
}

fn reads(subject: &ServerUnderTest) -> Result<Vec<LoadRow>> {
    let signer = RequestSigner::now();
    let answer = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    fs::write(answer.path(), server::sample_answer(subject.address, &signer)?).map_err(|e| e.to_string())?;
    let (bare, bare_address) = http::start(answer.path())?;
    let requests: Arc<dyn Requests> = Arc::new(Reads::sign(&signer, ITEMS));
    let one = |pid, address, connections| round(pid, address, requests.clone(), connections, ROUND);
    one(subject.pid(), subject.address, 16)?; // warm-up: loads the blocks into the cache
    one(bare.pid(), bare_address, 16)?;
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        let (mut pleiad, mut ceiling) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            pleiad.push(one(subject.pid(), subject.address, connections)?);
            ceiling.push(one(bare.pid(), bare_address, connections)?);
        }
        rows.push(LoadRow::new(connections, &pleiad, &ceiling));
    }
    Ok(rows)
}

fn creates(subject: &ServerUnderTest) -> Result<Vec<LoadRow>> {
    let mut store = BareStore::open()?;
    let mut next = ITEMS;
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        let (mut pleiad, mut by_committer, mut by_engine) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let requests = Arc::new(CreateRequests::sign(&RequestSigner::now(), next));
            next += 10_000_000; // more items than any round creates
            pleiad.push(round(subject.pid(), subject.address, requests, connections, ROUND)?);
            by_committer.push(store_round(&mut store, connections, CommitGrouping::Committer)?);
            by_engine.push(store_round(&mut store, connections, CommitGrouping::Engine)?);
        }
        let is_faster = |a: &[LoadFigures], b: &[LoadFigures]| {
            LoadFigures::median(a).per_second >= LoadFigures::median(b).per_second
        };
        let ceiling = if is_faster(&by_committer, &by_engine) { &by_committer } else { &by_engine };
        rows.push(LoadRow::new(connections, &pleiad, ceiling));
    }
    Ok(rows)
}

fn store_round(store: &mut BareStore, threads: usize, grouping: CommitGrouping) -> Result<LoadFigures> {
    let round = store.prepare(threads, grouping, max_batches(threads))?; // not part of the measured time
    let own_pid = std::process::id();
    let before = process::cpu_us(own_pid)?;
    let outcome = round.run(ROUND)?;
    Ok(LoadFigures::of(&outcome, process::cpu_us(own_pid)? - before))
}

pub fn round(
    pid: u32,
    address: std::net::SocketAddr,
    requests: Arc<dyn Requests>,
    connections: usize,
    length: Duration,
) -> Result<LoadFigures> {
    let before = process::cpu_us(pid)?;
    let outcome = load::run(address, requests, connections, Until::Elapsed(length))?;
    Ok(LoadFigures::of(&outcome, process::cpu_us(pid)? - before))
}
