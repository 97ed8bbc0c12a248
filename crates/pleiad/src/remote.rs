//! Commands to a running server: `pleiad partitions`, `throughput`, `containers`, `databases`, `keys`, `jobs`,
//! `throttles`, `snapshot`.
//!
//! An ordinary client of the management API: it signs requests with an account key and prints the server's responses,
//! as tables for people or, with `--json`, as the server's own JSON.
//!
//! Guarantees: an error message says what to do next, and the exit code is 1.
//!
//! The modules are declared in reading order.

mod command; // subcommands and their arguments
mod client; // one signed request, over HTTP or HTTPS
mod trust; // the trusted certificate authorities
mod table; // responses as tables
mod watch; // follows jobs until they end

pub use command::{RemoteCommand, commands, parse_command};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_model::{Error, Object, Result, Value, json};

use crate::config::{Environment, Settings};
use client::Client;
use command::{ContainerPath, ENDPOINT, RemoteAction};

/// The characters that a path segment may contain unescaped, besides letters and digits: `-`, `_`, `.`, `~`.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub fn run(command: &RemoteCommand, settings: &Settings, environment: &Environment) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unavailable(format!("cannot start the runtime: {error}")))?;
    let endpoint = command.endpoint.as_deref().or_else(|| environment.get("PLEIAD_ENDPOINT")).unwrap_or(ENDPOINT);
    let client = Client::new(endpoint, &settings.keys.primary, trust::client_config(command.ca.as_deref(), settings))?;
    runtime.block_on(execute(command, &client))
}

async fn execute(command: &RemoteCommand, client: &Client) -> Result<()> {
    match &command.action {
        RemoteAction::Jobs { watch: true } => watch::all(client, command.json).await,
        RemoteAction::Split { wait: true, .. }
        | RemoteAction::Merge { wait: true, .. }
        | RemoteAction::CopyDatabase { wait: true, .. } => {
            let job = send(client, &command.action).await?;
            watch::one(client, &job, command.json).await
        }
        action => {
            let answer = send(client, action).await?;
            print_answer(&answer, command.json, action)
        }
    }
}

async fn send(client: &Client, action: &RemoteAction) -> Result<Value> {
    let (method, path, body) = request(action);
    client.send(method, &path, body).await
}

/// The request for an action: method, path and body.
fn request(action: &RemoteAction) -> (&'static str, String, Option<Object>) {
    match action {
        RemoteAction::Partitions { of } => ("GET", resource_path(of, "partitions"), None),
        RemoteAction::Split { of, range, at, .. } => {
            let path = match range {
                Some(id) => resource_path(of, &format!("partitions/{id}/split")),
                None => resource_path(of, "partitions/split"),
            };
            let body = at.as_ref().map_or(Object::new(), |at| Object::new().with("at", at.clone()));
            ("POST", path, Some(body))
        }
        RemoteAction::Merge { of, ids, .. } => {
            let ids: Vec<Value> = ids.iter().map(|id| Value::from(id.to_string())).collect();
            ("POST", resource_path(of, "partitions/merge"), Some(Object::new().with("ids", ids)))
        }
        RemoteAction::CreateContainer { of, body } => ("PUT", resource_path(of, ""), Some(body.clone())),
        RemoteAction::Throughput { of } => ("GET", resource_path(of, "throughput"), None),
        RemoteAction::SetThroughput { of, body } => ("PUT", resource_path(of, "throughput"), Some(body.clone())),
        RemoteAction::TopKeys { of, by, top } => {
            ("GET", format!("{}?by={by}&top={top}", resource_path(of, "keys")), None)
        }
        RemoteAction::Jobs { .. } => ("GET", "jobs".to_owned(), None),
        RemoteAction::Pause(id) => ("POST", format!("jobs/{id}/pause"), None),
        RemoteAction::Resume(id) => ("POST", format!("jobs/{id}/resume"), None),
        RemoteAction::Cancel(id) => ("DELETE", format!("jobs/{id}"), None),
        RemoteAction::CopyDatabase { from, to, .. } => {
            ("POST", format!("databases/{}/copy", encoded(from)), Some(Object::new().with("to", to.as_str())))
        }
        RemoteAction::Throttles => ("GET", "throttles".to_owned(), None),
        RemoteAction::Snapshots => ("GET", "snapshots".to_owned(), None),
        RemoteAction::TakeSnapshot { name, replace } => {
            ("PUT", format!("snapshots/{}", encoded(name)), Some(Object::new().with("replace", *replace)))
        }
        RemoteAction::RestoreSnapshot { name } => ("POST", format!("snapshots/{}/restore", encoded(name)), None),
        RemoteAction::DeleteSnapshot { name } => ("DELETE", format!("snapshots/{}", encoded(name)), None),
    }
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, UNESCAPED).to_string()
}

fn resource_path(of: &ContainerPath, rest: &str) -> String {
    let path = match &of.container {
        Some(container) => format!("containers/{}/{}/{rest}", encoded(&of.database), encoded(container)),
        None => format!("databases/{}/{rest}", encoded(&of.database)),
    };
    path.trim_end_matches('/').to_owned()
}

fn print_answer(answer: &Value, as_json: bool, action: &RemoteAction) -> Result<()> {
    let text = match (as_json, action) {
        (true, _) => json::to_string(answer) + "\n",
        (_, RemoteAction::Partitions { .. }) => table::partitions(answer),
        (
            _,
            RemoteAction::Throughput { .. } | RemoteAction::SetThroughput { .. } | RemoteAction::CreateContainer { .. },
        ) => table::throughput(answer),
        (_, RemoteAction::TopKeys { by: "ru", .. }) => table::busiest_keys(answer),
        (_, RemoteAction::TopKeys { .. }) => table::largest_keys(answer),
        (_, RemoteAction::Throttles) => table::throttles(answer),
        (_, RemoteAction::Snapshots) => table::snapshots(answer),
        (_, RemoteAction::TakeSnapshot { .. }) => table::snapshot_taken(answer),
        (_, RemoteAction::RestoreSnapshot { .. }) => table::snapshot_restored(answer),
        (_, RemoteAction::DeleteSnapshot { name }) => format!("snapshot {name} is deleted\n"),
        (_, RemoteAction::Jobs { .. }) => table::jobs(answer),
        (
            _,
            RemoteAction::Split { .. }
            | RemoteAction::Merge { .. }
            | RemoteAction::CopyDatabase { .. }
            | RemoteAction::Pause(_)
            | RemoteAction::Resume(_)
            | RemoteAction::Cancel(_),
        ) => table::job(answer) + "\n",
    };
    crate::print(&text)
}
