//! Write validation: verb, precondition and size limits against the current version.
//!
//! Pure functions of the current version and the sizes given: they read and change nothing.

use pleiad_model::{Error, Fact, Result};

use super::{Precondition, Rejected, Verb};
use crate::key::{ItemKey, KeyStats};
use crate::price;
use crate::record::Record;
use crate::schema::Schema;

pub(super) fn check_write(verb: Verb, old: Option<&Record>, condition: &Precondition) -> Result<(), Rejected> {
    match (verb, old) {
        (Verb::Create | Verb::Upsert, None) => Ok(()),
        (Verb::Create, Some(record)) => Err(rejected(Fact::ItemExists, record.body().len())),
        (Verb::Upsert, Some(record)) => check_version(record, condition),
        (Verb::Replace, old) => check_version(check_exists(old)?, condition),
    }
}

pub(super) fn check_exists<R>(old: Option<R>) -> Result<R, Rejected> {
    old.ok_or_else(|| Error::from(Fact::ItemMissing).into())
}

pub(super) fn check_version(record: &Record, condition: &Precondition) -> Result<(), Rejected> {
    if condition.holds(record) {
        return Ok(());
    }
    Err(rejected(Fact::PreconditionNotMet, record.body().len()))
}

/// Called only for writes that add bytes: a full key can still be read, shrunk and emptied.
pub(super) fn check_key_size(schema: &Schema, stats: &KeyStats) -> Result<()> {
    let bytes_max = schema.size_limits.key_bytes_max;
    match stats.bytes <= bytes_max {
        true => Ok(()),
        false => Err(Fact::KeyFull { bytes_max }.into()),
    }
}

pub(super) fn rejected(fact: Fact, bytes: usize) -> Rejected {
    Rejected { error: fact.into(), charge_ru: price::rejected_write(bytes) }
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
