//! Item operations: create, read, replace, upsert and delete one item.
//!
//! The partition key comes with the request and, on a write, from the item as well; the two must
//! agree. All checks in this module run before any lock is taken.

use std::borrow::Cow;

use pleiad_model::error::KeyMismatch;
use pleiad_model::item::{ITEM_BYTES_MAX, SYSTEM_PROPERTIES, check_item_id, check_ttl, item_id};
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Error, Fact, Result, Value, json};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{Draft, ItemKey, Partition, Precondition, Record, Verb, Written, price};

use crate::response::{EngineResponse, partition_lsn};
use crate::session::SessionToken;
use crate::write_retry::WriteOutcome;
use crate::{Action, Admission, Admitted, Engine};

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

impl Engine {
    /// `known_etag` is the version that the client already has.
    pub async fn read_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        target: Target<'_>,
        known_etag: Option<&str>,
        session: Option<&SessionToken>,
    ) -> EngineResponse<ItemRead> {
        if let Err(error) = at.check(Action::ReadItem) {
            return EngineResponse::failed(error);
        }
        let located = match LocatedItem::new(at, key, target) {
            Ok(located) => located,
            Err(error) => return EngineResponse::failed(error),
        };
        let partition = match at.container().owning_partition(located.logical()) {
            Ok(partition) => partition,
            Err(error) => return EngineResponse::failed(error),
        };
        // Before the read: the session token must not cover more than was read.
        let served_by = partition_lsn(partition);
        let mut admission = match self.meter.admit(at, Cow::Borrowed(partition), Some(located.logical())).await {
            Ok(admission) => admission,
            Err(error) => return EngineResponse::failed(error).served_by(served_by),
        };
        let result = read_admitted(at, &mut admission, &located, known_etag, session).await;
        EngineResponse::priced(result, admission.settle()).served_by(served_by)
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
        if let Err(error) = at.check(create_action(verb)) {
            return EngineResponse::failed(error);
        }
        let draft = match draft(at, key, body, options, None) {
            Ok(draft) => draft,
            Err(error) => return EngineResponse::failed(error),
        };
        self.write(at, verb, &draft, None, &options.condition).await
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
        if let Err(error) = at.check(Action::ReplaceItem) {
            return EngineResponse::failed(error);
        }
        let prepared = LocatedItem::new(at, key, target).and_then(|located| {
            let draft = draft(at, key, body, options, Some(located.key.clone()))?;
            Ok((located, draft))
        });
        match prepared {
            Ok((located, draft)) => self.write(at, Verb::Replace, &draft, located.docnum, &options.condition).await,
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
        if let Err(error) = at.check(Action::DeleteItem) {
            return EngineResponse::failed(error);
        }
        let located = match LocatedItem::new(at, key, target) {
            Ok(located) => located,
            Err(error) => return EngineResponse::failed(error),
        };
        let (located, ts_s) = (&located, self.now_s());
        self.with_writable_partition(at, located.logical(), |mut target| async move {
            let outcome = async {
                let key = located.resolve(&target.partition).await?;
                let decided = target.partition.enqueue_delete(&target.container.schema, &key, condition, ts_s).await;
                target.await_write(decided).await.map(WriteOutcome::from)
            };
            let outcome = outcome.await;
            (target.admission, outcome)
        })
        .await
    }

    /// `docnum` is that of the item to write, if the request does not name it.
    async fn write(
        &self,
        at: &Admitted,
        verb: Verb,
        draft: &Draft,
        docnum: Option<u64>,
        condition: &Precondition,
    ) -> EngineResponse<Written> {
        let ts_s = self.now_s();
        self.with_writable_partition(at, &draft.target.logical, |mut target| async move {
            let outcome = async {
                let named = match docnum {
                    None => Cow::Borrowed(draft),
                    Some(docnum) => {
                        let key = key_of_docnum(&target.partition, &draft.target, docnum).await?;
                        Cow::Owned(Draft { target: key, ..draft.clone() })
                    }
                };
                let schema = &target.container.schema;
                let decided = target.partition.enqueue_write(schema, verb, &named, condition, ts_s).await;
                target.await_write(decided).await.map(WriteOutcome::from)
            };
            let outcome = outcome.await;
            (target.admission, outcome)
        })
        .await
    }
}

fn create_action(verb: Verb) -> Action {
    match verb {
        Verb::Create => Action::CreateItem,
        Verb::Upsert => Action::UpsertItem,
        Verb::Replace => Action::ReplaceItem,
    }
}

/// Everything after the admission: what was done by then is charged to it, also when this returns early.
async fn read_admitted(
    at: &Admitted,
    admission: &mut Admission<'_>,
    located: &LocatedItem,
    known_etag: Option<&str>,
    session: Option<&SessionToken>,
) -> Result<ItemRead> {
    admission.begin_read(at, session)?;
    let key = located.resolve(admission.partition()).await?;
    let record = admission.partition().read(&key, at.expiry()).await?;
    let read = ItemRead::new(record.ok_or(Fact::ItemMissing)?, known_etag);
    admission.charge_at_least(at.read_ru(read.charge_ru()));
    Ok(read)
}

/// An item that was read.
#[derive(Debug)]
pub struct ItemRead {
    pub record: Record,
    /// The client already has this version, and does not get it again.
    pub is_unchanged: bool,
}

impl ItemRead {
    pub(crate) fn new(record: Record, known_etag: Option<&str>) -> Self {
        let is_unchanged = known_etag.is_some_and(|known| known == record.etag().to_string());
        ItemRead { record, is_unchanged }
    }

    /// The charge at one replica.
    pub(crate) fn charge_ru(&self) -> f64 {
        if self.is_unchanged { price::MISS_RU } else { price::read(self.record.body().len()) }
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
        return Err(Fact::ItemNotObject.into());
    };
    object.retain(|name, _| !SYSTEM_PROPERTIES.contains(&name));
    let body = Value::Object(object);
    let id = item_id(&body)?.to_owned();
    check_item_id(&id)?;
    check_ttl(&body)?;
    let key = key_of_body(at, key, &body)?;
    let schema = &at.container().schema;
    let target = target.unwrap_or_else(|| ItemKey::new(schema.key.as_ref(), &key, &id));
    let mut text = Vec::with_capacity(1024);
    json::write(&body, &mut text);
    check_item_bytes(text.len())?;
    Ok(Draft { target, id, body, text, indexed: options.indexed.unwrap_or(schema.automatic) })
}

/// The partition key of the request must equal the one in the item.
fn key_of_body(at: &Admitted, of_request: Option<&PartitionKey>, body: &Value) -> Result<PartitionKey> {
    let Some(definition) = &at.container().schema.key else { return Ok(PartitionKey::default()) };
    let given = of_request.ok_or(Fact::KeyMissing)?;
    let from_body = PartitionKey::extract(definition, body);
    if *given != from_body {
        return Err(key_mismatch(&from_body, given));
    }
    from_body.check_size(definition)?;
    from_body.check_distinct()?;
    Ok(from_body)
}

pub(crate) fn key_mismatch(expected: &PartitionKey, given: &PartitionKey) -> Error {
    let (expected, given) = (expected.to_values(), given.to_values());
    Fact::KeyMismatch(Box::new(KeyMismatch { expected, given })).into()
}

/// An existing item, as far as the request identifies it: the id of an item that is addressed by `_rid` is looked up
/// at its partition, after admission.
pub(crate) struct LocatedItem {
    /// Without an id if the docnum is set.
    key: ItemKey,
    docnum: Option<u64>,
}

impl LocatedItem {
    pub fn new(at: &Admitted, key: Option<&PartitionKey>, target: Target<'_>) -> Result<Self> {
        let key = key_of_request(at, key)?;
        let (id, docnum) = match target {
            Target::Named(id) => (id, None),
            Target::Rid(rid) if rid.container != at.container().rid => return Err(Fact::ItemMissing.into()),
            Target::Rid(rid) => ("", Some(rid.docnum)),
        };
        Ok(LocatedItem { key: ItemKey::new(at.container().schema.key.as_ref(), &key, id), docnum })
    }

    pub fn logical(&self) -> &LogicalKey {
        &self.key.logical
    }

    /// The item's identity. Reads nothing if the request names the item.
    pub async fn resolve(&self, partition: &Partition) -> Result<Cow<'_, ItemKey>> {
        match self.docnum {
            None => Ok(Cow::Borrowed(&self.key)),
            Some(docnum) => key_of_docnum(partition, &self.key, docnum).await.map(Cow::Owned),
        }
    }
}

async fn key_of_docnum(partition: &Partition, nameless: &ItemKey, docnum: u64) -> Result<ItemKey> {
    let id = partition.id_of(docnum, &nameless.logical.epk).await?;
    Ok(id.map(|id| nameless.renamed(&id)).ok_or(Fact::ItemMissing)?)
}

pub(crate) fn key_of_request(at: &Admitted, key: Option<&PartitionKey>) -> Result<PartitionKey> {
    let Some(definition) = &at.container().schema.key else { return Ok(PartitionKey::default()) };
    let key = key.ok_or(Fact::KeyMissing)?;
    if !key.matches_shape(definition) {
        let (given, expected) = (key.components().len(), definition.paths.len());
        return Err(Fact::KeyLevels { given, expected }.into());
    }
    key.check_size(definition)?;
    Ok(key.clone())
}

/// The limit applies to the item's text in UTF-8, however the client escaped it.
fn check_item_bytes(bytes: usize) -> Result<()> {
    match bytes <= ITEM_BYTES_MAX {
        true => Ok(()),
        false => Err(Fact::ItemTooLarge { bytes, bytes_max: ITEM_BYTES_MAX }.into()),
    }
}

#[cfg(test)]
mod tests;
