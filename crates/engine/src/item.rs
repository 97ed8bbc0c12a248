//! Item operations: create, read, replace, upsert and delete one item.
//!
//! The partition key comes with the request and, on a write, from the item as well; the two must
//! agree. All checks in this module run before any lock is taken.

use std::sync::Arc;

use pleiad_model::item::{ITEM_BYTES_MAX, SYSTEM_PROPERTIES, check_item_id, check_ttl, item_id};
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Error, Kind, Result, Value, json};
use pleiad_partition::partition::RESOURCE_NOT_FOUND;
use pleiad_partition::{Draft, ItemKey, Partition, Precondition, Record, Verb, Written, price};

use crate::response::{EngineResponse, partition_lsn};
use crate::session::SessionToken;
use crate::write_retry::{WriteOutcome, WriteTarget, owning_partition};
use crate::{Admitted, Engine};

/// The item that a request addresses.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    Named(&'a str),
    Rid(ItemRid),
}

/// Options of a write, besides the item.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    pub condition: Precondition,
    /// `None` leaves the decision to the container's policy.
    pub indexed: Option<bool>,
}

pub(crate) const KEY_MISMATCH: &str = "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document.";
/// The service's message, doubled article included: tests of applications match on it.
const KEY_MISSING: &str =
    "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.";

impl Engine {
    pub async fn read_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        target: Target<'_>,
        session: Option<&SessionToken>,
    ) -> EngineResponse<Record> {
        let (partition, key) = match locate(at, key, target).await {
            Ok(found) => found,
            Err(error) => return EngineResponse::failed(error),
        };
        // Before the read: the session token must not cover more than was read.
        let served_by = partition_lsn(partition);
        if let Err(error) = session.map_or(Ok(()), |session| session.check(partition)) {
            return EngineResponse::failed(error).served_by(served_by);
        }
        let visit = match self.meter.enter(at, &**partition) {
            Ok(visit) => visit,
            Err(error) => return EngineResponse::failed(error).served_by(served_by),
        };
        let found = partition.read(&key).await.map(|record| at.expiry().unexpired(record));
        let mut answer = match found {
            Ok(Some(record)) => {
                let charge_ru = price::read(record.body().len());
                EngineResponse::priced(Ok(record), charge_ru)
            }
            Ok(None) => EngineResponse::failed(Error::not_found(RESOURCE_NOT_FOUND)),
            Err(error) => EngineResponse::failed(error),
        };
        answer.charge_ru = at.read_ru(answer.charge_ru);
        self.meter.pay(visit, answer.charge_ru, Some(&key.logical));
        answer.served_by(served_by)
    }

    /// Creates or upserts, depending on `verb`.
    pub async fn create_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        verb: Verb,
        body: Value,
        options: &WriteOptions,
    ) -> EngineResponse<Written> {
        let draft = match draft(at, key, body, options, None) {
            Ok(draft) => draft,
            Err(error) => return EngineResponse::failed(error),
        };
        self.write(at, verb, draft, &options.condition).await
    }

    /// A body with another id renames the item.
    pub async fn replace_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        target: Target<'_>,
        body: Value,
        options: &WriteOptions,
    ) -> EngineResponse<Written> {
        let target = match locate(at, key, target).await {
            Ok((_, target)) => target,
            Err(error) => return EngineResponse::failed(error),
        };
        match draft(at, key, body, options, Some(target)) {
            Ok(draft) => self.write(at, Verb::Replace, draft, &options.condition).await,
            Err(error) => EngineResponse::failed(error),
        }
    }

    pub async fn delete_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        target: Target<'_>,
        condition: &Precondition,
    ) -> EngineResponse<Written> {
        let (_, key) = match locate(at, key, target).await {
            Ok(found) => found,
            Err(error) => return EngineResponse::failed(error),
        };
        let (key, ts_s) = (&key, self.now_s());
        let delete = |at: WriteTarget| async move {
            at.partition.delete(&at.container.schema, key, condition, ts_s).await.map(WriteOutcome::from)
        };
        self.with_writable_partition(at, &key.logical, delete).await
    }

    async fn write(
        &self,
        at: &Admitted,
        verb: Verb,
        draft: Draft,
        condition: &Precondition,
    ) -> EngineResponse<Written> {
        let ts_s = self.now_s();
        let draft = &draft;
        let write = |at: WriteTarget| async move {
            at.partition.write(&at.container.schema, verb, draft, condition, ts_s).await.map(WriteOutcome::from)
        };
        self.with_writable_partition(at, &draft.target.logical, write).await
    }
}

/// Validates an item and prepares it for storage.
pub(crate) fn draft(
    at: &Admitted,
    key: Option<&PartitionKey>,
    body: Value,
    options: &WriteOptions,
    target: Option<ItemKey>,
) -> Result<Draft> {
    let Value::Object(mut object) = body else {
        return Err(Error::invalid("The input content is invalid: an item is a JSON object."));
    };
    object.retain(|name, _| !SYSTEM_PROPERTIES.contains(&name));
    let body = Value::Object(object);
    let id = item_id(&body)?.to_owned();
    check_item_id(&id)?;
    check_ttl(&body)?;
    let key = key_of_body(at, key, &body)?;
    let schema = &at.container.schema;
    let target = target.unwrap_or_else(|| ItemKey::new(schema.key.as_ref(), &key, &id));
    let mut text = Vec::with_capacity(1024);
    json::write(&body, &mut text);
    check_item_bytes(text.len())?;
    Ok(Draft { target, id, body, text, indexed: options.indexed.unwrap_or(schema.automatic) })
}

/// The partition key of the request must equal the one in the item.
fn key_of_body(at: &Admitted, of_request: Option<&PartitionKey>, body: &Value) -> Result<PartitionKey> {
    let Some(definition) = &at.container.schema.key else { return Ok(PartitionKey::default()) };
    let given = of_request.ok_or_else(|| Error::new(Kind::KeyMismatch, KEY_MISSING))?;
    let from_body = PartitionKey::extract(definition, body);
    if *given != from_body {
        return Err(Error::new(Kind::KeyMismatch, KEY_MISMATCH));
    }
    from_body.check_size(definition)?;
    Ok(from_body)
}

/// The partition and identity of an existing item.
pub(crate) async fn locate<'a>(
    at: &'a Admitted,
    key: Option<&PartitionKey>,
    target: Target<'_>,
) -> Result<(&'a Arc<Partition>, ItemKey)> {
    let key = key_of_request(at, key)?;
    let definition = at.container.schema.key.as_ref();
    match target {
        Target::Named(id) => {
            let key = ItemKey::new(definition, &key, id);
            Ok((owning_partition(&at.container, &key.logical)?, key))
        }
        Target::Rid(rid) if rid.container != at.container.rid => Err(Error::not_found(RESOURCE_NOT_FOUND)),
        Target::Rid(rid) => {
            let nameless = ItemKey::new(definition, &key, "");
            let partition = owning_partition(&at.container, &nameless.logical)?;
            let id = partition.id_of(rid.docnum, &nameless.logical.epk).await?;
            let id = id.ok_or_else(|| Error::not_found(RESOURCE_NOT_FOUND))?;
            Ok((partition, nameless.renamed(&id)))
        }
    }
}

pub(crate) fn key_of_request(at: &Admitted, key: Option<&PartitionKey>) -> Result<PartitionKey> {
    let Some(definition) = &at.container.schema.key else { return Ok(PartitionKey::default()) };
    let key = key.ok_or_else(|| Error::new(Kind::KeyMismatch, KEY_MISSING))?;
    if !key.matches_shape(definition) {
        return Err(Error::new(Kind::KeyMismatch, KEY_MISMATCH));
    }
    key.check_size(definition)?;
    Ok(key.clone())
}

/// The limit applies to the item's text in UTF-8, however the client escaped it.
fn check_item_bytes(bytes: usize) -> Result<()> {
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        Kind::TooLarge,
        format!("Request size is too large: an item has at most {ITEM_BYTES_MAX} bytes, this one has {bytes}."),
    ))
}

#[cfg(test)]
mod tests;
