//! Commands to a running server: `pleiad partitions`, `throughput`, `containers`, `databases`, `keys`, `jobs`, `throttles`,
//! `snapshot`.
//!
//! Promise: a client like any other. It knows the management interface, signs with an account key, and tells what the server
//! said: as tables for people, as the server's own JSON with `--json`. A failure says what to do next, and the exit code is 1.
//!
//! Read in this order.

mod command; // what can be ordered, and its words
mod client; // one signed request, over HTTP or HTTPS
mod trust; // whose certificates are believed
mod table; // answers as tables
mod watch; // jobs until they end

pub use command::{Order, commands, order};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_model::{Error, Object, Result, Value, json};

use crate::config::{Environment, Settings};
use client::Client;
use command::{Act, ENDPOINT, Place};

/// What a path segment may hold as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub fn run(order: &Order, settings: &Settings, environment: &Environment) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unavailable(format!("cannot start the runtime: {error}")))?;
    let endpoint = order.endpoint.as_deref().or_else(|| environment.get("PLEIAD_ENDPOINT")).unwrap_or(ENDPOINT);
    let client = Client::new(endpoint, &settings.keys.primary, trust::roots(order.ca.as_deref(), settings))?;
    runtime.block_on(carry_out(order, &client))
}

async fn carry_out(order: &Order, client: &Client) -> Result<()> {
    match &order.act {
        Act::Jobs { watch: true } => watch::all(client, order.json).await,
        Act::Split { wait: true, .. } | Act::Merge { wait: true, .. } | Act::CopyDatabase { wait: true, .. } => {
            let job = ask(client, &order.act).await?;
            watch::one(client, &job, order.json).await
        }
        act => {
            let answer = ask(client, act).await?;
            tell(&answer, order.json, act)
        }
    }
}

async fn ask(client: &Client, act: &Act) -> Result<Value> {
    let (method, path, body) = request(act);
    client.send(method, &path, body).await
}

/// What is asked of the server.
fn request(act: &Act) -> (&'static str, String, Option<Object>) {
    match act {
        Act::Partitions { of } => ("GET", below(of, "partitions"), None),
        Act::Split { of, range, at, .. } => {
            let path = match range {
                Some(id) => below(of, &format!("partitions/{id}/split")),
                None => below(of, "partitions/split"),
            };
            let body = at.as_ref().map_or(Object::new(), |at| Object::new().with("at", at.clone()));
            ("POST", path, Some(body))
        }
        Act::Merge { of, ids, .. } => {
            let ids: Vec<Value> = ids.iter().map(|id| Value::from(id.to_string())).collect();
            ("POST", below(of, "partitions/merge"), Some(Object::new().with("ids", ids)))
        }
        Act::Create { of, body } => ("PUT", below(of, ""), Some(body.clone())),
        Act::Throughput { of } => ("GET", below(of, "throughput"), None),
        Act::SetThroughput { of, body } => ("PUT", below(of, "throughput"), Some(body.clone())),
        Act::Keys { of, by, top } => ("GET", format!("{}?by={by}&top={top}", below(of, "keys")), None),
        Act::Jobs { .. } => ("GET", "jobs".to_owned(), None),
        Act::Pause(id) => ("POST", format!("jobs/{id}/pause"), None),
        Act::Resume(id) => ("POST", format!("jobs/{id}/resume"), None),
        Act::Cancel(id) => ("DELETE", format!("jobs/{id}"), None),
        Act::CopyDatabase { from, to, .. } => {
            ("POST", format!("databases/{}/copy", encoded(from)), Some(Object::new().with("to", to.as_str())))
        }
        Act::Throttles => ("GET", "throttles".to_owned(), None),
        Act::Snapshots => ("GET", "snapshots".to_owned(), None),
        Act::Take { name, replace } => {
            ("PUT", format!("snapshots/{}", encoded(name)), Some(Object::new().with("replace", *replace)))
        }
        Act::Restore { name } => ("POST", format!("snapshots/{}/restore", encoded(name)), None),
        Act::Forget { name } => ("DELETE", format!("snapshots/{}", encoded(name)), None),
    }
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, KEPT).to_string()
}

fn below(of: &Place, rest: &str) -> String {
    let path = match &of.container {
        Some(container) => format!("containers/{}/{}/{rest}", encoded(&of.database), encoded(container)),
        None => format!("databases/{}/{rest}", encoded(&of.database)),
    };
    path.trim_end_matches('/').to_owned()
}

fn tell(answer: &Value, as_json: bool, act: &Act) -> Result<()> {
    let text = match (as_json, act) {
        (true, _) => json::to_string(answer) + "\n",
        (_, Act::Partitions { .. }) => table::partitions(answer),
        (_, Act::Throughput { .. } | Act::SetThroughput { .. } | Act::Create { .. }) => table::throughput(answer),
        (_, Act::Keys { by: "ru", .. }) => table::busiest_keys(answer),
        (_, Act::Keys { .. }) => table::largest_keys(answer),
        (_, Act::Throttles) => table::throttles(answer),
        (_, Act::Snapshots) => table::snapshots(answer),
        (_, Act::Take { .. }) => table::taken(answer),
        (_, Act::Restore { .. }) => table::restored(answer),
        (_, Act::Forget { name }) => format!("snapshot {name} is deleted\n"),
        (_, Act::Jobs { .. }) => table::jobs(answer),
        (
            _,
            Act::Split { .. }
            | Act::Merge { .. }
            | Act::CopyDatabase { .. }
            | Act::Pause(_)
            | Act::Resume(_)
            | Act::Cancel(_),
        ) => table::job(answer) + "\n",
    };
    crate::print(&text)
}
