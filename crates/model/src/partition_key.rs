//! Partition keys: the logical partition of an item and its position in the hash space.
//!
//! Guarantees: keys, their hashes and the initial ranges of a container are byte for byte what Cosmos's
//! clients compute, because clients route by them. The partition map records which partition owns which range.
//!
//! ```text
//!   item {"city":"redmond"}  ──extract──►  ["redmond"]  ──effective──►  22E342F38A486A088463DFF7838A5963
//!   header ["redmond"]       ──parse────►  ["redmond"]
//! ```

use crate::path::PropertyPath;
use crate::{Fact, Result, Value, item, json};

mod component; // one level of a key, and its encoding
mod effective; // effective partition keys and ranges of them
pub mod hash; // MurmurHash3
mod v1; // effective keys of version 1
mod v2; // effective keys of version 2 and of hierarchical keys

pub use component::KeyComponent;
pub use effective::{EffectiveKey, EpkRange};

#[cfg(test)]
mod tests;

/// In bytes of UTF-8, for version 2 (S17). Of a version 1 value only a prefix counts (S18).
pub const KEY_VALUE_BYTES_MAX: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Hash,
    /// Hierarchical: up to three levels, each hashed separately.
    MultiHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyVersion {
    V1,
    V2,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKeyDefinition {
    pub paths: Vec<PropertyPath>,
    pub kind: KeyKind,
    pub version: KeyVersion,
    /// Set on migrated containers whose items have no value at the key path; their missing key is `[]`.
    pub system_key: bool,
}

/// No components mean `[]`, the missing key of a container with a system key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    components: Vec<KeyComponent>,
}

impl PartitionKey {
    pub fn new(components: Vec<KeyComponent>) -> Self {
        PartitionKey { components }
    }

    /// Parses the header form: a JSON array, with `{}` for a missing value.
    pub fn parse(header: &str) -> Result<Self> {
        if let Some(text) = plain_string(header) {
            return Ok(PartitionKey::new(vec![KeyComponent::String(text.to_owned())]));
        }
        match json::parse(header.as_bytes()) {
            Ok(Value::Array(values)) => {
                Ok(PartitionKey::new(values.into_iter().map(KeyComponent::of_request).collect::<Result<_>>()?))
            }
            _ => Err(Fact::KeyNotArray { text: header.into() }.into()),
        }
    }

    pub fn extract(definition: &PartitionKeyDefinition, item: &Value) -> Self {
        let component = |path: &PropertyPath| KeyComponent::of_property(path.find(item));
        let components: Vec<_> = definition.paths.iter().map(component).collect();
        if definition.system_key && components.iter().all(|c| *c == KeyComponent::Undefined) {
            return PartitionKey::new(Vec::new());
        }
        PartitionKey::new(components)
    }

    pub fn components(&self) -> &[KeyComponent] {
        &self.components
    }

    /// Whether this identifies one logical partition and not, for instance, the first of three levels.
    pub fn matches_shape(&self, definition: &PartitionKeyDefinition) -> bool {
        let is_missing_key = self.components.is_empty() && definition.system_key;
        is_missing_key || self.components.len() == definition.paths.len()
    }

    pub fn check_size(&self, definition: &PartitionKeyDefinition) -> Result<()> {
        let too_long = |c: &KeyComponent| matches!(c, KeyComponent::String(text) if text.len() > KEY_VALUE_BYTES_MAX);
        if definition.hashes_whole_values() && self.components.iter().any(too_long) {
            return Err(Fact::KeyValueTooLong { bytes_max: KEY_VALUE_BYTES_MAX }.into());
        }
        Ok(())
    }

    /// The items of two keys would have one logical partition.
    pub fn check_distinct(&self) -> Result<()> {
        self.components.iter().try_for_each(|component| match component {
            KeyComponent::String(text) => item::check_distinct(text),
            _ => Ok(()),
        })
    }

    /// The position of this key in the hash space; for a prefix of a hierarchical key, where the keys below it begin.
    pub fn effective(&self, definition: &PartitionKeyDefinition) -> EffectiveKey {
        match (self.components.as_slice(), definition.kind) {
            ([], _) => EffectiveKey::MIN,
            (levels, KeyKind::MultiHash) => hierarchical(levels),
            (components, KeyKind::Hash) => match definition.version {
                KeyVersion::V1 => v1::effective(components),
                KeyVersion::V2 => EffectiveKey::from_bytes(&v2::position(components)),
            },
        }
    }

    /// One JSON value per level, `{}` for a missing one.
    pub fn to_values(&self) -> Vec<Value> {
        self.components.iter().map(KeyComponent::to_value).collect()
    }

    /// The header form.
    pub fn to_json(&self) -> String {
        let mut out = vec![b'['];
        for (at, component) in self.components.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            component.write_json(&mut out);
        }
        out.push(b']');
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The identity of the logical partition as bytes: equal for equal keys, and prefix-free within a
    /// container, so that other bytes can follow. Layout as in `component`.
    ///
    /// ```text
    ///   ["pk"] → 08 70 6B FF        [1,null] → 05 00 00 00 00 00 00 F0 3F 01        [] → FF
    /// ```
    pub fn encode_components(&self, definition: &PartitionKeyDefinition, out: &mut Vec<u8>) {
        if self.components.is_empty() {
            out.push(MISSING_KEY);
        } else if definition.hashes_whole_values() {
            encode(&self.components, out);
        } else {
            encode(&self.components.iter().map(truncated).collect::<Vec<_>>(), out);
        }
    }

    /// Decodes the bytes of `encode_components`; a version 1 key comes back truncated.
    pub fn decode_components(mut bytes: &[u8]) -> Result<Self> {
        let mut components = Vec::new();
        while !matches!(bytes, [] | [MISSING_KEY]) {
            let (component, rest) = KeyComponent::decode(bytes)?;
            components.push(component);
            bytes = rest;
        }
        Ok(PartitionKey { components })
    }
}

/// For a container without a partition key, or a request without one.
const MISSING_KEY: u8 = 0xFF;

/// `["text"]` without escapes: nearly every header, parsed without a JSON parser.
fn plain_string(header: &str) -> Option<&str> {
    let text = header.strip_prefix("[\"")?.strip_suffix("\"]")?;
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    text.bytes().all(is_plain).then_some(text)
}

fn hierarchical(levels: &[KeyComponent]) -> EffectiveKey {
    let position = |level: &KeyComponent| v2::position(std::slice::from_ref(level));
    match levels {
        [a] => EffectiveKey::from_bytes(&position(a)),
        [a, b] => EffectiveKey::of_parts(&[&position(a), &position(b)]),
        [a, b, c] => EffectiveKey::of_parts(&[&position(a), &position(b), &position(c)]),
        more => EffectiveKey::from_bytes(more.iter().map(position).collect::<Vec<_>>().as_flattened()),
    }
}

fn encode(components: &[KeyComponent], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + v2::encoded_len(components), 0);
    v2::encode(components, &mut out[start..]);
}

fn truncated(component: &KeyComponent) -> KeyComponent {
    match component {
        KeyComponent::String(text) => KeyComponent::String(v1::truncated(text).to_owned()),
        other => other.clone(),
    }
}

impl PartitionKeyDefinition {
    /// Large partition keys. Version 1 hashes only a prefix of a value.
    fn hashes_whole_values(&self) -> bool {
        self.version == KeyVersion::V2 || self.kind == KeyKind::MultiHash
    }
}

/// The ranges of a new container: the hash space divided into `count` equal parts (S37).
pub fn initial_ranges(definition: &PartitionKeyDefinition, count: u32) -> Vec<EpkRange> {
    let count = count.max(1);
    let bound = |at: u32| match at {
        0 => EffectiveKey::MIN,
        at if at == count => EffectiveKey::MAX,
        at if definition.hashes_whole_values() => {
            EffectiveKey::from_bytes(&mul_div(v2::POSITIONS - 1, at, count).to_be_bytes())
        }
        at => v1::position_of_hash(mul_div(u128::from(u32::MAX), at, count) as u32),
    };
    (0..count).map(|at| EpkRange { min: bound(at), max: bound(at + 1) }).collect()
}

/// A position that divides a range into two of about equal width, if one lies inside the range.
///
/// ```text
///   version 2   ["", FF)                                 → 1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
///   version 1   ["", FF)                                 → 05C1DFFFFFFFFC
/// ```
pub fn midpoint(definition: &PartitionKeyDefinition, range: &EpkRange) -> Option<EffectiveKey> {
    let inside = |key: &EffectiveKey| range.min < *key && *key < range.max;
    if definition.hashes_whole_values() {
        return v2::midpoint_candidates(range, definition.paths.len()).into_iter().find(inside);
    }
    Some(v1::midpoint(range)).filter(inside)
}

/// `whole · part / parts`, rounded down, also where the product would need more than 128 bits.
fn mul_div(whole: u128, part: u32, parts: u32) -> u128 {
    let (part, parts) = (u128::from(part), u128::from(parts));
    whole / parts * part + whole % parts * part / parts
}
