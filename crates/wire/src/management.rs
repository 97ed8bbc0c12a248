//! The management API: inspecting and administering partitions under `/_pleiad/v1/…`, as JSON, beside the protocols
//! that applications use.
//!
//! Guarantees: a caller with a key of the account can see the contents, throughput and jobs of its partitions. With a
//! read-write key it can also split, merge and scale them, with the same effect as through the protocol where the
//! protocol offers the operation. A rejected request changes nothing, and its error message says what to do next. A
//! production server rejects the controls that only tests need (see `test_controls`).
//!
//! Requests are signed like all others, with `pleiad` as the resource type and the decoded path as the link; the query
//! string is not signed. For `GET /_pleiad/v1/containers/My%20Db/c/partitions?…`, every line ending in a line feed:
//!
//! ```text
//! get
//! pleiad
//! _pleiad/v1/containers/My Db/c/partitions
//! thu, 27 apr 2017 00:51:12 gmt
//!
//! ```
//!
//! Modules are listed in reading order.

mod route; // the resource that a path names
mod authority; // what a caller may do
mod request; // query string and body, decoded into types
mod partitions; // partition reports, splits and merges
mod keys; // logical partitions: sizes and request units
mod containers; // creating containers
mod throughput; // provisioned throughput
mod jobs; // splits, merges and copies in progress
pub mod snapshots; // snapshots of the account: take, restore
mod usage; // throttled requests, metrics, alerts
mod test_controls; // controls for tests only
pub mod http; // over HTTP

use std::sync::Arc;

use pleiad_engine::{Action, Addressed, Admitted, ContainerName, Database, DatabaseName, Engine, WholeAccount};
use pleiad_model::env::OffsetEnv;
use pleiad_model::{Object, Result, Value, json};

use crate::nosql::address::{Signing, decode_onto};
use crate::nosql::reply::{ErrorReply, Handled, Reply};
use crate::nosql::status::Status;
use crate::nosql::translate::not_allowed;
use ManagementVerb::{Delete, Get, Post, Put};
use authority::ManagementAuthority;
pub use request::{ManagementRequest, ManagementVerb};
use route::ManagementRoute;

const ROOT: &str = "/_pleiad";

/// The path below the root; `None` for any other path.
pub fn below_root(path: &str) -> Option<&str> {
    path.strip_prefix(ROOT).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The decoded names on the path. Leading, trailing and doubled slashes are ignored.
pub fn names(path: &str) -> Result<Vec<String>> {
    let decoded = |segment: &str| {
        let mut name = String::with_capacity(segment.len());
        decode_onto(segment, &mut name).map(|()| name)
    };
    path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect()
}

/// The link that the signature of a request for this path covers.
pub fn link(names: &[String]) -> String {
    std::iter::once("_pleiad").chain(names.iter().map(String::as_str)).collect::<Vec<_>>().join("/")
}

pub fn signing(link: &str) -> Signing<'_> {
    Signing { resource_type: "pleiad", link, lower_case_link: false }
}

/// Handles one management request against one engine.
pub struct ManagementApi<'r> {
    engine: &'r Engine,
    authority: &'r ManagementAuthority<'r>,
    /// The clock that tests may advance; `None` if test controls are disabled.
    clock: Option<&'r OffsetEnv>,
}

impl ManagementApi<'_> {
    pub async fn answer(&self, request: &ManagementRequest<'_>) -> Handled {
        match (request.verb, ManagementRoute::parse(&request.names)?) {
            (Get, ManagementRoute::Partitions(at)) => self.partitions(at),
            (Post, ManagementRoute::Split(at, id)) => self.split(at, id, request).await,
            (Post, ManagementRoute::Merge(at)) => self.merge(at, request).await,
            (Get, ManagementRoute::Containers) => self.containers(),
            (Get, ManagementRoute::Container(at)) => self.container(at),
            (Put, ManagementRoute::Container(at)) => self.create(at, request).await,
            (Get, ManagementRoute::Keys(at)) => self.keys(at, request).await,
            (Get, ManagementRoute::Statistics(at)) => self.statistics(at).await,
            (Get, ManagementRoute::Throughput(of)) => self.throughput(of),
            (Put, ManagementRoute::Throughput(of)) => self.set_throughput(of, request).await,
            (Get, ManagementRoute::Jobs) => self.jobs(),
            (Get, ManagementRoute::Job(id)) => self.job(id),
            (Delete, ManagementRoute::Job(id)) => self.cancel_job(id).await,
            (Post, ManagementRoute::CopyDatabase(from)) => self.copy_database(from, request).await,
            (Post, ManagementRoute::Pause(id)) => self.pause_job(id, true),
            (Post, ManagementRoute::Resume(id)) => self.pause_job(id, false),
            (Get, ManagementRoute::Throttles) => self.throttles(),
            (Get, ManagementRoute::Metrics) => self.metrics(),
            (Get, ManagementRoute::Alerts) => self.alerts(),
            (Get, ManagementRoute::Topology) => self.topology(),
            (Put, ManagementRoute::Hold(step)) => self.hold(step, true),
            (Delete, ManagementRoute::Hold(step)) => self.hold(step, false),
            (Put, ManagementRoute::Fault(at, id)) => self.set_fault(at, id, request),
            (Delete, ManagementRoute::Fault(at, id)) => self.clear_fault(at, id),
            (Post, ManagementRoute::Clock) => self.move_clock(request),
            _ => Err(not_allowed()),
        }
    }

    /// For requests about the account. Each has been authorized by its verb; here it gets what it may do where.
    fn admit(&self, action: Action) -> Result<Admitted<WholeAccount>, ErrorReply> {
        self.engine.authorize(self.authority, action)
    }

    fn admit_database(&self, action: Action, name: &str) -> Result<Admitted<Arc<Database>>, ErrorReply> {
        self.engine.authorize_database(self.authority, action, DatabaseName::Named(name), Addressed::Itself)
    }

    fn admit_container(&self, action: Action, name: ContainerName<'_>) -> Result<Admitted, ErrorReply> {
        self.engine.authorize_container(self.authority, action, name, Addressed::Itself)
    }
}

fn ok(value: impl Into<Value>) -> Handled {
    Ok(json_reply(Status::Ok, value))
}

fn json_reply(status: Status, value: impl Into<Value>) -> Reply {
    let mut body = Vec::with_capacity(512);
    json::write(&value.into(), &mut body);
    Reply::new(status, body)
}

/// `{"partitions": […], "_count": 2}`
fn list(name: &str, rows: Vec<Value>) -> Handled {
    let count = rows.len() as u64;
    ok(Object::new().with(name, rows).with("_count", count))
}

/// Ids are strings, as in the protocol.
fn ids<'a>(of: impl IntoIterator<Item = &'a u32>) -> Vec<Value> {
    of.into_iter().map(|id| Value::from(id.to_string())).collect()
}

#[cfg(test)]
mod tests;
