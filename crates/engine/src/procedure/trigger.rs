//! Triggers: a pre-trigger that may change what is written, and a post-trigger that sees the result.
//!
//! Guarantees: the write and everything its triggers do are one transaction. A trigger runs only when a request names
//! it; one that does not exist, or is of another type or for another operation, fails the request before anything is
//! done.

use std::sync::Arc;

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::resource_id::{ItemRid, ScriptKind};
use pleiad_model::{Error, Result, Value, json};
use pleiad_partition::partition::Rejected;
use pleiad_partition::{Verb, Written};
use pleiad_script::{EntryPoint, OperationType, ScriptOutcome};

use super::host::Host;
use super::{ScriptContext, TransactionEnd};
use crate::catalog::{TriggerDefinition, TriggerType};
use crate::item::{Target, key_of_request};
use crate::script_runtime::script_error;
use crate::{Action, Admitted, Engine, EngineResponse, Script, WriteOptions};

/// The triggers that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    pub pre: Option<String>,
    pub post: Option<String>,
}

/// A write that can have triggers.
#[derive(Clone, Debug)]
pub enum ItemWrite<'a> {
    Create(Value),
    Upsert(Value),
    Replace(Target<'a>, Value),
    Delete(Target<'a>),
}

impl ItemWrite<'_> {
    fn action(&self) -> Action {
        match self {
            ItemWrite::Create(_) => Action::CreateItem,
            ItemWrite::Upsert(_) => Action::UpsertItem,
            ItemWrite::Replace(..) => Action::ReplaceItem,
            ItemWrite::Delete(_) => Action::DeleteItem,
        }
    }
}

/// The result of a write with triggers.
#[derive(Debug)]
pub struct Triggered {
    pub written: Written,
    /// The response body that the post-trigger has set in place of the item.
    pub response_body: Option<String>,
}

impl Triggers {
    pub fn is_empty(&self) -> bool {
        self.pre.is_none() && self.post.is_none()
    }
}

impl Engine {
    pub async fn write_with_triggers(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        write: ItemWrite<'_>,
        options: &WriteOptions,
        triggers: &Triggers,
        context: ScriptContext,
    ) -> EngineResponse<Triggered> {
        if let Err(error) = at.check(write.action()) {
            return EngineResponse::failed(error);
        }
        let prepared = key_of_request(at, key)
            .and_then(|key| Ok((key, TriggeredWrite::new(at, PlannedWrite::new(write), options.clone(), triggers)?)));
        let (key, triggered_write) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return EngineResponse::failed(error),
        };
        let mut answer = self.in_transaction(at, key, context, move |host| triggered_write.run(host)).await;
        if let (Ok(done), Some(served_by)) = (&mut answer.result, &answer.served_by) {
            done.written.lsn = served_by.lsn;
            done.written.record = done.written.record.take().map(|record| record.with_lsn(served_by.lsn, record.seq));
        }
        answer
    }
}

/// A write with its triggers, ready to run.
struct TriggeredWrite {
    pre: Option<Arc<Script>>,
    post: Option<Arc<Script>>,
    planned: PlannedWrite,
    options: WriteOptions,
}

struct PlannedWrite {
    operation: OperationType,
    target: Option<OwnedTarget>,
    body: Option<Value>,
}

enum OwnedTarget {
    Named(String),
    Rid(ItemRid),
}

impl PlannedWrite {
    fn new(write: ItemWrite<'_>) -> Self {
        let (operation, target, body) = match write {
            ItemWrite::Create(body) => (OperationType::Create, None, Some(body)),
            ItemWrite::Upsert(body) => (OperationType::Upsert, None, Some(body)),
            ItemWrite::Replace(target, body) => (OperationType::Replace, Some(target), Some(body)),
            ItemWrite::Delete(target) => (OperationType::Delete, Some(target), None),
        };
        let owned = |target: Target<'_>| match target {
            Target::Named(id) => OwnedTarget::Named(id.to_owned()),
            Target::Rid(rid) => OwnedTarget::Rid(rid),
        };
        PlannedWrite { operation, target: target.map(owned), body }
    }
}

impl TriggeredWrite {
    fn new(at: &Admitted, planned: PlannedWrite, options: WriteOptions, triggers: &Triggers) -> Result<Self> {
        let find = |name: &Option<String>, when| {
            name.as_ref().map(|name| find_trigger(at, name, when, planned.operation)).transpose()
        };
        let (pre, post) = (find(&triggers.pre, TriggerType::Pre)?, find(&triggers.post, TriggerType::Post)?);
        Ok(TriggeredWrite { pre, post, planned, options })
    }

    fn run(&self, host: &mut Host<'_>) -> Result<TransactionEnd<Triggered>, Rejected> {
        let operation = self.planned.operation;
        let mut body = self.planned.body.clone();
        if let Some(script) = &self.pre {
            let request_body = body.as_ref().map(json::to_string);
            let outcome = check_succeeded(host.run(script, EntryPoint::PreTrigger { operation, request_body }))?;
            if let Some(changed) = outcome.request_body {
                body = Some(json::parse(changed.as_bytes())?);
            }
        }
        let request_body = body.as_ref().map(json::to_string);
        let written = self.write(host, body)?;
        let mut response_body = None;
        if let Some(script) = &self.post {
            let response_text = written.record.as_ref().map(|record| host.text(record)).transpose()?;
            let entry = EntryPoint::PostTrigger { operation, request_body, response_body: response_text };
            response_body = check_succeeded(host.run(script, entry))?.response_body;
        }
        Ok(TransactionEnd::Commit(Triggered { written, response_body }))
    }

    fn write(&self, host: &mut Host<'_>, body: Option<Value>) -> Result<Written, Rejected> {
        let target = self.planned.target.as_ref().map(|target| match target {
            OwnedTarget::Named(id) => Ok(host.key_of_name(id)),
            OwnedTarget::Rid(rid) => host.key_of_rid(*rid),
        });
        let target = target.transpose()?;
        let verb = match self.planned.operation {
            OperationType::Create => Verb::Create,
            OperationType::Upsert => Verb::Upsert,
            OperationType::Replace => Verb::Replace,
            OperationType::Delete => {
                let target = target.ok_or_else(|| Error::internal("a delete without an item"))?;
                let step = host.delete(&target, &self.options.condition)?;
                return Ok(Written { record: None, created: false, lsn: 0, charge_ru: step.charge_ru });
            }
        };
        let step = host.put(verb, body.unwrap_or(Value::Null), &self.options, target)?;
        Ok(Written { record: step.record, created: step.created, lsn: 0, charge_ru: step.charge_ru })
    }
}

fn find_trigger(at: &Admitted, name: &str, when: TriggerType, operation: OperationType) -> Result<Arc<Script>> {
    let script = at.container().scripts.named(ScriptKind::Trigger, name);
    let script = script.ok_or_else(|| Error::invalid(format!("The trigger '{name}' could not be found.")))?;
    match &script.definition.trigger {
        Some(TriggerDefinition { when: its, .. }) if *its != when => {
            let (its, wanted) = (trigger_type_name(*its), trigger_type_name(when));
            Err(Error::invalid(format!(
                "The trigger '{name}' is a {its}-trigger; the request names it as a {wanted}-trigger."
            )))
        }
        Some(trigger) if trigger.operation.covers(operation) => Ok(script.clone()),
        _ => {
            let operation = operation.name();
            Err(Error::invalid(format!("The trigger '{name}' is not for this operation, which is {operation}.")))
        }
    }
}

fn trigger_type_name(when: TriggerType) -> &'static str {
    match when {
        TriggerType::Pre => "pre",
        TriggerType::Post => "post",
    }
}

fn check_succeeded(outcome: ScriptOutcome) -> Result<ScriptOutcome, Rejected> {
    match &outcome.error {
        None => Ok(outcome),
        Some(error) => Err(Rejected { error: script_error(error), charge_ru: 0.0 }),
    }
}
