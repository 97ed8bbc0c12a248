//! Command line of the commands to a running server.
//!
//! Guarantees: a `RemoteCommand` can be executed without further checks. Only the server knows whether its database,
//! container or partition exists.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use pleiad_model::item::check_resource_name;
use pleiad_model::{Object, Value, json};

pub const ENDPOINT: &str = "http://localhost:8081";

/// An action, the server to send it to, and the output format.
#[derive(Debug)]
pub struct RemoteCommand {
    pub endpoint: Option<String>,
    pub ca: Option<PathBuf>,
    pub json: bool,
    pub action: RemoteAction,
}

#[derive(Debug)]
pub enum RemoteAction {
    Partitions { of: ContainerPath },
    Split { of: ContainerPath, range: Option<u32>, at: Option<Value>, wait: bool },
    Merge { of: ContainerPath, ids: Vec<u32>, wait: bool },
    CreateContainer { of: ContainerPath, body: Object },
    Throughput { of: ContainerPath },
    SetThroughput { of: ContainerPath, body: Object },
    TopKeys { of: ContainerPath, by: &'static str, top: u32 },
    Jobs { watch: bool },
    Pause(u64),
    Resume(u64),
    Cancel(u64),
    CopyDatabase { from: String, to: String, wait: bool },
    Throttles,
    Snapshots,
    TakeSnapshot { name: String, replace: bool },
    RestoreSnapshot { name: String },
    DeleteSnapshot { name: String },
}

/// `DB` or `DB/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPath {
    pub database: String,
    pub container: Option<String>,
}

pub fn commands() -> Vec<Command> {
    vec![partitions(), throughput(), containers(), databases(), keys(), jobs(), throttles(), snapshot()]
}

fn partitions() -> Command {
    let list = Command::new("list").about("Show size, throughput and status of each partition").arg(container_arg());
    let split = Command::new("split")
        .about("Split a partition in two at half its data, while clients keep working")
        .arg(container_arg())
        .arg(number("range", "ID").help("The partition to split; the largest if not given"))
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("KEY")
                .help("Where to split: a partition key such as '[\"Sales\"]', or an effective key in hex digits"),
        )
        .arg(no_wait());
    let merge = Command::new("merge")
        .about("Merge adjacent partitions into one, while clients keep working")
        .arg(container_arg())
        .arg(Arg::new("id").value_name("ID").required(true).num_args(2..).value_parser(value_parser!(u32)))
        .arg(no_wait());
    group("partitions", "List, split and merge the partitions of a container", [list, split, merge]).after_help(
        "Examples:\n  pleiad partitions list shop/orders\n  pleiad partitions split shop/orders --range 2\n  \
         pleiad partitions merge shop/orders 3 4",
    )
}

fn throughput() -> Command {
    let show = Command::new("show").about("Show the provisioned throughput").arg(path_arg());
    let set = Command::new("set")
        .about("Change the provisioned throughput; takes effect immediately")
        .arg(path_arg())
        .arg(Arg::new("ru").value_name("RU/S").required(true).value_parser(value_parser!(u32)))
        .arg(switch("autoscale", "Autoscale, up to this value"));
    group("throughput", "Show and change the throughput of a database or container", [show, set]).after_help(
        "Examples:\n  pleiad throughput show shop/orders\n  pleiad throughput set shop/orders 4000\n  \
         pleiad throughput set shop 10000 --autoscale",
    )
}

fn containers() -> Command {
    let create = Command::new("create")
        .about("Create a container, and its database if it does not exist")
        .arg(container_arg())
        .arg(
            Arg::new("partition-key")
                .long("partition-key")
                .value_name("PATH")
                .required(true)
                .action(ArgAction::Append)
                .help("Path of the partition key, such as /customer; several for a hierarchical key"),
        )
        .arg(number("throughput", "RU/S").help("Throughput to provision for it"))
        .arg(number("autoscale-max", "RU/S").help("Maximum throughput of autoscale"))
        .group(ArgGroup::new("reserve").args(["throughput", "autoscale-max"]));
    group("containers", "Create containers", [create])
        .after_help("Examples:\n  pleiad containers create shop/orders --partition-key /customer --throughput 400")
}

fn databases() -> Command {
    let copy = Command::new("copy")
        .about("Copy a whole database, in its current state, under another name, while clients keep working")
        .arg(name_arg(Arg::new("from").value_name("FROM")))
        .arg(name_arg(Arg::new("to").value_name("TO")))
        .arg(no_wait());
    group("databases", "Copy databases", [copy]).after_help("Examples:\n  pleiad databases copy shop shop-test")
}

fn keys() -> Command {
    let top = Command::new("top")
        .about("List the partition keys with the most data or the most request units")
        .arg(container_arg())
        .arg(Arg::new("by").long("by").value_parser(["size", "ru"]).default_value("size").help("Sort order"))
        .arg(number("top", "COUNT").default_value("20").help("Number of keys to list"));
    group("keys", "List the largest or busiest partition keys", [top])
        .after_help("Examples:\n  pleiad keys top shop/orders\n  pleiad keys top shop/orders --by ru --top 5")
}

fn jobs() -> Command {
    let one = |name: &'static str, about: &'static str| {
        Command::new(name)
            .about(about)
            .arg(Arg::new("id").value_name("ID").required(true).value_parser(value_parser!(u64)))
    };
    let subcommands = [
        one("pause", "Pause a job at its next step"),
        one("resume", "Resume a paused job"),
        one("cancel", "Cancel a job and discard what it has done so far"),
    ];
    with_server_args(Command::new("jobs"))
        .about("List, pause, resume and cancel splits, merges and copies")
        .arg(switch("watch", "Show the progress of all jobs until they have ended"))
        .subcommands(subcommands.map(with_server_args))
        .after_help("Examples:\n  pleiad jobs --watch\n  pleiad jobs pause 3")
}

fn throttles() -> Command {
    with_server_args(Command::new("throttles"))
        .about("List throttled requests (429), and why they were throttled")
        .after_help("Examples:\n  pleiad throttles")
}

fn snapshot() -> Command {
    let name = || name_arg(Arg::new("name").value_name("NAME"));
    let take = Command::new("take")
        .about("Take a named snapshot of the whole account; clients keep working")
        .arg(name())
        .arg(switch("replace", "Replace an existing snapshot of that name"));
    let list = Command::new("list").about("List the snapshots, with time and size");
    let restore = Command::new("restore")
        .about("Restore the account to its state in the snapshot; later changes are lost")
        .arg(name());
    let delete = Command::new("delete").about("Delete a snapshot; the account is not changed").arg(name());
    group("snapshot", "Take and restore snapshots of the whole account", [take, list, restore, delete])
        .after_help("Examples:\n  pleiad snapshot take clean\n  pleiad snapshot restore clean\n  pleiad snapshot list")
}

fn group<const N: usize>(name: &'static str, about: &'static str, subcommands: [Command; N]) -> Command {
    Command::new(name)
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(subcommands.map(with_server_args))
}

/// Adds the arguments for the connection to the server and for the output format.
fn with_server_args(command: Command) -> Command {
    const HEADING: &str = "Server";
    let endpoint = Arg::new("endpoint")
        .long("endpoint")
        .value_name("URL")
        .help_heading(HEADING)
        .help(format!("Endpoint of the server [default: {ENDPOINT}] [env: PLEIAD_ENDPOINT]"));
    let ca = Arg::new("ca")
        .long("ca")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help_heading(HEADING)
        .help("Certificates (PEM) to trust, in addition to the system's and the generated one of this machine");
    let key_file = Arg::new("key-file").long("key-file").value_name("FILE").help_heading(HEADING).help(
        "File with the account's key [default: PLEIAD_PRIMARY_KEY, then the emulators' well-known key] [env: PLEIAD_KEY_FILE]",
    );
    command.arg(endpoint).arg(key_file).arg(ca).arg(switch("json", "Print the server's response as JSON, unchanged"))
}

fn container_arg() -> Arg {
    Arg::new("of").value_name("DB/CONTAINER").required(true).value_parser(|text: &str| match parse_path(text) {
        Some(path) if path.container.is_some() => Ok(path),
        _ => Err("write it as DB/CONTAINER"),
    })
}

/// A resource name. It becomes a path segment, so an invalid name could address another resource.
fn name_arg(arg: Arg) -> Arg {
    arg.required(true).value_parser(|text: &str| match check_resource_name(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

fn path_arg() -> Arg {
    let parse = |text: &str| parse_path(text).ok_or("write it as DB or DB/CONTAINER");
    Arg::new("of").value_name("DB[/CONTAINER]").required(true).value_parser(parse)
}

fn parse_path(text: &str) -> Option<ContainerPath> {
    let (database, container) = match text.split_once('/') {
        Some((database, container)) => (database, Some(container)),
        None => (text, None),
    };
    let named = |name: &str| !name.is_empty() && !name.contains('/');
    (named(database) && container.is_none_or(named))
        .then(|| ContainerPath { database: database.to_owned(), container: container.map(str::to_owned) })
}

fn number(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).value_parser(value_parser!(u32))
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

fn no_wait() -> Arg {
    switch("no-wait", "Only start the job; `pleiad jobs` shows its progress")
}

/// The command that was given, if it is one to a running server.
pub fn parse_command(name: &str, of: &ArgMatches) -> Option<RemoteCommand> {
    let (action, matches) = parse_action(name, of)?;
    Some(RemoteCommand {
        endpoint: matches.get_one("endpoint").cloned(),
        ca: matches.get_one::<PathBuf>("ca").cloned(),
        json: matches.get_flag("json"),
        action,
    })
}

fn parse_action<'m>(name: &str, of: &'m ArgMatches) -> Option<(RemoteAction, &'m ArgMatches)> {
    let (subcommand, matches) = of.subcommand().unwrap_or(("", of));
    let path = || matches.get_one::<ContainerPath>("of").cloned();
    let id = || matches.get_one::<u64>("id").copied();
    let snapshot_name = || matches.get_one::<String>("name").cloned();
    let action = match (name, subcommand) {
        ("partitions", "list") => RemoteAction::Partitions { of: path()? },
        ("partitions", "split") => RemoteAction::Split {
            of: path()?,
            range: matches.get_one("range").copied(),
            at: matches.get_one::<String>("at").map(|text| split_point(text)),
            wait: !matches.get_flag("no-wait"),
        },
        ("partitions", "merge") => RemoteAction::Merge {
            of: path()?,
            ids: matches.get_many("id")?.copied().collect(),
            wait: !matches.get_flag("no-wait"),
        },
        ("throughput", "show") => RemoteAction::Throughput { of: path()? },
        ("throughput", "set") => RemoteAction::SetThroughput { of: path()?, body: throughput_body(matches) },
        ("containers", "create") => RemoteAction::CreateContainer { of: path()?, body: container_body(matches) },
        ("keys", "top") => {
            let by = if matches.get_one::<String>("by")? == "ru" { "ru" } else { "size" };
            RemoteAction::TopKeys { of: path()?, by, top: *matches.get_one("top")? }
        }
        ("jobs", "") => RemoteAction::Jobs { watch: matches.get_flag("watch") },
        ("jobs", "pause") => RemoteAction::Pause(id()?),
        ("jobs", "resume") => RemoteAction::Resume(id()?),
        ("jobs", "cancel") => RemoteAction::Cancel(id()?),
        ("databases", "copy") => RemoteAction::CopyDatabase {
            from: matches.get_one::<String>("from").cloned()?,
            to: matches.get_one::<String>("to").cloned()?,
            wait: !matches.get_flag("no-wait"),
        },
        ("throttles", _) => RemoteAction::Throttles,
        ("snapshot", "list") => RemoteAction::Snapshots,
        ("snapshot", "take") => {
            RemoteAction::TakeSnapshot { name: snapshot_name()?, replace: matches.get_flag("replace") }
        }
        ("snapshot", "restore") => RemoteAction::RestoreSnapshot { name: snapshot_name()? },
        ("snapshot", "delete") => RemoteAction::DeleteSnapshot { name: snapshot_name()? },
        _ => return None,
    };
    Some((action, matches))
}

/// A key in brackets is JSON; anything else is sent as text, and the server checks it.
fn split_point(text: &str) -> Value {
    json::parse(text.as_bytes()).ok().filter(|value| value.as_array().is_some()).unwrap_or_else(|| text.into())
}

fn throughput_body(matches: &ArgMatches) -> Object {
    let ru = matches.get_one::<u32>("ru").copied().unwrap_or_default();
    let name = if matches.get_flag("autoscale") { "autoscaleMaxThroughput" } else { "throughput" };
    Object::new().with(name, u64::from(ru))
}

fn container_body(matches: &ArgMatches) -> Object {
    let paths: Vec<Value> =
        matches.get_many::<String>("partition-key").into_iter().flatten().map(|path| path.as_str().into()).collect();
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let key = Object::new().with("paths", paths).with("kind", kind).with("version", 2u64);
    let mut body = Object::new().with("partitionKey", key);
    for (flag, name) in [("throughput", "throughput"), ("autoscale-max", "autoscaleMaxThroughput")] {
        if let Some(ru) = matches.get_one::<u32>(flag) {
            body.set(name, u64::from(*ru));
        }
    }
    body
}
