//! The command line: `dev`, `serve`, `inspect`, `salvage`, `trust` and `config` with the flags that `table` defines, and the
//! commands to a running server, which `remote` defines.
//!
//! Guarantees: flag values are passed on unparsed. `value` parses them, so that flags, variables and lines of the file
//! get the same checks and error messages.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches};

use super::precedence::FlagValues;
use super::table::{Preset, RunMode, Setting, SettingGroup, TABLE};
use super::value::ValueArity;
use crate::remote::{self, RemoteCommand};

/// The parsed command line.
#[derive(Debug)]
pub enum Command {
    Run(RunMode, FlagValues),
    Inspect(FlagValues),
    Salvage { flags: FlagValues, output: PathBuf },
    Trust { flags: FlagValues, action: TrustCommand },
    Config(Print),
    Remote { flags: FlagValues, command: RemoteCommand },
}

/// The action of `pleiad trust`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustCommand {
    Explain,
    Path,
    Install,
}

/// What `pleiad config` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    Sample,
    List,
    Markdown,
    NewKey,
}

/// The settings that locate the data for `pleiad inspect` and `pleiad salvage`.
const INSPECT_FLAGS: [&str; 2] = ["data", "config"];

/// The settings that locate the certificate for `pleiad trust`.
const TRUST_FLAGS: [&str; 3] = ["data", "config", "host-name"];

pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let matches = cli().try_get_matches_from(words)?;
    Ok(match matches.subcommand() {
        Some(("dev", of)) => Command::Run(RunMode::Dev, flag_values(of)),
        Some(("serve", of)) => Command::Run(RunMode::Serve, flag_values(of)),
        Some(("inspect", of)) => Command::Inspect(flag_values(of)),
        Some(("salvage", of)) => Command::Salvage { flags: flag_values(of), output: salvage_output(of) },
        Some(("trust", of)) => Command::Trust { flags: flag_values(of), action: trust_action(of) },
        Some(("config", of)) => Command::Config(print_target(of)),
        other => return parse_remote(other).ok_or_else(missing_subcommand),
    })
}

/// A command to a running server, if this is one.
fn parse_remote(subcommand: Option<(&str, &ArgMatches)>) -> Option<Command> {
    let (name, of) = subcommand?;
    let command = remote::parse_command(name, of)?;
    Some(Command::Remote { flags: flag_values(of.subcommand().map_or(of, |(_, sub_matches)| sub_matches)), command })
}

fn missing_subcommand() -> clap::Error {
    cli().error(clap::error::ErrorKind::MissingSubcommand, "say what to do, for example `pleiad dev`")
}

pub fn cli() -> clap::Command {
    clap::Command::new("pleiad")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A partitioned document database that the Azure Cosmos DB SDKs open unchanged.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(120)
        .subcommands([dev(), serve(), inspect(), salvage(), trust_command(), config_command()])
        .subcommands(remote::commands())
}

const EXAMPLES: &str = "\
Examples:
  pleiad dev                       a database on http://localhost:8081 and https://localhost:8081
  pleiad dev --ephemeral --port 0  for tests: in memory, on a free port that the ready line reports
  pleiad dev --config pleiad.toml  with databases, containers and initial items
  pleiad trust                     how to make this machine trust its certificate
  pleiad serve --data /var/lib/pleiad --key-file pleiad.key
  pleiad partitions list shop/orders   size, throughput and status of a running server's partitions

Every setting is also an environment variable (PLEIAD_PORT) and a key in the file given with --config.
`pleiad config` prints a documented sample of that file.";

fn dev() -> clap::Command {
    run_command(RunMode::Dev)
        .about("Run a database for development and tests, instead of the Cosmos DB emulator")
        .after_help(
            "Examples:\n  pleiad dev\n  pleiad dev --ephemeral --quiet --port 0\n  \
             pleiad dev --host 0.0.0.0 --host-name cosmos.test\n\n\
             Give account keys as environment variables (PLEIAD_PRIMARY_KEY, …), in the file or with --key-file.",
        )
}

fn serve() -> clap::Command {
    run_command(RunMode::Serve).about("Run a database for production: durable, with your own keys").after_help(
        "Examples:\n  pleiad config --new-key > pleiad.key\n  \
             pleiad serve --data /var/lib/pleiad --key-file pleiad.key\n  \
             pleiad serve --config /etc/pleiad.toml --host 0.0.0.0 --tls-cert chain.pem --tls-key key.pem\n\n\
             Give account keys as environment variables (PLEIAD_PRIMARY_KEY, …), in the file or with --key-file.",
    )
}

fn run_command(mode: RunMode) -> clap::Command {
    let offered = |group| TABLE.iter().filter(move |s| s.group == group && s.is_flag() && s.is_in(mode));
    let args = SettingGroup::ALL.into_iter().flat_map(offered).map(move |setting| arg(setting, mode));
    clap::Command::new(mode.as_str()).args(args)
}

fn inspect() -> clap::Command {
    clap::Command::new("inspect")
        .about("List the contents of a data directory and check them, without changing it; the server must be stopped")
        .after_help("Examples:\n  pleiad inspect --data /var/lib/pleiad\n\nThe exit code is 1 if there is a problem.")
        .args(setting_args(&INSPECT_FLAGS))
}

fn salvage() -> clap::Command {
    clap::Command::new("salvage")
        .about("Write out whatever can be read of a damaged data directory; the server must be stopped")
        .after_help(
            "Examples:\n  pleiad salvage --data /var/lib/pleiad --out /mnt/salvaged\n\n\
             The data directory is not changed. The output has a file of items (NDJSON) and a definition (JSON) per \
             container, and report.txt. The exit code is 1 if something could not be read.",
        )
        .arg(Arg::new(OUTPUT).long(OUTPUT).value_name("DIR").required(true).help(
            "A new directory for the output; on the same file system as the data, table files take no space twice",
        ))
        .args(setting_args(&INSPECT_FLAGS))
}

const OUTPUT: &str = "out";

fn salvage_output(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<String>(OUTPUT).map(PathBuf::from).unwrap_or_default()
}

/// Arguments for these settings, with the defaults of `dev`.
fn setting_args(names: &'static [&str]) -> impl Iterator<Item = Arg> {
    names.iter().filter_map(|name| Setting::find(name)).map(|setting| arg(setting, RunMode::Dev))
}

fn trust_command() -> clap::Command {
    clap::Command::new("trust")
        .about("Show how to make clients trust the generated certificate, or install it")
        .after_help("Examples:\n  pleiad trust\n  pleiad trust --install\n  export NODE_EXTRA_CA_CERTS=\"$(pleiad trust --path)\"")
        .arg(switch("install", "Install it in this operating system's trust store; asks for administrator rights if they are needed"))
        .arg(switch("path", "Print only the path of the certificate authority's certificate"))
        .group(ArgGroup::new("act").args(["install", "path"]))
        .args(setting_args(&TRUST_FLAGS))
}

fn config_command() -> clap::Command {
    clap::Command::new("config")
        .about("Print a documented sample of the configuration file")
        .after_help("Examples:\n  pleiad config > pleiad.toml\n  pleiad config --new-key > pleiad.key")
        .arg(switch("list", "Print the settings' names, one per line"))
        .arg(switch("markdown", "Print docs/configuration.md"))
        .arg(switch("new-key", "Print a new account key"))
        .group(ArgGroup::new("print").args(["list", "markdown", "new-key"]))
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

fn arg(setting: &'static Setting, mode: RunMode) -> Arg {
    let arg = Arg::new(setting.name).long(setting.name).help(help(setting, mode)).help_heading(setting.group.title());
    match setting.arity {
        ValueArity::One => arg.value_name(value_name(setting)),
        ValueArity::Path if setting.name == "data" => arg.value_name("DIR"),
        ValueArity::Path => arg.value_name("FILE"),
        ValueArity::Many => arg.value_name("NAME").action(ArgAction::Append),
        ValueArity::Flag => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name("BOOL")
            .hide_possible_values(true),
    }
}

fn value_name(setting: &Setting) -> String {
    match (setting.choices, setting.unit) {
        ([], "") => setting.name.to_ascii_uppercase(),
        ([], unit) => unit.to_ascii_uppercase(),
        (choices, _) => choices.join("|"),
    }
}

fn help(setting: &Setting, mode: RunMode) -> String {
    let preset = match setting.preset(mode) {
        Preset::Is(word) if setting.arity != ValueArity::Flag => format!(" [default: {word}]"),
        Preset::Derived(how) => format!(" [default: {how}]"),
        Preset::Required => " [required]".to_owned(),
        _ => String::new(),
    };
    format!("{}{preset} [env: {}]", setting.help(), setting.variable())
}

fn flag_values(matches: &ArgMatches) -> FlagValues {
    let words = |setting: &'static Setting| {
        let words = matches.try_get_many::<String>(setting.name).ok().flatten()?;
        Some((setting.name, words.cloned().collect()))
    };
    TABLE.iter().filter_map(words).collect::<BTreeMap<_, _>>()
}

fn trust_action(matches: &ArgMatches) -> TrustCommand {
    match (matches.get_flag("install"), matches.get_flag("path")) {
        (true, _) => TrustCommand::Install,
        (_, true) => TrustCommand::Path,
        _ => TrustCommand::Explain,
    }
}

fn print_target(matches: &ArgMatches) -> Print {
    let targets = [("list", Print::List), ("markdown", Print::Markdown), ("new-key", Print::NewKey)];
    targets.into_iter().find(|(name, _)| matches.get_flag(name)).map_or(Print::Sample, |(_, print)| print)
}
