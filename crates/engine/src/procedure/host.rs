//! Script host: executes the operations of a script in its transaction.
//!
//! Guarantees: an operation that fails has changed nothing, and the script gets the error; the script decides whether
//! that ends it. Items of another partition key are not accessible. All operations are charged, failed ones included.

use std::sync::Arc;

use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Error, Fact, Kind, Object, Result, Value, json};
use pleiad_partition::{
    ItemKey, OperationEffect, Outdated, Partition, Precondition, Record, Rejected, Transaction, Verb, WriteError, price,
};
use pleiad_script::{
    Collection, DocumentAction, DocumentLink, EntryPoint, IndexingDirective, OperationReply, OperationResult,
    PageOptions, ScriptCall, ScriptOperation, ScriptOutcome, ScriptQuery,
};
use pleiad_sql::run::PageSize;

use super::ScriptTask;
use crate::feed::FeedRange;
use crate::item::{ItemRead, draft};
use crate::query::{CrossPartition, ItemQuery, Parameters, ReportOptions, TransactionQuery, TransactionSnapshot};
use crate::{Admitted, Container, Script, WriteOptions, write_item};

/// Rows of a page if the script sets no page size.
const PAGE_ROWS: usize = 1000;
const PAGE_BYTES_MAX: usize = 4 << 20;

/// The query that reads all documents.
const READ_ALL: &str = "SELECT * FROM root";

pub(super) struct Host<'h> {
    task: &'h ScriptTask,
    tx_query: TransactionQuery,
    tx: Transaction<'h>,
    charge_ru: f64,
    /// The container has changed meanwhile: the transaction has to run again.
    is_outdated: bool,
}

impl<'h> Host<'h> {
    pub fn begin(task: &'h ScriptTask, partition: &'h Partition, container: &'h Arc<Container>) -> Result<Self> {
        let ts_s = u32::try_from(task.env.now_ms() / 1000).unwrap_or(u32::MAX);
        let begin = partition.begin(&container.schema, task.logical.clone(), ts_s);
        let tx_query = TransactionQuery {
            at: task.at.at(container.clone()),
            env: task.env.clone(),
            meter: task.meter.clone(),
            scripts: task.scripts.clone(),
            parallelism: task.parallelism,
            handle: task.handle.clone(),
        };
        Ok(Host { task, tx_query, tx: task.handle.block_on(begin)?, charge_ru: 0.0, is_outdated: false })
    }

    /// The transaction, and its charge.
    pub fn end(self) -> Result<(Transaction<'h>, f64), Outdated> {
        if self.is_outdated { Err(Outdated) } else { Ok((self.tx, self.charge_ru)) }
    }

    pub fn at(&self) -> &Admitted {
        &self.tx_query.at
    }

    /// Runs a script to its end.
    pub fn run(&mut self, script: &Script, entry: EntryPoint) -> ScriptOutcome {
        let call = ScriptCall { entry, collection: self.collection(), is_logging: self.task.context.is_logging };
        let pool = &self.task.scripts.procedures;
        let outcome = pool.run(&script.program, call, |operations| {
            operations.into_iter().map(|operation| self.reply_to(operation)).collect()
        });
        self.charge_ru += price::script(outcome.usage.elapsed_ms);
        outcome
    }

    fn collection(&self) -> Collection {
        let (container, context) = (self.at().container(), &self.task.context);
        Collection {
            self_link: format!("dbs/{}/colls/{}/", container.rid.database, container.rid),
            alt_link: format!("dbs/{}/colls/{}", container.database, container.definition.id),
            quota_max: context.quota_max.clone(),
            quota_used: context.quota_used.clone(),
        }
    }

    fn reply_to(&mut self, operation: ScriptOperation) -> OperationReply {
        let reply = match self.execute(operation.action) {
            Ok(reply) => reply,
            Err(WriteError::Failed(Rejected { error, charge_ru })) => {
                self.charge_ru += charge_ru;
                self.failed(&error)
            }
            Err(WriteError::Outdated) => {
                self.is_outdated = true; // whatever the script makes of the failure is discarded
                self.failed(&Fact::ContainerChanging.into())
            }
        };
        OperationReply { id: operation.id, result: reply }
    }

    fn failed(&self, error: &Error) -> OperationResult {
        OperationResult::Failed { kind: error.kind, message: (self.task.context.message)(error) }
    }

    fn execute(&mut self, action: DocumentAction) -> Result<OperationResult, WriteError> {
        match action {
            DocumentAction::Create { body, indexing } => {
                let step = self.put(Verb::Create, parse_body(&body)?, &options(None, indexing), None)?;
                Ok(self.resource(step)?)
            }
            DocumentAction::Upsert { body, etag, indexing } => {
                let step = self.put(Verb::Upsert, parse_body(&body)?, &options(etag, indexing), None)?;
                Ok(self.resource(step)?)
            }
            DocumentAction::Replace { link, body, etag, indexing } => {
                let target = self.key_of(&link)?;
                let step = self.put(Verb::Replace, parse_body(&body)?, &options(etag, indexing), Some(target))?;
                Ok(self.resource(step)?)
            }
            DocumentAction::Delete { link, etag } => {
                let target = self.key_of(&link)?;
                self.delete(&target, &condition(etag))?;
                Ok(OperationResult::Deleted)
            }
            DocumentAction::Read { link, if_none_match } => Ok(self.read(&link, if_none_match.as_deref())?),
            DocumentAction::Query { query, page } => self.query(query, &page),
            DocumentAction::ReadFeed { page } => {
                let all = ScriptQuery { text: READ_ALL.to_owned(), parameters: Vec::new(), may_scan: true };
                self.query(all, &page)
            }
        }
    }

    /// Creates, replaces or upserts an item.
    pub fn put(
        &mut self,
        verb: Verb,
        body: Value,
        options: &WriteOptions,
        target: Option<ItemKey>,
    ) -> Result<OperationEffect, Rejected> {
        let draft = draft(&self.tx_query.at, Some(&self.task.key), body, options, target).map_err(to_script_error)?;
        let step = self.task.handle.block_on(self.tx.put(verb, &draft, &options.condition))?;
        self.charge_ru += step.charge_ru;
        Ok(step)
    }

    pub fn delete(&mut self, target: &ItemKey, condition: &Precondition) -> Result<OperationEffect, Rejected> {
        let step = self.task.handle.block_on(self.tx.delete(target, condition))?;
        self.charge_ru += step.charge_ru;
        Ok(step)
    }

    fn read(&mut self, link: &DocumentLink, known_etag: Option<&str>) -> Result<OperationResult, Rejected> {
        let key = self.key_of(link)?;
        let record = self.task.handle.block_on(self.tx.read(&key))?;
        let record = record.ok_or_else(|| Error::from(Fact::ItemMissing))?;
        let read = ItemRead::new(record, known_etag);
        self.charge_ru += read.charge_ru();
        if read.is_unchanged {
            return Ok(OperationResult::NotModified);
        }
        Ok(OperationResult::Resource(self.text(&read.record)?))
    }

    fn query(&mut self, query: ScriptQuery, page: &PageOptions) -> Result<OperationResult, WriteError> {
        let cursors = &self.task.context.cursors;
        let from = page.continuation.as_deref().map(|text| cursors.read(text)).transpose()?;
        let rows = page.size.map_or(PAGE_ROWS, |size| usize::try_from(size).unwrap_or(PAGE_ROWS).max(1));
        let item_query = ItemQuery {
            text: query.text,
            parameters: parameters(query.parameters)?,
            scope: self.scope(),
            cross_partition: CrossPartition::ByServer,
            size: PageSize { rows, bytes: PAGE_BYTES_MAX },
            from,
            resume: None,
            report: ReportOptions::default(),
            enable_scan: query.may_scan,
        };
        let answer = self.tx_query.query(item_query, self.snapshot()?)?;
        let page = answer.result.map_err(|error| Rejected { error, charge_ru: answer.charge_ru })?;
        self.charge_ru += answer.charge_ru;
        let mut documents = vec![b'['];
        page.rows.join(&mut documents);
        documents.push(b']');
        let continuation = page.next.as_ref().map(|cursor| cursors.write(cursor));
        Ok(OperationResult::Feed { documents: utf8(documents)?, continuation })
    }

    fn snapshot(&self) -> Result<TransactionSnapshot> {
        let view = self.tx.view().ok_or_else(|| Error::internal("a script's transaction has no moment"))?;
        Ok(TransactionSnapshot { snapshot: view, overlay: Arc::new(self.tx.own_writes()) })
    }

    fn scope(&self) -> FeedRange {
        match self.at().container().schema.key {
            Some(_) => FeedRange::PartitionKey(self.task.key.clone()),
            None => FeedRange::Container,
        }
    }

    fn key_of(&self, link: &DocumentLink) -> Result<ItemKey> {
        match link {
            DocumentLink::Id(id) => Ok(self.task.logical.clone().item(id)),
            DocumentLink::Rid(rid) => {
                let rid = ItemRid::parse(rid).filter(|rid| rid.container == self.at().container().rid);
                self.key_of_rid(rid.ok_or(Fact::ItemMissing)?)
            }
        }
    }

    pub fn key_of_rid(&self, rid: ItemRid) -> Result<ItemKey> {
        let key = self.task.handle.block_on(self.tx.key_of(rid.docnum))?;
        Ok(key.ok_or(Fact::ItemMissing)?)
    }

    pub fn key_of_name(&self, id: &str) -> ItemKey {
        self.task.logical.clone().item(id)
    }

    fn resource(&self, effect: OperationEffect) -> Result<OperationResult, Rejected> {
        let record = effect.record.ok_or_else(|| Error::internal("a write left no item"))?;
        Ok(OperationResult::Resource(self.text(&record)?))
    }

    /// The item's text, as a client would get it.
    pub fn text(&self, record: &Record) -> Result<String> {
        let mut text = Vec::new();
        write_item(self.at().container().rid, &record.view(), &mut text);
        utf8(text)
    }
}

fn parse_body(body: &str) -> Result<Value> {
    json::parse(body.as_bytes())
}

fn utf8(text: Vec<u8>) -> Result<String> {
    String::from_utf8(text).map_err(|_| Error::corrupt("an item's text"))
}

fn options(etag: Option<String>, indexing: IndexingDirective) -> WriteOptions {
    let indexed = match indexing {
        IndexingDirective::Default => None,
        IndexingDirective::Include => Some(true),
        IndexingDirective::Exclude => Some(false),
    };
    WriteOptions { condition: condition(etag), indexed }
}

fn condition(etag: Option<String>) -> Precondition {
    etag.map_or(Precondition::None, Precondition::IfMatch)
}

fn parameters(pairs: Vec<(String, Value)>) -> Result<Parameters> {
    let one = |(name, value): (String, Value)| Value::from(Object::new().with("name", name).with("value", value));
    Parameters::from_value(Some(&pairs.into_iter().map(one).collect::<Vec<_>>().into()))
}

fn to_script_error(error: Error) -> Error {
    match error.kind {
        Kind::KeyMismatch => Fact::KeyOutsideScript.into(),
        _ => error,
    }
}
