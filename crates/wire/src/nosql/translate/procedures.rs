//! Script execution: stored procedures, and writes with triggers.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_engine::{
    Admitted, CursorCodec, EngineResponse, Executed, ItemWrite, QueryCursor, Script, ScriptContext, Triggers, Verb,
};
use pleiad_model::{Error, Result, Value, json};

use super::items::{target, write_options};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::continuation::TokenSigner;
use crate::nosql::reply::{ErrorReply, Handled, Reply, SCRIPT_LOG, set};
use crate::nosql::request::{PostKind, Request};
use crate::nosql::status::ErrorStatus;

/// Scripts return continuations to their callers in bodies, which may be larger than headers.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

impl RequestContext<'_> {
    pub(super) async fn execute(&self, request: &Request<'_>, at: &Admitted, script: &Arc<Script>) -> Handled {
        let (key, arguments) = (request.partition_key()?, arguments(request)?);
        let context = self.script_context(request, at);
        let answer = self.engine.execute_procedure(at, key.as_ref(), script, arguments, context).await;
        let (Executed { result, log }, place, charge_ru) = ErrorReply::of(answer)?;
        match result {
            Ok(body) => {
                let mut reply = Reply::new(StatusCode::OK, body.unwrap_or_default()).charged(charge_ru).at_lsn(place);
                set_log(&mut reply.headers, &log);
                Ok(reply)
            }
            Err(error) => {
                let mut headers = Reply::empty(StatusCode::OK).at_lsn(place).headers;
                set_log(&mut headers, &log);
                Err(ErrorReply { failure: ErrorStatus::from(&error), charge_ru, headers: Box::new(headers) })
            }
        }
    }

    pub(super) async fn write_with_triggers(
        &self,
        request: &Request<'_>,
        at: &Admitted,
        triggers: &Triggers,
    ) -> Handled {
        let (write, verb) = match (request.method, request.post_kind()) {
            (&Method::POST, PostKind::Create) => (ItemWrite::Create(request.json()?), Verb::Create),
            (&Method::POST, PostKind::Upsert) => (ItemWrite::Upsert(request.json()?), Verb::Upsert),
            (&Method::PUT, _) => (ItemWrite::Replace(target(request)?, request.json()?), Verb::Replace),
            (&Method::DELETE, _) => (ItemWrite::Delete(target(request)?), Verb::Replace),
            (&Method::PATCH, _) => return Err(Error::unsupported("Triggers around a patch").into()),
            (&Method::POST, PostKind::Batch) => return Err(Error::unsupported("Triggers around a batch").into()),
            _ => return Err(not_allowed()),
        };
        let is_delete = matches!(write, ItemWrite::Delete(_));
        let (key, options) = (request.partition_key()?, write_options(request, verb)?);
        let context = self.script_context(request, at);
        let answer = self.engine.write_with_triggers(at, key.as_ref(), write, &options, triggers, context).await;
        let (done, place, charge_ru) = ErrorReply::of(answer)?;
        let reply = match is_delete {
            true => Reply::empty(StatusCode::NO_CONTENT).charged(charge_ru).at_lsn(place),
            false => {
                self.written(request, at, EngineResponse { result: Ok(done.written), served_by: place, charge_ru })?
            }
        };
        Ok(match done.response_body {
            Some(body) if !is_delete && !request.prefers_minimal() => Reply { body: body.into(), ..reply },
            _ => reply,
        })
    }

    fn script_context(&self, request: &Request<'_>, at: &Admitted) -> ScriptContext {
        let (quota_max, quota_used) = self.quota(at.container());
        let cursors = Arc::new(Spelled { tokens: self.tokens.clone(), owner: at.container().rid.to_string() });
        let is_logging = request.flag("x-ms-documentdb-script-enable-logging");
        ScriptContext { cursors, quota_max, quota_used, is_logging }
    }
}

/// The continuation tokens of a container.
struct Spelled {
    tokens: Arc<TokenSigner>,
    owner: String,
}

impl CursorCodec for Spelled {
    fn write(&self, cursor: &QueryCursor) -> String {
        self.tokens.issue_query(&self.owner, cursor, TOKEN_BYTES_MAX)
    }

    fn read(&self, text: &str) -> Result<QueryCursor> {
        self.tokens.redeem_query(&self.owner, text)
    }
}

/// The triggers that a write names: at most one of each kind, as in the service.
pub(super) fn triggers(request: &Request<'_>) -> Result<Triggers> {
    Ok(Triggers {
        pre: trigger(request, "x-ms-documentdb-pre-trigger-include")?,
        post: trigger(request, "x-ms-documentdb-post-trigger-include")?,
    })
}

fn trigger(request: &Request<'_>, header: &str) -> Result<Option<String>> {
    let Some(names) = request.header(header) else { return Ok(None) };
    let mut names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    match (names.next(), names.next()) {
        (first, None) => Ok(first.map(str::to_owned)),
        (_, Some(_)) => Err(Error::invalid(format!("At most one trigger can be named in {header}."))),
    }
}

/// A JSON array; an empty body means no arguments.
fn arguments(request: &Request<'_>) -> Result<Vec<String>> {
    if request.body.is_empty() {
        return Ok(Vec::new());
    }
    match request.json()? {
        Value::Array(arguments) => Ok(arguments.iter().map(json::to_string).collect()),
        _ => Err(Error::invalid("The arguments of a stored procedure are a JSON array.")),
    }
}

fn set_log(headers: &mut HeaderMap, log: &str) {
    if !log.is_empty() {
        set(headers, SCRIPT_LOG, &utf8_percent_encode(log, NON_ALPHANUMERIC).to_string());
    }
}
