//! The query benchmark: queries over a million items, compared with PostgreSQL and DuckDB. `cargo xtask bench query`
//! runs it.
//!
//! Guarantees: all systems run the same queries over the same items, once to warm up and then in turns. All use one
//! core, the same one, together with their client, and all have the same amount of memory for data; Pleiad also runs
//! with all cores. Answers are compared: a fast answer that is wrong is shown as wrong. The modules are declared in
//! reading order.

mod data; // the items
mod dataset_cache; // loaded data, cached for the next run
mod questions; // the queries, in three dialects
mod answer; // answers, reduced to what can be compared
mod piped; // a process that answers over pipes
mod pleiad; // Pleiad, over HTTP
mod postgres; // PostgreSQL: jsonb and indexes
mod duckdb; // DuckDB: one column of JSON
mod table; // table, goals, JSON

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, report};
use answer::TimedAnswer;
use dataset_cache::DatasetCache;
use duckdb::Duckdb;
use pleiad::{Cores, Pleiad};
use postgres::PostgresSubject;
use questions::{BenchQuestion, QUESTIONS};
use table::{QueryFindings, ResultCell, ResultRow};

/// Memory for data, the same for all systems: all items and the used parts of the indexes fit.
const CACHE_MB: u32 = 3072;
/// The core that all systems use, one after the other.
const PINNED_CORE: usize = 0;

const ROUNDS: usize = 3;
/// A quick query runs more rounds: it is more easily disturbed, and costs little time.
const ROUNDS_IF_QUICK: usize = 15;
const QUICK_MS: f64 = 50.0;
/// A very quick query runs several times in a row: the first run after another system used the core measures cold CPU
/// caches.
const REPEATS_IF_VERY_QUICK: usize = 20;
const VERY_QUICK_MS: f64 = 5.0;

/// The command line.
pub struct QueryBenchOptions<'a> {
    pub pleiad: &'a Path,
    pub result: &'a Path,
    /// The directory in which loaded data is cached.
    pub cache_dir: &'a Path,
    /// The directory of PostgreSQL's programs.
    pub postgres: &'a Path,
    /// A Python interpreter that can import `duckdb`.
    pub python: &'a Path,
    pub items: u64,
    /// Identifies the version of Pleiad's data format; other cached data is loaded again.
    pub format: &'a str,
    pub page: Option<&'a Path>,
}

struct Systems {
    pleiad: Pleiad,
    postgres: PostgresSubject,
    duckdb: Duckdb,
}

/// The measured systems, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchSystem {
    PleiadOnOne,
    PleiadOnAll,
    Postgres,
    Duckdb,
}

impl BenchSystem {
    const ALL: [BenchSystem; 4] =
        [BenchSystem::PleiadOnOne, BenchSystem::PleiadOnAll, BenchSystem::Postgres, BenchSystem::Duckdb];
}

pub fn run(options: &QueryBenchOptions<'_>) -> Result {
    let cache = DatasetCache::open(options.cache_dir, options.items)?;
    let mut systems = Systems {
        duckdb: Duckdb::open(options.python, &cache)?,
        postgres: PostgresSubject::open(options.postgres, options.cache_dir, options.items)?,
        pleiad: Pleiad::open(options.pleiad, options.format, &cache, options.items)?,
    };
    pleiad::wait_until_idle(systems.pleiad.pid())?;
    let mut rows = Vec::new();
    for question in &QUESTIONS {
        eprintln!("{}…", question.name);
        rows.push(systems.measure(question)?);
    }
    let versions = (systems.postgres.version.clone(), systems.duckdb.version.clone());
    let findings = QueryFindings { items: options.items, versions, rows };
    systems.pleiad.stop()?;
    publish(&findings, options)
}

fn publish(findings: &QueryFindings, options: &QueryBenchOptions<'_>) -> Result {
    let table = table::text(findings);
    println!("{table}");
    let json = format!("{:#}\n", table::json(findings));
    fs::write(options.result, json).map_err(|e| format!("cannot write {}: {e}", options.result.display()))?;
    let fenced = || format!("{}\n\n```text\n{}\n```", report::machine(), table.trim_matches('\n'));
    options.page.map_or(Ok(()), |page| report::write_between(page, "bench-query", &fenced()))
}

impl Systems {
    fn measure(&mut self, question: &'static BenchQuestion) -> Result<ResultRow> {
        let mut cells = BenchSystem::ALL.map(|system| ResultCell::new(self.run_query(system, question, 1)));
        let expected = cells[BenchSystem::Postgres as usize].answer()?;
        cells.iter_mut().for_each(|cell| cell.compare(&expected));
        for round in 0..ROUNDS_IF_QUICK {
            for (system, cell) in BenchSystem::ALL.into_iter().zip(&mut cells) {
                let times = cell.repeats(round);
                if times > 0 {
                    cell.add(self.run_query(system, question, times));
                }
            }
        }
        Ok(ResultRow { question, cells })
    }

    /// Runs the query `times` times in a row; the answers are parsed after the last one has arrived.
    fn run_query(&mut self, system: BenchSystem, question: &BenchQuestion, times: usize) -> Result<Vec<TimedAnswer>> {
        match system {
            BenchSystem::PleiadOnOne => self.pleiad.run_on(Cores::One)?,
            BenchSystem::PleiadOnAll => self.pleiad.run_on(Cores::All)?,
            BenchSystem::Postgres => return self.postgres.run_query(question.postgres, times),
            BenchSystem::Duckdb => return (0..times).map(|_| self.duckdb.run_query(question.duckdb)).collect(),
        }
        self.pleiad.run_query(question.pleiad, times)
    }
}

/// A command that runs the program on the pinned core.
fn pinned(program: &Path) -> Command {
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", &PINNED_CORE.to_string()]).arg(program);
    taskset
}

/// Parses the arguments PLEIAD RESULT CACHE POSTGRES PYTHON ITEMS FORMAT [PAGE] and runs the benchmark.
pub fn command(words: &[&str]) -> Result {
    let [pleiad, result, cache_dir, postgres, python, items, format, page @ ..] = words else {
        return Err("the query bench takes at least seven arguments".to_owned());
    };
    let path = |text: &&str| PathBuf::from(*text);
    let items = items.parse().map_err(|_| format!("`{items}` is not a number of items"))?;
    let page = page.first().map(path);
    run(&QueryBenchOptions {
        pleiad: Path::new(pleiad),
        result: Path::new(result),
        cache_dir: Path::new(cache_dir),
        postgres: Path::new(postgres),
        python: Path::new(python),
        items,
        format,
        page: page.as_deref(),
    })
}
