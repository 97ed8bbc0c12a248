//! The command line: `dev`, `serve`, `inspect`, `trust`, `config`, with the flags that the table defines, and the commands to
//! a running server, which `remote` defines.
//!
//! Promise: a flag's words are handed on as they came; `word` judges them, so that a flag, a variable and a line
//! of the file are refused alike.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches};

use super::precedence::FlagValues;
use super::table::{Preset, RunMode, Setting, SettingGroup, TABLE};
use super::value::ValueArity;
use crate::remote::{self, RemoteCommand};

/// What the user asked for.
#[derive(Debug)]
pub enum Command {
    Run(RunMode, FlagValues),
    Inspect(FlagValues),
    Trust { flags: FlagValues, act: TrustCommand },
    Config(Print),
    Remote { flags: FlagValues, order: RemoteCommand },
}

/// What `pleiad trust` is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustCommand {
    Explain,
    Path,
    Install,
}

/// What `pleiad config` is to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    Sample,
    List,
    Markdown,
    NewKey,
}

/// The settings by which `pleiad inspect` finds the data.
const INSPECT_FLAGS: [&str; 2] = ["data", "config"];

/// The settings by which `pleiad trust` finds the certificate.
const TRUST_FLAGS: [&str; 3] = ["data", "config", "host-name"];

pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let matches = tree().try_get_matches_from(words)?;
    Ok(match matches.subcommand() {
        Some(("dev", of)) => Command::Run(RunMode::Dev, flags(of)),
        Some(("serve", of)) => Command::Run(RunMode::Serve, flags(of)),
        Some(("inspect", of)) => Command::Inspect(flags(of)),
        Some(("trust", of)) => Command::Trust { flags: flags(of), act: trust(of) },
        Some(("config", of)) => Command::Config(print(of)),
        other => return to_server(other).ok_or_else(nothing_said),
    })
}

/// What is not for this program to do, but for a server that runs.
fn to_server(said: Option<(&str, &ArgMatches)>) -> Option<Command> {
    let (name, of) = said?;
    let order = remote::order(name, of)?;
    Some(Command::Remote { flags: flags(of.subcommand().map_or(of, |(_, part)| part)), order })
}

fn nothing_said() -> clap::Error {
    tree().error(clap::error::ErrorKind::MissingSubcommand, "say what to do, for example `pleiad dev`")
}

pub fn tree() -> clap::Command {
    clap::Command::new("pleiad")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A partitioned document database that the Azure Cosmos DB SDKs open unchanged.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(120)
        .subcommands([dev(), serve(), inspect(), trust_command(), config_command()])
        .subcommands(remote::commands())
}

const EXAMPLES: &str = "\
Examples:
  pleiad dev                       a database on http://localhost:8081 and https://localhost:8081
  pleiad dev --ephemeral --port 0  for tests: in memory, on a free port told by the ready line
  pleiad dev --config pleiad.toml  with databases, containers and first items
  pleiad trust                     how to make this machine trust its certificate
  pleiad serve --data /var/lib/pleiad --key-file pleiad.key
  pleiad partitions list shop/orders   what a running server's partitions hold

Every setting is also an environment variable (PLEIAD_PORT) and a key in the file of --config.
`pleiad config` prints a documented sample of that file.";

fn dev() -> clap::Command {
    face(RunMode::Dev).about("Run a database for development and tests, in place of the Cosmos DB emulator").after_help(
        "Examples:\n  pleiad dev\n  pleiad dev --ephemeral --quiet --port 0\n  \
             pleiad dev --host 0.0.0.0 --host-name cosmos.test\n\n\
             Keys are given as environment variables (PLEIAD_PRIMARY_KEY, …), in the file or with --key-file.",
    )
}

fn serve() -> clap::Command {
    face(RunMode::Serve).about("Run a database for real use: durable, with keys of your own").after_help(
        "Examples:\n  pleiad config --new-key > pleiad.key\n  \
             pleiad serve --data /var/lib/pleiad --key-file pleiad.key\n  \
             pleiad serve --config /etc/pleiad.toml --host 0.0.0.0 --tls-cert chain.pem --tls-key key.pem\n\n\
             Keys are given as environment variables (PLEIAD_PRIMARY_KEY, …), in the file or with --key-file.",
    )
}

fn face(face: RunMode) -> clap::Command {
    let offered = |group| TABLE.iter().filter(move |s| s.group == group && s.is_flag() && s.is_in(face));
    let args = SettingGroup::ALL.into_iter().flat_map(offered).map(move |setting| arg(setting, face));
    clap::Command::new(face.as_str()).args(args)
}

fn inspect() -> clap::Command {
    clap::Command::new("inspect")
        .about("Tell what a data directory holds and whether all of it fits together; the server must be stopped")
        .after_help("Examples:\n  pleiad inspect --data /var/lib/pleiad\n\nThe exit code is 1 when something is wrong.")
        .args(settings(&INSPECT_FLAGS))
}

/// Arguments for these settings, with the presets of `dev`.
fn settings(names: &'static [&str]) -> impl Iterator<Item = Arg> {
    names.iter().filter_map(|name| Setting::find(name)).map(|setting| arg(setting, RunMode::Dev))
}

fn trust_command() -> clap::Command {
    clap::Command::new("trust")
        .about("Tell, or do, what makes clients trust the generated certificate")
        .after_help("Examples:\n  pleiad trust\n  pleiad trust --install\n  export NODE_EXTRA_CA_CERTS=\"$(pleiad trust --path)\"")
        .arg(switch("install", "Do it for this operating system; asks for administrator rights where those are needed"))
        .arg(switch("path", "Print only the path of the authority's certificate"))
        .group(ArgGroup::new("act").args(["install", "path"]))
        .args(settings(&TRUST_FLAGS))
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

fn arg(setting: &'static Setting, face: RunMode) -> Arg {
    let arg = Arg::new(setting.name).long(setting.name).help(help(setting, face)).help_heading(setting.group.title());
    match setting.shape {
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

fn help(setting: &Setting, face: RunMode) -> String {
    let preset = match setting.preset(face) {
        Preset::Is(word) if setting.shape != ValueArity::Flag => format!(" [default: {word}]"),
        Preset::Found(how) => format!(" [default: {how}]"),
        Preset::Required => " [required]".to_owned(),
        _ => String::new(),
    };
    format!("{}{preset} [env: {}]", setting.help(), setting.variable())
}

fn flags(matches: &ArgMatches) -> FlagValues {
    let words = |setting: &'static Setting| {
        let words = matches.try_get_many::<String>(setting.name).ok().flatten()?;
        Some((setting.name, words.cloned().collect()))
    };
    TABLE.iter().filter_map(words).collect::<BTreeMap<_, _>>()
}

fn trust(matches: &ArgMatches) -> TrustCommand {
    match (matches.get_flag("install"), matches.get_flag("path")) {
        (true, _) => TrustCommand::Install,
        (_, true) => TrustCommand::Path,
        _ => TrustCommand::Explain,
    }
}

fn print(matches: &ArgMatches) -> Print {
    let asked = [("list", Print::List), ("markdown", Print::Markdown), ("new-key", Print::NewKey)];
    asked.into_iter().find(|(name, _)| matches.get_flag(name)).map_or(Print::Sample, |(_, print)| print)
}
