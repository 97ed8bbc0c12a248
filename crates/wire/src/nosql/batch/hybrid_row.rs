//! Batches as HybridRow records: the format that the .NET SDK sends and expects. One record per operation or result.
//!
//! ```text
//! BatchOperation  2145473648  fixed     operationType, resourceType                                          int32
//!                             variable  partitionKey, effectivePartitionKey, id, binaryId, resourceBody
//!                             sparse    indexingDirective, ifMatch, ifNoneMatch, timeToLiveInSeconds, minimalReturnPreference
//! BatchResult     2145473649  fixed     statusCode, subStatusCode                                            int32
//!                             variable  eTag, resourceBody
//!                             sparse    retryAfterMilliseconds uint32, requestCharge float64
//!
//! 81 70 54 e1 7f │ 13 │ 02 00 00 00 │ 02 00 00 00 │ 01 61      read "a": both numbers and the third of five texts are present
//! ```

use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Result};

use super::{BatchOperationType, BatchResult, RawBatchOperation};
use crate::nosql::hybrid_row::row::{HybridRow, HybridRowSchema, Sparse};
use crate::nosql::hybrid_row::{RecordIoWriter, records};
use crate::nosql::operation::json_of;

pub(super) const OPERATION: HybridRowSchema = HybridRowSchema { id: 2_145_473_648, fixed: 2, variable: 5, sparse: 5 };
pub(super) const RESULT: HybridRowSchema = HybridRowSchema { id: 2_145_473_649, fixed: 2, variable: 2, sparse: 2 };

pub(super) fn parse(body: &[u8]) -> Result<Vec<RawBatchOperation>> {
    records(body)?.into_iter().map(|record| operation(&HybridRow::read(&OPERATION, record)?)).collect()
}

fn operation(row: &HybridRow<'_>) -> Result<RawBatchOperation> {
    let variable = |at: usize| row.variable.get(at).copied().flatten();
    let sparse = |at: usize| row.sparse.get(at).copied().flatten();
    let option = |at: usize| match sparse(at) {
        Some(Sparse::Bytes(bytes)) => text(bytes).map(Some),
        _ => Ok(None),
    };
    Ok(RawBatchOperation {
        operation: operation_type(row.fixed.first().copied().flatten())?,
        key: variable(0).map(text).transpose()?,
        id: variable(2).map(text).transpose()?,
        body: variable(4).map(json_of),
        indexing_directive: option(0)?,
        if_match: option(1)?,
        if_none_match: option(2)?,
        minimal: sparse(4) == Some(Sparse::Bool(true)),
    })
}

/// The SDK's numbers for its operation types.
fn operation_type(number: Option<u32>) -> Result<BatchOperationType> {
    match number {
        Some(0) => Ok(BatchOperationType::Create),
        Some(1) => Ok(BatchOperationType::Patch),
        Some(2) => Ok(BatchOperationType::Read),
        Some(4) => Ok(BatchOperationType::Delete),
        Some(5) => Ok(BatchOperationType::Replace),
        Some(20) => Ok(BatchOperationType::Upsert),
        other => Err(Error::invalid(format!("The batch operation type {other:?} is not known."))),
    }
}

fn text(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("A text in the batch is not UTF-8."))?;
    Ok(text.to_owned())
}

pub(super) fn write(container: ContainerRid, results: impl Iterator<Item = BatchResult>) -> Vec<u8> {
    let mut stream = RecordIoWriter::new();
    results.for_each(|result| stream.push(&row(container, &result)));
    stream.finish()
}

fn row(container: ContainerRid, result: &BatchResult) -> Vec<u8> {
    let etag = result.record.as_ref().map(|record| record.etag().to_string());
    let mut item = Vec::new();
    if let Some(record) = result.record.as_ref().filter(|_| result.shows_item) {
        pleiad_engine::write_item(container, &record.view(), &mut item);
    }
    let retry_after_ms = result.retry_after_ms.map(|ms| Sparse::U32(u32::try_from(ms).unwrap_or(u32::MAX)));
    let row = HybridRow {
        fixed: vec![Some(u32::from(result.status)), Some(result.substatus.unwrap_or(0))],
        variable: vec![etag.as_deref().map(str::as_bytes), Some(item.as_slice()).filter(|item| !item.is_empty())],
        sparse: vec![retry_after_ms, Some(Sparse::F64(result.charge_ru))],
    };
    row.write(&RESULT)
}
