//! A filter and its index predicate: every item that passes the filter also matches the index predicate.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::{Choices, exam};

fuzz_target!(|bytes: &[u8]| exam::an_index_misses_nothing(&mut Choices::of_bytes(bytes)));
