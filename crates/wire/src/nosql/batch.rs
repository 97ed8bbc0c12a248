//! Many operations in one body, and their results: as JSON, or as HybridRow records for the SDK that sends those.
//!
//! Promise: an answer has the form of its request, one result per operation, in their order. A body that is no batch is
//! refused as a whole; an operation that makes no sense is an operation that fails. What they do is the engine's job.
//!
//! ```text
//! [{"operationType": "Create", "resourceBody": {"id": "a", "pk": "p"}}, {"operationType": "Read", "id": "b"}]
//! [{"statusCode": 424, "requestCharge": 0}, {"statusCode": 404, "requestCharge": 1, "message": "…"}]
//! ```

mod hybrid; // the same as records
mod json_form;

use pleiad_engine::{BatchAction, BatchOperation, Done, OperationAnswer, Record, WriteOptions};
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::patch::Patch;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Result, Value};

use super::hybrid_row;
use super::request::{condition, indexing_directive};
use super::status::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    HybridRow,
}

impl Format {
    pub fn of(body: &[u8]) -> Format {
        if hybrid_row::is_hybrid_row(body) { Format::HybridRow } else { Format::Json }
    }
}

/// The operations, and for each whether its result shall not hold the item.
pub fn parse(format: Format, body: &[u8]) -> Result<(Vec<BatchOperation>, Vec<bool>)> {
    let sent = match format {
        Format::Json => json_form::parse(body)?,
        Format::HybridRow => hybrid::parse(body)?,
    };
    let minimal = sent.iter().map(|sent| sent.minimal).collect();
    Ok((sent.into_iter().map(Sent::understood).collect::<Result<_>>()?, minimal))
}

pub fn write(format: Format, container: ContainerRid, answers: Vec<OperationAnswer>, minimal: &[bool]) -> Vec<u8> {
    let results = answers.into_iter().zip(minimal).map(|(answer, minimal)| Outcome::of(answer, *minimal));
    match format {
        Format::Json => json_form::write(container, results),
        Format::HybridRow => hybrid::write(container, results),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationType {
    Create,
    Upsert,
    Replace,
    Patch,
    Read,
    Delete,
}

/// An operation as it came.
struct Sent {
    operation: OperationType,
    id: Option<String>,
    key: Option<String>,
    body: Option<Result<Value>>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    indexing_directive: Option<String>,
    minimal: bool,
}

impl Sent {
    fn understood(self) -> Result<BatchOperation> {
        let indexed = indexing_directive(self.indexing_directive.as_deref())?;
        let options =
            WriteOptions { condition: condition(self.if_match.as_deref(), self.if_none_match.as_deref()), indexed };
        let key = self.key.as_deref().map(PartitionKey::parse).transpose()?;
        let known_etag = self.if_none_match.filter(|_| self.operation == OperationType::Read);
        Ok(BatchOperation { action: action(self.operation, self.body), id: self.id, key, options, known_etag })
    }
}

fn action(operation: OperationType, body: Option<Result<Value>>) -> Result<BatchAction> {
    let body = body.unwrap_or_else(|| Err(Error::invalid("The batch operation needs a 'resourceBody'.")));
    Ok(match operation {
        OperationType::Create => BatchAction::Create(body?),
        OperationType::Upsert => BatchAction::Upsert(body?),
        OperationType::Replace => BatchAction::Replace(body?),
        OperationType::Patch => BatchAction::Patch(Patch::parse(&body?)?),
        OperationType::Read => BatchAction::Read,
        OperationType::Delete => BatchAction::Delete,
    })
}

/// A result on its way out.
struct Outcome {
    status: u16,
    substatus: Option<u32>,
    charge_ru: f64,
    /// Of the item, when there is one.
    record: Option<Record>,
    /// Whether the item itself is told, or only its etag.
    shows_item: bool,
    retry_after_ms: Option<u64>,
    message: Option<String>,
}

impl Outcome {
    fn of(answer: OperationAnswer, minimal: bool) -> Outcome {
        let charge_ru = (answer.charge_ru * 100.0).round() / 100.0;
        let done = |status, record, shows_item| {
            let (substatus, retry_after_ms, message) = Default::default();
            Outcome { status, substatus, charge_ru, record, shows_item, retry_after_ms, message }
        };
        match answer.result {
            Ok(Done::Created(record)) => done(201, Some(record), !minimal),
            Ok(Done::Replaced(record) | Done::Read(record)) => done(200, Some(record), !minimal),
            Ok(Done::Unchanged(record)) => done(304, Some(record), false),
            Ok(Done::Deleted) => done(204, None, false),
            Err(error) => {
                let Failure { status, substatus, message, retry_after_ms, .. } = error.into();
                let message = Some(message);
                Outcome { substatus, retry_after_ms, message, ..done(status.as_u16(), None, false) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
