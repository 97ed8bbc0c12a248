//! Account snapshots: take, list, restore, delete.
//!
//! ```text
//! v1/snapshots                   GET
//! v1/snapshots/{name}            GET PUT DELETE      PUT {"replace": true}
//! v1/snapshots/{name}/restore    POST
//! ```
//!
//! These requests use the account host and not an engine: a restore replaces the engine.

use std::sync::Arc;
use std::time::Duration;

use pleiad_engine::{AccountHost, AccountSnapshot, Admitted, WholeAccount};
use pleiad_model::{Error, Object, Result, Value};

use super::request::{ManagementRequest, ManagementVerb, reject_unknown_members};
use super::{json_reply, list, ok};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;
use crate::nosql::translate::not_allowed;

#[derive(Clone, Copy, Debug)]
pub enum SnapshotRoute<'a> {
    All,
    One(&'a str),
    Restore(&'a str),
}

impl<'a> SnapshotRoute<'a> {
    pub fn parse(names: &'a [String]) -> Option<SnapshotRoute<'a>> {
        let names: Vec<&'a str> = names.iter().map(String::as_str).collect();
        match *names {
            ["v1", "snapshots"] => Some(SnapshotRoute::All),
            ["v1", "snapshots", name] => Some(SnapshotRoute::One(name)),
            ["v1", "snapshots", name, "restore"] => Some(SnapshotRoute::Restore(name)),
            _ => None,
        }
    }
}

pub async fn answer(
    account_host: &Arc<AccountHost>,
    at: &Admitted<WholeAccount>,
    route: SnapshotRoute<'_>,
    request: &ManagementRequest<'_>,
) -> Handled {
    match (request.verb, route) {
        (ManagementVerb::Get, SnapshotRoute::All) => {
            list("snapshots", account_host.snapshots(at).await?.iter().map(snapshot_json).collect())
        }
        (ManagementVerb::Get, SnapshotRoute::One(name)) => ok(snapshot_json(&account_host.snapshot(at, name).await?)),
        (ManagementVerb::Put, SnapshotRoute::One(name)) => {
            let taken = account_host.take_snapshot(at, name, replaces(&request.object()?)?).await?;
            Ok(json_reply(Status::Created, snapshot_json(&taken)))
        }
        (ManagementVerb::Delete, SnapshotRoute::One(name)) => {
            account_host.delete_snapshot(at, name).await?;
            Ok(Reply::empty(Status::NoContent))
        }
        (ManagementVerb::Post, SnapshotRoute::Restore(name)) => {
            reject_unknown_members(&request.object()?, &[])?;
            let restored = account_host.restore(at, name).await?;
            ok(members(&restored.snapshot).with("tookMs", ms(restored.took)))
        }
        _ => Err(not_allowed()),
    }
}

fn replaces(body: &Object) -> Result<bool> {
    reject_unknown_members(body, &["replace"])?;
    match body.get("replace") {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| Error::invalid("'replace' is true or false.")),
    }
}

fn snapshot_json(snapshot: &AccountSnapshot) -> Value {
    members(snapshot).into()
}

fn members(snapshot: &AccountSnapshot) -> Object {
    Object::new().with("name", snapshot.name.as_str()).with("takenMs", snapshot.taken_ms).with("bytes", snapshot.bytes)
}

/// Rounded to tenths of a millisecond.
fn ms(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}
