//! Comparison with other systems: the same loads in alternating rounds, as a table in a page.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bench::{self, CONNECTIONS, ITEMS};
use crate::measure::LoadFigures;
use crate::process::{self, ChildProcess};
use crate::rival::cosmosdb_server;
use crate::rival::postgres::PostgresServer;
use crate::server::{self, ServerMode, ServerUnderTest};
use crate::signed::{CreateRequests, Reads, RequestSigner, Requests};
use crate::{Result, load, report};

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Reads,
    Creates,
}

enum System {
    /// A server that implements the protocol; `next` is the first item that it does not have.
    Http {
        name: &'static str,
        pid: u32,
        address: SocketAddr,
        next: u64,
    },
    Postgres(Box<PostgresServer>),
}

impl System {
    fn name(&self) -> &'static str {
        match self {
            System::Http { name, .. } => name,
            System::Postgres(_) => "PostgreSQL, jsonb + GIN",
        }
    }

    fn pid(&self) -> u32 {
        match self {
            System::Http { pid, .. } => *pid,
            System::Postgres(postgres) => postgres.pid(),
        }
    }

    fn fill(&self) -> Result {
        match self {
            System::Http { address, .. } => {
                server::create_container(*address, &RequestSigner::now())?;
                server::fill(*address, &RequestSigner::now(), ITEMS)
            }
            System::Postgres(postgres) => postgres.fill(ITEMS),
        }
    }

    fn round(&mut self, load: Load, connections: usize) -> Result<LoadFigures> {
        match (self, load) {
            (System::Postgres(postgres), Load::Reads) => postgres.reads(connections, ROUND, ITEMS),
            (System::Postgres(postgres), Load::Creates) => postgres.creates(connections, ROUND),
            (System::Http { pid, address, next, .. }, load) => {
                bench::round(*pid, *address, requests(load, next), connections, ROUND)
            }
        }
    }
}

fn requests(load: Load, next: &mut u64) -> Arc<dyn Requests> {
    match load {
        Load::Reads => Arc::new(Reads::sign(&RequestSigner::now(), ITEMS)),
        Load::Creates => {
            *next += 10_000_000; // more items than any round creates
            Arc::new(CreateRequests::sign(&RequestSigner::now(), *next))
        }
    }
}

pub fn run(pleiad: &Path, page: &Path, modules: &Path, postgres: &Path) -> Result {
    let started = Instant::now();
    let subject = ServerUnderTest::start(pleiad, ServerMode::Serve)?;
    load::send_once(subject.address, &RequestSigner::now().request("GET", "", "", "", "", ""))?;
    let pleiad_start_ms = started.elapsed().as_secs_f64() * 1e3;
    let (emulator, emulator_address, emulator_start_ms) = timed(|| cosmosdb_server::start(modules))?;
    let postgres = Box::new(PostgresServer::start(postgres)?);
    let starts_ms = [pleiad_start_ms, emulator_start_ms, postgres.start_ms];
    let http = |name, pid, address| System::Http { name, pid, address, next: ITEMS };
    let mut systems = [
        http("Pleiad", subject.pid(), subject.address),
        http("cosmosdb-server", emulator.pid(), emulator_address),
        System::Postgres(postgres),
    ];
    let text = measure(&mut systems, starts_ms)?;
    println!("{text}");
    report::write_between(page, "compare", &text)
}

fn timed(start: impl FnOnce() -> Result<(ChildProcess, SocketAddr)>) -> Result<(ChildProcess, SocketAddr, f64)> {
    let started = Instant::now();
    let (running, address) = start()?;
    Ok((running, address, started.elapsed().as_secs_f64() * 1e3))
}

fn measure(systems: &mut [System; 3], starts_ms: [f64; 3]) -> Result<String> {
    let mut text = format!("{}\n", report::machine());
    std::thread::sleep(Duration::from_secs(2));
    let rows = systems
        .iter()
        .zip(starts_ms)
        .map(|(system, start_ms)| Ok((system.name(), start_ms, process::resident_kb(system.pid())? as f64 / 1024.0)));
    text.push_str(&report::idle_page(&rows.collect::<Result<Vec<_>>>()?));
    systems.iter().try_for_each(System::fill)?;
    for (load, title) in [(Load::Reads, "Point reads"), (Load::Creates, "Creates")] {
        eprintln!("{title}…");
        let mut rows = Vec::new();
        for connections in CONNECTIONS {
            rows.extend(alternate_rounds(systems, load, connections)?);
        }
        text.push_str(&report::load_page(title, &rows));
    }
    Ok(text)
}

type PageRow = (usize, &'static str, LoadFigures);

fn alternate_rounds(systems: &mut [System; 3], load: Load, connections: usize) -> Result<Vec<PageRow>> {
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (system, rounds) in systems.iter_mut().zip(&mut rounds) {
            rounds.push(system.round(load, connections)?);
        }
    }
    let rows =
        systems.iter().zip(&rounds).map(|(system, rounds)| (connections, system.name(), LoadFigures::median(rounds)));
    Ok(rows.collect())
}
