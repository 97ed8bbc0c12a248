//! Commands to a running server: `pleiad partitions`, `throughput`, `containers`, `databases`, `keys`, `jobs`,
//! `throttles`, `snapshot`.
//!
//! An ordinary client of the management API: it signs requests with an account key and prints the server's responses,
//! as tables for people or, with `--json`, as the server's own JSON.
//!
//! Guarantees: an error message says what to do next, and the exit code is 1.
//!
//! Read in this order.

mod command; // subcommands and their arguments
mod client; // one signed request, over HTTP or HTTPS
mod trust; // the trusted certificate authorities
mod table; // responses as tables
mod watch; // follows jobs until they end

pub use command::{RemoteCommand, commands, order};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_model::{Error, Object, Result, Value, json};

use crate::config::{Environment, Settings};
use client::Client;
use command::{ContainerPath, ENDPOINT, RemoteAction};

/// The characters that a path segment may contain unescaped, besides letters and digits: `-`, `_`, `.`, `~`.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub fn run(order: &RemoteCommand, settings: &Settings, environment: &Environment) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unavailable(format!("cannot start the runtime: {error}")))?;
    let endpoint = order.endpoint.as_deref().or_else(|| environment.get("PLEIAD_ENDPOINT")).unwrap_or(ENDPOINT);
    let client = Client::new(endpoint, &settings.keys.primary, trust::roots(order.ca.as_deref(), settings))?;
    runtime.block_on(carry_out(order, &client))
}

async fn carry_out(order: &RemoteCommand, client: &Client) -> Result<()> {
    match &order.act {
        RemoteAction::Jobs { watch: true } => watch::all(client, order.json).await,
        RemoteAction::Split { wait: true, .. }
        | RemoteAction::Merge { wait: true, .. }
        | RemoteAction::CopyDatabase { wait: true, .. } => {
            let job = ask(client, &order.act).await?;
            watch::one(client, &job, order.json).await
        }
        act => {
            let answer = ask(client, act).await?;
            tell(&answer, order.json, act)
        }
    }
}

async fn ask(client: &Client, act: &RemoteAction) -> Result<Value> {
    let (method, path, body) = request(act);
    client.send(method, &path, body).await
}

/// The request for an action: method, path and body.
fn request(act: &RemoteAction) -> (&'static str, String, Option<Object>) {
    match act {
        RemoteAction::Partitions { of } => ("GET", below(of, "partitions"), None),
        RemoteAction::Split { of, range, at, .. } => {
            let path = match range {
                Some(id) => below(of, &format!("partitions/{id}/split")),
                None => below(of, "partitions/split"),
            };
            let body = at.as_ref().map_or(Object::new(), |at| Object::new().with("at", at.clone()));
            ("POST", path, Some(body))
        }
        RemoteAction::Merge { of, ids, .. } => {
            let ids: Vec<Value> = ids.iter().map(|id| Value::from(id.to_string())).collect();
            ("POST", below(of, "partitions/merge"), Some(Object::new().with("ids", ids)))
        }
        RemoteAction::Create { of, body } => ("PUT", below(of, ""), Some(body.clone())),
        RemoteAction::Throughput { of } => ("GET", below(of, "throughput"), None),
        RemoteAction::SetThroughput { of, body } => ("PUT", below(of, "throughput"), Some(body.clone())),
        RemoteAction::Keys { of, by, top } => ("GET", format!("{}?by={by}&top={top}", below(of, "keys")), None),
        RemoteAction::Jobs { .. } => ("GET", "jobs".to_owned(), None),
        RemoteAction::Pause(id) => ("POST", format!("jobs/{id}/pause"), None),
        RemoteAction::Resume(id) => ("POST", format!("jobs/{id}/resume"), None),
        RemoteAction::Cancel(id) => ("DELETE", format!("jobs/{id}"), None),
        RemoteAction::CopyDatabase { from, to, .. } => {
            ("POST", format!("databases/{}/copy", encoded(from)), Some(Object::new().with("to", to.as_str())))
        }
        RemoteAction::Throttles => ("GET", "throttles".to_owned(), None),
        RemoteAction::Snapshots => ("GET", "snapshots".to_owned(), None),
        RemoteAction::Take { name, replace } => {
            ("PUT", format!("snapshots/{}", encoded(name)), Some(Object::new().with("replace", *replace)))
        }
        RemoteAction::Restore { name } => ("POST", format!("snapshots/{}/restore", encoded(name)), None),
        RemoteAction::Forget { name } => ("DELETE", format!("snapshots/{}", encoded(name)), None),
    }
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, KEPT).to_string()
}

fn below(of: &ContainerPath, rest: &str) -> String {
    let path = match &of.container {
        Some(container) => format!("containers/{}/{}/{rest}", encoded(&of.database), encoded(container)),
        None => format!("databases/{}/{rest}", encoded(&of.database)),
    };
    path.trim_end_matches('/').to_owned()
}

fn tell(answer: &Value, as_json: bool, act: &RemoteAction) -> Result<()> {
    let text = match (as_json, act) {
        (true, _) => json::to_string(answer) + "\n",
        (_, RemoteAction::Partitions { .. }) => table::partitions(answer),
        (_, RemoteAction::Throughput { .. } | RemoteAction::SetThroughput { .. } | RemoteAction::Create { .. }) => {
            table::throughput(answer)
        }
        (_, RemoteAction::Keys { by: "ru", .. }) => table::busiest_keys(answer),
        (_, RemoteAction::Keys { .. }) => table::largest_keys(answer),
        (_, RemoteAction::Throttles) => table::throttles(answer),
        (_, RemoteAction::Snapshots) => table::snapshots(answer),
        (_, RemoteAction::Take { .. }) => table::taken(answer),
        (_, RemoteAction::Restore { .. }) => table::restored(answer),
        (_, RemoteAction::Forget { name }) => format!("snapshot {name} is deleted\n"),
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
