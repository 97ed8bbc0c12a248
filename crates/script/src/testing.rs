//! An in-memory collection for scripts under test: documents by id, in creation order.
//!
//! It replies to every operation of a script. Queries are recorded but not evaluated: every query returns all
//! documents, like `SELECT *`. There are no charges and no transactions.

use std::sync::Arc;

use pleiad_model::env::{Env, ManualEnv};
use pleiad_model::{Error, Kind, Object, Value, json};

use crate::{
    Collection, DocumentAction, DocumentLink, EntryPoint, OperationReply, OperationResult, PageOptions, Program,
    ScriptCall, ScriptLimits, ScriptOperation, ScriptOutcome, ScriptRuntime, ScriptStep,
};

pub const SELF_LINK: &str = "dbs/AAAAAA==/colls/AAAAAAAAAAA=/";
pub const ALT_LINK: &str = "dbs/shop/colls/orders";

#[derive(Default)]
pub struct TestHost {
    pub documents: Vec<Value>,
    pub queries: Vec<String>,
    /// The host accepts no more operations after this many.
    pub operations_max: Option<usize>,
    pub operation_count: usize,
    pub etag_count: u64,
}

pub fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

pub fn env() -> Arc<dyn Env> {
    Arc::new(ManualEnv::at(1_700_000_000_000, 7))
}

pub fn runtime() -> ScriptRuntime {
    ScriptRuntime::new(ScriptLimits::default(), env())
}

pub fn call(entry: EntryPoint) -> ScriptCall {
    let collection = Collection {
        self_link: SELF_LINK.to_owned(),
        alt_link: ALT_LINK.to_owned(),
        quota_max: "documentSize=10240;".to_owned(),
        quota_used: "documentSize=0;".to_owned(),
    };
    ScriptCall { entry, collection, is_logging: true }
}

pub fn procedure(arguments: &[&str]) -> ScriptCall {
    call(EntryPoint::Procedure { arguments: arguments.iter().map(|&text| text.to_owned()).collect() })
}

impl TestHost {
    pub fn of(documents: &[&str]) -> TestHost {
        let mut host = TestHost::default();
        for text in documents {
            host.create(text).unwrap();
        }
        host
    }

    /// Runs a call to its end against these documents.
    pub fn run(&mut self, runtime: &mut ScriptRuntime, source: &str, call: ScriptCall) -> ScriptOutcome {
        self.execute(runtime, &Program::new("test", source), call)
    }

    pub fn execute(&mut self, runtime: &mut ScriptRuntime, program: &Program, call: ScriptCall) -> ScriptOutcome {
        let mut session = runtime.start(program, call);
        let mut replies = Vec::new();
        loop {
            match session.step(replies) {
                ScriptStep::Done(outcome) => return outcome,
                ScriptStep::Execute(operations) => {
                    replies = operations.into_iter().map(|operation| self.reply_to(operation)).collect();
                    if self.operations_max.is_some_and(|most| self.operation_count >= most) {
                        session.stop_accepting();
                    }
                }
            }
        }
    }

    pub fn reply_to(&mut self, operation: ScriptOperation) -> OperationReply {
        self.operation_count += 1;
        let reply = self
            .execute_action(operation.action)
            .unwrap_or_else(|error| OperationResult::Failed { kind: error.kind, message: error.to_string() });
        OperationReply { id: operation.id, result: reply }
    }

    fn execute_action(&mut self, action: DocumentAction) -> Result<OperationResult, Error> {
        match action {
            DocumentAction::Create { body, .. } => self.create(&body).map(OperationResult::Resource),
            DocumentAction::Upsert { body, .. } => {
                let id = id_of(&json::parse(body.as_bytes())?)?;
                self.documents.retain(|document| document.get("id") != Some(&Value::from(id.as_str())));
                self.create(&body).map(OperationResult::Resource)
            }
            DocumentAction::Read { link, if_none_match } => {
                let document = &self.documents[self.find(&link)?];
                let is_same = if_none_match.is_some()
                    && document.get("_etag").and_then(Value::as_str) == if_none_match.as_deref();
                Ok(if is_same {
                    OperationResult::NotModified
                } else {
                    OperationResult::Resource(json::to_string(document))
                })
            }
            DocumentAction::Replace { link, body, etag, .. } => {
                let at = self.find_matching(&link, etag.as_deref())?;
                self.documents[at] = self.with_system_properties(json::parse(body.as_bytes())?)?;
                Ok(OperationResult::Resource(json::to_string(&self.documents[at])))
            }
            DocumentAction::Delete { link, etag } => {
                let at = self.find_matching(&link, etag.as_deref())?;
                self.documents.remove(at);
                Ok(OperationResult::Deleted)
            }
            DocumentAction::ReadFeed { page } => Ok(self.page(&page)),
            DocumentAction::Query { query, page } => {
                self.queries.push(query.text);
                Ok(self.page(&page))
            }
        }
    }

    fn create(&mut self, text: &str) -> Result<String, Error> {
        let document = json::parse(text.as_bytes())?;
        let id = Value::from(id_of(&document)?);
        if self.documents.iter().any(|known| known.get("id") == Some(&id)) {
            return Err(Error::conflict("Resource with specified id or name already exists."));
        }
        let document = self.with_system_properties(document)?;
        let made = json::to_string(&document);
        self.documents.push(document);
        Ok(made)
    }

    fn with_system_properties(&mut self, document: Value) -> Result<Value, Error> {
        let Value::Object(mut object) = document else { return Err(Error::invalid("A document is an object.")) };
        self.etag_count += 1;
        let id = id_of(&Value::Object(object.clone()))?;
        object.set("_self", format!("{SELF_LINK}docs/{id}-rid/"));
        object.set("_etag", format!("\"{}\"", self.etag_count));
        Ok(Value::Object(object))
    }

    fn find(&self, link: &DocumentLink) -> Result<usize, Error> {
        let id = match link {
            DocumentLink::Id(id) => id.as_str(),
            DocumentLink::Rid(rid) => rid.trim_end_matches("-rid"),
        };
        let at = self.documents.iter().position(|document| document.get("id") == Some(&Value::from(id)));
        at.ok_or_else(|| Error::not_found("Entity with the specified id does not exist."))
    }

    fn find_matching(&self, link: &DocumentLink, etag: Option<&str>) -> Result<usize, Error> {
        let at = self.find(link)?;
        let is_same = etag.is_none() || self.documents[at].get("_etag").and_then(Value::as_str) == etag;
        if is_same { Ok(at) } else { Err(Error::new(Kind::PreconditionFailed, "The etag is another one.")) }
    }

    fn page(&self, page: &PageOptions) -> OperationResult {
        let from: usize = page.continuation.as_ref().map_or(0, |text| text.parse().unwrap());
        let size = page.size.map_or(usize::MAX, |size| size as usize);
        let to = self.documents.len().min(from.saturating_add(size));
        let documents = json::to_string(&Value::Array(self.documents[from..to].to_vec()));
        OperationResult::Feed { documents, continuation: (to < self.documents.len()).then(|| to.to_string()) }
    }

    pub fn ids(&self) -> Vec<String> {
        self.documents.iter().filter_map(|document| id_of(document).ok()).collect()
    }

    pub fn get(&self, id: &str) -> &Object {
        self.documents
            .iter()
            .find(|document| document.get("id") == Some(&Value::from(id)))
            .unwrap()
            .as_object()
            .unwrap()
    }
}

fn id_of(document: &Value) -> Result<String, Error> {
    let id = document.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| Error::invalid("The input is invalid: it has no id."))
}

/// A clock that advances with every reading: an endless loop ends after a fixed number of readings, on any machine.
pub struct TickingEnv {
    inner: ManualEnv,
    tick_ms: u64,
}

impl TickingEnv {
    pub fn every(tick_ms: u64) -> Arc<dyn Env> {
        Arc::new(TickingEnv { inner: ManualEnv::at(1_700_000_000_000, 7), tick_ms })
    }
}

impl Env for TickingEnv {
    fn now_ms(&self) -> u64 {
        self.inner.advance_ms(self.tick_ms);
        self.inner.now_ms()
    }

    fn random_u64(&self) -> u64 {
        self.inner.random_u64()
    }
}
