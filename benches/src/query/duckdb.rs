//! DuckDB with the same items: one column of type JSON, one thread.
//!
//! Guarantees: its data is in its own file and, after the first query, in memory. It runs inside a Python process that
//! measures the times itself, from passing the text to having the rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::answer::{QueryAnswer, TimedAnswer};
use super::dataset_cache::DatasetCache;
use super::pinned;
use super::piped::PipedProcess;
use crate::Result;

const END: &str = "-- end of the answer";
/// Reads statements as lines of JSON, answers with lines of JSON.
const SCRIPT: &str = include_str!("duckdb.py");

pub struct Duckdb {
    process: PipedProcess,
    pub version: String,
}

impl Duckdb {
    /// `python` is an interpreter that can import `duckdb`.
    pub fn open(python: &Path, cache: &DatasetCache) -> Result<Duckdb> {
        let version = Command::new(python).args(["-c", "import duckdb; print(duckdb.__version__)"]).output();
        let version = version.map_err(|e| format!("cannot start {}: {e}", python.display()))?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let dir = cache.load_once("duckdb", &version, |dir| load(python, dir, cache))?;
        Ok(Duckdb { process: start(&pinned(python), &dir)?, version })
    }

    pub fn run_query(&mut self, sql: &str) -> Result<TimedAnswer> {
        let reply = execute(&mut self.process, sql)?;
        let ms = reply["ms"].as_f64().ok_or("no time from DuckDB")?;
        Ok(TimedAnswer { ms, answer: QueryAnswer::of_json(reply["rows"].as_array().into_iter().flatten()) })
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("items.duckdb")
}

fn start(python: &Command, dir: &Path) -> Result<PipedProcess> {
    let mut command = Command::new(python.get_program());
    command.args(python.get_args()).args(["-c", SCRIPT]).arg(file(dir)).arg(END);
    let mut process = PipedProcess::start(&command)?;
    execute(&mut process, "SET threads = 1")?;
    Ok(process)
}

fn load(python: &Path, dir: &Path, cache: &DatasetCache) -> Result {
    let lines = cache.write_lines()?;
    let mut process = start(&Command::new(python), dir)?;
    let from = lines.path().display();
    execute(
        &mut process,
        &format!(
            "CREATE TABLE items AS SELECT json AS doc FROM read_json_objects('{from}', format = 'newline_delimited')"
        ),
    )?;
    execute(&mut process, "CHECKPOINT").map(drop)
}

fn execute(process: &mut PipedProcess, sql: &str) -> Result<Value> {
    let lines = process.exchange(&format!("{}\n", json!(sql)), END)?;
    let reply: Value = serde_json::from_str(&lines.concat()).map_err(|e| format!("{e}: {}", lines.join(" / ")))?;
    match reply["error"].as_str() {
        Some(error) => Err(format!("DuckDB: {error}")),
        None => Ok(reply),
    }
}
