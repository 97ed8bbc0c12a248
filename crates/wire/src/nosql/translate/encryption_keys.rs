//! Client encryption keys: wrapped by the client, stored and returned, never unwrapped here.

use std::sync::Arc;

use http::{Method, StatusCode};
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{ConditionalRid, Database, EncryptionKey};
use pleiad_model::resource_id::ClientEncryptionKeyRid;
use pleiad_model::{Error, Object, Result, Value};

use super::metadata::{MetadataRows, id_of, one};
use super::{creates, not_allowed};
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::Handled;
use crate::nosql::request::{PostKind, Request};

/// The properties of a key besides its name.
const PROPERTIES: [&str; 3] = ["encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata"];

impl RequestContext<'_> {
    pub(super) async fn encryption_keys(&self, request: &Request<'_>) -> Handled {
        let database = self.owner_of(request)?;
        let owner = database.rid.to_string();
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => self.list(request, rows(&database, &owner)),
            (&Method::POST, true) if request.post_kind() == PostKind::Query => {
                self.query(request, rows(&database, &owner))
            }
            (&Method::POST, true) if creates(request) => {
                let body = request.json()?;
                self.put_key(request, &database, id_of(&body)?, &body, None).await
            }
            (&Method::GET, false) => {
                Ok(one(request, StatusCode::OK, &encode::encryption_key(&*find(&database, request)?)))
            }
            (&Method::PUT, false) => {
                let key = find(&database, request)?;
                let replaced = ConditionalRid::new(key.rid, request.version_condition());
                self.put_key(request, &database, &key.id, &request.json()?, Some(replaced)).await
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_key(
        &self,
        request: &Request<'_>,
        database: &Database,
        id: &str,
        body: &Value,
        replaced: Option<ConditionalRid<ClientEncryptionKeyRid>>,
    ) -> Handled {
        let status = if replaced.is_some() { StatusCode::OK } else { StatusCode::CREATED };
        let key = self.engine.catalog.put_encryption_key(database.rid, id, properties(body)?, replaced).await?;
        Ok(one(request, status, &encode::encryption_key(&key)).charged(METADATA_WRITE_RU))
    }
}

fn rows<'a>(database: &Database, owner: &'a str) -> MetadataRows<'a> {
    let numbered = database.encryption_keys.iter().map(|(&number, key)| (number, encode::encryption_key(key)));
    MetadataRows { owner, array: "ClientEncryptionKeys", numbered: numbered.collect() }
}

fn find(database: &Database, request: &Request<'_>) -> Result<Arc<EncryptionKey>> {
    let name = request.address.segment(1).unwrap_or_default();
    let found = match ClientEncryptionKeyRid::parse(name)
        .filter(|rid| request.address.by_rid && rid.database == database.rid)
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
