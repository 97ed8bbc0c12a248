//! The `pleiad` program: command line, configuration, and the start and shutdown of the server.

mod config; // settings from flags, environment variables and the configuration file
mod certificate; // the server's TLS certificate and the generated certificate authority
mod seed; // databases, containers and items that the configuration file declares
mod remote; // commands to a running server
mod endpoint; // the URLs at which clients reach the server
mod banner; // the start-up banner, for people
mod ready; // the ready line, for machines
mod alerts; // alerts to the log and to a webhook
mod inspect; // `pleiad inspect`: lists and checks a data directory
mod salvage; // `pleiad salvage`: writes out what can be read of a damaged data directory
mod trust; // `pleiad trust`: makes clients trust the generated certificate
mod server; // start, serve, shut down

use std::process::ExitCode;

use pleiad_model::env::{Env, SystemEnv};
use pleiad_model::{Error, Result};

use config::{Command, Environment, FlagValues, Print, RunMode, Settings, TrustCommand};

/// Requests and RocksDB allocate and free small blocks on many threads: a short query takes an eighth less time than
/// with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    disable_huge_pages();
    let command = config::parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pleiad: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Turns off transparent huge pages. With them the allocator gets pages of 2 MB and holds several before any data is
/// stored: an idle process uses 14 MB instead of 4. Queries are not faster with them.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true); // if it fails, memory use is higher
}

fn run(command: Command) -> Result<()> {
    let environment = Environment::of_process();
    match command {
        Command::Run(mode, flags) => server::run(Settings::resolve(mode, &flags, &environment)?),
        Command::Inspect(flags) => inspect::run(&Settings::resolve(RunMode::Dev, &flags, &environment)?),
        Command::Salvage { flags, output } => {
            salvage::run(&Settings::resolve(RunMode::Dev, &flags, &environment)?, &output)
        }
        Command::Trust { flags, action } => run_trust(&flags, &environment, action),
        Command::Config(what) => print(&config_output(what)?),
        Command::Remote { flags, command } => run_remote(flags, &command, &environment),
    }
}

fn run_trust(flags: &FlagValues, environment: &Environment, action: TrustCommand) -> Result<()> {
    let settings = Settings::resolve(RunMode::Dev, flags, environment)?;
    let identity = certificate::identity(&settings, SystemEnv.now_ms())?;
    let authority = identity.authority.ok_or_else(|| match settings.own_certificate {
        Some(_) => Error::invalid("the certificate in use is your own (tls-cert); whoever issued it is to be trusted."),
        None => Error::invalid("the certificate cannot be kept anywhere; give --data a directory that can be written."),
    })?;
    match action {
        TrustCommand::Explain => print(&trust::explain(&authority)),
        TrustCommand::Path => print(&format!("{}\n", authority.display())),
        TrustCommand::Install => trust::install(&authority),
    }
}

/// `--ephemeral` is set because a client stores no data and needs no data directory.
fn run_remote(mut flags: FlagValues, command: &remote::RemoteCommand, environment: &Environment) -> Result<()> {
    flags.insert("ephemeral", vec!["true".to_owned()]);
    remote::run(command, &Settings::resolve(RunMode::Dev, &flags, environment)?, environment)
}

fn config_output(target: Print) -> Result<String> {
    Ok(match target {
        Print::Sample => config::sample(),
        Print::List => config::list(),
        Print::Markdown => config::markdown(),
        Print::NewKey => config::new_key()? + "\n",
    })
}

/// Writes to standard output. A reader that closes the pipe early (`| head`) is not an error.
fn print(text: &str) -> Result<()> {
    use std::io::{ErrorKind, Write};
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::unavailable(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
