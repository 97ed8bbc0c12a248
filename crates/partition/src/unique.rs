//! Unique constraints: values that at most one item per logical partition may have.
//!
//! Invariant: an item claims one row for each of its container's unique keys, and no two items can claim the same row.
//! `partition` checks the claims of a write for conflicts, under the latch of the logical partition.
//!
//! ```text
//! unique   paths hash │ EPK │ hash of (logical partition, values)  →  docnum of the holder
//! ```
//!
//! A row contains no values, only 128 bits of their hash. The hashed encoding is unambiguous: strings, arrays and
//! objects begin with their length. A missing property counts as null. Numbers are compared as doubles, strings byte by
//! byte, objects regardless of the order of their properties.
//!
//! ```text
//! null 00 │ false 01 │ true 02 │ number 03, double │ string 04, len u64, text │ array 05, len u64, …
//! object 06, len u64, (name, value)…
//! ["a",1]   05 00…02  04 00…01 61  03 3f f0 00 00 00 00 00 00
//! ```

use bytes::Bytes;
use pleiad_model::path::PropertyPath;
use pleiad_model::policy::UniqueKey;
use pleiad_model::{Object, Value};
use pleiad_storage::keyspace;

use crate::key::{LogicalKey, hash128};

/// The unique keys of a container, in the order of its policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UniqueKeys {
    keys: Vec<Constraint>,
}

#[derive(Clone, Debug, PartialEq)]
struct Constraint {
    paths_hash: u64,
    paths: Vec<PropertyPath>,
}

/// What an item claims under one unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    paths_hash: u64,
    values_hash: [u8; 16],
}

impl UniqueKeys {
    pub fn new(keys: &[UniqueKey]) -> UniqueKeys {
        let constraint = |key: &UniqueKey| Constraint { paths_hash: paths_hash(&key.paths), paths: key.paths.clone() };
        UniqueKeys { keys: keys.iter().map(constraint).collect() }
    }

    /// The number of unique keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// One claim for each unique key: an item without any of the properties claims the nulls.
    pub fn claims(&self, logical: &LogicalKey, body: &Value) -> Vec<Claim> {
        let claim = |key: &Constraint| {
            let values = values_of(&key.paths, body);
            // The length separates the partition key from the values.
            let length = (logical.components().len() as u64).to_be_bytes();
            let values_hash = hash128(&[&length, logical.components(), &values]);
            Claim { paths_hash: key.paths_hash, values_hash }
        };
        self.keys.iter().map(claim).collect()
    }
}

impl Claim {
    pub fn row(&self, shard: u64, epk: &[u8]) -> Bytes {
        keyspace::unique(shard, self.paths_hash, epk, &self.values_hash)
    }
}

/// Distinguishes the unique keys of a container, of which there are at most ten.
fn paths_hash(paths: &[PropertyPath]) -> u64 {
    let mut names = Vec::new();
    for path in paths {
        encode_length(path.segments().len(), &mut names);
        path.segments().iter().for_each(|name| encode_text(name, &mut names));
    }
    let [a, b, c, d, e, f, g, h, ..] = hash128(&[&names]);
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn values_of(paths: &[PropertyPath], body: &Value) -> Vec<u8> {
    let mut values = Vec::new();
    paths.iter().for_each(|path| encode(path.find(body).unwrap_or(&Value::Null), &mut values));
    values
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(truth) => out.push(1 + u8::from(*truth)),
        Value::Number(number) => {
            out.push(3);
            // Minus zero equals zero.
            out.extend_from_slice(&(number.as_f64() + 0.0).to_bits().to_be_bytes());
        }
        Value::String(text) => {
            out.push(4);
            encode_text(text, out);
        }
        Value::Array(elements) => {
            out.push(5);
            encode_length(elements.len(), out);
            elements.iter().for_each(|element| encode(element, out));
        }
        Value::Object(object) => encode_object(object, out),
    }
}

fn encode_object(object: &Object, out: &mut Vec<u8>) {
    out.push(6);
    encode_length(object.len(), out);
    let mut properties: Vec<(&str, &Value)> = object.iter().collect();
    properties.sort_unstable_by_key(|(name, _)| *name);
    for (name, value) in properties {
        encode_text(name, out);
        encode(value, out);
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    encode_length(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

fn encode_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u64).to_be_bytes());
}

#[cfg(test)]
mod tests;
