//! `cargo xtask <command>`: the repository's tasks: test, set up, run, measure.
//!
//! Guarantees: it uses the standard library only, so that the first `cargo xtask` on a new machine answers in seconds,
//! before anything heavy is compiled. CI runs what developers run: `.ci/run` calls `cargo xtask test` and nothing else.

mod shell; // directories, running programs, coloured output
mod checkout; // checkouts that share a target directory
mod rocksdb; // RocksDB, compiled once per machine, and cargo calls that link it
mod setup; // installs the tools that building and testing need
mod server; // the binary, started for a test and stopped after it
mod dev; // build and run the emulator
mod dist; // the binary that users get
mod bench; // benchmarks, against ceilings and other systems
mod interop; // official SDKs against the binary
mod soak; // splits and merges under load from SDKs
mod tidy; // static checks of the repository's own rules
mod test; // all checks, in order

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <command>

  test [step…]       all checks, in order; or only the named steps:
                     fmt clippy tidy unit golden crash interop soak
  dev [args…]        build, then run `pleiad dev args…` (sets up what the build needs first)
  dist               build the binary that users get: optimised as a whole, its debug information in a file of its own
  setup              install what building and testing need (compiler, libclang, python3, node)
  tidy               static checks: dependencies between crates, paths and settings in the docs,
                     requirement numbers, module headers, unused golden pages and more
  interop [suite…]   official SDKs against the binary: python js rust java go
  bench [--write]    speed relative to a bare HTTP server and a bare store; --write: into docs/performance.md
  bench query        query times over a million items, compared with PostgreSQL and DuckDB; --items N, --write
  bench scripts      stored procedures, user-defined functions and batches against the same work without them; --write
  bench vector       approximate against exact search in 100,000 vectors; --write
  bench elastic      rate limiting, 1 to 500 partitions, a split of a million items under load; --items N, --write
  compare            the same loads on cosmosdb-server and PostgreSQL, into docs/performance.md";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{} {message}", shell::red("error:"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> shell::Result {
    let Some((command, rest)) = args.split_first() else {
        return Err(format!("a command is missing\n\n{USAGE}"));
    };
    match command.as_str() {
        "test" => test::run(rest),
        "dev" => dev::run(rest),
        "dist" => no_arguments(rest).and_then(|()| dist::run()),
        "setup" => no_arguments(rest).and_then(|()| setup::run()),
        "tidy" => no_arguments(rest).and_then(|()| tidy::run()),
        "interop" => interop::run(rest),
        "bench" => bench::run(rest),
        "compare" => no_arguments(rest).and_then(|()| bench::compare()),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("there is no command `{other}`\n\n{USAGE}")),
    }
}

fn no_arguments(rest: &[String]) -> shell::Result {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(format!("this command takes no argument, got `{extra}`\n\n{USAGE}")),
    }
}
