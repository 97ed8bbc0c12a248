//! Any text is a query or an error, in bounded time and memory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_model::{Object, Value};

fuzz_target!(|text: &str| {
    let Ok(query) = pleiad_query::parse(text) else { return };
    let row = Value::from(Object::new().with("id", "1").with("a", 1i64));
    let _ = query.run_over(&Default::default(), [&row].into_iter());
});
