//! A filter and the condition that an index is asked for: no item that passes the first misses the second.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::{Choices, exam};

fuzz_target!(|bytes: &[u8]| exam::an_index_misses_nothing(&mut Choices::of_bytes(bytes)));
