//! `clientEncryptionPolicy`: the properties that clients encrypt before they send them.
//!
//! Invariant: paths are top-level and unique; `id` and the partition key are encrypted only
//! deterministically and with format version 2, since otherwise reads could not address the item. The
//! server stores the ciphertext: keys and ciphers are on the clients' side.

use super::read;
use crate::partition_key::PartitionKeyDefinition;
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

named! {
    pub enum EncryptionType { Deterministic = "Deterministic", Randomized = "Randomized" }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClientEncryptionPolicy {
    pub paths: Vec<EncryptedPath>,
    /// 1 or 2.
    pub format_version: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EncryptedPath {
    pub path: PropertyPath,
    pub key_id: String,
    pub kind: EncryptionType,
}

impl ClientEncryptionPolicy {
    pub(super) fn parse(body: &Value) -> Result<Self> {
        let body = read::object(body)?;
        let format_version = read::optional(body, "policyFormatVersion", format_version)?.unwrap_or(1);
        let paths = read::each(body, "includedPaths", EncryptedPath::parse)?;
        match read::repeated(paths.iter().map(|encrypted| &encrypted.path)) {
            Some(path) => Err(invalid(format!("has the path '{}' twice", path.as_str()))),
            None => Ok(ClientEncryptionPolicy { paths, format_version }),
        }
    }

    pub(super) fn to_object(&self) -> Object {
        Object::new()
            .with("includedPaths", read::render(&self.paths, EncryptedPath::to_object))
            .with("policyFormatVersion", i64::from(self.format_version))
    }

    /// The properties that identify an item must stay comparable when encrypted.
    pub(super) fn check(&self, key: Option<&PartitionKeyDefinition>) -> Result<()> {
        let top = |path: &PropertyPath| path.segments().first().cloned();
        let key_tops: Vec<_> = key.into_iter().flat_map(|key| &key.paths).filter_map(top).collect();
        let identifies_item =
            |path: &PropertyPath| top(path).is_some_and(|name| name == "id" || key_tops.contains(&name));
        for encrypted in self.paths.iter().filter(|encrypted| identifies_item(&encrypted.path)) {
            if self.format_version < 2 || encrypted.kind != EncryptionType::Deterministic {
                let path = encrypted.path.as_str();
                return Err(invalid(format!(
                    "encrypts '{path}', which names items: that needs policyFormatVersion 2 and Deterministic"
                )));
            }
        }
        Ok(())
    }
}

impl EncryptedPath {
    fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        let path = PropertyPath::parse(read::required_text(entry, "path")?)?;
        if path.segments().len() != 1 {
            return Err(invalid(format!("has the path '{}', which is not top-level", path.as_str())));
        }
        let key_id = read::required_text(entry, "clientEncryptionKeyId")?.to_owned();
        if key_id.is_empty() {
            return Err(invalid(format!("names no clientEncryptionKeyId for '{}'", path.as_str())));
        }
        let kind = read::required_text(entry, "encryptionType")?;
        let kind = EncryptionType::parse(kind)
            .ok_or_else(|| invalid(format!("has the encryptionType '{kind}', not Deterministic or Randomized")))?;
        match read::required_text(entry, "encryptionAlgorithm")? {
            ALGORITHM => Ok(EncryptedPath { path, key_id, kind }),
            other => Err(invalid(format!("has the encryptionAlgorithm '{other}', not {ALGORITHM}"))),
        }
    }

    fn to_object(&self) -> Object {
        read::path_entry(self.path.as_str())
            .with("clientEncryptionKeyId", self.key_id.as_str())
            .with("encryptionType", self.kind.as_str())
            .with("encryptionAlgorithm", ALGORITHM)
    }
}

fn format_version(value: &Value) -> Result<u8> {
    match read::integer(value)? {
        1 => Ok(1),
        2 => Ok(2),
        other => Err(invalid(format!("has the policyFormatVersion {other}, not 1 or 2"))),
    }
}

fn invalid(what: String) -> Error {
    Error::invalid(format!("The client encryption policy {what}."))
}

#[cfg(test)]
mod tests;
