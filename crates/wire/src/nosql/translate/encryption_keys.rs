//! Client encryption keys: wrapped by the client, stored and returned, never unwrapped here.

use std::sync::Arc;

use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Addressed, Admitted, ConditionalRid, Database, EncryptionKey};
use pleiad_model::resource_id::ClientEncryptionKeyRid;
use pleiad_model::{Error, Object, Result, Value};

use super::metadata::{MetadataRows, id_of, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::Handled;
use crate::nosql::status::Status;

/// The properties of a key besides its name.
const PROPERTIES: [&str; 3] = ["encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata"];

impl RequestContext<'_> {
    pub(super) async fn encryption_keys(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_database(operation, Addressed::Parent)?;
        let database = at.database();
        let owner = database.rid.to_string();
        match operation.kind {
            OperationKind::List => self.list(operation, rows(database, &owner)),
            OperationKind::Query => self.query(operation, rows(database, &owner)),
            OperationKind::Create | OperationKind::Upsert => {
                let body = operation.json()?;
                self.put_key(operation, &at, id_of(&body)?, &body, None).await
            }
            OperationKind::Read => {
                Ok(one(operation, Status::Ok, &encode::encryption_key(&*find(database, operation)?)))
            }
            OperationKind::Replace => {
                let key = find(database, operation)?;
                let replaced = ConditionalRid::new(key.rid, operation.version_condition());
                self.put_key(operation, &at, &key.id, &operation.json()?, Some(replaced)).await
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_key(
        &self,
        operation: &Operation<'_>,
        at: &Admitted<Arc<Database>>,
        id: &str,
        body: &Value,
        replaced: Option<ConditionalRid<ClientEncryptionKeyRid>>,
    ) -> Handled {
        let status = if replaced.is_some() { Status::Ok } else { Status::Created };
        let key = self.engine.put_encryption_key(at, id, properties(body)?, replaced).await?;
        Ok(one(operation, status, &encode::encryption_key(&key)).charged(METADATA_WRITE_RU))
    }
}

fn rows<'a>(database: &Database, owner: &'a str) -> MetadataRows<'a> {
    let numbered = database.encryption_keys.iter().map(|(&number, key)| (number, encode::encryption_key(key)));
    MetadataRows { owner, array: "ClientEncryptionKeys", numbered: numbered.collect() }
}

fn find(database: &Database, operation: &Operation<'_>) -> Result<Arc<EncryptionKey>> {
    let name = operation.address.segment(1).unwrap_or_default();
    let found = match ClientEncryptionKeyRid::parse(name)
        .filter(|rid| operation.address.by_rid && rid.database == database.rid)
    {
        Some(rid) => database.encryption_keys.get(&rid.number),
        None => database.encryption_key(name),
    };
    found.cloned().ok_or_else(|| Error::not_found("There is no such client encryption key."))
}

fn properties(body: &Value) -> Result<Object> {
    let mut kept = Object::new();
    for name in PROPERTIES {
        let value = body.get(name).filter(|value| **value != Value::Null);
        let value = value.ok_or_else(|| Error::invalid(format!("A client encryption key needs '{name}'.")))?;
        kept.set(name, value.clone());
    }
    Ok(kept)
}
