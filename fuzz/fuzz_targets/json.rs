//! JSON text is an error, or a value that is unchanged after writing and parsing it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_model::json;

fuzz_target!(|text: &[u8]| {
    if let Ok(value) = json::parse(text) {
        let written = json::to_string(&value);
        let again = json::parse(written.as_bytes()).expect("written text is JSON");
        assert_eq!(json::to_string(&again), written);
    }
});
