//! Client encryption keys of a database.
//!
//! Invariant: keys are stored as clients wrapped them, under names that are unique in their database. A container is
//! created only if every key that its encryption policy names exists.

use std::sync::Arc;

use pleiad_model::item::check_resource_name;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::{ClientEncryptionKeyRid, DatabaseRid};
use pleiad_model::{Error, Fact, Object, Result};

use super::precondition::ConditionalRid;
use super::tree::{Database, EncryptionKey};
use super::{Catalog, rows};

/// The most keys of one database.
const ENCRYPTION_KEYS_MAX: usize = 20;

impl Catalog {
    /// Creates a client encryption key, or replaces `replaced`.
    pub async fn put_encryption_key(
        &self,
        database: DatabaseRid,
        id: &str,
        properties: Object,
        replaced: Option<ConditionalRid<ClientEncryptionKeyRid>>,
    ) -> Result<Arc<EncryptionKey>> {
        check_resource_name(id)?;
        let mut change = self.begin().await;
        let mut owner = change.owner(database)?;
        let rid = match replaced {
            Some(target) => {
                let old = owner.encryption_keys.get(&target.rid.number).ok_or(Fact::ResourceMissing)?;
                target.check(old.version)?;
                target.rid
            }
            None if owner.encryption_key(id).is_some() => return Err(Fact::ResourceExists.into()),
            None if owner.encryption_keys.len() >= ENCRYPTION_KEYS_MAX => {
                return Err(Error::invalid(format!(
                    "A database has at most {ENCRYPTION_KEYS_MAX} client encryption keys."
                )));
            }
            None => {
                change.counters.encryption_key += 1;
                ClientEncryptionKeyRid { database, number: change.counters.encryption_key }
            }
        };
        let key = Arc::new(EncryptionKey { id: id.to_owned(), rid, version: change.version, properties });
        rows::put_encryption_key(&mut change.batch, &key);
        owner.encryption_keys.insert(rid.number, key.clone());
        change.tree.put_database(owner);
        self.publish(change).await?;
        Ok(key)
    }
}

/// Clients encrypt with keys that the database stores: without them no client could write the container's items.
pub(super) fn check_encryption_keys(owner: &Database, definition: &ContainerDefinition) -> Result<()> {
    let mut named =
        definition.client_encryption.iter().flat_map(|policy| &policy.paths).map(|path| path.key_id.as_str());
    match named.find(|id| owner.encryption_key(id).is_none()) {
        Some(id) => Err(Error::invalid(format!("ClientEncryptionKey with id '[{id}]' does not exist."))),
        None => Ok(()),
    }
}
