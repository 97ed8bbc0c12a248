//! pleiad: the program. Read in this order.

mod alerts; // what an operator should know
mod banner; // saying so to people
mod certificate; // who it is, for HTTPS
mod config; // what it was told
mod endpoint; // where it can be found
mod inspect; // what a data directory holds, and whether it fits together
mod ready; // and to machines
mod remote; // orders to a server that runs
mod seed; // what should exist from the start
mod server; // what it does all day
mod trust; // how clients come to believe the certificate

use std::process::ExitCode;

use pleiad_model::env::{Env, SystemEnv};
use pleiad_model::{Error, Result};

use config::{Command, Environment, FlagValues, Print, RunMode, Settings, TrustCommand};

/// Requests allocate and free in small pieces on many threads, RocksDB too: an eighth less time for a short query than with the
/// system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    keep_to_small_pages();
    let command = config::parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pleiad: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The allocator asks for pages of 2 MB, and where the system has some it holds several before anything is stored: 14 MB at rest
/// instead of 4. Queries are no quicker for it.
fn keep_to_small_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true); // where it is not allowed we are larger, and that is all
}

fn run(command: Command) -> Result<()> {
    let environment = Environment::of_process();
    match command {
        Command::Run(face, flags) => server::run(Settings::resolve(face, &flags, &environment)?),
        Command::Inspect(flags) => inspect::run(&Settings::resolve(RunMode::Dev, &flags, &environment)?),
        Command::Trust { flags, act } => run_trust(&flags, &environment, act),
        Command::Config(what) => print(&printed(what)?),
        Command::Remote { flags, order } => run_remote(flags, &order, &environment),
    }
}

fn run_trust(flags: &FlagValues, environment: &Environment, act: TrustCommand) -> Result<()> {
    let settings = Settings::resolve(RunMode::Dev, flags, environment)?;
    let identity = certificate::identity(&settings, SystemEnv.now_ms())?;
    let authority = identity.authority.ok_or_else(|| match settings.own_certificate {
        Some(_) => Error::invalid("the certificate in use is your own (tls-cert); whoever issued it is to be trusted."),
        None => Error::invalid("the certificate cannot be kept anywhere; give --data a directory that can be written."),
    })?;
    match act {
        TrustCommand::Explain => print(&trust::explain(&authority)),
        TrustCommand::Path => print(&format!("{}\n", authority.display())),
        TrustCommand::Install => trust::install(&authority),
    }
}

/// A client keeps no data, so nobody need say where.
fn run_remote(mut flags: FlagValues, order: &remote::RemoteCommand, environment: &Environment) -> Result<()> {
    flags.insert("ephemeral", vec!["true".to_owned()]);
    remote::run(order, &Settings::resolve(RunMode::Dev, &flags, environment)?, environment)
}

fn printed(what: Print) -> Result<String> {
    Ok(match what {
        Print::Sample => config::sample(),
        Print::List => config::list(),
        Print::Markdown => config::markdown(),
        Print::NewKey => config::new_key()? + "\n",
    })
}

/// To standard output, where a reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> Result<()> {
    use std::io::{ErrorKind, Write};
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::unavailable(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
