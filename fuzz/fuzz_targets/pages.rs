//! A paged query over index candidates in several partitions returns the rows of a single pass over all items.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::{Choices, exam};

fuzz_target!(|bytes: &[u8]| exam::pages_equal_a_single_pass(&mut Choices::of_bytes(bytes)));
