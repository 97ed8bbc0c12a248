//! Batches: many operations in one body, and their results; as JSON, or as HybridRow records for the SDK that sends
//! those.
//!
//! Guarantees: a response has the format of its request and one result per operation, in the same order. A body that is
//! not a batch, or has an unknown operation type, partition key or indexing directive, is rejected as a whole; an
//! operation with a missing or invalid `resourceBody` fails by itself. The engine executes the operations.
//!
//! ```text
//! [{"operationType": "Create", "resourceBody": {"id": "a", "pk": "p"}}, {"operationType": "Read", "id": "b"}]
//! [{"statusCode": 424, "requestCharge": 0}, {"statusCode": 404, "requestCharge": 1, "message": "…"}]
//! ```

mod hybrid_row; // HybridRow records
mod json;

use pleiad_engine::{BatchAction, BatchOperation, BatchOperationResult, OperationOutcome, Record, WriteOptions};
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::patch::Patch;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Result, Value};

use super::operation::{condition, indexing_directive};
use super::status::ErrorStatus;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFormat {
    Json,
    HybridRow,
}

impl BatchFormat {
    pub fn of(body: &[u8]) -> BatchFormat {
        if super::hybrid_row::is_hybrid_row(body) { BatchFormat::HybridRow } else { BatchFormat::Json }
    }
}

/// The operations, and for each whether its result omits the item.
pub fn parse(format: BatchFormat, body: &[u8]) -> Result<(Vec<BatchOperation>, Vec<bool>)> {
    let raw = match format {
        BatchFormat::Json => json::parse(body)?,
        BatchFormat::HybridRow => hybrid_row::parse(body)?,
    };
    let minimal = raw.iter().map(|sent| sent.minimal).collect();
    Ok((raw.into_iter().map(RawBatchOperation::decode).collect::<Result<_>>()?, minimal))
}

pub fn write(
    format: BatchFormat,
    container: ContainerRid,
    answers: Vec<BatchOperationResult>,
    minimal: &[bool],
) -> Vec<u8> {
    let results = answers.into_iter().zip(minimal).map(|(answer, minimal)| BatchResult::of(answer, *minimal));
    match format {
        BatchFormat::Json => json::write(container, results),
        BatchFormat::HybridRow => hybrid_row::write(container, results),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchOperationType {
    Create,
    Upsert,
    Replace,
    Patch,
    Read,
    Delete,
}

/// An operation as received, not yet validated.
struct RawBatchOperation {
    operation: BatchOperationType,
    id: Option<String>,
    key: Option<String>,
    body: Option<Result<Value>>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    indexing_directive: Option<String>,
    minimal: bool,
}

impl RawBatchOperation {
    fn decode(self) -> Result<BatchOperation> {
        let indexed = indexing_directive(self.indexing_directive.as_deref())?;
        let options =
            WriteOptions { condition: condition(self.if_match.as_deref(), self.if_none_match.as_deref()), indexed };
        let key = self.key.as_deref().map(PartitionKey::parse).transpose()?;
        let known_etag = self.if_none_match.filter(|_| self.operation == BatchOperationType::Read);
        Ok(BatchOperation { action: action(self.operation, self.body), id: self.id, key, options, known_etag })
    }
}

fn action(operation: BatchOperationType, body: Option<Result<Value>>) -> Result<BatchAction> {
    let body = body.unwrap_or_else(|| Err(Error::invalid("The batch operation needs a 'resourceBody'.")));
    Ok(match operation {
        BatchOperationType::Create => BatchAction::Create(body?),
        BatchOperationType::Upsert => BatchAction::Upsert(body?),
        BatchOperationType::Replace => BatchAction::Replace(body?),
        BatchOperationType::Patch => BatchAction::Patch(Patch::parse(&body?)?),
        BatchOperationType::Read => BatchAction::Read,
        BatchOperationType::Delete => BatchAction::Delete,
    })
}

/// A result, ready to be encoded.
struct BatchResult {
    status: u16,
    substatus: Option<u32>,
    charge_ru: f64,
    /// The item, if the operation returns one.
    record: Option<Record>,
    /// Whether the result includes the item itself, or only its etag.
    shows_item: bool,
    retry_after_ms: Option<u64>,
    message: Option<String>,
}

impl BatchResult {
    fn of(answer: BatchOperationResult, minimal: bool) -> BatchResult {
        let charge_ru = (answer.charge_ru * 100.0).round() / 100.0;
        let done = |status, record, shows_item| {
            let (substatus, retry_after_ms, message) = Default::default();
            BatchResult { status, substatus, charge_ru, record, shows_item, retry_after_ms, message }
        };
        match answer.result {
            Ok(OperationOutcome::Created(record)) => done(201, Some(record), !minimal),
            Ok(OperationOutcome::Replaced(record) | OperationOutcome::Read(record)) => {
                done(200, Some(record), !minimal)
            }
            Ok(OperationOutcome::Unchanged(record)) => done(304, Some(record), false),
            Ok(OperationOutcome::Deleted) => done(204, None, false),
            Err(error) => {
                let ErrorStatus { status, substatus, message, retry_after_ms, .. } = error.into();
                let message = Some(message);
                BatchResult { substatus, retry_after_ms, message, ..done(status.code(), None, false) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
