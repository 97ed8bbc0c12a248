//! Any text is a query or an error, and so is its plan; it compiles and runs, in bounded time and memory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::exam;

fuzz_target!(|text: &str| exam::any_text_is_a_query_or_an_error(text));
