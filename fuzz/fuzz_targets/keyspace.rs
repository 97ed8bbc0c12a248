//! Keys of a damaged store are rejected and never read past their end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_storage::keyspace;

fuzz_target!(|key: &[u8]| {
    let _ = keyspace::decode_id(key);
    let _ = keyspace::decode_member(key);
    let _ = keyspace::decode_key_stats(key);
    let _ = keyspace::decode_index(key);
    let _ = keyspace::decode_feed(key);
    let _ = keyspace::docnum_of_doc(key);
});
