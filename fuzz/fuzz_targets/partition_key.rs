//! Partition key headers, effective keys and resource IDs: parsed as a value, or rejected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_model::partition_key::{EffectiveKey, PartitionKey};
use pleiad_model::resource_id::ResourceId;

fuzz_target!(|text: &str| {
    if let Ok(key) = PartitionKey::parse(text) {
        assert_eq!(PartitionKey::parse(&key.to_json()).expect("a written key is a key"), key);
    }
    if let Ok(key) = EffectiveKey::parse(text) {
        assert_eq!(EffectiveKey::parse(&key.to_string()).expect("a written key is a key"), key);
    }
    let _ = ResourceId::parse(text);
});
