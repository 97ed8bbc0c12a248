//! What elasticity costs: holding containers to their throughput, many partitions, a split while clients work.
//!
//! Promise: a server is compared with one that lacks the one thing that is asked about, in turns, on the same machine. Of a
//! split it is told how long it took, and what clients noticed of it: the same load just before is what it is compared with.
//!
//! S94: answers take milliseconds however many partitions there are. Tests do not measure time; this does.

mod page; // the findings, for people

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

/// Partitions that the same container is divided into.
const PARTITIONS: [u64; 4] = [1, 10, 100, 500];
const CONNECTIONS: usize = 16;
const ITEMS: u64 = 10_000;
/// Many short rounds: on a machine that is never quite quiet their median tells more than that of a few long ones.
const ROUNDS: usize = 25;
const ROUND: Duration = Duration::from_millis(400);
/// How long clients work before the split, to compare with.
const CALM: Duration = Duration::from_secs(5);
const PIECE: Duration = Duration::from_millis(500);
/// Creates of one load never meet those of another.
const FAR: u64 = 1_000_000_000;

/// Everything one run found out.
pub struct ElasticFindings {
    pub governed: Versus,
    pub partitions: Vec<(u64, Versus, Versus)>,
    pub split: Split,
}

/// A load on one server, and its shares of what another gave in the same rounds.
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

/// Of one load, before the split and during it.
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
    eprintln!("holding to throughput…");
    let governed = governed(pleiad)?;
    eprintln!("many partitions…");
    let partitions = partitions(pleiad)?;
    eprintln!("splitting {items} items under load…");
    let split = split(pleiad, items)?;
    let findings = ElasticFindings { governed, partitions, split };
    let table = page::table(&findings);
    println!("{table}");
    let json = page::json(&findings);
    fs::write(result, format!("{json:#}\n")).map_err(|e| format!("cannot write {}: {e}", result.display()))?;
    let fenced = || format!("{}\n\n```text\n{}\n```", report::machine(), table.trim_matches('\n'));
    page.map_or(Ok(()), |page| report::write_between(page, "bench-elastic", &fenced()))
}

fn filled(pleiad: &Path, settings: &[(&str, &str)], items: u64) -> Result<ServerUnderTest> {
    let subject = ServerUnderTest::start_with(pleiad, ServerMode::Serve, settings)?;
    let signer = RequestSigner::now();
    server::declare(subject.address, &signer)?;
    server::fill(subject.address, &signer, items)?;
    settle(&subject)?;
    Ok(subject)
}

/// Until what the filling left to do in the background is done, or has taken long enough.
fn settle(subject: &ServerUnderTest) -> Result {
    const LOOK: Duration = Duration::from_secs(1);
    for _ in 0..180 {
        let before_us = cpu_us(subject.pid())?;
        std::thread::sleep(LOOK);
        if cpu_us(subject.pid())? - before_us < LOOK.as_micros() as f64 / 20.0 {
            break;
        }
    }
    Ok(())
}

// ---- holding to throughput --------------------------------------------------------------------------------

fn governed(pleiad: &Path) -> Result<Versus> {
    let without = filled(pleiad, &[], ITEMS)?;
    let with = filled(pleiad, &[("PLEIAD_RATE_LIMIT", "true")], ITEMS)?;
    let requests: Arc<dyn Requests> = Arc::new(Reads::sign(&RequestSigner::now(), ITEMS));
    versus(&with, &without, &mut |_| requests.clone())
}

/// In turns, and who begins changes, since the second finds the machine warmer; `requests` are told the round, of which each server
/// has one.
fn versus(
    ours: &ServerUnderTest,
    other: &ServerUnderTest,
    requests: &mut dyn FnMut(u64) -> Arc<dyn Requests>,
) -> Result<Versus> {
    let one = |subject: &ServerUnderTest, requests| round(subject.pid(), subject.address, requests, CONNECTIONS, ROUND);
    one(ours, requests(0))?; // warm
    one(other, requests(0))?;
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for turn in 1..=ROUNDS as u64 {
        if turn % 2 == 0 {
            theirs.push(one(other, requests(turn))?);
        }
        mine.push(one(ours, requests(turn))?);
        if turn % 2 == 1 {
            theirs.push(one(other, requests(turn))?);
        }
    }
    Ok(Versus {
        figures: LoadFigures::median(&mine),
        rate_share: share(&mine, &theirs, |figures| figures.per_second),
        cpu_share: share(&mine, &theirs, |figures| figures.cpu_us),
    })
}

// ---- many partitions --------------------------------------------------------------------------------------

/// Each beside a container with one.
fn partitions(pleiad: &Path) -> Result<Vec<(u64, Versus, Versus)>> {
    let one = filled(pleiad, &[], ITEMS)?;
    let mut found = Vec::new();
    let mut next = FAR;
    for count in PARTITIONS {
        let initial_ru = (RU_PER_S / count).to_string();
        let many = filled(pleiad, &[("PLEIAD_PARTITION_INITIAL_RU", &initial_ru)], ITEMS)?;
        let read: Arc<dyn Requests> = Arc::new(Reads::sign(&RequestSigner::now(), ITEMS));
        let reads = versus(&many, &one, &mut |_| read.clone())?;
        next += FAR; // further than any round gets
        let creates = versus(&many, &one, &mut |turn| {
            Arc::new(CreateRequests::sign(&RequestSigner::now(), next + turn * (FAR / 1000)))
        })?;
        found.push((count, reads, creates));
    }
    Ok(found)
}

// ---- a split under load -----------------------------------------------------------------------------------

fn split(pleiad: &Path, items: u64) -> Result<Split> {
    let subject = filled(pleiad, &[], items)?;
    let loaders = [ElasticLoader::reads(&subject, items.min(100_000)), ElasticLoader::creates(&subject)];
    let (_, calm) = during(&loaders, 0, || {
        std::thread::sleep(CALM);
        Ok(())
    })?;
    let (seconds, busy) = during(&loaders, 1000, || ask_to_split(&subject))?;
    let [reads, creates] = [0, 1].map(|at| [calm[at], busy[at]]);
    Ok(Split { items, seconds, reads, creates })
}

/// Both loads at once while something goes on: how many seconds that took, and what clients noticed.
fn during(loaders: &[ElasticLoader; 2], from: u64, something: impl FnOnce() -> Result) -> Result<(f64, [Latency; 2])> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let [reads, creates] = loaders.each_ref().map(|loader| scope.spawn(|| loader.until(&over, from)));
        let began = Instant::now();
        let done = something();
        let seconds = began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        let latency = |load: std::thread::ScopedJoinHandle<'_, Result<Latency>>| load.join().map_err(|_| "a load")?;
        let noticed = [latency(reads)?, latency(creates)?];
        done.map(|()| (seconds, noticed))
    })
}

/// Returns when it has happened.
fn ask_to_split(subject: &ServerUnderTest) -> Result {
    let link = format!("_pleiad/v1/containers/{DATABASE}/{CONTAINER}/partitions/split");
    let path = format!("{link}?wait=true");
    load::once(subject.address, &RequestSigner::now().once("POST", &path, "pleiad", &link, "", "")).map(drop)
}

/// One load, a piece at a time.
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
        let piece =
            |n: u64| Arc::new(CreateRequests::sign(&RequestSigner::now(), FAR + n * 1_000_000)) as Arc<dyn Requests>;
        ElasticLoader { to: subject.address, requests: Box::new(piece) }
    }

    fn piece(&self, n: u64) -> Result<LoadOutcome> {
        load::run(self.to, (self.requests)(n), CONNECTIONS / 2, Until::Elapsed(PIECE))
    }

    /// Pieces are numbered, so that no item is created twice.
    fn until(&self, over: &AtomicBool, mut n: u64) -> Result<Latency> {
        let mut pieces = Vec::new();
        while !over.load(Ordering::Relaxed) {
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
