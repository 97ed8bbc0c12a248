//! The whole account as it was: taken, listed, restored, deleted.
//!
//! ```text
//! v1/snapshots                   GET
//! v1/snapshots/{name}            GET PUT DELETE      PUT {"replace": true}
//! v1/snapshots/{name}/restore    POST
//! ```
//!
//! Promise: these are asked of the account and not of its engine, which a restore exchanges.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use pleiad_engine::{AccountSnapshot, Live};
use pleiad_model::{Error, Object, Result, Value};

use super::asked::{Asked, only};
use super::{list, ok, told};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::translate::not_allowed;

#[derive(Clone, Copy, Debug)]
pub enum Route<'a> {
    All,
    One(&'a str),
    Restore(&'a str),
}

impl<'a> Route<'a> {
    pub fn parse(names: &'a [String]) -> Option<Route<'a>> {
        let names: Vec<&'a str> = names.iter().map(String::as_str).collect();
        match *names {
            ["v1", "snapshots"] => Some(Route::All),
            ["v1", "snapshots", name] => Some(Route::One(name)),
            ["v1", "snapshots", name, "restore"] => Some(Route::Restore(name)),
            _ => None,
        }
    }
}

pub async fn answer(live: &Arc<Live>, route: Route<'_>, asked: &Asked<'_>) -> Handled {
    match (asked.method, route) {
        (&Method::GET, Route::All) => list("snapshots", live.snapshots().await?.iter().map(shown).collect()),
        (&Method::GET, Route::One(name)) => ok(shown(&live.snapshot(name).await?)),
        (&Method::PUT, Route::One(name)) => {
            let taken = live.take_snapshot(name, replaces(&asked.object()?)?).await?;
            Ok(told(StatusCode::CREATED, shown(&taken)))
        }
        (&Method::DELETE, Route::One(name)) => {
            live.delete_snapshot(name).await?;
            Ok(Reply::empty(StatusCode::NO_CONTENT))
        }
        (&Method::POST, Route::Restore(name)) => {
            only(&asked.object()?, &[])?;
            let restored = live.restore(name).await?;
            ok(members(&restored.snapshot).with("tookMs", ms(restored.took)))
        }
        _ => Err(not_allowed()),
    }
}

fn replaces(body: &Object) -> Result<bool> {
    only(body, &["replace"])?;
    match body.get("replace") {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| Error::invalid("'replace' is true or false.")),
    }
}

fn shown(snapshot: &AccountSnapshot) -> Value {
    members(snapshot).into()
}

fn members(snapshot: &AccountSnapshot) -> Object {
    Object::new().with("name", snapshot.name.as_str()).with("takenMs", snapshot.taken_ms).with("bytes", snapshot.bytes)
}

/// A tenth is as exact as anybody wants to know.
fn ms(took: Duration) -> f64 {
    (took.as_secs_f64() * 10_000.0).round() / 10.0
}
