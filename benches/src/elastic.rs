//! The elasticity benchmark: the cost of rate limiting, of many partitions, and of a split under load.
//!
//! Guarantees: a server is compared with one that differs in the measured property only, in turns, on the same machine.
//! A split is reported with its duration and the latencies that clients saw, compared with the same load just before.
//!
//! S94: responses take milliseconds, regardless of the number of partitions. Tests do not measure time; this benchmark
//! does.

mod page; // the results as a table and as JSON

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bench::round;
use crate::load::{self, LoadOutcome, Until};
use crate::measure::{LoadFigures, share};
use crate::process::cpu_us;
use crate::server::{self, RU_PER_S, ServerMode, ServerUnderTest};
use crate::signed::{CONTAINER, CreateRequests, DATABASE, Reads, RequestSigner, Requests};
use crate::{Result, report};

/// The numbers of partitions into which the same container is divided.
const PARTITIONS: [u64; 4] = [1, 10, 100, 500];
const CONNECTIONS: usize = 16;
const ITEMS: u64 = 10_000;
/// Many short rounds: on a machine with other load their median is more reliable than that of a few long ones.
const ROUNDS: usize = 25;
const ROUND: Duration = Duration::from_millis(400);
/// How long the load runs before the split, as the baseline.
const BASELINE: Duration = Duration::from_secs(5);
const PIECE: Duration = Duration::from_millis(500);
/// The distance between the item numbers of two loads, so that no item is created twice.
const NUMBER_STRIDE: u64 = 1_000_000_000;

/// The results of one run.
pub struct ElasticFindings {
    pub governed: Versus,
    pub partitions: Vec<(u64, Versus, Versus)>,
    pub split: Split,
}

/// A load on one server, with its ratios to the reference server in the same rounds.
pub struct Versus {
    pub figures: LoadFigures,
    pub rate_share: f64,
    pub cpu_share: f64,
}

pub struct Split {
    pub items: u64,
    pub seconds: f64,
    pub reads: [Latency; 2],
    pub creates: [Latency; 2],
}

/// The latencies of one load, before the split or during it.
#[derive(Clone, Copy, Default)]
pub struct Latency {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

/// `PLEIAD RESULT.json ITEMS [PAGE.md]`
pub fn command(words: &[&str]) -> Result {
    let (pleiad, result, items, page) = match words {
        [pleiad, result, items] => (pleiad, result, items, None),
        [pleiad, result, items, page] => (pleiad, result, items, Some(PathBuf::from(page))),
        _ => return Err("elastic takes PLEIAD RESULT.json ITEMS [PAGE.md]".to_owned()),
    };
    let items = items.parse().map_err(|_| format!("`{items}` is not a number of items"))?;
    run(Path::new(pleiad), Path::new(result), items, page.as_deref())
}

fn run(pleiad: &Path, result: &Path, items: u64, page: Option<&Path>) -> Result {
    eprintln!("rate limiting…");
    let governed = measure_rate_limiting(pleiad)?;
    eprintln!("many partitions…");
    let partitions = measure_partitions(pleiad)?;
    eprintln!("splitting {items} items under load…");
    let split = measure_split(pleiad, items)?;
    let findings = ElasticFindings { governed, partitions, split };
    let table = page::table(&findings);
    println!("{table}");
    let json = page::json(&findings);
    fs::write(result, format!("{json:#}\n")).map_err(|e| format!("cannot write {}: {e}", result.display()))?;
    let fenced = || format!("{}\n\n```text\n{}\n```", report::machine(), table.trim_matches('\n'));
    page.map_or(Ok(()), |page| report::write_between(page, "bench-elastic", &fenced()))
}

fn start_filled(pleiad: &Path, settings: &[(&str, &str)], items: u64) -> Result<ServerUnderTest> {
    let subject = ServerUnderTest::start_with(pleiad, ServerMode::Serve, settings)?;
    let signer = RequestSigner::now();
    server::create_container(subject.address, &signer)?;
    server::fill(subject.address, &signer, items)?;
    wait_until_idle(&subject)?;
    Ok(subject)
}

/// Waits until the background work after filling is finished, for at most three minutes.
fn wait_until_idle(subject: &ServerUnderTest) -> Result {
    const INTERVAL: Duration = Duration::from_secs(1);
    for _ in 0..180 {
        let before_us = cpu_us(subject.pid())?;
        std::thread::sleep(INTERVAL);
        if cpu_us(subject.pid())? - before_us < INTERVAL.as_micros() as f64 / 20.0 {
            break;
        }
    }
    Ok(())
}

// ---- rate limiting ----------------------------------------------------------------------------------------

fn measure_rate_limiting(pleiad: &Path) -> Result<Versus> {
    let without = start_filled(pleiad, &[], ITEMS)?;
    let with = start_filled(pleiad, &[("PLEIAD_RATE_LIMIT", "true")], ITEMS)?;
    let requests: Arc<dyn Requests> = Arc::new(Reads::sign(&RequestSigner::now(), ITEMS));
    compare(&with, &without, &mut |_| requests.clone())
}

/// Alternates rounds of the two servers. The order changes every round, since the second finds the machine warmer.
/// `requests` gets the number of the round; each server runs one load per number.
fn compare(
    measured: &ServerUnderTest,
    reference: &ServerUnderTest,
    requests: &mut dyn FnMut(u64) -> Arc<dyn Requests>,
) -> Result<Versus> {
    let one = |subject: &ServerUnderTest, requests| round(subject.pid(), subject.address, requests, CONNECTIONS, ROUND);
    one(measured, requests(0))?; // warm-up
    one(reference, requests(0))?;
    let (mut measured_rounds, mut reference_rounds) = (Vec::new(), Vec::new());
    for turn in 1..=ROUNDS as u64 {
        if turn % 2 == 0 {
            reference_rounds.push(one(reference, requests(turn))?);
        }
        measured_rounds.push(one(measured, requests(turn))?);
        if turn % 2 == 1 {
            reference_rounds.push(one(reference, requests(turn))?);
        }
    }
    Ok(Versus {
        figures: LoadFigures::median(&measured_rounds),
        rate_share: share(&measured_rounds, &reference_rounds, |figures| figures.per_second),
        cpu_share: share(&measured_rounds, &reference_rounds, |figures| figures.cpu_us),
    })
}

// ---- many partitions --------------------------------------------------------------------------------------

/// Each number of partitions, compared with a container that has one.
fn measure_partitions(pleiad: &Path) -> Result<Vec<(u64, Versus, Versus)>> {
    let one = start_filled(pleiad, &[], ITEMS)?;
    let mut found = Vec::new();
    let mut next = NUMBER_STRIDE;
    for count in PARTITIONS {
        let initial_ru = (RU_PER_S / count).to_string();
        let many = start_filled(pleiad, &[("PLEIAD_PARTITION_INITIAL_RU", &initial_ru)], ITEMS)?;
        let read: Arc<dyn Requests> = Arc::new(Reads::sign(&RequestSigner::now(), ITEMS));
        let reads = compare(&many, &one, &mut |_| read.clone())?;
        next += NUMBER_STRIDE; // more items than any round creates
        let creates = compare(&many, &one, &mut |turn| {
            Arc::new(CreateRequests::sign(&RequestSigner::now(), next + turn * (NUMBER_STRIDE / 1000)))
        })?;
        found.push((count, reads, creates));
    }
    Ok(found)
}

// ---- a split under load -----------------------------------------------------------------------------------

fn measure_split(pleiad: &Path, items: u64) -> Result<Split> {
    let subject = start_filled(pleiad, &[], items)?;
    let loaders = [ElasticLoader::reads(&subject, items.min(100_000)), ElasticLoader::creates(&subject)];
    let (_, baseline) = run_during(&loaders, 0, || {
        std::thread::sleep(BASELINE);
        Ok(())
    })?;
    let (seconds, during_split) = run_during(&loaders, 1000, || split_and_wait(&subject))?;
    let [reads, creates] = [0, 1].map(|at| [baseline[at], during_split[at]]);
    Ok(Split { items, seconds, reads, creates })
}

/// Runs both loads while `action` runs; returns the seconds that it took and the latencies that clients saw.
fn run_during(loaders: &[ElasticLoader; 2], from: u64, action: impl FnOnce() -> Result) -> Result<(f64, [Latency; 2])> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let [reads, creates] = loaders.each_ref().map(|loader| scope.spawn(|| loader.run_until(&stop, from)));
        let started = Instant::now();
        let done = action();
        let seconds = started.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let latency = |load: std::thread::ScopedJoinHandle<'_, Result<Latency>>| load.join().map_err(|_| "a load")?;
        let latencies = [latency(reads)?, latency(creates)?];
        done.map(|()| (seconds, latencies))
    })
}

/// Requests a split and returns when it has finished.
fn split_and_wait(subject: &ServerUnderTest) -> Result {
    let link = format!("_pleiad/v1/containers/{DATABASE}/{CONTAINER}/partitions/split");
    let path = format!("{link}?wait=true");
    load::send_once(subject.address, &RequestSigner::now().request("POST", &path, "pleiad", &link, "", "")).map(drop)
}

/// One load, run in pieces of `PIECE`.
struct ElasticLoader {
    to: std::net::SocketAddr,
    requests: Box<dyn Fn(u64) -> Arc<dyn Requests> + Send + Sync>,
}

impl ElasticLoader {
    fn reads(subject: &ServerUnderTest, items: u64) -> ElasticLoader {
        let reads: Arc<dyn Requests> = Arc::new(Reads::sign(&RequestSigner::now(), items));
        ElasticLoader { to: subject.address, requests: Box::new(move |_| reads.clone()) }
    }

    fn creates(subject: &ServerUnderTest) -> ElasticLoader {
        let piece = |n: u64| {
            Arc::new(CreateRequests::sign(&RequestSigner::now(), NUMBER_STRIDE + n * 1_000_000)) as Arc<dyn Requests>
        };
        ElasticLoader { to: subject.address, requests: Box::new(piece) }
    }

    fn piece(&self, n: u64) -> Result<LoadOutcome> {
        load::run(self.to, (self.requests)(n), CONNECTIONS / 2, Until::Elapsed(PIECE))
    }

    /// Runs pieces until `stop` is set. Each has its own number, so that no item is created twice.
    fn run_until(&self, stop: &AtomicBool, mut n: u64) -> Result<Latency> {
        let mut pieces = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            pieces.push(self.piece(n)?);
            n += 1;
        }
        Latency::of(pieces)
    }
}

impl Latency {
    fn of(pieces: Vec<LoadOutcome>) -> Result<Latency> {
        let elapsed = pieces.iter().map(|piece| piece.elapsed).sum();
        let mut latencies: Vec<Duration> = pieces.into_iter().flat_map(|piece| piece.latencies).collect();
        latencies.sort_unstable();
        let all = LoadOutcome { elapsed, latencies };
        let [p50_us, p99_us, max_us] = [50, 99, 100].map(|percent| all.percentile_us(percent));
        Ok(Latency { per_second: all.per_second(), p50_us, p99_us, max_us })
    }
}
