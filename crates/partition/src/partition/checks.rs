//! Write validation: verb, precondition and size limits against the current version, with the protocol's error
//! messages.
//!
//! Pure functions of the current version and the sizes given: they read and change nothing.

use pleiad_model::{Error, Kind, Result};

use super::{Precondition, Rejected, Verb};
use crate::key::{ItemKey, KeyStats};
use crate::price;
use crate::record::Record;
use crate::schema::Schema;

pub const ALREADY_EXISTS: &str = "Resource with specified id or name already exists.";
pub const PRECONDITION_NOT_MET: &str = "One of the specified pre-condition is not met.";
pub const UNIQUE_VIOLATION: &str = "Resource with specified id, name, or unique index already exists.";
pub const RESOURCE_NOT_FOUND: &str = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found";

pub(super) fn check_write(verb: Verb, old: Option<&Record>, condition: &Precondition) -> Result<(), Rejected> {
    match (verb, old) {
        (Verb::Create | Verb::Upsert, None) => Ok(()),
        (Verb::Create, Some(record)) => Err(rejected(Kind::Conflict, ALREADY_EXISTS, record.body().len())),
        (Verb::Upsert, Some(record)) => check_version(record, condition),
        (Verb::Replace, old) => check_version(check_exists(old)?, condition),
    }
}

pub(super) fn check_exists<R>(old: Option<R>) -> Result<R, Rejected> {
    old.ok_or_else(|| Error::not_found(RESOURCE_NOT_FOUND).into())
}

pub(super) fn check_version(record: &Record, condition: &Precondition) -> Result<(), Rejected> {
    if condition.holds(record) {
        return Ok(());
    }
    Err(rejected(Kind::PreconditionFailed, PRECONDITION_NOT_MET, record.body().len()))
}

/// Called only for writes that add bytes: a full key can still be read, shrunk and emptied.
pub(super) fn check_key_size(schema: &Schema, stats: &KeyStats) -> Result<()> {
    if stats.bytes <= schema.size_limits.key_bytes_max {
        return Ok(());
    }
    let limit = schema.size_limits.key_bytes_max;
    let message = format!(
        "Partition key reached maximum size of {limit} bytes. Delete items of this key, or choose a key with more values."
    );
    Err(Error::new(Kind::KeyFull, message))
}

pub(super) fn rejected(kind: Kind, message: &str, bytes: usize) -> Rejected {
    Rejected { error: Error::new(kind, message), charge_ru: price::rejected_write(bytes) }
}

pub(crate) fn id_without_item() -> Error {
    Error::corrupt("an id without its item")
}

pub(crate) fn check_identity(record: Record, key: &ItemKey) -> Result<Record> {
    if record.id() == key.id {
        return Ok(record);
    }
    Err(Error::corrupt(format_args!("item {} where {} should be", record.id(), key.id)))
}
