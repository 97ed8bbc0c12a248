//! `cargo xtask <command>`: everything one does with this repository besides editing it.
//!
//! Promise: standard library only, so that the first `cargo xtask` on a new machine answers in seconds, before
//! anything heavy is compiled. What CI runs is what we run: `.ci/run` calls `cargo xtask test` and nothing else.

mod shell; // where things are, how a program is run, how we speak

mod bench; // how fast, against ceilings and beside others
mod dev; // build and run the emulator
mod interop; // real SDKs against the real binary
mod server;
mod rocksdb;
mod setup; // is everything here that the build needs?
mod soak; // partitions change under real SDKs
mod test; // every check, in order
mod tidy; // the house checks itself // the real binary, started and stopped

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <command>

  test [step…]       every check, in order; or only the steps named:
                     fmt clippy tidy unit golden crash interop soak
  dev [args…]        build, then `pleiad dev args…` (set up what the build needs first)
  setup              install what building and testing need (compiler, libclang, python3, node)
  tidy               the house checks itself: arrows between crates, paths and settings in the docs,
                     requirement numbers, module headers, dead golden pages
  interop [suite…]   real SDKs against the binary: python js rust java go
  bench [--write]    speed against the bare HTTP server and the bare store; --write: into docs/performance.md
  bench query        queries over a million items beside PostgreSQL and DuckDB; --items N, --write
  bench scripts      stored procedures, functions in queries, batches against the same work without them; --write
  bench vector       the nearest of 100,000 vectors by graph, against looking at every one; --write
  bench elastic      throughput held to, 1 to 500 partitions, a split of a million items under load; --items N, --write
  compare            the same loads beside cosmosdb-server and PostgreSQL, into docs/performance.md";

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
        return Err(format!("which command?\n\n{USAGE}"));
    };
    match command.as_str() {
        "test" => test::run(rest),
        "dev" => dev::run(rest),
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
