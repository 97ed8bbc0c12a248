//! Script execution: stored procedures, and writes with triggers.

use std::sync::Arc;

use pleiad_engine::{
    Admitted, CursorCodec, EngineResponse, Executed, ItemWrite, QueryCursor, Script, ScriptContext, Triggers, Verb,
};
use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Error, Result, Value, json};

use super::items::{target, write_options, written};
use super::not_allowed;
use crate::account::TokenSigner;
use crate::nosql::RequestContext;
use crate::nosql::messages::message;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{ErrorReply, Handled, Metadata, Reply};
use crate::nosql::status::{ErrorStatus, Status};

/// Scripts return continuations to their callers in bodies, which may be larger than headers.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

impl RequestContext<'_> {
    pub(super) async fn execute(&self, operation: &Operation<'_>, at: &Admitted, script: &Arc<Script>) -> Handled {
        let (key, arguments) = (operation.partition_key()?, arguments(operation)?);
        let context = self.script_context(operation, at);
        let answer = self.engine.execute_procedure(at, key, script, arguments, context).await;
        let (Executed { result, log }, served_by, charge_ru) = ErrorReply::of(answer)?;
        let metadata = Metadata { charge_ru, served_by, script_log: Some(log), ..Metadata::default() };
        match result {
            Ok(body) => Ok(Reply { status: Status::Ok, body: body.unwrap_or_default().into(), metadata }),
            Err(error) => Err(ErrorReply { failure: ErrorStatus::from(&error), metadata: Box::new(metadata) }),
        }
    }

    pub(super) async fn write_with_triggers(
        &self,
        operation: &Operation<'_>,
        at: &Admitted,
        triggers: &Triggers,
    ) -> Handled {
        let (write, verb) = match operation.kind {
            OperationKind::Create => (ItemWrite::Create(operation.json()?), Verb::Create),
            OperationKind::Upsert => (ItemWrite::Upsert(operation.json()?), Verb::Upsert),
            OperationKind::Replace => (ItemWrite::Replace(target(operation)?, operation.json()?), Verb::Replace),
            OperationKind::Delete => (ItemWrite::Delete(target(operation)?), Verb::Replace),
            OperationKind::Patch => return Err(Error::unsupported("Triggers around a patch").into()),
            OperationKind::Batch => return Err(Error::unsupported("Triggers around a batch").into()),
            _ => return Err(not_allowed()),
        };
        let is_delete = matches!(write, ItemWrite::Delete(_));
        let (key, options) = (operation.partition_key()?, write_options(operation, verb)?);
        let context = self.script_context(operation, at);
        let answer = self.engine.write_with_triggers(at, key, write, &options, triggers, context).await;
        let (done, served_by, charge_ru) = ErrorReply::of(answer)?;
        if is_delete {
            return Ok(Reply::empty(Status::NoContent).charged(charge_ru).served_by(served_by));
        }
        let reply = written(operation, at, EngineResponse { result: Ok(done.written), served_by, charge_ru })?;
        Ok(match done.response_body {
            Some(body) if !operation.options.minimal_reply => Reply { body: body.into(), ..reply },
            _ => reply,
        })
    }

    fn script_context(&self, operation: &Operation<'_>, at: &Admitted) -> ScriptContext {
        let (quota_max, quota_used) = self.quota(at.container());
        let cursors = Arc::new(ContainerTokens { tokens: self.tokens.clone(), owner: at.container().rid.to_string() });
        ScriptContext { cursors, message, quota_max, quota_used, is_logging: operation.options.script_logging }
    }
}

/// The continuation tokens of a container.
struct ContainerTokens {
    tokens: Arc<TokenSigner>,
    owner: String,
}

impl CursorCodec for ContainerTokens {
    fn write(&self, cursor: &QueryCursor) -> String {
        self.tokens.issue_query(&self.owner, cursor, TOKEN_BYTES_MAX)
    }

    fn read(&self, text: &str) -> Result<QueryCursor> {
        self.tokens.redeem_query(&self.owner, text, Some(&EpkRange::FULL)) // a script sees one partition key
    }
}

/// A JSON array; an empty body means no arguments.
fn arguments(operation: &Operation<'_>) -> Result<Vec<String>> {
    if operation.body.is_empty() {
        return Ok(Vec::new());
    }
    match operation.json()? {
        Value::Array(arguments) => Ok(arguments.iter().map(json::to_string).collect()),
        _ => Err(Error::invalid("The arguments of a stored procedure are a JSON array.")),
    }
}
