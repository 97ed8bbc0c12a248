//! Item identity, and the size of a logical partition.
//!
//! The identity of an item is its partition key and its id. Keys of a legacy (version 1) container are truncated to
//! their first hundred characters before they are used, as the hash function does.

use bytes::Bytes;
use pleiad_model::partition_key::{EffectiveKey, PartitionKey, PartitionKeyDefinition};
use pleiad_model::{Error, Result};
use ring::digest::{Context, SHA256};

/// A logical partition: its effective key, and the key components that distinguish it from another one with the same
/// hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalKey {
    pub epk: EffectiveKey,
    components: Vec<u8>,
}

impl LogicalKey {
    /// `definition` is `None` for a fixed container, where all items form one logical partition.
    pub fn new(definition: Option<&PartitionKeyDefinition>, key: &PartitionKey) -> Self {
        let mut components = Vec::new();
        let Some(definition) = definition else { return LogicalKey { epk: EffectiveKey::MIN, components } };
        key.encode_components(definition, &mut components);
        LogicalKey { epk: key.effective(definition), components }
    }

    pub fn hash(&self) -> [u8; 16] {
        hash128(&[&self.components])
    }

    /// The key's values, in the encoding of `PartitionKey::decode_components`.
    pub fn components(&self) -> &[u8] {
        &self.components
    }

    pub fn item(self, id: &str) -> ItemKey {
        // The length distinguishes ("ab", "c") from ("a", "bc").
        let length = (self.components.len() as u64).to_be_bytes();
        let hash = hash128(&[&length, &self.components, id.as_bytes()]);
        ItemKey { hash, id: id.to_owned(), logical: self }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemKey {
    pub logical: LogicalKey,
    pub hash: [u8; 16],
    pub id: String,
}

impl ItemKey {
    pub fn new(definition: Option<&PartitionKeyDefinition>, key: &PartitionKey, id: &str) -> Self {
        LogicalKey::new(definition, key).item(id)
    }

    pub fn renamed(&self, id: &str) -> Self {
        self.logical.clone().item(id)
    }
}

/// A cryptographic hash, because clients choose the components and the id.
pub(crate) fn hash128(parts: &[&[u8]]) -> [u8; 16] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut out = [0; 16];
    out.copy_from_slice(&context.finish().as_ref()[..16]);
    out
}

/// The number and size of the items of one logical partition. The row is deleted with the last item.
///
/// ```text
/// key   items u64 │ bytes u64 │ components
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyStats {
    pub items: u64,
    pub bytes: u64,
}

impl KeyStats {
    pub fn encode(&self, key: &LogicalKey) -> Bytes {
        let mut out = Vec::with_capacity(16 + key.components.len());
        out.extend_from_slice(&self.items.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&key.components);
        Bytes::from(out)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::decode_with_key(bytes).map(|(stats, _)| stats)
    }

    /// The statistics and the components of their key.
    pub fn decode_with_key(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let corrupt = || Error::corrupt("key statistics");
        let (items, rest) = bytes.split_first_chunk::<8>().ok_or_else(corrupt)?;
        let (bytes, components) = rest.split_first_chunk::<8>().ok_or_else(corrupt)?;
        Ok((KeyStats { items: u64::from_be_bytes(*items), bytes: u64::from_be_bytes(*bytes) }, components))
    }
}

/// A logical partition that is reported because of its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeKey {
    /// In the encoding of `PartitionKey::decode_components`.
    pub components: Vec<u8>,
    pub stats: KeyStats,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleiad_model::partition_key::{KeyKind, KeyVersion};
    use pleiad_model::path::PropertyPath;

    fn definition(version: KeyVersion) -> PartitionKeyDefinition {
        let paths = vec![PropertyPath::parse("/pk").unwrap()];
        PartitionKeyDefinition { paths, kind: KeyKind::Hash, version, system_key: false }
    }

    fn key(version: KeyVersion, pk: &str, id: &str) -> ItemKey {
        let pk = PartitionKey::parse(&format!("[{pk}]")).unwrap();
        ItemKey::new(Some(&definition(version)), &pk, id)
    }

    #[test]
    fn s10_a_number_and_its_digits_are_different_keys() {
        assert_ne!(key(KeyVersion::V2, "7", "a"), key(KeyVersion::V2, "\"7\"", "a"));
    }

    #[test]
    fn s12_s13_key_and_id_together_are_the_identity() {
        assert_ne!(key(KeyVersion::V2, "\"a\"", "b").hash, key(KeyVersion::V2, "\"ab\"", "").hash);
        assert_eq!(key(KeyVersion::V2, "1", "b"), key(KeyVersion::V2, "1.0", "b"));
    }

    #[test]
    fn s18_legacy_keys_equal_in_their_first_hundred_characters_are_one() {
        let (a, b) = (format!("\"{}x\"", "k".repeat(100)), format!("\"{}y\"", "k".repeat(100)));
        assert_eq!(key(KeyVersion::V1, &a, "i"), key(KeyVersion::V1, &b, "i"));
        assert_ne!(key(KeyVersion::V2, &a, "i"), key(KeyVersion::V2, &b, "i"));
    }

    #[test]
    fn statistics_round_trip() {
        let stats = KeyStats { items: 3, bytes: 4096 };
        let row = stats.encode(&key(KeyVersion::V2, "\"a\"", "b").logical);
        assert_eq!(KeyStats::decode(&row).unwrap(), stats);
        assert!(KeyStats::decode(&row[..15]).is_err());
    }
}
