//! Batches as JSON: the format of most SDKs.

use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Object, Result, Value, json};

use super::{BatchOperationType, BatchResult, RawBatchOperation};
use crate::nosql::operation::json_of;

pub(super) fn parse(body: &[u8]) -> Result<Vec<RawBatchOperation>> {
    let body = json_of(body)?;
    let operations = body.as_array().ok_or_else(|| Error::invalid("A batch is an array of operations."))?;
    operations.iter().map(operation).collect()
}

fn operation(value: &Value) -> Result<RawBatchOperation> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let key = match value.get("partitionKey") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(key @ Value::Array(_)) => Some(json::to_string(key)),
        _ => None,
    };
    Ok(RawBatchOperation {
        operation: operation_type(value)?,
        id: text("id"),
        key,
        body: value.get("resourceBody").filter(|body| **body != Value::Null).cloned().map(Ok),
        if_match: text("ifMatch"),
        if_none_match: text("ifNoneMatch"),
        indexing_directive: text("indexingDirective"),
        minimal: value.get("minimalReturnPreference").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn operation_type(value: &Value) -> Result<BatchOperationType> {
    let name = value.get("operationType").and_then(Value::as_str).unwrap_or_default();
    const NAMES: [(&str, BatchOperationType); 6] = [
        ("Create", BatchOperationType::Create),
        ("Upsert", BatchOperationType::Upsert),
        ("Replace", BatchOperationType::Replace),
        ("Patch", BatchOperationType::Patch),
        ("Read", BatchOperationType::Read),
        ("Delete", BatchOperationType::Delete),
    ];
    let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, operation)| *operation);
    known.ok_or_else(|| Error::invalid(format!("The batch operation type {name:?} is not known.")))
}

pub(super) fn write(container: ContainerRid, results: impl Iterator<Item = BatchResult>) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, result) in results.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_result(container, &result, &mut out);
    }
    out.push(b']');
    out
}

fn write_result(container: ContainerRid, result: &BatchResult, out: &mut Vec<u8>) {
    let mut object = Object::new().with("statusCode", u64::from(result.status));
    if let Some(substatus) = result.substatus {
        object.set("subStatusCode", u64::from(substatus));
    }
    object.set("requestCharge", result.charge_ru);
    if let Some(ms) = result.retry_after_ms {
        object.set("retryAfterMilliseconds", ms);
    }
    if let Some(message) = &result.message {
        object.set("message", message.as_str());
    }
    if let Some(record) = &result.record {
        object.set("eTag", record.etag().to_string());
    }
    json::write(&object.into(), out);
    if let Some(record) = result.record.as_ref().filter(|_| result.shows_item) {
        out.pop(); // the closing brace follows the item, whose text is copied unparsed
        out.extend_from_slice(b",\"resourceBody\":");
        pleiad_engine::write_item(container, &record.view(), out);
        out.push(b'}');
    }
}
