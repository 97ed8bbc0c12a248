//! pleiad-bench: how fast, and how near to what the parts below could do. `cargo xtask bench` and `compare` run it.
//!
//! Promise: a figure is never shown without a ceiling or a rival that was measured in the same run, on the same
//! machine, in turns; what a machine's mood does to one it does to the other. Read in this order.

mod item; // what is written and read
mod signed; // requests as bytes, ready to be sent
mod answer; // the end of an answer, found cheaply
mod load; // many connections, one thread
mod process; // programs under test, and what they cost
mod server; // `pleiad`, started and filled
mod ceiling; // what the parts below could do
mod start; // from nothing to the first answer, and the rest afterwards
mod measure; // rounds become one figure
mod bench; // ours against the ceilings
mod rival; // other people's servers
mod compare; // ours beside theirs
mod report; // tables, JSON, pages
mod query; // questions about a million items, beside others
mod elastic; // what partitions and their changes cost
mod scripts; // what scripts and batches cost
mod vector; // the nearest vectors, by graph

use std::path::PathBuf;
use std::process::ExitCode;

/// The error is a message for the person at the keyboard; nobody matches on it.
type Result<T = ()> = std::result::Result<T, String>;

const USAGE: &str = "\
pleiad-bench bench PLEIAD RESULT.json [PAGE.md]           ours against the ceilings
pleiad-bench compare PLEIAD PAGE.md MODULES POSTGRES      ours beside others; MODULES and POSTGRES are directories
pleiad-bench query PLEIAD RESULT.json KEPT POSTGRES PYTHON ITEMS FORMAT [PAGE.md]   questions, beside others
pleiad-bench elastic PLEIAD RESULT.json ITEMS [PAGE.md]   throughput held to, many partitions, a split under load
pleiad-bench scripts PLEIAD RESULT.json [PAGE.md]         scripts and batches against the same work without them
pleiad-bench vector PLEIAD RESULT.json ITEMS [PAGE.md]    the nearest vectors by graph, against looking at every one
pleiad-bench load PLEIAD reads|creates CONNECTIONS SECONDS   one load, for a profiler to watch
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
            bench::one_load(&PathBuf::from(pleiad), kind, number(connections)? as usize, number(seconds)?)
        }
        ["http-ceiling", answer] => ceiling::http::serve(&PathBuf::from(answer)),
        _ => Err(format!("not a command\n\n{USAGE}")),
    }
}
