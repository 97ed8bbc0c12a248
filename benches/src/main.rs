//! Benchmark harness, the program `pleiad-bench`: measures Pleiad against ceilings and other systems.
//! `cargo xtask bench` and `cargo xtask compare` run it.
//!
//! Invariant: every figure is shown next to a ceiling or another system that was measured in the same run, on the same
//! machine, in alternating rounds, so that a disturbance of the machine affects both. The modules are declared in
//! reading order.

mod item; // the items that loads write and read
mod signed; // signed requests as bytes
mod answer; // response framing: where an HTTP response ends
mod load; // closed-loop load generator: many connections, one thread
mod process; // child processes, their CPU time and memory
mod server; // the server under test, started and filled
mod ceiling; // the bare HTTP server and the bare store
mod start; // start-up time and idle cost
mod measure; // medians over rounds
mod report; // tables, JSON, documentation pages
mod bench; // the load benchmark: Pleiad against the ceilings
mod rival; // the systems that Pleiad is compared with
mod compare; // the same loads on Pleiad and on those systems
mod query; // the query benchmark: a million items, three systems
mod elastic; // the cost of rate limiting, many partitions and a split
mod scripts; // the cost of scripts and batches
mod vector; // vector search: ANN graph against exact k-NN

use std::path::PathBuf;
use std::process::ExitCode;

/// The error is a message for the person at the keyboard; no code matches on it.
type Result<T = ()> = std::result::Result<T, String>;

const USAGE: &str = "\
pleiad-bench bench PLEIAD RESULT.json [PAGE.md]           point reads and creates, against a bare server and store
pleiad-bench compare PLEIAD PAGE.md MODULES POSTGRES      other systems too; MODULES and POSTGRES are directories
pleiad-bench query PLEIAD RESULT.json CACHE POSTGRES PYTHON ITEMS FORMAT [PAGE.md]   queries on three systems
pleiad-bench elastic PLEIAD RESULT.json ITEMS [PAGE.md]   rate limiting, many partitions, a split under load
pleiad-bench scripts PLEIAD RESULT.json [PAGE.md]         scripts and batches, against the same work without them
pleiad-bench vector PLEIAD RESULT.json ITEMS [PAGE.md]    approximate against exact vector search
pleiad-bench load PLEIAD reads|creates CONNECTIONS SECONDS   one load, to run under a profiler
pleiad-bench http-ceiling ANSWER                          (internal) answers every signed request with that file";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result {
    match args {
        ["bench", pleiad, result] => bench::run(&PathBuf::from(pleiad), &PathBuf::from(result), None),
        ["bench", pleiad, result, page] => {
            bench::run(&PathBuf::from(pleiad), &PathBuf::from(result), Some(&PathBuf::from(page)))
        }
        ["compare", pleiad, page, modules, postgres] => compare::run(
            &PathBuf::from(pleiad),
            &PathBuf::from(page),
            &PathBuf::from(modules),
            &PathBuf::from(postgres),
        ),
        ["query", words @ ..] => query::command(words),
        ["elastic", words @ ..] => elastic::command(words),
        ["scripts", words @ ..] => scripts::command(words),
        ["vector", words @ ..] => vector::command(words),
        ["load", pleiad, kind, connections, seconds] => {
            let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
            bench::run_one_load(&PathBuf::from(pleiad), kind, number(connections)? as usize, number(seconds)?)
        }
        ["http-ceiling", answer] => ceiling::http::serve(&PathBuf::from(answer)),
        _ => Err(format!("not a command\n\n{USAGE}")),
    }
}
