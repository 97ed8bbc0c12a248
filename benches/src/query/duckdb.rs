//! DuckDB with the same items: one column of type JSON, one thread.
//!
//! Guarantees: its data is in its own file and, after the first query, in memory. It runs inside a Python process that
//! measures the times itself, from passing the text to having the rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::answer::{QueryAnswer, Taken};
use super::dataset_cache::DatasetCache;
use super::pinned;
use super::piped::PipedProcess;
use crate::Result;

const END: &str = "-- end of the answer";
/// Reads statements as lines of JSON, answers with lines of JSON.
const SCRIPT: &str = include_str!("duckdb.py");

pub struct Duckdb {
    talk: PipedProcess,
    pub version: String,
}

impl Duckdb {
    /// `python` is an interpreter that can import `duckdb`.
    pub fn open(python: &Path, shelf: &DatasetCache) -> Result<Duckdb> {
        let version = Command::new(python).args(["-c", "import duckdb; print(duckdb.__version__)"]).output();
        let version = version.map_err(|e| format!("cannot start {}: {e}", python.display()))?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let dir = shelf.keep("duckdb", &version, |dir| load(python, dir, shelf))?;
        Ok(Duckdb { talk: start(&pinned(python), &dir)?, version })
    }

    pub fn ask(&mut self, sql: &str) -> Result<Taken> {
        let told = ask(&mut self.talk, sql)?;
        let ms = told["ms"].as_f64().ok_or("no time from DuckDB")?;
        Ok(Taken { ms, answer: QueryAnswer::of_json(told["rows"].as_array().into_iter().flatten()) })
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("items.duckdb")
}

fn start(python: &Command, dir: &Path) -> Result<PipedProcess> {
    let mut command = Command::new(python.get_program());
    command.args(python.get_args()).args(["-c", SCRIPT]).arg(file(dir)).arg(END);
    let mut talk = PipedProcess::start(&command)?;
    ask(&mut talk, "SET threads = 1")?;
    Ok(talk)
}

fn load(python: &Path, dir: &Path, shelf: &DatasetCache) -> Result {
    let lines = shelf.lines()?;
    let mut talk = start(&Command::new(python), dir)?;
    let from = lines.path().display();
    ask(
        &mut talk,
        &format!(
            "CREATE TABLE items AS SELECT json AS doc FROM read_json_objects('{from}', format = 'newline_delimited')"
        ),
    )?;
    ask(&mut talk, "CHECKPOINT").map(drop)
}

fn ask(talk: &mut PipedProcess, sql: &str) -> Result<Value> {
    let lines = talk.ask(&format!("{}\n", json!(sql)), END)?;
    let told: Value = serde_json::from_str(&lines.concat()).map_err(|e| format!("{e}: {}", lines.join(" / ")))?;
    match told["error"].as_str() {
        Some(error) => Err(format!("DuckDB: {error}")),
        None => Ok(told),
    }
}
